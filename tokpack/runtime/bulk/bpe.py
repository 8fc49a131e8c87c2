"""Byte-pair merging of many words at a time.

The rule is that of :mod:`tokpack.runtime.bpe`, for any table of merges: in each round every word merges its pair of
lowest rank, the leftmost of equal ones. Words lie in the columns of a matrix, so that one minimum over the rows finds
all those pairs; what is merged away stays in its row and is skipped by links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LARGEST_RANK", "WIDTHS", "BatchMerger"]

WIDTHS = (8, 16, 32)  # rows of a matrix; longer words are merged one by one
_COLUMNS = 1 << 14  # so that the matrices stay in the cache
_COLUMN_BITS = 5
LARGEST_RANK = (1 << (31 - _COLUMN_BITS)) - 2
_NONE = np.int32((1 << 31) - 1)
_DEAD, _END = -2, -1  # symbols that are none

Int32 = "NDArray[np.int32]"


class BatchMerger:
    """The merges of a pack.

    Args:
        keys: ``merge.key``.
        ranks: ``merge.rank``, none above LARGEST_RANK.
        results: ``merge.result``.
        first: symbol of each byte, ``[256]``; None if words come as symbols.
    """

    def __init__(
        self,
        keys: NDArray[np.uint64],
        ranks: NDArray[np.uint32],
        results: NDArray[np.uint32],
        first: NDArray[np.int32] | None = None,
    ) -> None:
        self._ranks = np.append(ranks.astype(np.int32) << _COLUMN_BITS, _NONE)
        self._results = np.append(results.astype(np.int32), np.int32(_END))
        order = np.argsort(ranks, kind="stable")  # frequent pairs first: they get the slots that are found at once
        self._pairs = Table.of((keys[order],), order.astype(np.int32))
        self._first = first
        if first is not None:
            self._of_bytes = self._find(np.repeat(first, 256), np.tile(first, 256))

    def _find(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int32]:
        """Where the merge of each pair is in the arrays, -1 for none; symbols below 0 merge with nothing."""
        key = left.astype(np.int64)
        key <<= 32
        key |= right
        found = self._pairs.find((key.view(np.uint64),))
        return np.maximum(found, -1, out=found)

    def merge(
        self, matrix: NDArray[np.generic], sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Symbols of words, laid end to end, and how many each word has.

        Args:
            matrix: bytes of the words, or their symbols (int32), ``[n, width]`` with width one of :data:`WIDTHS`; what
                is behind a word does not count.
            sizes: bytes or symbols of each word, at least 1, ``[n]``.
        """
        flat, counts = [], []
        for at in range(0, len(sizes), _COLUMNS):
            symbols = self._merge_some(matrix[at : at + _COLUMNS], sizes[at : at + _COLUMNS])
            alive = symbols >= 0
            flat.append(symbols[alive])
            counts.append(alive.sum(axis=1))
        return np.concatenate(flat), np.concatenate(counts)

    def _merge_some(self, matrix: NDArray[np.generic], sizes: NDArray[np.int64]) -> NDArray[np.int32]:
        """As :meth:`merge`: ``[n, width]``, entries below 0 are none."""
        count, width = matrix.shape
        rows = np.ascontiguousarray(matrix.T)
        inside = np.arange(width)[:, None] < sizes
        # one row more: the neighbour of the first and the last symbol
        symbols = np.full((width + 1, count), _END, dtype=np.int32)
        pairs = np.full((width + 1, count), -1, dtype=np.int32)
        if self._first is None:
            symbols[:width] = np.where(inside, rows, np.int32(_END))
            pairs[: width - 1] = self._find(symbols[: width - 1].ravel(), symbols[1:width].ravel()).reshape(-1, count)
        else:
            symbols[:width] = np.where(inside, self._first.take(rows), np.int32(_END))
            pairs[: width - 1] = self._of_bytes.take(rows[:-1].astype(np.int32) << 8 | rows[1:])
            pairs[: width - 1][~inside[1:]] = -1
        state = _Columns(symbols, pairs, self._ranks)
        out = np.full((count, width), _END, dtype=np.int32)
        names = np.arange(count)
        while True:
            best = state.ranks.min(axis=0)
            live = np.flatnonzero(best != _NONE)
            if 2 * len(live) < len(best):
                done = np.flatnonzero(best == _NONE)
                out[names[done]] = state.symbols[:width, done].T
                if not len(live):
                    return out
                names, best = names[live], best[live]
                state = state.columns(live)
                live = np.arange(len(live))
            self._round(state, best.take(live) & ((1 << _COLUMN_BITS) - 1), live)

    def _round(self, state: _Columns, row: NDArray[np.int32], column: NDArray[np.int64]) -> None:
        """Merge the symbol in ``row`` with the next one, in each of these columns."""
        count = state.symbols.shape[1]
        symbols, pairs, ranks = state.symbols.reshape(-1), state.pairs.reshape(-1), state.ranks.reshape(-1)
        after, before = state.after.reshape(-1), state.before.reshape(-1)
        at = row * count + column
        right = after.take(at) * count + column
        merged = self._results.take(pairs.take(at))
        following = after.take(right)
        symbols[at] = merged
        symbols[right] = _DEAD
        ranks[right] = _NONE
        after[at] = following
        next_at = following * count + column
        before[next_at] = row
        previous = before.take(at)
        previous_at = previous * count + column
        left = np.concatenate((symbols.take(previous_at), merged))
        places = np.concatenate((previous_at, at))
        found = self._find(left, np.concatenate((merged, symbols.take(next_at))))
        pairs[places] = found
        ranks[places] = self._ranks.take(found) | np.concatenate((previous, row))
        # no pair: all bits set, whatever the row


class _Columns:
    """Words at work; ``[width + 1, n]`` each."""

    def __init__(self, symbols: NDArray[np.int32], pairs: NDArray[np.int32], ranks: NDArray[np.int32]) -> None:
        rows, count = symbols.shape
        number = np.arange(rows, dtype=np.int32)[:, None]
        self.symbols = symbols
        self.pairs = pairs  # the merge of a symbol with the next one
        self.ranks = ranks.take(pairs) | number  # its rank, then its row
        self.after = np.repeat(np.minimum(number + 1, rows - 1), count, axis=1)
        self.before = np.repeat(np.where(number > 0, number - 1, rows - 1).astype(np.int32), count, axis=1)

    def columns(self, chosen: NDArray[np.int64]) -> _Columns:
        """Some of the words."""
        part = _Columns.__new__(_Columns)
        for name in ("symbols", "pairs", "ranks", "after", "before"):
            setattr(part, name, np.ascontiguousarray(getattr(self, name)[:, chosen]))
        return part
