"""User-defined pieces in a text (``normalizer::PrefixMatcher``)."""

from __future__ import annotations

import re

from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.unicode.utf8 import character_length

__all__ = ["PrefixMatcher"]

_MATCHES = 64  # kResultSize: longer ones are not looked at


class PrefixMatcher:
    """Finds the longest of the user-defined pieces that a text goes on with.

    Attributes:
        empty: there are none.
        first: a pattern that finds a byte with which one begins.
        is_text: all of them are UTF-8.
    """

    def __init__(self, view: PackView, pieces: PieceTable, *, is_text: bool) -> None:
        self._trie = Trie.of(view, "user")
        self._pieces = pieces
        self.is_text = is_text
        heads = [bytes([byte]) for byte in range(256) if self._trie.child(0, bytes([byte])) >= 0]
        self.empty = not heads
        self.heads = frozenset(head[0] for head in heads)
        self.first = re.compile(b"[" + b"".join(map(re.escape, heads)) + b"]") if heads else None

    def match(self, text: bytes, start: int) -> tuple[int, int]:
        """(end, id) of the longest piece at ``start``, or (start, -1)."""
        if self.empty or text[start] not in self.heads:
            return start, -1
        found = self._trie.prefixes(text, start)[:_MATCHES]
        if not found:
            return start, -1
        end, token = found[-1]
        if token >= self._pieces.size:
            raise self._pieces.damaged("user.value", f"id {token} is out of range")
        return end, token

    def reach(self, text: bytes) -> int:
        """How many bytes of ``text`` some piece goes on with."""
        return self._trie.depth(text, 0)

    def split(self, text: bytes, *, valid: bool) -> list[tuple[int, int, int]]:
        """(id or -1, start, end) of the parts of a normalized text: user-defined pieces, and what is between them.

        A piece can begin only where a character does, as the bytes before it are counted.
        """
        parts: list[tuple[int, int, int]] = []
        size, last = len(text), 0
        at = self._next(text, 0, valid)
        while at < size:
            end, token = self.match(text, at)
            if token < 0:
                at = self._next(text, at + character_length(text[at]), valid)
                continue
            if valid and self.is_text and (_inside(text, at) or _inside(text, end)):
                raise self._pieces.damaged("user.label", "a user-defined piece is not whole characters")
            if last < at:
                parts.append((-1, last, at))
            parts.append((token, at, end))
            last = end
            at = self._next(text, end, valid)
        if last < size:
            parts.append((-1, last, size))
        return parts

    def _next(self, text: bytes, at: int, valid: bool) -> int:
        """The next place at which a piece may begin."""
        if self.first is None:
            return len(text)
        if valid and self.is_text:
            found = self.first.search(text, at)  # the first byte of a piece begins a character
            return found.start() if found else len(text)
        return at


def _inside(text: bytes, at: int) -> bool:
    """Whether a place lies inside a character of a UTF-8 text."""
    return at < len(text) and text[at] & 0xC0 == 0x80
