"""Unigram: best paths of many words at a time.

The scalar path goes through a word from left to right and adds, in doubles, the score of each piece to the best score
of the place where it begins; of equal scores the first found stays. Here words lie side by side, the longest first, and
all that begins at the same distance from the start of its word is done at once: the same sums in the same order.
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
        starts, ends: the characters that each stands for, counted from the start of the word, int32 ``[n]``.
        counts: tokens of each word, int64 ``[words]``.
    """

    tokens: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Words as columns that end where they end: character c of word w is at ``offset[c] + w``.

    Attributes:
        offset: ``[columns + 1]``; column c holds the words that have more than c characters.
        words: how many those are, ``[columns + 1]``, the last one 0.
        order: which word is at w.
    """

    offset: NDArray[np.int64]
    words: NDArray[np.int64]
    order: NDArray[np.int64]

    @staticmethod
    def of(sizes: NDArray[np.int64]) -> _Layout:
        order = np.argsort(-sizes, kind="stable")
        columns = int(sizes[order[0]])
        # words with more than c characters
        words = len(sizes) - np.cumsum(np.bincount(sizes, minlength=columns + 1))[: columns + 1]
        offset = np.concatenate(([0], np.cumsum(words[:columns])))
        return _Layout(offset, words, order)


@dataclass(frozen=True, slots=True)
class _Edges:
    """Pieces at places of words, by the column where they begin.

    Attributes:
        word: int32 ``[n]``.
        start, size: column where it begins, characters; int32 ``[n]``.
        token: int32 ``[n]``.
        bounds: the edges of column c are ``bounds[c] .. bounds[c + 1]``.
    """

    word: NDArray[np.int32]
    start: NDArray[np.int32]
    size: NDArray[np.int32]
    token: NDArray[np.int32]
    bounds: NDArray[np.int64]


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
            sizes: characters of each word, at least 1.
        """
        layout = _Layout.of(sizes)
        begins = np.cumsum(sizes) - sizes
        first = begins[layout.order]
        column = np.repeat(np.arange(len(layout.words) - 1, dtype=np.int32), layout.words[:-1])
        word = np.arange(len(column), dtype=np.int32) - np.repeat(
            layout.offset[:-1].astype(np.int32), layout.words[:-1]
        )
        placed = points.take(first.take(word) + column)
        edges = self._edges(layout, placed, column, word)
        return self._back(layout, edges, self._forward(layout, edges), len(sizes))

    def _edges(
        self, layout: _Layout, points: NDArray[np.int32], column: NDArray[np.int32], word: NDArray[np.int32]
    ) -> _Edges:
        trie = self._trie
        nodes = trie.begin(points)
        value = trie.value.take(nodes)  # the last entry for no node
        # a character without a piece of its own
        found = [(np.arange(len(points)), np.where(value < 0, np.int32(len(self._scores) - 1), value))]
        at = np.flatnonzero(trie.grows.take(nodes))
        nodes = nodes.take(at)
        size = 1
        while len(at):
            start, where = column.take(at), word.take(at)
            inside = where < layout.words.take(np.minimum(start + size, len(layout.words) - 1))
            if not inside.all():
                at, nodes, start, where = at[inside], nodes[inside], start[inside], where[inside]
            nodes = trie.step(nodes, points.take(layout.offset.take(start + size) + where))
            alive = np.flatnonzero(nodes >= 0)
            at, nodes = at.take(alive), nodes.take(alive)
            size += 1
            value = trie.value.take(nodes)
            pieces = np.flatnonzero(value >= 0)
            found.append((at.take(pieces), value.take(pieces)))
            grows = np.flatnonzero(trie.grows.take(nodes))
            at, nodes = at.take(grows), nodes.take(grows)
        places = np.concatenate([place for place, _ in found])
        sizes = np.repeat(np.arange(1, len(found) + 1, dtype=np.int32), [len(place) for place, _ in found])
        start = column.take(places)
        order = np.argsort(start.astype(np.uint16), kind="stable")
        places, start = places.take(order), start.take(order)
        token = np.concatenate([value for _, value in found]).take(order)
        bounds = np.searchsorted(start, np.arange(len(layout.words)))
        return _Edges(word.take(places), start, sizes.take(order), token, bounds)

    def _forward(self, layout: _Layout, edges: _Edges) -> NDArray[np.int32]:
        """The edge by which the best path comes to each place: a place behind a character has the same number."""
        total = int(layout.offset[-1])
        score = np.full(total, _NONE)
        best = np.zeros(total, dtype=np.int32)
        gain = self._scores.take(edges.token)
        target = layout.offset.take(edges.start + edges.size - 1) + edges.word
        bounds = edges.bounds.tolist()
        offset = layout.offset.tolist()
        for column in range(len(bounds) - 1):
            low, high = bounds[column], bounds[column + 1]
            sums = gain[low:high]
            if column:
                sums += score[offset[column - 1] : offset[column]].take(edges.word[low:high])
            to = target[low:high]
            better = np.flatnonzero(sums > score.take(to))
            to = to.take(better)
            score[to] = sums.take(better)
            best[to] = better + low
        return best

    def _back(self, layout: _Layout, edges: _Edges, best: NDArray[np.int32], count: int) -> Paths:
        """From the ends of the words to their starts."""
        sizes = np.repeat(np.arange(1, len(layout.words)), layout.words[:-1] - layout.words[1:])[::-1].astype(np.int32)
        word, end = np.arange(count), sizes
        rounds: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        counts = np.zeros(count, dtype=np.int64)
        while len(word):
            edge = best.take(layout.offset.take(end - 1) + word)
            rounds.append((word, edge))
            end = edges.start.take(edge)
            more = np.flatnonzero(end)
            if len(more) < len(word):
                counts[word[end == 0]] = len(rounds)
                word, end = word.take(more), end.take(more)
        in_order = np.empty(count, dtype=np.int64)
        in_order[layout.order] = counts
        stops = np.cumsum(in_order)[layout.order]
        chosen = np.empty(int(in_order.sum()), dtype=np.int32)
        for number, (which, edge) in enumerate(rounds, 1):
            chosen[stops.take(which) - number] = edge
        starts = edges.start.take(chosen)
        tokens = edges.token.take(chosen)
        missing = tokens == len(self._scores) - 1
        tokens[missing] = self._unknown
        return Paths(tokens, starts, starts + edges.size.take(chosen), in_order)
