"""Character sets of the library's hand-written pre-tokenizers, as one bit mask per code point.

Rust's ``\\w`` (regular expressions), ``char::is_whitespace``, ``char::is_numeric``, and the punctuation of
unicode_categories (Unicode 8.0) with the ASCII symbols.
"""

from __future__ import annotations

from tokpack.pack.view import PackView

__all__ = ["NUMERIC", "PUNCTUATION", "SPACE", "WORD", "CharSets"]

WORD, SPACE, NUMERIC, PUNCTUATION = 1, 2, 4, 8
_BASE = 0x100  # class characters: U+0100 with the mask added


class CharSets:
    """The two-stage table ``hf.sets.*`` of a pack."""

    def __init__(self, view: PackView) -> None:
        self._classes = _Classes(*view.two_stage("hf.sets"))

    def classes(self, text: str) -> str:
        """``text`` with each character replaced by the character of its class."""
        return text.translate(self._classes)

    def has(self, char: str, mask: int) -> bool:
        """Whether a character is in one of the sets of ``mask``."""
        return bool((self._classes[ord(char)] - _BASE) & mask)

    @staticmethod
    def pattern(mask: int, *, negate: bool = False) -> str:
        """A class of a regular expression on class characters: those in one of the sets of ``mask`` (or in none)."""
        wanted = [chr(_BASE + value) for value in range(16) if bool(value & mask) != negate]
        return f"[{''.join(wanted)}]"


class _Classes(dict[int, int]):
    """Code point → class character; filled on demand."""

    def __init__(self, index: memoryview[int], blocks: memoryview[int]) -> None:
        super().__init__()
        self._index, self._blocks = index, blocks

    def __missing__(self, code_point: int) -> int:
        value = _BASE + (self._blocks[self._index[code_point >> 8] << 8 | code_point & 255] & 15)
        self[code_point] = value
        return value
