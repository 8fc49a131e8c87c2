"""Words to ids: tables of what is known, a resolver for the rest, and laying the ids end to end.

The pieces that a word can be as a whole are known from the start; what else the words of a text become is remembered
by each thread for itself, up to a bound. So nothing that two threads share is ever written to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.keys import LIMITS, Keys, Overlap, padded
from tokpack.runtime.bulk.memory import Memory, Static
from tokpack.runtime.bulk.table import ABSENT, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Chunk", "Resolver", "Static", "WordIds", "nothing_known", "static_tables"]

_GROUP = 1 << 22  # bytes of text whose new words are resolved together
_GIVEN = 1 << 40  # size of a word that is not looked up
_MISSED = 1 << 13  # words from which on a search in the tables is worth its while
_KEPT = 1 << 19  # bytes of a chunk whose keys' place is kept for the next one
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


def nothing_known() -> Static:
    """No words."""
    none = np.zeros(0, dtype=np.int32)
    tables = tuple(Table(limit // 8, 8) for limit in LIMITS)
    return Static(tables, none, none, none.astype(np.int64))


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
    """A chunk on its way.

    Attributes:
        long: words that are too long for the tables.
    """

    chunk: Chunk
    values: NDArray[np.int32]
    long: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Some:
    """Words of a chunk whose values are not known yet: where these go, keys, sizes."""

    values: NDArray[np.int32]
    which: NDArray[np.int64]
    key: Keys
    sizes: NDArray[np.int64]

    def take(self, at: NDArray[np.int64]) -> _Some:
        return _Some(self.values, self.which.take(at), tuple(part.take(at) for part in self.key), self.sizes.take(at))


class _Group:
    """Chunks whose new words are resolved together.

    Attributes:
        size: bytes of the chunks.
        works: the chunks.
        missed: words that are not in the fronts, for each table.
        many: how many they are.
        new: words that are in no table, for each table.
    """

    def __init__(self) -> None:
        self.size = self.many = 0
        self.works: list[_Work] = []
        self.missed: list[list[_Some]] = [[] for _ in LIMITS]
        self.new: list[list[_Some]] = [[] for _ in LIMITS]

    def miss(self, index: int, some: _Some) -> None:
        if len(some.which):
            self.missed[index].append(some)
            self.many += len(some.which)


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
        # nobody else's until the end, and forgotten if that is not reached: words may be left without their ids
        memory = self._local.__dict__.pop("memory", None) or Memory(self._static)
        group = _Group()
        for chunk in chunks:
            self._look_up(memory, chunk, group)
            if group.many >= _MISSED:
                _search(memory, group)
            if group.size >= self.group:
                yield from self._finish(memory, group)
                group = _Group()
                if memory.full():
                    memory = Memory(self._static)
        yield from self._finish(memory, group)
        if not memory.full():
            self._local.memory = memory

    def _look_up(self, memory: Memory, chunk: Chunk, group: _Group) -> None:
        """Values of the words that were seen of late."""
        starts = chunk.places[:-1]
        sizes = chunk.places[1:] - starts
        if chunk.gaps is not None:
            kept = ~chunk.gaps
            starts, sizes = starts[kept], sizes[kept]
        if chunk.given is not None:
            sizes[chunk.given[0]] = _GIVEN
        overlap = Overlap(padded(chunk.raw), memory.overlap)
        if len(chunk.raw) <= _KEPT:
            memory.overlap = overlap
        key = overlap.keys(starts, sizes, LIMITS[0])
        values, missed = memory.front(0, key)
        size = sizes.take(missed)
        fits = size <= LIMITS[0]
        short, rest, size = missed[fits], missed[~fits], size[~fits]
        group.miss(0, _Some(values, short, (key[0].take(short),), sizes.take(short)))
        for index in range(1, len(LIMITS)):
            fits = size <= LIMITS[index]
            chosen, those = rest[fits], size[fits]
            rest, size = rest[~fits], size[~fits]
            if len(chosen):
                key = overlap.keys(starts.take(chosen), those, LIMITS[index])
                values[chosen], missed = memory.front(index, key)
                group.miss(index, _Some(values, chosen, key, those).take(missed))
        if chunk.given is not None:
            rest = rest[size < _GIVEN]
            values[chunk.given[0]] = chunk.given[1]
        group.works.append(_Work(chunk, values, rest))
        group.size += len(chunk.raw)

    def _finish(self, memory: Memory, group: _Group) -> Iterator[NDArray[np.int32]]:
        """Resolve the new words of these chunks and lay out the ids."""
        _search(memory, group)
        left = [(work.chunk, work.values, work.long) for work in group.works if len(work.long)]
        for index, new in enumerate(group.new):
            if not new:
                continue
            given = memory.learn(index, *_together(new), self._resolve)
            for some, values in _apart(new, given):
                some.values[some.which] = values
                none = some.which[values == ABSENT]
                if len(none):
                    chunk = next(work.chunk for work in group.works if work.values is some.values)
                    left.append((chunk, some.values, none))
        if left:
            self._long(memory, left)
        for work in group.works:
            values = work.values
            several = np.flatnonzero(values < 0)
            if len(self._static.whole) and len(several):
                several = self._whole(values, several, work.chunk.parts)
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

    def _long(self, memory: Memory, left: list[tuple[Chunk, NDArray[np.int32], NDArray[np.int64]]]) -> None:
        """Words that no table takes: where they are, and where their values go."""
        known = memory.long
        texts = [_slices(chunk, which) for chunk, _, which in left]
        new = [word for word in dict.fromkeys(chain.from_iterable(texts)) if word not in known]
        if new:
            values = memory.settle(*self._resolve(new)).tolist()
            fresh = dict(zip(new, values, strict=True))
            known.update((word, value) for word, value in fresh.items() if len(word) <= _LONG)
            known = {**fresh, **known} if len(fresh) * 4 > len(known) else _Both(fresh, known)
        for (_, target, which), words in zip(left, texts, strict=True):
            target[which] = np.fromiter(map(known.__getitem__, words), dtype=np.int32, count=len(words))


class _Both(dict[bytes, int]):
    """Two maps as one."""

    def __init__(self, first: dict[bytes, int], second: dict[bytes, int]) -> None:
        super().__init__(first)
        self._second = second

    def __missing__(self, word: bytes) -> int:
        return self._second[word]


def _search(memory: Memory, group: _Group) -> None:
    """Look up in the tables what the fronts did not have."""
    for index, missed in enumerate(group.missed):
        if not missed:
            continue
        key, _ = _together(missed)
        for some, values in _apart(missed, memory.find(index, key)):
            some.values[some.which] = values
            none = np.flatnonzero(values == ABSENT)
            if len(none):
                group.new[index].append(some.take(none))
        missed.clear()
    group.many = 0


def _together(parts: list[_Some]) -> tuple[Keys, NDArray[np.int64]]:
    """(keys, sizes) of all words."""
    key = tuple(map(np.concatenate, zip(*(some.key for some in parts), strict=True)))
    return key, np.concatenate([some.sizes for some in parts])


def _apart(parts: list[_Some], values: NDArray[np.int32]) -> Iterator[tuple[_Some, NDArray[np.int32]]]:
    """Each with its values."""
    at = 0
    for some in parts:
        yield some, values[at : at + len(some.which)]
        at += len(some.which)


def _slices(chunk: Chunk, which: NDArray[np.int64]) -> list[bytes]:
    begins, ends = chunk.places[:-1], chunk.places[1:]
    if chunk.gaps is not None:
        begins, ends = begins[~chunk.gaps], ends[~chunk.gaps]
    raw = chunk.raw
    return [raw[at:end] for at, end in zip(begins.take(which).tolist(), ends.take(which).tolist(), strict=True)]


def _lay_out(values: NDArray[np.int32], several: NDArray[np.int64], memory: Memory) -> NDArray[np.int32]:
    """The ids of all words end to end; ``several`` are those that have not one."""
    if not len(several):
        return values
    numbers = ~values.take(several)
    inner = memory.counts.take(numbers).astype(np.int64)
    if not int(inner.min()):
        none = inner == 0
        kept = np.ones(len(values), dtype=np.bool_)
        kept[several[none]] = False
        several = (several - np.cumsum(none))[~none]
        values, numbers, inner = values[kept], numbers[~none], inner[~none]
    ends = np.cumsum(inner)
    skip = ends - inner
    total = int(ends[-1]) if len(ends) else 0
    step = np.arange(total)
    places = np.repeat(several - np.arange(len(several)), inner)
    places += step
    single = np.ones(len(values) - len(several) + total, dtype=np.bool_)
    single[places] = False
    single[several + (skip - np.arange(len(several)))] = True  # the first ids, written twice
    out = np.empty(len(single), dtype=np.int32)
    out[single] = values
    step += np.repeat(memory.begins.take(numbers) - skip, inner)
    out[places] = memory.pool.take(step)
    return out
