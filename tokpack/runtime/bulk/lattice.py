"""Unigram: best paths of many words at a time.

The scalar path goes through a word from left to right and adds, in doubles, the score of each piece to the best score
of the place where it begins; of equal scores the first found stays. Here all pieces that begin at the same distance
from the start of their word are added at once: the same sums in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.char_trie import CharTrie

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LONGEST", "Lattice", "Paths"]

LONGEST = 1 << 9  # characters of a word that may be searched here
_NONE = -1.7976931348623157e308  # below every sum


@dataclass(frozen=True, slots=True)
class Paths:
    """The best paths of some words, laid end to end.

    Attributes:
        tokens: int32 ``[n]``.
        starts, ends: the characters that each stands for, in the text of all words, int64 ``[n]``.
        counts: tokens of each word, int64 ``[words]``.
    """

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Edges:
    """Pieces at places of words, by the distance of the place from the start of the word.

    Attributes:
        start: character where it begins, int64 ``[n]``.
        size: its characters, uint16 ``[n]``.
        token: int32 ``[n]``.
        bounds: those at distance d are ``bounds[d] .. bounds[d + 1]``.
    """

    start: NDArray[np.int64]
    size: NDArray[np.uint16]
    token: NDArray[np.int32]
    bounds: list[int]


class Lattice:
    """What a word can be made of.

    Args:
        trie: the pieces.
        scores: of the pieces, float64 ``[V]``; no sum of them leaves what a double holds.
        missing: score of a character without a piece.
        unknown: its id.
    """

    def __init__(self, trie: CharTrie, scores: NDArray[np.float64], missing: float, unknown: int) -> None:
        self._trie = trie
        self._scores = np.append(scores, missing)
        self._unknown = unknown

    def search(self, points: NDArray[np.int32], sizes: NDArray[np.int64]) -> Paths:
        """Best paths.

        Args:
            points: code points of the words laid end to end.
            sizes: characters of each word, 1 to LONGEST.
        """
        ends = np.cumsum(sizes)
        begins = ends - sizes
        places = np.arange(len(points))
        distance = (places - np.repeat(begins, sizes)).astype(np.uint16)
        room = (np.repeat(ends, sizes) - places).astype(np.uint16)  # characters of the word from here on
        edges = self._edges(points, distance, room)
        return self._back(edges, self._forward(edges, len(points)), begins, ends)

    def _edges(self, points: NDArray[np.int32], distance: NDArray[np.uint16], room: NDArray[np.uint16]) -> _Edges:
        trie = self._trie
        nodes = trie.begin(points)
        value = trie.value.take(nodes)  # the last entry for no node
        value[value < 0] = len(self._scores) - 1  # a character without a piece of its own
        starts, tokens = [np.arange(len(points))], [value]
        at = np.flatnonzero(trie.grows.take(nodes) & (room > 1))
        nodes = nodes.take(at)
        size = 1
        while len(at):
            nodes = trie.step(nodes, points.take(at + size))
            size += 1
            value = trie.value.take(nodes)
            pieces = np.flatnonzero(value >= 0)
            starts.append(at.take(pieces))
            tokens.append(value.take(pieces))
            goes_on = np.flatnonzero(trie.grows.take(nodes) & (room.take(at) > size))
            at, nodes = at.take(goes_on), nodes.take(goes_on)
        start = np.concatenate(starts)
        length = np.repeat(np.arange(1, len(starts) + 1, dtype=np.uint16), list(map(len, starts)))
        order = np.argsort(distance.take(start), kind="stable")
        bounds = np.concatenate(([0], np.cumsum(np.bincount(distance.take(start)))))
        return _Edges(start.take(order), length.take(order), np.concatenate(tokens).take(order), bounds.tolist())

    def _forward(self, edges: _Edges, count: int) -> NDArray[np.int64]:
        """The edge by which the best path comes to the end of each character."""
        score = np.full(count, _NONE)
        best = np.zeros(count, dtype=np.int64)
        gain = self._scores.take(edges.token)
        before = edges.start - 1
        target = before + edges.size
        low = 0
        for high in edges.bounds[1:]:
            sums = gain[low:high]
            if low:
                sums += score.take(before[low:high])
            to = target[low:high]
            better = np.flatnonzero(sums > score.take(to))
            to = to.take(better)
            score[to] = sums.take(better)
            best[to] = better + low
            low = high
        return best

    def _back(
        self, edges: _Edges, best: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Paths:
        """From the ends of the words to their starts."""
        word, end = np.arange(len(ends)), ends
        rounds: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        counts = np.zeros(len(ends), dtype=np.int64)
        while len(word):
            edge = best.take(end - 1)
            rounds.append((word, edge))
            end = edges.start.take(edge)
            goes_on = end > begins
            if not goes_on.all():
                counts[word[~goes_on]] = len(rounds)
                word, end, begins = word[goes_on], end[goes_on], begins[goes_on]
        stops = np.cumsum(counts)
        chosen = np.empty(int(stops[-1]), dtype=np.int64)
        for number, (which, edge) in enumerate(rounds, 1):
            chosen[stops.take(which) - number] = edge
        starts, tokens = edges.start.take(chosen), edges.token.take(chosen)
        tokens[tokens == len(self._scores) - 1] = self._unknown
        return Paths(tokens, starts, starts + edges.size.take(chosen), counts)
