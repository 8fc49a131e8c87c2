"""Merging of very long words: all places of the lowest rank at a time.

The rule is that of :mod:`tokpack.runtime.bpe`: repeatedly the pair of lowest rank, the leftmost of equal ones. What is
merged at one place matters at another only through the pairs that it makes beside it. As long as these have higher
ranks, all places of a rank are merged at once, from the left; behind one that makes a pair of no higher rank the
others wait. Places wait by rank, so that a round costs what it merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32 = NDArray[np.int32]
    Int64 = NDArray[np.int64]
    Bools = NDArray[np.bool_]

__all__ = ["merge_often"]

_NONE = np.iinfo(np.int64).max
_GONE = -2  # symbol of a place that has been merged away
_FEW = 64  # places that are tried at first behind one that had others wait
_WORK = 48  # places that may be looked at for each symbol, and symbols for each round, until it does not pay
_ROUNDS = 24


def merge_often(
    symbols: Sequence[int], ends: Sequence[int], keys: memoryview, ranks: memoryview, results: memoryview
) -> tuple[list[int], list[int]]:
    """All or some of the merging of a word: symbols and ends, as they are after the first merges.

    The rest is left to the caller where many places have others wait.

    Args:
        symbols: of the word; those below 0 merge with nothing.
        ends: where each ends.
        keys: the section ``merge.key``.
        ranks: the section ``merge.rank``.
        results: the section ``merge.result``.
    """
    pairs = _Pairs(
        np.frombuffer(keys, dtype=np.uint64),
        np.frombuffer(ranks, dtype=np.uint32),
        np.frombuffer(results, dtype=np.uint32),
    )
    if not len(pairs.results) or len(symbols) < 2:
        return list(symbols), list(ends)
    word = _Word(np.array(symbols, dtype=np.int64), np.array(ends, dtype=np.int64), pairs)
    word.merge()
    left = word.symbols != _GONE
    return word.symbols[left].tolist(), word.ends[left].tolist()


class _Pairs:
    """The merges of a pack."""

    def __init__(self, keys: NDArray[np.uint64], ranks: NDArray[np.uint32], results: NDArray[np.uint32]) -> None:
        self._keys = keys
        self._ranks = ranks
        self.results = results.astype(np.int64)

    def find(self, left: Int64, right: Int64) -> tuple[Int32, Int64]:
        """(place of the merge of each pair in the arrays, its rank, _NONE if there is none)."""
        key = (left << 32 | right).view(np.uint64)
        new = np.ones(len(key), dtype=np.bool_)
        new[1:] = key[1:] != key[:-1]
        some = key[new]
        at = np.minimum(np.searchsorted(self._keys, some), len(self._keys) - 1)
        found = (self._keys[at] == some) & (left[new] >= 0) & (right[new] >= 0)
        rank = np.where(found, self._ranks[at].astype(np.int64), _NONE)
        which = np.cumsum(new) - 1
        return at.astype(np.int32).take(which), rank.take(which)


class _Waiting:
    """Places by the rank of the pair that begins there."""

    def __init__(self) -> None:
        self._ranks: list[int] = []
        self._places: dict[int, list[Int64]] = {}

    def put(self, places: Int64, ranks: Int64) -> None:
        """Add places; those of one rank ascend."""
        some = ranks != _NONE
        places, ranks = places[some], ranks[some]
        order = np.argsort(ranks, kind="stable")
        places, ranks = places[order], ranks[order]
        edges = [0, *(np.flatnonzero(ranks[1:] != ranks[:-1]) + 1).tolist(), len(ranks)] if len(ranks) else [0]
        for start, end in pairwise(edges):
            self.back(int(ranks[start]), places[start:end])

    def back(self, rank: int, places: Int64) -> None:
        """Add places of one rank."""
        waiting = self._places.get(rank)
        if waiting is None:
            self._places[rank] = [places]
            heappush(self._ranks, rank)
        else:
            waiting.append(places)

    def lowest(self) -> tuple[int, Int64] | None:
        """(lowest rank, its places, ascending), taken out."""
        if not self._ranks:
            return None
        rank = heappop(self._ranks)
        parts = self._places.pop(rank)
        return rank, parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


class _Word:
    """A word at work.

    Attributes:
        symbols: at the place where each begins, _GONE where none does, int64 ``[n]``.
        ends: where each ends, int64 ``[n]``.
    """

    def __init__(self, symbols: Int64, ends: Int64, pairs: _Pairs) -> None:
        count = len(symbols)
        self.symbols, self.ends = symbols, ends
        self._pairs = pairs
        self._after = np.arange(1, count + 1, dtype=np.int32)
        self._before = np.arange(-1, count - 1, dtype=np.int32)
        self._merge = np.zeros(count, dtype=np.int32)  # of the symbol with the next one
        self._rank = np.full(count, _NONE, dtype=np.int64)
        self._merge[:-1], self._rank[:-1] = pairs.find(symbols[:-1], symbols[1:])
        self._waiting = _Waiting()

    def merge(self) -> None:
        """Merge until nothing merges, or it does not pay any more."""
        count = len(self.symbols)
        waiting = self._waiting
        waiting.put(np.arange(count), self._rank)
        work, rounds, size = _WORK * count, count // _ROUNDS + _FEW, count
        while (lowest := waiting.lowest()) is not None:
            rank, places = lowest
            rounds -= 1
            work -= len(places)
            if rounds < 0 or work < 0:
                return
            places, rest = places[:size], places[size:]
            places = places[self._rank.take(places) == rank]
            done = self._round(rank, self._from_the_left(places)) if len(places) else -1
            if done >= 0:  # others wait
                rest = np.concatenate((places[places > done], rest))
            if len(rest):
                waiting.back(rank, rest)
            size = _FEW if done >= 0 else min(2 * size, count)

    def _from_the_left(self, places: Int64) -> Int64:
        """Of places that share symbols every other one."""
        joined = places[1:] == self._after.take(places[:-1])
        if not joined.any():
            return places
        new = np.concatenate(([True], ~joined))
        numbers = np.arange(len(places))
        start = numbers[new].take(np.cumsum(new) - 1)
        chosen: Int64 = places[(numbers - start) % 2 == 0]
        return chosen

    def _round(self, rank: int, at: Int64) -> int:
        """Merge places from the left up to one that makes a pair of no higher rank; returns that one, or -1."""
        symbols, count = self.symbols, len(self.symbols)
        right = self._after.take(at)
        after, before = self._after.take(right), self._before.take(at)
        merged = self._pairs.results.take(self._merge.take(at))
        last, first = after >= count, before < 0
        # when a place is merged, those left of it are, and those right of it are not
        left_of = symbols.take(before, mode="clip")
        beside = np.flatnonzero(before[1:] == right[:-1])
        left_of[beside + 1] = merged[beside]
        before[beside + 1] = at[beside]
        left_of[first] = -1
        right_of = symbols.take(after, mode="clip")
        right_of[last] = -1
        left_merge, left_rank = self._pairs.find(left_of, merged)
        right_merge, right_rank = self._pairs.find(merged, right_of)
        low = np.flatnonzero((left_rank <= rank) | (right_rank <= rank))
        done = -1
        if len(low):
            stop = int(low[0]) + 1
            done = int(at[stop - 1])
            at, right, after, before, merged = at[:stop], right[:stop], after[:stop], before[:stop], merged[:stop]
            last, first = last[:stop], first[:stop]
            left_merge, left_rank = left_merge[:stop], left_rank[:stop]
            right_merge, right_rank = right_merge[:stop], right_rank[:stop]
        symbols[at] = merged
        symbols[right] = _GONE
        self.ends[at] = self.ends.take(right)
        self._after[at] = after
        self._before[after[~last]] = at[~last]
        self._rank[right] = _NONE
        self._merge[at], self._rank[at] = right_merge, right_rank
        inner = ~first
        left = before[inner].astype(np.int64)
        # the place to the left may be one of these: its pair is the one that the later merge made
        self._merge[left], self._rank[left] = left_merge[inner], left_rank[inner]
        changed = np.unique(np.concatenate((left, at)))
        self._waiting.put(changed, self._rank.take(changed))
        return done
