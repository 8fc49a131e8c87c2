"""What words become that no table knows: by batch merging, or one by one by the scalar path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.bpe import WIDTHS, BatchMerger
from tokpack.runtime.bulk.memory import KeyedWords

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FEW", "BatchResolver", "Resolved", "Scalar", "in_order", "one_by_one"]

FEW = 48  # words up to which the scalar path is faster

Scalar = Callable[[bytes], Iterable[int]]
Resolved = tuple["NDArray[np.int32]", "NDArray[np.int64]"]


def one_by_one(scalar: Scalar, words: Sequence[bytes]) -> Resolved:
    """(ids laid end to end, how many each word has)."""
    flat: list[int] = []
    counts = np.empty(len(words), dtype=np.int64)
    for at, word in enumerate(words):
        before = len(flat)
        flat.extend(scalar(word))
        counts[at] = len(flat) - before
    return np.array(flat, dtype=np.int32), counts


class BatchResolver:
    """Words of byte-level vocabularies.

    Args:
        merger: the merges.
        scalar: ids of a word, by the scalar path.
        merged: the same without looking the word up as a whole.
        size: number of pieces; a word that keeps a symbol behind them goes to the scalar path.
        odd: bytes on which the scalar path does more than merge, bool ``[256]``.
    """

    def __init__(
        self,
        merger: Callable[[], BatchMerger],
        scalar: Scalar,
        merged: Scalar,
        size: int,
        odd: NDArray[np.bool_],
    ) -> None:
        self._merged = merged
        self._make = merger
        self._merger: BatchMerger | None = None
        self._scalar = scalar
        self._size = size
        self._odd = odd if odd.any() else None
        self.few = FEW

    def merge(self, words: Sequence[bytes]) -> Resolved:
        """The same for words that are not to be looked up as a whole."""
        return one_by_one(self._merged, words)

    def __call__(self, words: Sequence[bytes]) -> Resolved:
        """(ids laid end to end, how many each word has)."""
        if len(words) <= self.few:
            return one_by_one(self._scalar, words)
        if self._merger is None:
            self._merger = self._make()
        if isinstance(words, KeyedWords):
            return self._merge(self._merger, words.matrix, words.sizes, words, None)
        sizes = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        raw = np.frombuffer(b"".join(words) + bytes(WIDTHS[-1]), dtype=np.uint8)
        starts = np.cumsum(sizes) - sizes
        parts: list[tuple[NDArray[np.int64], Resolved]] = []
        shorter = 0
        for width in WIDTHS:
            chosen = np.flatnonzero((sizes > shorter) & (sizes <= width))
            shorter = width
            if len(chosen):
                matrix = raw[starts[chosen][:, None] + np.arange(width)]
                parts.append((chosen, self._merge(self._merger, matrix, sizes[chosen], words, chosen)))
        chosen = np.flatnonzero(sizes > shorter)
        if len(chosen):
            parts.append((chosen, one_by_one(self._scalar, [words[at] for at in chosen.tolist()])))
        return in_order(parts, len(words))

    def _merge(
        self,
        merger: BatchMerger,
        matrix: NDArray[np.uint8],
        sizes: NDArray[np.int64],
        words: Sequence[bytes],
        chosen: NDArray[np.int64] | None,
    ) -> Resolved:
        flat, counts = merger.merge(matrix, sizes)
        odd = np.zeros(len(sizes), dtype=np.bool_)
        beyond = flat >= self._size
        if beyond.any():
            odd[np.repeat(np.arange(len(sizes)), counts)[beyond]] = True
        if self._odd is not None:
            inside = np.arange(matrix.shape[1]) < sizes[:, None]
            odd |= (self._odd.take(matrix) & inside).any(axis=1)
        if not odd.any():
            return flat, counts
        scalar = np.flatnonzero(odd)
        which = scalar if chosen is None else chosen[scalar]
        redone = one_by_one(self._scalar, [words[at] for at in which.tolist()])
        kept = np.flatnonzero(~odd)
        good = flat[np.repeat(~odd, counts)]
        return in_order([(kept, (good, counts[kept])), (scalar, redone)], len(sizes))


def in_order(parts: list[tuple[NDArray[np.int64], Resolved]], count: int) -> Resolved:
    """Results of groups of words in the order of the words."""
    if len(parts) == 1:
        return parts[0][1]
    counts = np.zeros(count, dtype=np.int64)
    for chosen, (_, sizes) in parts:
        counts[chosen] = sizes
    begins = np.cumsum(counts) - counts
    out = np.empty(int(counts.sum()), dtype=np.int32)
    for chosen, (flat, sizes) in parts:
        skip = np.cumsum(sizes) - sizes
        out[np.repeat(begins[chosen] - skip, sizes) + np.arange(len(flat))] = flat
    return out, counts
