"""The BPE of a ``.mtok`` (``BPEModel::tokenize``): lowest rank first, leftmost of equal ones, near-linear.

The engine looks the joined text of a merge up again; where it is no piece, it stops merging the whole word.
"""

from __future__ import annotations

import sys
from heapq import heapify, heappop, heappush
from itertools import pairwise

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import PairTable

__all__ = ["Merger", "read_same"]

_NO_RANK = sys.maxsize
_SHORT = 48  # symbols up to which rescanning a list is cheaper than a heap


def read_same(view: PackView) -> dict[int, int]:
    """Symbols that are not the id that a lookup of their text gives → that id, -1 where the model has none."""
    ids, first = view.array("mnn.same.id"), view.array("mnn.same.first")
    return dict(zip(ids, first, strict=False))


class Merger:
    """Merges neighbouring symbols.

    Args:
        view: the pack.
        pieces: its pieces.
        stops: a merge whose result is no piece ends the work on a word; else it is a symbol like any other.
    """

    def __init__(self, view: PackView, pieces: PieceTable, stops: bool) -> None:
        self._pieces = pieces
        self._stops = stops
        self._limit = pieces.size if stops else pieces.symbols
        keys, ranks, results = (view.array(name) for name in ("merge.key", "merge.rank", "merge.result"))
        equal = view.array("mnn.merge.rank")  # where ranks are shared
        if not len(keys) == len(ranks) == len(results) or len(equal) not in (0, len(keys)):
            raise pieces.damaged("merge.key", "merge sections differ in length")
        self._ranks = PairTable(keys, equal if len(equal) else ranks, _NO_RANK)
        self._results = PairTable(keys, results, -1)

    def merge(self, symbols: list[int], ends: list[int] | None) -> tuple[list[int], list[int] | None]:
        """Symbols (-1: one that takes part in no merge) and, if asked for, their ends; may change its arguments."""
        if len(symbols) < 2:
            return symbols, ends
        if len(symbols) > _SHORT:
            return self._merge_long(symbols, ends)
        self._merge_short(symbols, ends)
        return symbols, ends

    def _result(self, key: int) -> int:
        """The symbol that a merge makes; -1 for none."""
        symbol = self._results[key]
        if symbol < self._limit:
            return symbol
        if self._stops:
            return -1
        raise self._pieces.damaged("merge.result", f"symbol {symbol} is out of range")

    def _merge_short(self, symbols: list[int], ends: list[int] | None) -> None:
        table = self._ranks
        ranks = [table[left << 32 | right] if left >= 0 <= right else _NO_RANK for left, right in pairwise(symbols)]
        while ranks:
            best = min(ranks)
            if best == _NO_RANK:
                return
            at = ranks.index(best)
            symbol = self._result(symbols[at] << 32 | symbols[at + 1])
            if symbol < 0:
                return
            symbols[at] = symbol
            del symbols[at + 1], ranks[at]
            if ends is not None:
                del ends[at]
            if at:
                left = symbols[at - 1]
                ranks[at - 1] = table[left << 32 | symbol] if left >= 0 else _NO_RANK
            if at < len(ranks):
                right = symbols[at + 1]
                ranks[at] = table[symbol << 32 | right] if right >= 0 else _NO_RANK

    def _merge_long(self, symbols: list[int], ends: list[int] | None) -> tuple[list[int], list[int] | None]:
        """The same with a heap and a linked list: n log n."""
        table = self._ranks
        count = len(symbols)
        following = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        heap: list[tuple[int, int, int]] = []  # rank, place of the left symbol, key
        for left, (a, b) in enumerate(pairwise(symbols)):
            rank = table[a << 32 | b] if a >= 0 <= b else _NO_RANK
            if rank != _NO_RANK:
                heap.append((rank, left, a << 32 | b))
        heapify(heap)
        dead = -2
        while heap:
            _, left, key = heappop(heap)
            right = following[left]
            # stale when either side has changed since the entry was made
            if right >= count or symbols[left] != key >> 32 or symbols[right] != key & 0xFFFFFFFF:
                continue
            symbol = self._result(key)
            if symbol < 0:
                break
            symbols[left] = symbol
            symbols[right] = dead
            if ends is not None:
                ends[left] = ends[right]
            following[left] = after = following[right]
            if after < count:
                before[after] = left
                other = symbols[after]
                if other >= 0:
                    rank = table[symbol << 32 | other]
                    if rank != _NO_RANK:
                        heappush(heap, (rank, left, symbol << 32 | other))
            previous = before[left]
            if previous >= 0 and symbols[previous] >= 0:
                key = symbols[previous] << 32 | symbol
                rank = table[key]
                if rank != _NO_RANK:
                    heappush(heap, (rank, previous, key))
        alive = [i for i in range(count) if symbols[i] != dead]
        return [symbols[i] for i in alive], None if ends is None else [ends[i] for i in alive]
