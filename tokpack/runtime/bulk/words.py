"""Words to ids: tables of what is known, a resolver for the rest, and laying the ids end to end.

The pieces that a word can be as a whole are known from the start; what else the words of a text become is remembered
by each thread for itself, up to a bound. So nothing that two threads share is ever written to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.runtime.bulk.keys import LIMITS, Overlap, padded
from tokpack.runtime.bulk.table import ABSENT, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Chunk", "Resolver", "Static", "WordIds", "nothing_known", "static_tables"]

_REMEMBERED = 1 << 18  # words of a table besides the pieces, and long words
_POOL = 1 << 22  # ids of remembered words
_GROUP = 1 << 21  # bytes of text whose new words are resolved together
_GIVEN = 1 << 60  # size of a word that is not looked up
_LONG = 256  # bytes; longer words are not remembered

# words → (their ids laid end to end, how many each has)
Resolver = Callable[[Sequence[bytes]], "tuple[NDArray[np.int32], NDArray[np.int64]]"]


def static_tables(
    blob: NDArray[np.uint8], offset: NDArray[np.int64], ids: NDArray[np.int64], values: NDArray[np.int32]
) -> tuple[Table, ...]:
    """Tables of pieces that are words: one for each of :data:`LIMITS`.

    Args:
        blob: bytes of all pieces, with padding.
        offset: where each piece begins, ``[V + 1]``.
        ids: the pieces.
        values: what is to be found for each.
    """
    overlap = Overlap(blob)
    starts = offset[ids]
    sizes = offset[ids + 1] - starts
    tables, shorter = [], 0
    for limit in LIMITS:
        chosen = (sizes > shorter) & (sizes <= limit)
        key = overlap.keys(starts[chosen], sizes[chosen], limit)
        tables.append(Table.of(key, values[chosen]))
        shorter = limit
    return tuple(tables)


@dataclass(frozen=True, slots=True)
class Static:
    """What is known from the start; shared between threads.

    Attributes:
        tables: of :func:`static_tables`.
        whole: pieces that a word becomes, but not a part of a word that is equal to it; their values in the tables are
            the complements of their numbers here.
        flat, counts: what such a part becomes.
    """

    tables: tuple[Table, ...]
    whole: NDArray[np.int32]
    flat: NDArray[np.int32]
    counts: NDArray[np.int64]


def nothing_known() -> Static:
    """No words."""
    none = np.zeros(0, dtype=np.int32)
    tables = tuple(Table(limit // 8, 8) for limit in LIMITS)
    return Static(tables, none, none, none.astype(np.int64))


class _Memory:
    """What one thread remembers.

    A value is an id, or below 0 the complement of a number of :attr:`places`.
    """

    def __init__(self, static: Static) -> None:
        self._static = static
        self.reset()

    def reset(self) -> None:
        """Forget all but the pieces."""
        self.tables = list(self._static.tables)
        self._own = [False] * len(self.tables)
        self.long: dict[bytes, int] = {}
        self.pool: NDArray[np.int32] = np.empty(1 << 12, dtype=np.int32)
        self.filled = 0
        self.places: NDArray[np.int64] = np.empty(
            (1 << 10, 2), dtype=np.int64
        )  # where the ids of a word begin, how many there are
        self.numbers = 0
        if len(self._static.counts):
            ends = np.cumsum(self._static.counts)
            self._append(self._static.flat, ends - self._static.counts, self._static.counts)

    def full(self) -> bool:
        """Whether it is time to forget."""
        bound = _REMEMBERED
        return self.filled > _POOL or self.numbers > bound or len(self.long) > bound

    def add(self, index: int, key: tuple[NDArray[np.uint64], ...], values: NDArray[np.int32]) -> None:
        """Remember words of a table."""
        table = self.tables[index]
        if not self._own[index] or table.room < len(values):
            table = self.tables[index] = table.copy(len(values) + (table.used >> 1))
            self._own[index] = True
        table.insert(key, values)

    def values(self, flat: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.int32]:
        """A value for each word."""
        ends = np.cumsum(counts)
        begins = ends - counts
        values = np.empty(len(counts), dtype=np.int32)
        single = counts == 1
        # llama.cpp gives the id -1 where a vocabulary has no unknown piece
        single[single] = flat[begins[single]] >= 0
        values[single] = flat[begins[single]]
        several = np.flatnonzero(~single)
        if len(several):
            first = self._append(flat, begins[several], counts[several])
            values[several] = ~np.arange(first, first + len(several), dtype=np.int32)
        return values

    def _append(self, flat: NDArray[np.int32], begins: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
        first, size = self.numbers, len(flat)
        self.pool = _room(self.pool, self.filled, size)
        self.places = _room(self.places, first, len(counts))
        self.pool[self.filled : self.filled + size] = flat
        self.places[first : first + len(counts), 0] = begins + self.filled
        self.places[first : first + len(counts), 1] = counts
        self.filled += size
        self.numbers += len(counts)
        return first


def _room(array: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    if used + more <= len(array):
        return array
    larger = np.empty((2 * (used + more), *array.shape[1:]), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text and its words.

    Attributes:
        raw: UTF-8, surrogates allowed.
        places: where the words begin, and the end of the text; none is empty.
        parts: tells which of them are only parts of words, bool ``[n]``; None if none is.
        given: (numbers of words whose id is known, their ids), or None.
        gaps: which of them are no words but left out, bool ``[n]``, or None.
    """

    raw: bytes
    places: NDArray[np.int64]
    parts: Callable[[], NDArray[np.bool_]] | None = None
    given: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None
    gaps: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """A chunk on its way: ``missing`` has (number of the table, places in ``values``, words, keys)."""

    values: NDArray[np.int32]
    parts: Callable[[], NDArray[np.bool_]] | None
    missing: list[tuple[int, NDArray[np.int64], list[bytes], tuple[NDArray[np.uint64], ...]]]


class WordIds:
    """Words to ids.

    Args:
        static: what is known from the start.
        resolve: what the words in no table become.
    """

    def __init__(self, static: Static, resolve: Resolver) -> None:
        self._static = static
        self._resolve = resolve
        self.group = _GROUP
        self._local = threading.local()

    def _memory(self) -> _Memory:
        memory: _Memory | None = getattr(self._local, "memory", None)
        if memory is None:
            memory = self._local.memory = _Memory(self._static)
        elif memory.full():
            memory.reset()
        return memory

    def force(self, few: int, group: int) -> None:
        """Start anew with other limits, for tests."""
        self._local = threading.local()
        self.group = group
        if hasattr(self._resolve, "few"):
            self._resolve.few = few

    def encode(self, chunks: Iterable[Chunk]) -> Iterator[NDArray[np.int32]]:
        """Ids of the words of each chunk of a text, int32 ``[n]``.

        New words of several chunks are resolved together: a round of merging costs the same for few words as for many.
        """
        group: list[_Work] = []
        memory, size = self._memory(), 0
        for chunk in chunks:
            group.append(self._look_up(memory, chunk))
            size += len(chunk.raw)
            if size >= self.group:
                yield from self._finish(memory, group)
                group, memory, size = [], self._memory(), 0
        yield from self._finish(memory, group)

    def _look_up(self, memory: _Memory, chunk: Chunk) -> _Work:
        """Values of the words that are known."""
        raw, starts = chunk.raw, chunk.places[:-1]
        sizes = np.diff(chunk.places)
        if chunk.gaps is not None:
            starts, sizes = starts[~chunk.gaps], sizes[~chunk.gaps]
        overlap = Overlap(padded(raw))
        values = np.full(len(starts), ABSENT, dtype=np.int32)
        if chunk.given is not None:
            values[chunk.given[0]] = chunk.given[1]
            sizes[chunk.given[0]] = _GIVEN
        work = _Work(values, chunk.parts, [])
        shorter = 0
        for index, limit in enumerate(LIMITS):
            chosen = np.flatnonzero(sizes <= limit if not shorter else (sizes > shorter) & (sizes <= limit))
            shorter = limit
            if not len(chosen):
                continue
            key = overlap.keys(starts.take(chosen), sizes.take(chosen), limit)
            found = memory.tables[index].find(key)
            values[chosen] = found
            missing = np.flatnonzero(found == ABSENT)
            if len(missing):
                which = chosen[missing]
                words = _slices(raw, starts[which], sizes[which])
                work.missing.append((index, which, words, tuple(part[missing] for part in key)))
        chosen = np.flatnonzero((sizes > shorter) & (sizes < _GIVEN))
        if len(chosen):
            work.missing.append((len(LIMITS), chosen, _slices(raw, starts[chosen], sizes[chosen]), ()))
        return work

    def _finish(self, memory: _Memory, group: list[_Work]) -> Iterator[NDArray[np.int32]]:
        """Resolve the new words of these chunks and lay out the ids."""
        for index in range(len(LIMITS) + 1):
            found = [(work, *missing[1:]) for work in group for missing in work.missing if missing[0] == index]
            if not found:
                continue
            words = [word for _, _, some, _ in found for word in some]
            if index < len(LIMITS):
                parts = zip(*(key for *_, key in found), strict=True)
                values = self._learn(memory, words, index, tuple(map(np.concatenate, parts)))
            else:
                values = self._long(memory, words)
            at = 0
            for work, which, some, _ in found:
                work.values[which] = values[at : at + len(some)]
                at += len(some)
        for work in group:
            values = work.values
            several = np.flatnonzero(values < 0)
            if len(self._static.whole) and len(several):
                several = self._whole(values, several, work.parts)
            yield _lay_out(values, several, memory)

    def _whole(
        self, values: NDArray[np.int32], several: NDArray[np.int64], parts: Callable[[], NDArray[np.bool_]] | None
    ) -> NDArray[np.int64]:
        """Give words that are such a piece their id; returns what is left of ``several``."""
        numbers = ~values.take(several)
        found = numbers < len(self._static.whole)
        if not found.any():
            return several
        if parts is not None:
            found &= ~parts().take(several)
        values[several[found]] = self._static.whole.take(numbers[found])
        return several[~found]

    def _learn(
        self, memory: _Memory, words: list[bytes], index: int, key: tuple[NDArray[np.uint64], ...]
    ) -> NDArray[np.int32]:
        number: dict[bytes, int] = {}
        for word in words:
            number.setdefault(word, len(number))
        which = np.fromiter(map(number.__getitem__, words), dtype=np.int64, count=len(words))
        values = memory.values(*self._resolve(list(number)))
        first = np.empty(len(number), dtype=np.int64)
        first[which[::-1]] = np.arange(len(which) - 1, -1, -1)
        memory.add(index, tuple(part[first] for part in key), values)
        return values.take(which)

    def _long(self, memory: _Memory, words: list[bytes]) -> NDArray[np.int32]:
        known = memory.long
        new = [word for word in dict.fromkeys(words) if word not in known]
        if new:
            values = memory.values(*self._resolve(new)).tolist()
            fresh = dict(zip(new, values, strict=True))
            known.update((word, value) for word, value in fresh.items() if len(word) <= _LONG)
            known = {**fresh, **known} if len(fresh) * 4 > len(known) else _Both(fresh, known)
        return np.fromiter(map(known.__getitem__, words), dtype=np.int32, count=len(words))


class _Both(dict[bytes, int]):
    """Two maps as one."""

    def __init__(self, first: dict[bytes, int], second: dict[bytes, int]) -> None:
        super().__init__(first)
        self._second = second

    def __missing__(self, word: bytes) -> int:
        return self._second[word]


def _slices(raw: bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[bytes]:
    stops = (starts + sizes).tolist()
    return [raw[start:stop] for start, stop in zip(starts.tolist(), stops, strict=True)]


def _lay_out(values: NDArray[np.int32], several: NDArray[np.int64], memory: _Memory) -> NDArray[np.int32]:
    """The ids of all words end to end; ``several`` are those that have not one."""
    if not len(several):
        return values
    places = memory.places.take(~values.take(several), axis=0)
    counts = np.ones(len(values), dtype=np.int64)
    counts[several] = places[:, 1]
    ends = np.cumsum(counts)
    out = np.empty(int(ends[-1]), dtype=np.int32)
    begins = ends - counts
    if int(places[:, 1].min()):
        out[begins] = values  # first ids of words that have several are overwritten below
    else:
        some = counts > 0
        out[begins[some]] = values[some]
    inner = places[:, 1]
    total = int(inner.sum())
    skip = np.cumsum(inner) - inner
    step = np.arange(total)
    out[np.repeat(begins.take(several) - skip, inner) + step] = memory.pool.take(
        np.repeat(places[:, 0] - skip, inner) + step
    )
    return out
