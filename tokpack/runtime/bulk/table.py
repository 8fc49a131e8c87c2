"""An open-address hash table of exact keys in arrays: many keys are looked up or inserted at a time.

A table that is shared between threads is never written to; each thread inserts into a copy of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.keys import Keys, hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ABSENT", "Rows", "Table"]

ABSENT = -(1 << 31)  # value of an empty slot, and of a key that is not there
_PROBES = 65  # slots that a search goes through at most
_WINDOW = 8  # slots behind the first one that are looked at together
_STEPS = np.arange(_WINDOW)
_COLUMNS = {1: 2, 2: 4}  # of a row of 8 bytes each, so that it lies in one line of the cache


class Rows:
    """Keys and their values side by side: a search of one reads memory at one place.

    Args:
        width: 8-byte words of a key.
        size: number of slots.
        empty: first word of the key of an empty slot.
    """

    def __init__(self, width: int, size: int, empty: int = 0) -> None:
        self.width = width
        self._rows = np.zeros((size, _COLUMNS.get(width, width + 1)), dtype=np.uint64)
        self._signed = self._rows.view(np.int64)
        if empty:
            self._rows[:, 0] = empty

    def clear(self) -> None:
        """Give every slot the value ABSENT."""
        self._signed[:, self.width] = ABSENT

    def copy(self) -> Rows:
        """Another one with the same entries."""
        rows = Rows.__new__(Rows)
        rows.width = self.width
        rows._rows = self._rows.copy()
        rows._signed = rows._rows.view(np.int64)
        return rows

    def look(self, slot: NDArray[np.int64], key: Keys) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """(values in these slots, whether another key is there); ``slot`` may have an axis more, the last one."""
        rows = self._rows.take(slot, axis=0)
        wanted = key if slot.ndim == 1 else tuple(part[:, None] for part in key)
        other: NDArray[np.bool_] = rows[..., 0] != wanted[0]
        for column in range(1, self.width):
            other |= rows[..., column] != wanted[column]
        return rows[..., self.width].astype(np.int32), other

    def values(self, slot: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Values in slots."""
        column = self._signed[:, self.width]
        return (column if slot is None else column[slot]).astype(np.int32)

    def keys(self, slot: NDArray[np.int64]) -> Keys:
        """Keys in slots."""
        return tuple(self._rows[slot, column] for column in range(self.width))

    def put_values(self, slot: NDArray[np.int64], values: NDArray[np.int32]) -> None:
        """Other values; of several for one slot the last stays."""
        self._signed[slot, self.width] = values

    def put_keys(self, slot: NDArray[np.int64], key: Keys) -> None:
        """Other keys; of several for one slot the last stays."""
        for column, part in enumerate(key):
            self._rows[slot, column] = part


class Table:
    """Key → int32, never ABSENT.

    Args:
        width: 8-byte words of a key.
        bits: there are ``2 ** bits`` slots; half of them may get filled.
    """

    def __init__(self, width: int, bits: int) -> None:
        self.width = width
        self.bits = bits
        self.used = 0
        self._rows = Rows(width, (1 << bits) + _PROBES)
        self._rows.clear()

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
        if self.room >= spare:
            table = Table.__new__(Table)
            table.width, table.bits, table.used = self.width, self.bits, self.used
            table._rows = self._rows.copy()
            return table
        values = self._rows.values()
        filled = np.flatnonzero(values != ABSENT)
        return Table.of(self._rows.keys(filled), values[filled], spare)

    def find(self, key: Keys) -> NDArray[np.int32]:
        """Values of keys, ABSENT for one that is not there; int32 ``[n]``."""
        slot = hashes(key, self.bits)
        values, other = self._rows.look(slot, key)
        if not other.any():
            return values
        # another key's slot: go on to those behind; an empty slot ends the search
        other &= values != ABSENT
        at = np.flatnonzero(other)
        slot, rest = slot.take(at) + 1, tuple(part.take(at) for part in key)
        values[at] = ABSENT
        for _ in range(1, _PROBES, _WINDOW):
            if not len(at):
                break
            found, differ = self._rows.look(slot[:, None] + _STEPS, rest)
            first = np.argmin(differ, axis=1)
            row = np.arange(len(at))
            on = differ[row, first]
            values[at] = np.where(on, np.int32(ABSENT), found[row, first])
            on &= (found != ABSENT).all(axis=1)
            at, slot, rest = at[on], slot[on] + _WINDOW, tuple(part[on] for part in rest)
        return values

    def insert(self, key: Keys, value: NDArray[np.int32]) -> None:
        """Add keys that differ and are not there yet, at most :attr:`room`; those first in the arrays are found faster.

        A key is left out when its slot and those behind are taken, which a search accounts for.
        """
        slot = hashes(key, self.bits)
        todo = np.arange(len(slot), dtype=np.int32)
        for _ in range(_PROBES):
            if not len(todo):
                return
            here, won = self._claim(slot, key, todo)
            winners = todo[won]
            self._rows.put_values(here[won], value[winners])
            self.used += len(winners)
            todo = todo[~won]
            slot[todo] += 1

    def _claim(
        self, slot: NDArray[np.int64], key: Keys, todo: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Write keys into their slots if these are empty; (slots, which keys did it): of several the first one."""
        here = slot.take(todo)
        won = self._rows.values(here) == ABSENT
        free, able = here[won], todo[won]
        self._rows.put_values(free[::-1], able[::-1])
        first = self._rows.values(free) == able
        won[won] = first
        free, able = free[first], able[first]
        self._rows.put_keys(free, tuple(part.take(able) for part in key))
        return here, won

    def intern(self, key: Keys, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Give keys that are not there the values ``~number``, ``~(number + 1)``, ..., equal ones the same.

        Args:
            key: at most :attr:`room` keys.
            number: the first one.

        Returns:
            Values of the keys, int32 ``[n]``, ABSENT for one that was left out; and where the new ones are in the
            arrays, in the order of their numbers.
        """
        slot = hashes(key, self.bits)
        values = np.full(len(slot), ABSENT, dtype=np.int32)
        todo = np.arange(len(slot), dtype=np.int32)
        new = []
        for _ in range(_PROBES):
            if not len(todo):
                break
            here, won = self._claim(slot, key, todo)
            winners = todo[won]
            self._rows.put_values(here[won], ~np.arange(number, number + len(winners), dtype=np.int32))
            number += len(winners)
            self.used += len(winners)
            new.append(winners)
            found, other = self._rows.look(here, tuple(part.take(todo) for part in key))
            values[todo] = np.where(other, np.int32(ABSENT), found)
            todo = todo[other]
            slot[todo] += 1
        return values, np.concatenate(new) if new else todo

    def assign(self, key: Keys, value: NDArray[np.int32]) -> None:
        """Other values for keys that are there."""
        slot = hashes(key, self.bits)
        todo = np.arange(len(slot))
        for _ in range(_PROBES):
            if not len(todo):
                return
            here = slot.take(todo)
            _, other = self._rows.look(here, tuple(part.take(todo) for part in key))
            same = ~other
            self._rows.put_values(here[same], value.take(todo[same]))
            todo = todo[other]
            slot[todo] += 1
