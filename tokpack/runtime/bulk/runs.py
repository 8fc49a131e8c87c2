"""Merging of very long words in which few pairs occur often: runs of one character, and what is like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["merge_often"]

_NONE = np.iinfo(np.int64).max
_OFTEN = 16  # a round is worth its while when it merges one symbol of so many


def merge_often(
    symbols: Sequence[int], ends: Sequence[int], keys: memoryview, ranks: memoryview, results: memoryview
) -> tuple[list[int], list[int]]:
    """Some of the merging of a word: symbols and ends, as they are after the first merges.

    A round merges all places of the pair of lowest rank, from the left. One by one, what is merged at one place only
    matters at another if it makes a pair of no higher rank; then, or when few places merge, the rest is left to the
    caller.

    Args:
        symbols: of the word; those below 0 merge with nothing.
        ends: where each ends.
        keys: the section ``merge.key``.
        ranks: the section ``merge.rank``.
        results: the section ``merge.result``.
    """
    pairs = np.frombuffer(keys, dtype=np.uint64), np.frombuffer(ranks, dtype=np.uint32)
    made = np.frombuffer(results, dtype=np.uint32)
    if not len(made):
        return list(symbols), list(ends)
    word, stops = np.array(symbols, dtype=np.int64), np.array(ends, dtype=np.int64)
    while len(word) > 1:
        at, rank = _look_up(word, *pairs)
        lowest = int(rank.min())
        if lowest == _NONE:
            break
        left = _from_the_left(np.flatnonzero(rank == lowest))
        if len(left) * _OFTEN < len(word):
            break
        merged = word.copy()
        merged[left] = made[at[left]]
        keep = np.ones(len(word), dtype=np.bool_)
        keep[left + 1] = False
        merged = merged[keep]
        place = left - np.arange(len(left))  # where the merged symbols are now
        beside = np.unique(np.concatenate((place[place > 0] - 1, place[place + 1 < len(merged)])))
        _, new = _look_up(merged, *pairs)
        if len(beside) and int(new[beside].min()) <= lowest:
            break
        stops[left] = stops[left + 1]
        word, stops = merged, stops[keep]
    return word.tolist(), stops.tolist()


def _look_up(
    word: NDArray[np.int64], keys: NDArray[np.uint64], ranks: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(place of its merge in the arrays, rank) of each symbol with the next one."""
    key = (word[:-1] << 32 | word[1:]).view(np.uint64)
    new = np.concatenate(([True], key[1:] != key[:-1])) if len(key) else np.zeros(0, dtype=np.bool_)
    some = key[new]
    at = np.minimum(np.searchsorted(keys, some), len(keys) - 1)
    found = keys[at] == some
    found &= (word[:-1][new] >= 0) & (word[1:][new] >= 0)
    rank = np.where(found, ranks[at].astype(np.int64), _NONE)
    which = np.cumsum(new) - 1
    return at[which], rank[which]


def _from_the_left(at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of neighbouring places every other one, from the left."""
    new = np.concatenate(([True], at[1:] != at[:-1] + 1))
    start = at[new][np.cumsum(new) - 1]
    chosen: NDArray[np.int64] = at[(at - start) % 2 == 0]
    return chosen
