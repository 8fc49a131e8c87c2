"""Normalizers that map each character on its own (``normalizers/utils.rs``, ``strip.rs``, ``unicode.rs``)."""

from __future__ import annotations

from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_tables import CharFunction, Numbers, Texts, Translation
from tokpack.unicode import byte_level

__all__ = ["WHITE_SPACE", "ByteLevelNormalizer", "CharNormalizer", "lowercase", "nmt", "strip_accents"]

# White_Space, ``char::is_whitespace``; the same 25 in every Unicode version since 6.3
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
# ``do_nmt`` of normalizers/unicode.rs: the filter, then the map
_NMT_DROPPED = frozenset(map(chr, (*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F)))
_NMT_SPACES = frozenset("\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd")


class CharNormalizer:
    """Every character to the text that ``function`` gives, asked once per character."""

    def __init__(self, function: CharFunction) -> None:
        self._table = Translation(function)
        self._same: set[str] = set()  # characters of texts that stayed what they were

    def apply(self, text: str) -> str:
        """The text with every character replaced."""
        if self._same.issuperset(text):
            return text
        result = text.translate(self._table)
        if result == text:
            self._same.update(text)
            return text
        return result

    def edits(self, text: str) -> list[tuple[int, int, str]]:
        """One edit for each character that changes."""
        changed = {char: new for char in set(text) if (new := self._table[ord(char)]) != char}
        return [(at, at + 1, changed[char]) for at, char in enumerate(text) if char in changed] if changed else []


class ByteLevelNormalizer(CharNormalizer):
    """The bytes of the text, spelled in GPT-2's alphabet (``normalizers/byte_level.rs``)."""

    def __init__(self) -> None:
        super().__init__(_spell)

    def apply(self, text: str) -> str:
        """The text spelled; at once, which is faster than by character."""
        result = _spell(text)
        return text if result == text else result


def _spell(text: str) -> str:
    return byte_level.encode(text.encode("utf-8", "surrogatepass"))


def lowercase(view: PackView) -> CharFunction:
    """``char::to_lowercase`` (Unicode 17.0): by character, so there is no final sigma."""
    return Texts(view, "lowercase").text


def strip_accents(view: PackView) -> CharFunction:
    """``normalizers/strip.rs``: drops ``is_combining_mark`` (Unicode 9.0) and does not decompose."""
    marks = Numbers(view, "mark")
    return lambda char: "" if marks.number(char) else char


def nmt(char: str) -> str:
    """The rules of sentencepiece's nmt."""
    return "" if char in _NMT_DROPPED else " " if char in _NMT_SPACES else char
