"""What one thread remembers of the words it met: tables, ids of words that have several, a front of recent ones.

Looking words up goes through the front first: a table of one slot for each hash that holds what was looked up last, so
small that it stays in the cache, which answers nearly all words of a text without a second look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tokpack.runtime.bulk.keys import Keys, Overlap, slots
from tokpack.runtime.bulk.table import ABSENT, Rows, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeyedWords", "Memory", "Static"]

_REMEMBERED = 1 << 18  # words of a table besides the pieces, and long words
_POOL = 1 << 22  # ids of remembered words
_FRONT = (17, 16, 12)  # bits of the fronts
_EMPTY = 0xFF  # no word's key: bytes 0xFF are only behind a word


@dataclass(frozen=True, slots=True)
class Static:
    """What is known from the start; shared between threads.

    Attributes:
        tables: one for each of :data:`LIMITS`.
        whole: pieces that a word becomes, but not a part of a word that is equal to it; their values in the tables are
            the complements of their numbers here.
        flat, counts: what such a part becomes.
    """

    tables: tuple[Table, ...]
    whole: NDArray[np.int32]
    flat: NDArray[np.int32]
    counts: NDArray[np.int64]


class KeyedWords(Sequence[bytes]):
    """Words of at most so many bytes, taken from their keys.

    Args:
        key: of all of them.
        sizes: bytes of each, ``[n]``.

    Attributes:
        matrix: their bytes, filled up with 0xFF, uint8 ``[n, limit]``.
    """

    def __init__(self, key: Keys, sizes: NDArray[np.int64]) -> None:
        self.matrix = np.stack(key, axis=1).view(np.uint8)
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return list(self)[at]
        return self.matrix[at, : self.sizes[at]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        raw, width = self.matrix.tobytes(), self.matrix.shape[1]
        return (raw[at * width : at * width + size] for at, size in enumerate(self.sizes.tolist()))


class _Front:
    """Key → value, of what was looked up last."""

    def __init__(self, width: int, bits: int) -> None:
        self._bits = bits
        self._rows = Rows(width, 1 << bits, _EMPTY)

    def find(self, key: Keys) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(values, where they are not those of the keys)."""
        values, other = self._rows.look(slots(key, self._bits), key)
        return values, np.flatnonzero(other)

    def put(self, key: Keys, values: NDArray[np.int32]) -> None:
        """Of several with one slot the last stays."""
        slot = slots(key, self._bits)
        self._rows.put_keys(slot, key)
        self._rows.put_values(slot, values)


class Memory:
    """What one thread remembers.

    A value is an id, or below 0 the complement of the number of a word.

    Args:
        static: what is known from the start.
    """

    def __init__(self, static: Static) -> None:
        self.overlap: Overlap | None = None
        self.tables = list(static.tables)
        self._own = [False] * len(self.tables)
        self._fronts: list[_Front | None] = [None] * len(self.tables)
        self.long: dict[bytes, int] = {}
        self.pool: NDArray[np.int32] = np.empty(1 << 12, dtype=np.int32)
        self._filled = 0
        self.begins: NDArray[np.int32] = np.empty(1 << 10, dtype=np.int32)  # where the ids of a word are in the pool
        self.counts: NDArray[np.int32] = np.empty(1 << 10, dtype=np.int32)
        self._numbers = 0
        if len(static.counts):
            self.settle(static.flat, static.counts)

    def full(self) -> bool:
        """Whether it is time to forget."""
        bound = _REMEMBERED
        return self._filled > _POOL or self._numbers > bound or len(self.long) > bound

    def front(self, index: int, key: Keys) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Values of words that were looked up of late, int32 ``[n]``, any for others; and where these are."""
        return self._front(index, key).find(key)

    def _front(self, index: int, key: Keys) -> _Front:
        front = self._fronts[index]
        if front is None:
            front = self._fronts[index] = _Front(len(key), _FRONT[index])
        return front

    def find(self, index: int, key: Keys) -> NDArray[np.int32]:
        """Values of words of a table, int32 ``[n]``, ABSENT for none."""
        found = self.tables[index].find(key)
        known = np.flatnonzero(found != ABSENT)
        self._front(index, key).put(tuple(part.take(known) for part in key), found.take(known))
        return found

    def learn(self, index: int, key: Keys, sizes: NDArray[np.int64], resolve: Any) -> NDArray[np.int32]:
        """Resolve words that are not in their table, and put them there; values, ABSENT where there was no room.

        If that fails, the memory must not be used again.
        """
        table = self._with_room(index, len(sizes))
        first = self._numbers
        values, new = table.intern(key, first)
        if len(new):
            key = tuple(part.take(new) for part in key)
            settled = self.settle(*resolve(KeyedWords(key, sizes.take(new))))
            single = np.flatnonzero(settled >= 0)
            table.assign(tuple(part.take(single) for part in key), settled.take(single))
            there = values != ABSENT
            values[there] = settled.take(~values[there] - first)
        return values

    def _with_room(self, index: int, count: int) -> Table:
        table = self.tables[index]
        if not self._own[index] or table.room < count:
            table = self.tables[index] = table.copy(count + (table.used >> 1))
            self._own[index] = True
        return table

    def settle(self, flat: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.int32]:
        """Number words and remember their ids; a value for each."""
        first, count = self._numbers, len(counts)
        self._numbers += count
        begins = np.cumsum(counts)
        begins -= counts
        values = ~np.arange(first, first + count, dtype=np.int32)
        single = np.flatnonzero(counts == 1)
        ids = flat.take(begins.take(single))
        # llama.cpp gives the id -1 where a vocabulary has no unknown piece
        values[single] = np.where(ids >= 0, ids, values.take(single))
        self.pool = _with(self.pool, self._filled, flat)
        self.begins = _with(self.begins, first, begins + self._filled)
        self.counts = _with(self.counts, first, counts)
        self._filled += len(flat)
        return values


def _with(array: NDArray[np.int32], used: int, more: NDArray[Any]) -> NDArray[np.int32]:
    """The array, or a larger one, with ``more`` behind what is used."""
    if used + len(more) > len(array):
        larger = np.empty(2 * (used + len(more)), dtype=np.int32)
        larger[:used] = array[:used]
        array = larger
    array[used : used + len(more)] = more
    return array
