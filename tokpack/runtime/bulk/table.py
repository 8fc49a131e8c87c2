"""An open-address hash table of exact keys in arrays: many keys are looked up or inserted at a time.

A table that is shared between threads is never written to; each thread inserts into a copy of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.keys import hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ABSENT", "Table"]

ABSENT = -(1 << 31)  # value of an empty slot, and of a key that is not there
_PROBES = 64  # slots that a search goes through at most

Keys = tuple["NDArray[np.uint64]", ...]


class Table:
    """Key → int32, never ABSENT.

    Args:
        width: 8-byte words of a key.
        bits: there are ``2 ** bits`` slots; half of them may get filled.
    """

    def __init__(self, width: int, bits: int) -> None:
        size = (1 << bits) + _PROBES
        self.width = width
        self.bits = bits
        self.used = 0
        self._keys = tuple(np.zeros(size, dtype=np.uint64) for _ in range(width))
        self._values = np.full(size, ABSENT, dtype=np.int32)

    @classmethod
    def of(cls, key: Keys, value: NDArray[np.int32], spare: int = 0) -> Table:
        """A table of these entries with room for at least ``spare`` more."""
        table = cls(len(key), max(8, (3 * (len(value) + spare)).bit_length()))
        table.insert(key, value)
        return table

    @property
    def room(self) -> int:
        """Keys that can still be inserted."""
        return (1 << self.bits >> 1) - self.used

    def copy(self, spare: int = 0) -> Table:
        """Another table with the same entries and room for at least ``spare`` more."""
        table = Table.__new__(Table)
        table.width, table.bits, table.used = self.width, self.bits, self.used
        if self.room >= spare:
            table._keys = tuple(part.copy() for part in self._keys)
            table._values = self._values.copy()
            return table
        filled = np.flatnonzero(self._values != ABSENT)
        return Table.of(tuple(part[filled] for part in self._keys), self._values[filled], spare)

    def find(self, key: Keys) -> NDArray[np.int32]:
        """Values of keys, ABSENT for one that is not there; int32 ``[n]``."""
        slot = hashes(key, self.bits)
        values = self._values.take(slot)
        other = self._differ(slot, key)
        if not other.any():
            return values
        # another key's slot: go on to the next one; an empty slot ends the search
        other &= values != ABSENT
        at = np.flatnonzero(other)
        slot, rest = slot[at], tuple(part[at] for part in key)
        values[at] = ABSENT
        for _ in range(_PROBES - 1):
            if not len(at):
                break
            slot += 1
            found = self._values.take(slot)
            other = self._differ(slot, rest)
            values[at] = np.where(other, np.int32(ABSENT), found)
            other &= found != ABSENT
            at, slot, rest = at[other], slot[other], tuple(part[other] for part in rest)
        return values

    def _differ(self, slot: NDArray[np.int64], key: Keys) -> NDArray[np.bool_]:
        differ: NDArray[np.bool_] = self._keys[0].take(slot) != key[0]
        for mine, wanted in zip(self._keys[1:], key[1:], strict=True):
            differ |= mine.take(slot) != wanted
        return differ

    def insert(self, key: Keys, value: NDArray[np.int32]) -> None:
        """Add keys that differ and are not there yet, at most :attr:`room`; those first in the arrays are found faster.

        A key is left out when its slot and those behind are taken, which a search accounts for.
        """
        slot = hashes(key, self.bits)
        todo = np.arange(len(slot))
        claim = np.empty(len(self._values), dtype=np.int64)
        for _ in range(_PROBES):
            if not len(todo):
                return
            here = slot[todo]
            claim[here[::-1]] = todo[::-1]  # of several the first wins
            won = (claim.take(here) == todo) & (self._values.take(here) == ABSENT)
            places, winners = here[won], todo[won]
            for mine, part in zip(self._keys, key, strict=True):
                mine[places] = part[winners]
            self._values[places] = value[winners]
            self.used += len(winners)
            todo = todo[~won]
            slot[todo] += 1
