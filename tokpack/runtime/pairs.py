"""The pairs of characters in symbols, asked one by one: the scalar side of :mod:`tokpack.runtime.bulk.cuts`."""

from __future__ import annotations

from collections.abc import Callable

from tokpack.pack.view import PackView

__all__ = ["SymbolPairs"]

_BITS = 19
_TAILS = 1 << 16 >> 3
_SIZE = (1 << _BITS >> 3) + _TAILS  # bytes
_CACHED = 1 << 16
_LEFT, _RIGHT, _WORD = 0x9E3779B1, 0x85EBCA77, 0xFFFFFFFF


class SymbolPairs(dict[str, bool]):
    """Two characters → whether a merge may cross the place between them; False is certain.

    The section ``bulk.pairs`` of a vocabulary whose symbols are text. A character that is no symbol may become
    anything, so nothing is certain beside it.

    Args:
        bits: the section.
        known: whether a character is a symbol.
    """

    def __init__(self, bits: memoryview, known: Callable[[str], bool]) -> None:
        super().__init__()
        self._bits = bits
        self._symbol = known

    @classmethod
    def of(cls, view: PackView, known: Callable[[str], bool]) -> SymbolPairs | None:
        """Of a pack; None if it has none, or symbols that begin or end inside a character."""
        bits = view.raw("bulk.pairs")
        if len(bits) != _SIZE or any(bits[-_TAILS:]):
            return None
        return cls(bits, known)

    def __missing__(self, pair: str) -> bool:
        slot = _slot(ord(pair[0]), ord(pair[1]))
        joined = bool(self._bits[slot >> 3] >> (slot & 7) & 1) or not (self._symbol(pair[0]) and self._symbol(pair[1]))
        if len(self) >= _CACHED:
            self.clear()
        self[pair] = joined
        return joined

    def cut(self, text: str) -> list[str]:
        """A text in the parts between which no merge goes."""
        out = []
        start = 0
        for at in range(1, len(text)):
            if not self[text[at - 1 : at + 1]]:
                out.append(text[start:at])
                start = at
        if start < len(text):
            out.append(text[start:])
        return out


def _slot(first: int, second: int) -> int:
    mixed = (first * _LEFT ^ second * _RIGHT) & _WORD
    mixed ^= mixed >> 15
    return (mixed * _LEFT & _WORD) >> (32 - _BITS)
