"""BertNormalizer (``normalizers/bert.rs``): clean, space out CJK, strip accents, lower-case; in this order."""

from __future__ import annotations

from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_chars import WHITE_SPACE, CharNormalizer
from tokpack.runtime.hf.normalize_tables import Numbers, Texts, Translation
from tokpack.runtime.hf.normalize_unicode import Decomposition

__all__ = ["BertNormalizer"]

# ``is_chinese_char``, with its 2B920 where others have 2B820
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_WHITE_SPACE = frozenset(WHITE_SPACE)


class BertNormalizer:
    """The four parts, composed for each character.

    Only canonical ordering looks at more than one character, and only marks that are not dropped show it: a text with
    such a mark (a virama with General_Category Mc, say) takes the slow way.
    """

    def __init__(self, view: PackView, *, clean: bool, chinese: bool, accents: bool, lowercase: bool) -> None:
        self._control = Numbers(view, "control") if clean else None
        self._chinese = chinese
        self._decomposition = Decomposition(view, compatible=False) if accents else None
        self._nonspacing = Numbers(view, "nonspacing") if accents else None
        self._lower = Texts(view, "lowercase") if lowercase else None
        self._before = Translation(self._cleaned)
        self._after = Translation(self._finished)
        self._chars = CharNormalizer(self._whole)
        self._alone: set[str] = set()  # characters known to be independent of their neighbours

    def apply(self, text: str) -> str:
        """The normalized text."""
        if self._independent(text):
            return self._chars.apply(text)
        result = self._whole(text)
        return text if result == text else result

    def edits(self, text: str) -> list[tuple[int, int, str]]:
        """One edit for each character that changes; where order matters, for each run from starter to starter."""
        if self._independent(text):
            return self._chars.edits(text)
        edits = []
        starts = [at for at, char in enumerate(text) if at == 0 or self._starts(char)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            new = self._whole(text[start:end])
            if new != text[start:end]:
                edits.append((start, end, new))
        return edits

    def _whole(self, text: str) -> str:
        text = text.translate(self._before)
        if self._decomposition is not None:
            text = "".join(self._decomposition.ordered(text))
        return text.translate(self._after)

    def _cleaned(self, char: str) -> str:
        """``do_clean_text``, ``do_handle_chinese_chars``."""
        if self._control is not None:
            if self._control.number(char):
                return ""
            if char in _WHITE_SPACE:
                return " "
        if self._chinese and char > "\u33ff":
            code = ord(char)
            if any(first <= code <= last for first, last in _CHINESE):
                return f" {char} "
        return char

    def _finished(self, char: str) -> str:
        """``is_mark_nonspacing``, ``to_lowercase``."""
        if self._nonspacing is not None and self._nonspacing.number(char):
            return ""
        return char if self._lower is None else self._lower.text(char)

    def _independent(self, text: str) -> bool:
        if self._decomposition is None or text.isascii() or self._alone.issuperset(text):
            return True
        return not any(self._ordered_and_kept(char) for char in set(text) - self._alone)

    def _ordered_and_kept(self, char: str) -> bool:
        """Whether canonical ordering can move a part of this character, and the part is not dropped."""
        if self._decomposition is not None:
            for part in self._cleaned(char):
                for mark in self._decomposition.of(part):
                    if self._decomposition.combining(mark) and self._after[ord(mark)]:
                        return True
        self._alone.add(char)
        return False

    def _starts(self, char: str) -> bool:
        """Whether canonical ordering cannot move anything across the start of this character."""
        cleaned = self._cleaned(char)
        if self._decomposition is None or not cleaned:
            return bool(cleaned)
        first = self._decomposition.of(cleaned[0])[:1]
        return bool(first) and not self._decomposition.combining(first)
