"""Sure boundaries inside words: between two characters that stand side by side in no symbol.

A merge makes a symbol of neighbouring bytes. If no symbol of the vocabulary holds a pair of characters, no merge ever
crosses the place between them, and what is left of it is encoded without regard to what is right of it. Clauses of
scripts without spaces, nearly all of which are new, so become parts of a few characters that are known.

The pairs are kept as a hashed bitmap: two pairs in one bit only mean that a place is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BITMAP", "BytePairs"]

_BITS = 19
_LEFT, _RIGHT = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_SHIFT = np.uint32(32 - _BITS)
BITMAP = (1 << _BITS >> 3) + (1 << 16 >> 3)  # bytes
_HEAD = 0x110000  # behind the code points: the first byte of a character that a symbol cuts short
# bytes of a character by its first byte; 0: none begins with it
_LENGTHS = np.array([1] * 0x80 + [0] * 0x42 + [2] * 0x1E + [3] * 0x10 + [4] * 8 + [0] * 8, dtype=np.int64)


class BytePairs:
    """The pairs of characters in symbols.

    Args:
        pairs, tails: hashed pairs, and pairs of bytes where the left character is not known.
        lowest: characters below this code point are not looked at: 0 or 0x80.
    """

    def __init__(self, pairs: NDArray[np.bool_], tails: NDArray[np.bool_], lowest: int) -> None:
        self._pairs = pairs
        self._tails = tails
        self._any_tails = bool(tails.any())
        self._lowest = lowest

    @classmethod
    def of_bits(cls, bits: NDArray[np.uint8], lowest: int) -> BytePairs | None:
        """From :meth:`bits`; None if there are none."""
        if len(bits) != BITMAP:
            return None
        table = np.unpackbits(bits, bitorder="little").astype(np.bool_)
        return cls(table[: 1 << _BITS], table[1 << _BITS :], lowest)

    def bits(self) -> bytes:
        """The two bitmaps, the pairs first."""
        return np.packbits(np.concatenate((self._pairs, self._tails)), bitorder="little").tobytes()

    @classmethod
    def of_symbols(cls, blob: NDArray[np.uint8], offset: NDArray[np.int64], lowest: int) -> BytePairs:
        """The pairs of a vocabulary.

        Args:
            blob: bytes of all symbols.
            offset: where each symbol begins, ``[S + 1]``.
            lowest: characters below this code point are not looked at: 0 or 0x80.
        """
        pairs = np.zeros(1 << _BITS, dtype=np.bool_)
        tails = np.zeros(1 << 16, dtype=np.bool_)  # last byte << 8 | first byte, of symbols that begin inside
        size = int(offset[-1])
        blob = blob[:size]
        lead = np.flatnonzero((blob & 0xC0) != 0x80)
        length = np.append(lead[1:], size) - lead
        token = np.repeat(np.arange(len(offset) - 1, dtype=np.int32), np.diff(offset))
        stop = offset[1:][token[lead]]
        length = np.minimum(length, stop - lead)
        whole = length == _LENGTHS[blob[lead]]
        codes = _code_points(np.append(blob, np.zeros(4, dtype=np.uint8)), lead, length)
        # characters that have something of the same symbol before them
        which = np.flatnonzero((lead > 0) & (offset[token[lead]] < lead) & (blob[lead] >= lowest))
        which = which[blob[lead[which] - 1] >= lowest]
        at = lead[which]
        before = np.maximum(which - 1, 0)
        known = (which > 0) & whole[before] & (token[lead[before]] == token[at]) & (lead[before] + length[before] == at)
        second = np.where(whole[which], codes[which], _HEAD + blob[at].astype(np.uint32)).astype(np.uint32)
        pairs[_slots(codes[before[known]], second[known])] = True
        partial = at[~known]
        tails[blob[partial - 1].astype(np.int64) << 8 | blob[partial]] = True
        # two NUL bytes: says that there are symbols with the beginning of a character at their end
        tails[0] |= bool((~whole[which] & known).any())
        return cls(pairs, tails, lowest)

    def places(self, points: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Characters of a text before which it may be cut, ascending; ``points`` are its code points."""
        if self._lowest:
            high = points >= self._lowest
            at = np.flatnonzero(high[1:] & high[:-1])
            first, second = points[at], points[at + 1]
        else:
            first, second = points[:-1], points[1:]
        if not len(first):
            return np.zeros(0, dtype=np.int64)
        joined = self._pairs.take(_slots(first, second))
        if self._any_tails:  # else no symbol cuts a character short
            lead = _first_bytes(second)
            joined |= self._pairs.take(_slots(first, lead + np.uint32(_HEAD)))
            tail = np.where(first < 0x80, first, first & np.uint32(0x3F) | np.uint32(0x80))
            joined |= self._tails.take(tail << np.uint32(8) | lead)
        if self._lowest:
            at += 1
            return at[~joined]
        return np.flatnonzero(~joined) + 1


def _slots(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.uint32]:
    mixed: NDArray[np.uint32] = first * _LEFT
    mixed ^= second * _RIGHT
    mixed ^= mixed >> np.uint32(15)
    mixed *= _LEFT
    mixed >>= _SHIFT
    return mixed


def _first_bytes(points: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """First UTF-8 byte of code points."""
    two = points >> np.uint32(6) | np.uint32(0xC0)
    three = points >> np.uint32(12) | np.uint32(0xE0)
    four = points >> np.uint32(18) | np.uint32(0xF0)
    longer = np.where(points < 0x800, two, np.where(points < 0x10000, three, four))
    return np.where(points < 0x80, points, longer)


def _code_points(blob: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Code points of sequences; of any value where the length is not that of a character."""
    parts = [blob[at + step].astype(np.uint32) & 0x3F for step in range(4)]
    two = parts[0] & 0x1F
    two = two << 6 | parts[1]
    three = ((parts[0] & 0x0F) << 6 | parts[1]) << 6 | parts[2]
    four = (((parts[0] & 0x07) << 6 | parts[1]) << 6 | parts[2]) << 6 | parts[3]
    longer = np.where(length == 2, two, np.where(length == 3, three, four))
    return np.where(length == 1, blob[at], longer).astype(np.uint32)
