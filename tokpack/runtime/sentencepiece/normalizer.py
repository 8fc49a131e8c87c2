"""sentencepiece's ``Normalizer`` (``normalizer.cc``).

At each place of a text a user-defined piece is taken over as it is, else the longest key of the charsmap is replaced,
else a character is copied; a byte that begins no character becomes U+FFFD. Spaces are removed, added and escaped on
what comes out. :meth:`Normalizer.trace` does just that; :meth:`Normalizer.apply` is the same for valid text, faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tokpack.runtime.sentencepiece.charsmap import REPLACEMENT, Charsmap, character_end
from tokpack.runtime.sentencepiece.user import PrefixMatcher
from tokpack.typed import Any

__all__ = ["Normalizer"]

_MARK = "▁"
_RUN = re.compile("  +")
_CACHE = 1 << 16
_UNSEEN: tuple[int, str] = (-1, "")  # not in the cache


class Normalizer:
    """Text to normalized text.

    Args:
        flags: add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, treat_whitespace_as_suffix.
        charsmap: the table.
        user: what finds user-defined pieces, or None (the denormalizer has none).
        user_spaces: whether one of them has two spaces in a row.
    """

    def __init__(
        self, flags: Mapping[str, Any], charsmap: Charsmap, user: PrefixMatcher | None, *, user_spaces: bool = False
    ) -> None:
        dummy, suffix = bool(flags["add_dummy_prefix"]), bool(flags.get("treat_whitespace_as_suffix", False))
        self._remove = bool(flags["remove_extra_whitespaces"])
        self._escape = bool(flags["escape_whitespaces"])
        self._space = _MARK if self._escape else " "
        self._before = self._space if dummy and not suffix else ""
        self._behind = self._space if dummy and suffix else ""
        self._charsmap = charsmap
        self._user = user if user is not None and not user.empty else None
        self._user_spaces = user_spaces
        self._pairs: dict[str, tuple[int, str] | None] = {}

    @property
    def fields(self) -> str:
        """Whether each word has a space in front of it (``before``), each one behind it (``after``), or ``none``."""
        if self._before:
            return "before"
        return "after" if self._behind and not self._remove else "none"

    @property
    def only_escapes(self) -> bool:
        """Whether spaces are all that is replaced, by one each, and one is put in front."""
        return self._charsmap.empty and self._user is None and not self._remove and bool(self._before)

    def escaped(self, text: str) -> str | None:
        """``text`` where spaces are all that is replaced; None if it has the character that they become."""
        if self._escape and self._space in text:
            return None
        text.encode()  # no surrogates
        return text.replace(" ", self._space)

    def between_spaces(self, text: str) -> str | None:
        """A word of the normalized text: what becomes of ``text``, which has no spaces, between any two spaces.

        None if that is not certain; nothing if the word is left out. With a space in front of it or behind it, as each
        word has. The spaces may be the ends of the text.
        """
        try:
            mapped = self._mapped_alone((" " + text + " ").encode())
        except UnicodeError:
            return None
        if mapped is None or (self._escape and self._space in mapped):
            return None
        if self._remove:
            mapped = _RUN.sub(" ", mapped.strip(" "))
            if not mapped:
                return "" if not self._behind else None
        elif not mapped or mapped[0] == " " or mapped[-1] == " ":
            return None
        return self._before + mapped.replace(" ", self._space) + self._behind

    def _mapped_alone(self, raw: bytes) -> str | None:
        """What the bytes between the first and the last one are replaced by, if these two stand for themselves."""
        at, last = 0, len(raw) - 1
        out: list[bytes] = []
        while at < last:
            rest = raw[at:]
            if self._charsmap.reach(rest) == len(rest):
                return None  # what comes behind may matter
            if self._user is not None and self._user.reach(rest) == len(rest):
                return None
            end, new = self._prefix(raw, at)
            if not at and (end, new) != (1, b" "):
                return None
            if b"  " in new:
                return None
            out.append(new)
            at = end
        return b"".join(out[1:]).decode() if at == last else None

    @property
    def charsmap(self) -> Charsmap | None:
        """The table; None if user-defined pieces come before it."""
        return self._charsmap if self._user is None else None

    def apply(self, text: str, replace: Callable[[str], str | None] | None = None) -> str | bytes:
        """The normalized text: str if it is valid UTF-8, as nearly always; else bytes.

        Args:
            text: has no surrogates.
            replace: another way to the result of :meth:`replaced`.
        """
        if not text:
            return ""
        if self._user is not None and not self._user.is_text:  # they may split characters
            return self.trace(text.encode())[0]
        mapped = text if self._charsmap.empty else (replace or self.replaced)(text)
        if mapped is None or (self._user_spaces and "  " in text):
            return self.trace(text.encode())[0]
        if self._remove:
            mapped = _RUN.sub(" ", mapped.lstrip(" "))
        out = (self._before + mapped).replace(" ", self._space)
        if self._remove:
            out = out.rstrip(self._space)
            if not mapped:  # whether there was anything but spaces decides about the suffix
                return self.trace(text.encode())[0]
        return out + self._behind

    def replaced(self, text: str) -> str | None:
        """The text with everything replaced; None when a replacement has a place in the middle of characters, is no
        UTF-8 or holds several spaces in a row, which only :meth:`trace` can treat.
        """
        out: list[str] = []
        append, pairs = out.append, self._pairs
        at, size = 0, len(text)
        while at < size:
            pair = text[at : at + 2]
            step = pairs.get(pair, _UNSEEN)
            if step is _UNSEEN:  # one look: another thread may fill or empty the cache between two
                step = self._step(pair)
                if len(pairs) >= _CACHE:
                    pairs.clear()
                pairs[pair] = step
            if step is None:  # what comes behind the two characters matters
                step = self._look_ahead(text, at)
                if step is None:
                    return None
            at += step[0]
            append(step[1])
        return "".join(out)

    def _step(self, pair: str) -> tuple[int, str] | None:
        """(characters, replacement) at the first of two characters; None when more of the text is needed."""
        raw = pair.encode()
        if self._user is not None and raw[0] in self._user.heads:
            return None
        # the walk must have ended inside the pair, or else a longer key may match
        return None if self._charsmap.reach(raw) == len(raw) else self._replace(raw)

    def _look_ahead(self, text: str, at: int) -> tuple[int, str] | None:
        """As :meth:`_step`, with the text that matters; None when the result is no whole characters."""
        width = 32
        while True:
            raw = text[at : at + width].encode()
            size = len(raw)
            deep = self._charsmap.reach(raw) == size or (self._user is not None and self._user.reach(raw) == size)
            if not deep or at + width >= len(text):
                return self._replace(raw)
            width *= 4

    def _replace(self, raw: bytes) -> tuple[int, str] | None:
        end, new = self._prefix(raw, 0)
        try:
            key, content = raw[:end].decode(), new.decode()
        except UnicodeDecodeError:
            return None
        return None if "  " in content else (len(key), content)

    def _prefix(self, raw: bytes, at: int) -> tuple[int, bytes]:
        """(end, what takes its place) of what is treated as one at ``at`` (``NormalizePrefix``)."""
        if self._user is not None:
            end, token = self._user.match(raw, at)
            if token >= 0:
                return end, raw[at:end]
        size, new = self._charsmap.longest(raw, at)
        if new is not None:
            return at + size, new
        end = character_end(raw, at)
        return (end, raw[at:end]) if end else (at + 1, REPLACEMENT)

    def trace(self, raw: bytes) -> tuple[bytes, list[int]]:
        """(normalized text, for each of its bytes and for its end the place in ``raw`` that it comes from)."""
        out = bytearray()
        origin: list[int] = []
        size, at = len(raw), 0
        if self._remove:
            while at < size:
                end, new = self._prefix(raw, at)
                if new != b" ":
                    break
                at = end
        if at >= size:
            return b"", [0]
        space = self._space.encode()
        width = len(space)
        if self._before:
            out += space
            origin += [at] * width
        was_space = self._remove
        while at < size:
            end, new = self._prefix(raw, at)
            if was_space:
                new = new.lstrip(b" ")
            if new:
                escaped = new.replace(b" ", space)
                out += escaped
                origin += [at] * len(escaped)
                was_space = self._remove and new.endswith(b" ")
            at = end
        if self._remove:
            while out.endswith(space):
                del out[-width:]
                at = origin[len(out)]
                del origin[-width:]
        if self._behind:
            out += space
            origin += [at] * width
        origin.append(at)
        return bytes(out), origin
