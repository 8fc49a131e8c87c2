"""What the tracers share: tokens by id, merging and longest matches written down."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

from tokpack.analysis.explanation.trace import Match, Merge, Step, Token
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView

__all__ = ["MergeRecorder", "describe", "longest", "step", "tokens", "utf8"]

_SHORTER = 8  # matches that were not the longest, as many as are shown
_DETAIL = 400
_QUOTED = ("content", "delimiter", "pattern", "replacement")


def utf8(text: str) -> bytes:
    """UTF-8; lone surrogates as their three bytes."""
    return text.encode("utf-8", "surrogatepass")


def tokens(pieces: PieceTable, ids: Iterable[int]) -> tuple[Token, ...]:
    """Ids with the texts of their pieces."""
    return tuple(Token(i, pieces.text(i) if 0 <= i < pieces.size else b"") for i in ids)


def describe(step: Mapping[str, Any]) -> str:
    """The parameters of a step, for people; long ones are cut."""
    parts = []
    for name, value in step.items():
        if name in ("kind", "kmers", "charsmap", "table") or value is None or value is False:
            continue
        label = name.replace("_", " ")
        shown = f'"{value}"' if name in _QUOTED else str(value)
        parts.append(label if value is True else f"{label} {shown}")
    text = ", ".join(parts)
    return text if len(text) <= _DETAIL else text[: _DETAIL - 1] + "…"


def step(stage: str, plain: Mapping[str, Any], before: Iterable[bytes], after: Iterable[bytes]) -> Step:
    """A step with its outcome."""
    texts = tuple(after)
    return Step(stage, str(plain["kind"]), describe(plain), texts, texts != tuple(before))


class MergeRecorder:
    """Merging by the table of a pack, with every merge written down.

    The lowest rank first, the leftmost of equal ones, as in :class:`tokpack.runtime.bpe.Merger`.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._keys, self._ranks, self._results = (
            view.array(name) for name in ("merge.key", "merge.rank", "merge.result")
        )
        if not len(self._keys) == len(self._ranks) == len(self._results):
            raise pieces.damaged("merge.key", "merge sections differ in length")
        self._source = view.array("merge.source_rank")
        self._scored = view.meta["model"]["kind"] == "ScoreMerge"

    def text(self, symbol: int) -> bytes:
        """Text of a symbol as the source spells it."""
        if not 0 <= symbol < self._pieces.symbols:
            raise self._pieces.damaged("merge.result", f"symbol {symbol} is out of range")
        return self._pieces.text(symbol)

    def stops(self, result: int) -> bool:
        """Whether a merge with this result ends the work on a word."""
        return False

    def _find(self, left: int, right: int) -> tuple[int, int] | None:
        """(rank, result) of a pair."""
        if left < 0 or right < 0:
            return None
        key = left << 32 | right
        at = bisect_left(self._keys, key)
        if at < len(self._keys) and self._keys[at] == key:
            return int(self._ranks[at]), int(self._results[at])
        return None

    def merge(
        self, symbols: list[int], ends: list[int], places: list[int] | None = None
    ) -> tuple[list[Merge], list[int], list[int]]:
        """(merges, symbols, ends) of a word; a symbol of -1 takes part in none.

        ``places`` gives the byte offset of each end, where ``ends`` count something else.
        """
        symbols, ends, count = list(symbols), list(ends), len(symbols)
        offsets = list(ends if places is None else places)
        following, before = list(range(1, count + 1)), list(range(-1, count - 1))
        begin = [0, *offsets[:-1]]
        heap: list[tuple[int, int, int, int, int]] = []

        def push(left: int, right: int) -> None:
            found = self._find(symbols[left], symbols[right])
            if found is not None:
                heappush(heap, (found[0], left, symbols[left], symbols[right], found[1]))

        for left in range(count - 1):
            push(left, left + 1)
        merges: list[Merge] = []
        dead = -2
        while heap:
            rank, left, a, b, result = heappop(heap)
            right = following[left]
            # stale when either side has changed since the entry was made
            if right >= count or symbols[left] != a or symbols[right] != b:
                continue
            if self.stops(result):
                break
            merges.append(self._merge(rank, a, b, result, begin[left], offsets[right]))
            symbols[left], symbols[right] = result, dead
            ends[left], offsets[left] = ends[right], offsets[right]
            following[left] = after = following[right]
            if after < count:
                before[after] = left
                push(left, after)
            if before[left] >= 0:
                push(before[left], left)
        alive = [i for i in range(count) if symbols[i] != dead]
        return merges, [symbols[i] for i in alive], [ends[i] for i in alive]

    def _merge(self, rank: int, left: int, right: int, result: int, start: int, end: int) -> Merge:
        scores = self._pieces.scores
        score = float(scores[result]) if self._scored and result < len(scores) else None
        source = int(self._source[rank]) if rank < len(self._source) else rank
        return Merge(source, score, self.text(left), self.text(right), self.text(result), start, end)


def longest(trie: Trie, text: bytes, start: int, skip: int = 0) -> Match:
    """The longest stored text that begins at ``start``, id -1 for none; ``skip`` bytes in front are not the word's."""
    found = [(end, token) for end, token in trie.prefixes(text, start) if end > start + skip or not skip]
    if not found:
        return Match(-1, b"", start, start)
    end, token = found[-1]
    shorter = tuple(text[start:stop] for stop, _ in found[-2 : -_SHORTER - 2 : -1])
    return Match(token, text[start:end], start, end, shorter)
