"""Merging with unused pieces (``bpe::Model::SampleEncode``): they are made, and cut up again in the end."""

from __future__ import annotations

import sys
from heapq import heapify, heappop, heappush

from tokpack.pack.pieces import UNUSED, PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import Merger

__all__ = ["UnusedMerger"]

_DEEPEST = 100  # kMaxBpeResegmentDepth
_DEAD = -2
_NO_RANK = sys.maxsize  # of a pair that does not merge, as in tokpack.runtime.bpe


class UnusedMerger(Merger):
    """A merger that remembers from which two symbols an unused piece was last proposed, anywhere in the text."""

    KEPT = 1 << 40  # marks a piece that stays, whatever it is, because the cutting has gone too deep

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        super().__init__(view, pieces)
        self._table = pieces

    def _is_unused(self, symbol: int) -> bool:
        return 0 <= symbol < self._table.size and bool(self._table.attrs[symbol] & UNUSED)

    def merge_and_cut(self, symbols: list[int], ends: list[int], fixed: set[int]) -> list[tuple[int, int]]:
        """(symbol, end) of all pieces in the end; what is at the places ``fixed`` is not merged."""
        made: dict[int, tuple[tuple[int, int], tuple[int, int]]] = {}
        starts = [0, *ends[:-1]]
        self._merge_all(symbols, starts, ends, fixed, made)
        out: list[tuple[int, int]] = []
        for symbol, start, end in zip(symbols, starts, ends, strict=True):
            if symbol != _DEAD:
                self._cut(symbol, start, end, made, out)
        return out

    def _merge_all(
        self,
        symbols: list[int],
        starts: list[int],
        ends: list[int],
        fixed: set[int],
        made: dict[int, tuple[tuple[int, int], tuple[int, int]]],
    ) -> None:
        count = len(symbols)
        following = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        heap: list[tuple[int, int, int, int]] = []
        pairs = self._pairs

        def propose(left: int, right: int) -> tuple[int, int, int, int] | None:
            a, b = symbols[left], symbols[right]
            if a < 0 or b < 0 or left in fixed or right in fixed:
                return None
            rank = pairs[a << 32 | b]
            if rank == _NO_RANK:
                return None
            result = self._merged(a << 32 | b)
            if self._is_unused(result):
                made[result] = (a, ends[left] - starts[left]), (b, ends[right] - starts[right])
            return rank, left, a, b

        for left in range(count - 1):
            entry = propose(left, left + 1)
            if entry is not None:
                heap.append(entry)
        heapify(heap)
        while heap:
            _, left, a, b = heappop(heap)
            right = following[left]
            if right >= count or symbols[left] != a or symbols[right] != b:
                continue
            symbols[left] = self._merged(a << 32 | b)
            symbols[right] = _DEAD
            ends[left] = ends[right]
            following[left] = after = following[right]
            if after < count:
                before[after] = left
            for one, other in ((before[left], left), (left, after)):
                entry = propose(one, other) if one >= 0 and other < count else None
                if entry is not None:
                    heappush(heap, entry)

    def _cut(
        self,
        symbol: int,
        start: int,
        end: int,
        made: dict[int, tuple[tuple[int, int], tuple[int, int]]],
        out: list[tuple[int, int]],
    ) -> None:
        waiting = [(symbol, start, end, 0)]
        while waiting:
            symbol, start, end, depth = waiting.pop()
            if depth > _DEEPEST and 0 <= symbol < self._table.size:
                out.append((symbol | self.KEPT, end))
            elif not self._is_unused(symbol):
                out.append((symbol, end))
            elif symbol not in made:
                out.append((-1, end))
            else:
                (left, size), (right, _) = made[symbol]
                waiting.append((right, start + size, end, depth + 1))
                waiting.append((left, start, start + size, depth + 1))
