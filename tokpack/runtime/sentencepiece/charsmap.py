"""The charsmap of sentencepiece's ``Normalizer``: the longest key that the text goes on with, and what replaces it."""

from __future__ import annotations

from tokpack.errors import FormatError, Location
from tokpack.unicode.utf8 import character_length

__all__ = ["Charsmap", "character_end"]

_MATCHES = 32  # kMaxTrieResultsSize: longer ones are not looked at
_DEEPEST = 1000  # bytes of a key: the reader refuses more
REPLACEMENT = "\ufffd".encode()


class Charsmap:
    """u32 size of the array in bytes, XOR-compressed double array, NUL-terminated replacements.

    A unit is ``offset << 10 | shift << 9 | leaf << 8 | label``, or a value with the top bit set.

    Attributes:
        empty: there is no key.
        units: the double array.
    """

    def __init__(self, blob: bytes | memoryview, file: str | None = None) -> None:
        data = bytes(blob)
        size = int.from_bytes(data[:4], "little")
        self.units = memoryview(data[4 : 4 + size // 4 * 4]).cast("I") if len(data) > 4 + size else memoryview(b"")
        self._texts = data[4 + size :]
        self._file = file
        self.empty = not len(self.units)

    def longest(self, text: bytes, start: int) -> tuple[int, bytes | None]:
        """(bytes matched, replacement), or (0, None) when no key fits."""
        units, size, end = self.units, len(self.units), len(text)
        if not size:
            return 0, None
        node = _base(units[0])
        at, matched, value, found = start, 0, 0, 0
        while at < end and found < _MATCHES:
            char = text[at]
            node ^= char
            if node >= size:
                raise self._damaged()
            unit = units[node]
            if unit & 0x800000FF != char:
                break
            at += 1
            if at - start > _DEEPEST:
                raise self._damaged()
            node ^= _base(unit)
            if unit >> 8 & 1:
                if node >= size:
                    raise self._damaged()
                matched, value = at - start, units[node] & 0x7FFFFFFF
                found += 1
        if not matched or value >= len(self._texts):
            return 0, None
        stop = self._texts.find(b"\0", value)
        return matched, self._texts[value : stop if stop >= 0 else len(self._texts)]

    def reach(self, text: bytes) -> int:
        """How many bytes of ``text`` can be followed: if it is all of them, what comes behind may matter."""
        units, size = self.units, len(self.units)
        if not size:
            return 0
        node = _base(units[0])
        for at, char in enumerate(text):
            node ^= char
            if node >= size:
                raise self._damaged()
            unit = units[node]
            if unit & 0x800000FF != char:
                return at
            node ^= _base(unit)
        return len(text)

    def _damaged(self) -> FormatError:
        where = Location(self._file, "charsmap")
        return FormatError("the charsmap points outside its array", location=where, hint="convert the tokenizer again")


def _base(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6) & 0xFFFFFFFF


def character_end(raw: bytes, at: int) -> int:
    """End of the well-formed UTF-8 character at ``at`` (``IsValidDecodeUTF8``), or 0."""
    end = at + character_length(raw[at])
    try:
        return end if len(raw[at:end].decode()) == 1 else 0
    except UnicodeDecodeError:
        return 0
