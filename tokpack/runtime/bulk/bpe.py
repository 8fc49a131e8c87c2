"""Byte-pair merging of many words at a time.

The rule is that of :mod:`tokpack.runtime.bpe`, for any table of merges: in each round every word merges its pair of
lowest rank, the leftmost of equal ones. Words lie in the columns of a matrix, so that one minimum over the rows finds
all those pairs; what is merged away stays in its row and is skipped by links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.keys import hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LARGEST_RANK", "WIDTHS", "BatchMerger"]

WIDTHS = (8, 16, 32)  # rows of a matrix; longer words are merged one by one
_COLUMNS = 1 << 15  # so that the matrices stay in the cache
_COLUMN_BITS = 5
LARGEST_RANK = (1 << (31 - _COLUMN_BITS)) - 2
_NONE = np.int32((1 << 31) - 1)
_DEAD, _END = -2, -1  # symbols that are none
_NO_PAIR = -1  # key of an empty slot
_WINDOW = 6  # slots behind the first one that are looked at together
_FARTHEST = 60  # slots from its own that a pair may be
_NOTHING = np.int64(int(_NONE) << 32)  # rank and result of no merge


class _Pairs:
    """Pair of symbols → (rank << _COLUMN_BITS) << 32 | symbol that it becomes.

    Keys and values lie side by side in an open-address table, so that looking one up reads memory at one place.
    """

    def __init__(self, keys: NDArray[np.uint64], values: NDArray[np.int64]) -> None:
        self._bits = max(8, (3 * len(keys)).bit_length())
        slot = hashes((keys,), self._bits)
        order = np.argsort(slot, kind="stable")
        slot = slot[order]
        # linear probing: each in the first slot from its own on that those before it leave
        step = np.arange(len(slot))
        place = np.maximum.accumulate(slot - step) + step if len(slot) else slot
        self._longest = int((place - slot).max(initial=0))
        if self._longest > _FARTHEST:  # made up for it
            order = np.argsort(keys, kind="stable")
            place = np.arange(len(keys))
        size = max(1 << self._bits, int(place[-1]) + 1 if len(place) else 0) + _WINDOW
        self._rows = np.full((size, 2), _NO_PAIR, dtype=np.int64)
        self._rows[place, 0] = keys[order].view(np.int64)
        self._rows[place, 1] = values[order]
        self._sorted = keys[order] if self._longest > _FARTHEST else None

    def find(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
        """Values of pairs, none of their symbols below 0; _NOTHING for one without a merge."""
        key = left.astype(np.int64)
        key <<= 32
        key |= right
        if self._sorted is not None:
            slot = np.searchsorted(self._sorted, key.view(np.uint64))
        else:
            slot = hashes((key.view(np.uint64),), self._bits)
        rows = self._rows.take(slot, axis=0)
        found: NDArray[np.int64] = rows[:, 1].copy()
        other = rows[:, 0] != key
        at = np.flatnonzero(other)
        found[at] = _NOTHING
        if self._sorted is not None:
            return found
        at = at[rows[:, 0].take(at) != _NO_PAIR]
        for step in range(1, self._longest + 1, _WINDOW):
            if not len(at):
                break
            rows = self._rows.take(slot.take(at)[:, None] + np.arange(step, step + _WINDOW), axis=0, mode="clip")
            same = rows[:, :, 0] == key.take(at)[:, None]
            which, column = np.nonzero(same)
            found[at[which]] = rows[which, column, 1]
            on = rows[:, -1, 0] != _NO_PAIR
            on[which] = False
            at = at[on]
        return found


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
        values = ranks.astype(np.int64) << (_COLUMN_BITS + 32)
        values |= results
        self._pairs = _Pairs(keys, values)
        self._first = first
        if first is not None:
            left, right = np.repeat(first, 256), np.tile(first, 256)
            able = np.flatnonzero((left >= 0) & (right >= 0))
            found = np.full(1 << 16, _NOTHING)
            found[able] = self._pairs.find(left[able], right[able])
            self._of_bytes = _rank(found), _result(found)

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
        ranks = np.full((width + 1, count), _NONE, dtype=np.int32)
        results = np.empty((width + 1, count), dtype=np.int32)
        if self._first is None:
            symbols[:width] = np.where(inside, rows, np.int32(_END))
            left, right = symbols[: width - 1].ravel(), symbols[1:width].ravel()
            able = np.flatnonzero((left >= 0) & (right >= 0))
            found = self._pairs.find(left.take(able), right.take(able))
            ranks.reshape(-1)[able], results.reshape(-1)[able] = _rank(found), _result(found)
        else:
            symbols[:width] = np.where(inside, self._first.take(rows), np.int32(_END))
            both = rows[:-1].astype(np.int32) << 8 | rows[1:]
            ranks[: width - 1] = np.where(inside[1:], self._of_bytes[0].take(both), _NONE)
            results[: width - 1] = self._of_bytes[1].take(both)
        state = _Columns(symbols, ranks, results)
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
        symbols, ranks, results = state.symbols.reshape(-1), state.ranks.reshape(-1), state.results.reshape(-1)
        after, before = state.after.reshape(-1), state.before.reshape(-1)
        at = row * count + column
        right = after.take(at) * count + column
        merged = results.take(at)
        following = after.take(right)
        symbols[at] = merged
        symbols[right] = _DEAD
        ranks[right] = _NONE
        ranks[at] = _NONE
        after[at] = following
        next_at = following * count + column
        before[next_at] = row
        previous = before.take(at)
        previous_at = previous * count + column
        on_left, on_right = symbols.take(previous_at), symbols.take(next_at)
        some_left, some_right = np.flatnonzero(on_left >= 0), np.flatnonzero(on_right >= 0)
        found = self._pairs.find(
            np.concatenate((on_left.take(some_left), merged.take(some_right))),
            np.concatenate((merged.take(some_left), on_right.take(some_right))),
        )
        places = np.concatenate((previous_at.take(some_left), at.take(some_right)))
        results[places] = _result(found)
        # no pair: all bits set, whatever the row
        ranks[places] = _rank(found) | np.concatenate((previous.take(some_left), row.take(some_right)))


def _rank(found: NDArray[np.int64]) -> NDArray[np.int32]:
    return (found >> 32).astype(np.int32)


def _result(found: NDArray[np.int64]) -> NDArray[np.int32]:
    return found.astype(np.int32)


class _Columns:
    """Words at work; ``[width + 1, n]`` each."""

    def __init__(self, symbols: NDArray[np.int32], ranks: NDArray[np.int32], results: NDArray[np.int32]) -> None:
        rows, count = symbols.shape
        number = np.arange(rows, dtype=np.int32)[:, None]
        self.symbols = symbols
        self.results = results  # what a symbol and the next one become
        self.ranks = ranks  # the rank of that merge, then the row
        self.ranks |= number
        self.after = np.repeat(np.minimum(number + 1, rows - 1), count, axis=1)
        self.before = np.repeat(np.where(number > 0, number - 1, rows - 1).astype(np.int32), count, axis=1)

    def columns(self, chosen: NDArray[np.int64]) -> _Columns:
        """Some of the words."""
        part = _Columns.__new__(_Columns)
        for name in ("symbols", "results", "ranks", "after", "before"):
            setattr(part, name, np.ascontiguousarray(getattr(self, name)[:, chosen]))
        return part
