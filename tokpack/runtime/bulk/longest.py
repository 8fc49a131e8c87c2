"""WordPiece: longest pieces from the left, of many words at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.char_trie import DEAD, CharTrie

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LongestMatch"]

_NOTHING = np.iinfo(np.int64).max


class LongestMatch:
    """The pieces of words.

    Args:
        trie: the pieces.
        prefix: in front of all pieces of a word but the first.
    """

    def __init__(self, trie: CharTrie, prefix: str) -> None:
        self._trie = trie
        self._later = trie.node(prefix)  # where the search for all pieces but the first begins

    def search(
        self, points: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """(ids of the words laid end to end, how many each has); a word that cannot be made of pieces has none.

        Args:
            points: code points of the words laid end to end.
            sizes: characters of each word, at least 1.
        """
        trie, count = self._trie, len(sizes)
        ends = np.cumsum(sizes)
        word, stop = np.arange(count), ends
        at = ends - sizes
        nodes = trie.begin(points.take(at))
        token = np.full(count, DEAD, dtype=np.int32)  # the longest piece so far, and where it ends
        after = at
        found: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        fits = np.ones(count, dtype=np.bool_)
        while len(word):
            # ``at`` is the character that led to ``nodes``
            value = trie.value.take(nodes)
            better = value >= 0
            token = np.where(better, value, token)
            after = np.where(better, at + 1, after)
            at = at + 1
            goes_on = trie.grows.take(nodes) & (at < stop)
            ended = np.flatnonzero(~goes_on)
            following = np.flatnonzero(goes_on)
            nodes[following] = trie.step(nodes.take(following), points.take(at.take(following)))
            if not len(ended):
                continue
            piece = token.take(ended)
            good = piece >= 0
            found.append((word.take(ended[good]), piece[good]))
            fits[word.take(ended[~good])] = False
            more = ended[good]
            more = more[after.take(more) < stop.take(more)]
            at[more] = after.take(more)
            token[more] = DEAD
            nodes[more] = self._restart(points.take(at.take(more)))
            keep = np.sort(np.concatenate((following, more)))
            word, stop, at, nodes = word.take(keep), stop.take(keep), at.take(keep), nodes.take(keep)
            token, after = token.take(keep), after.take(keep)
        return self._in_order(found, fits)

    def _restart(self, points: NDArray[np.int32]) -> NDArray[np.int32]:
        if self._later > 0:
            return self._trie.step(np.full(len(points), self._later, dtype=np.int32), points)
        return self._trie.begin(points) if not self._later else np.full(len(points), DEAD, dtype=np.int32)

    def _in_order(
        self, found: list[tuple[NDArray[np.int64], NDArray[np.int32]]], fits: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        if not found:
            return np.zeros(0, dtype=np.int32), np.zeros(len(fits), dtype=np.int64)
        word = np.concatenate([words for words, _ in found])
        token = np.concatenate([tokens for _, tokens in found])
        good = fits.take(word)
        word, token = word[good], token[good]
        order = np.argsort(word, kind="stable")
        return token.take(order), np.bincount(word, minlength=len(fits))
