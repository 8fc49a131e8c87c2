"""Words of Unigram and WordPiece to ids, in pieces of work that fit the cache."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.char_trie import CharTrie
from tokpack.runtime.bulk.lattice import LONGEST, Lattice
from tokpack.runtime.bulk.longest import LongestMatch
from tokpack.runtime.bulk.resolve import Resolved, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UnigramBatch", "WordPieceBatch"]

_CHARACTERS = 1 << 16  # of words that are encoded together

Encoded = tuple["NDArray[np.int32]", "NDArray[np.int64]", "NDArray[np.bool_]"]
Search = Callable[["NDArray[np.int32]", "NDArray[np.int64]"], Encoded]


def _in_batches(points: NDArray[np.int32], sizes: NDArray[np.int64], longest: int, search: Search) -> Encoded:
    """``search`` for words of nearly the same length together; those of more than ``longest`` characters fail."""
    order = np.argsort(sizes, kind="stable")
    order = order[: int(np.searchsorted(sizes.take(order), longest, side="right"))]
    begins = np.cumsum(sizes) - sizes
    good = np.zeros(len(sizes), dtype=np.bool_)
    none = np.flatnonzero(sizes > longest)
    parts: list[tuple[NDArray[np.int64], Resolved]] = [
        (none, (np.zeros(0, dtype=np.int32), np.zeros(len(none), dtype=np.int64)))
    ]
    done = np.cumsum(sizes.take(order)) // _CHARACTERS
    edges = [0, *(np.flatnonzero(np.diff(done)) + 1).tolist(), len(order)]
    for low, high in pairwise(edges):
        if low == high:
            continue
        chosen = order[low:high]
        some = sizes.take(chosen)
        skip = np.cumsum(some) - some
        places = np.repeat(begins.take(chosen) - skip, some) + np.arange(int(some.sum()))
        flat, counts, fine = search(points.take(places), some)
        good[chosen] = fine
        parts.append((chosen, (flat, counts)))
    flat, counts = in_order(parts, len(sizes))
    return flat, counts, good


class UnigramBatch:
    """As ``UnigramModel.encode``: neighbouring unknown pieces become one.

    Args:
        trie: the pieces.
        scores: float64 ``[V]``.
        missing: score of a character without a piece.
        unknown: its id, below 0 if there is none.
        falls_back: whether unknown characters become bytes.
    """

    def __init__(
        self,
        trie: CharTrie,
        scores: NDArray[np.float64],
        missing: float,
        unknown: int,
        *,
        falls_back: bool,
    ) -> None:
        self._trie = trie
        self._lattice = Lattice(trie, scores, missing, unknown)
        self._unknown = unknown
        self._falls_back = falls_back

    def __call__(self, points: NDArray[np.int32], sizes: NDArray[np.int64]) -> Encoded:
        """See :data:`tokpack.runtime.bulk.fields.WordBatch`."""
        return _in_batches(points, sizes, LONGEST, self._search)

    def _search(self, points: NDArray[np.int32], sizes: NDArray[np.int64]) -> Encoded:
        good = np.ones(len(sizes), dtype=np.bool_)
        if self._unknown < 0:
            # an error, wherever the best path goes
            lacking = np.flatnonzero(self._trie.value.take(self._trie.begin(points)) < 0)
            good[np.searchsorted(np.cumsum(sizes), lacking, side="right")] = False
        paths = self._lattice.search(points, sizes)
        tokens, counts = paths.tokens, paths.counts
        unknown = np.flatnonzero(tokens == self._unknown)
        if not len(unknown):
            return _kept(tokens, counts, good)
        word = np.repeat(np.arange(len(sizes), dtype=np.int32), counts)
        if self._falls_back or self._unknown < 0:
            good[word.take(unknown)] = False
            return _kept(tokens, counts, good)
        follows = np.zeros(len(unknown), dtype=np.bool_)
        follows[1:] = (unknown[1:] == unknown[:-1] + 1) & (word.take(unknown[1:]) == word.take(unknown[:-1]))
        if follows.any():
            runs = np.flatnonzero(~follows)
            lasts = np.append(runs[1:], len(unknown)) - 1
            several = lasts > runs
            first, last = unknown.take(runs[several]), unknown.take(lasts[several])
            named = self._are_pieces(points, paths.starts.take(first), paths.ends.take(last))
            good[word.take(first[named])] = False
            keep = np.ones(len(tokens), dtype=np.bool_)
            keep[unknown[follows]] = False
            counts = counts - np.bincount(word[~keep], minlength=len(sizes))
            tokens = tokens[keep]
        return _kept(tokens, counts, good)

    def _are_pieces(
        self, points: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether these stretches are pieces."""
        trie = self._trie
        found = np.zeros(len(starts), dtype=np.bool_)
        which, at, nodes = np.arange(len(starts)), starts, trie.begin(points.take(starts))
        while True:
            at = at + 1
            done = at == ends.take(which)
            found[which[done & (trie.value.take(nodes) >= 0)]] = True
            goes_on = np.flatnonzero(~done & trie.grows.take(nodes))
            if not len(goes_on):
                return found
            which, at = which.take(goes_on), at.take(goes_on)
            nodes = trie.step(nodes.take(goes_on), points.take(at))
            alive = np.flatnonzero(nodes >= 0)
            which, at, nodes = which.take(alive), at.take(alive), nodes.take(alive)


class WordPieceBatch:
    """As ``WordPieceModel.encode``.

    Args:
        match: the pieces.
        longest: characters of a word that is not unknown, None for any number.
        unknown: gives the id of unknown words; None leaves them to the scalar path.
    """

    def __init__(
        self, match: LongestMatch, longest: int | None = None, unknown: Callable[[], int] | None = None
    ) -> None:
        self._match = match
        self._longest = longest
        self._unknown = unknown

    def __call__(self, points: NDArray[np.int32], sizes: NDArray[np.int64]) -> Encoded:
        """See :data:`tokpack.runtime.bulk.fields.WordBatch`."""
        longest = LONGEST if self._longest is None else min(self._longest, LONGEST)
        flat, counts, good = _in_batches(points, sizes, longest, self._search)
        if self._unknown is None:
            return flat, counts, good
        unknown = ~good
        if self._longest is not None:
            unknown &= (sizes <= longest) | (sizes > self._longest)  # those in between were not tried
        if unknown.any():
            token = self._unknown()
            counts[unknown] = 1
            out = np.full(int(counts.sum()), token, dtype=np.int32)
            out[np.repeat(~unknown, counts)] = flat
            flat = out
        return flat, counts, good | unknown

    def _search(self, points: NDArray[np.int32], sizes: NDArray[np.int64]) -> Encoded:
        flat, counts = self._match.search(points, sizes)
        return flat, counts, counts > 0


def _kept(tokens: NDArray[np.int32], counts: NDArray[np.int64], good: NDArray[np.bool_]) -> Encoded:
    if not good.all():
        tokens = tokens[np.repeat(good, counts)]
        counts = np.where(good, counts, 0)
    return tokens, counts, good
