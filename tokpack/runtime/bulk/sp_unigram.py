"""sentencepiece's Unigram on long texts: words once, sums of single precision over all of them.

What a word becomes may depend on the sum before it, see :mod:`tokpack.runtime.sentencepiece.unigram`. The sums are
those of the scalar path, one addition for each piece in the same order; a word whose best path does not lead by enough
at the sum that it meets is worked out there.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.sentencepiece.unigram import Tokens, UnigramModel
from tokpack.runtime.sentencepiece.words import words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UnigramEncoder"]

_CACHED_WORDS = 1 << 17
_CACHED_LENGTH = 64
_CHARACTERS = 1 << 19  # of a text that are cut into words at a time
_FEWEST, _MOST = 32, 1 << 14  # words whose sums are added before it is known how many of them count

Ids = Callable[[bytes, Tokens], list[int]]


class _Known(dict[str, int]):
    """Word → its number; what one thread remembers. Number 0 is a word that depends on the sum before it.

    Attributes:
        scores, ids: of all words, laid end to end.
        sums, counts: how many scores and ids each word has.
        limits: how far from 0 the sum before a word may be.
    """

    def __init__(self, model: UnigramModel, ids: Ids) -> None:
        super().__init__()
        self._model = model
        self._ids = ids
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self.clear()
        self.scores, self.ids = array("f"), array("i")
        self.sums, self.counts, self.limits = array("q", [0]), array("q", [0]), array("d", [0.0])

    def __missing__(self, word: str) -> int:
        if len(word) > _CACHED_LENGTH:
            return 0
        raw = word.encode()
        tokens, scores, limit = self._model.certain(raw)
        ids = self._ids(raw, tokens)
        self.scores.extend(scores)
        self.ids.extend(ids)
        self.sums.append(len(scores))
        self.counts.append(len(ids))
        self.limits.append(limit)
        number = self[word] = len(self.limits) - 1
        return number


class UnigramEncoder:
    """Texts to ids.

    Args:
        model: the scalar path.
        ids: ids of the pieces of a part of a text.
        space: what words begin or end with.
        cut: ``before`` or ``after`` such runs.
    """

    def __init__(self, model: UnigramModel, ids: Ids, space: str, cut: str) -> None:
        self._model = model
        self._ids = ids
        self._space = space
        self._cut = cut
        mark = re.escape(space)
        self._edge = re.compile(f"(?<!{mark}){mark}" if cut == "before" else f"(?<={mark})(?!{mark})")
        self._local = threading.local()

    def force(self) -> None:
        """Forget what is known, for tests."""
        self._local = threading.local()

    def encode(self, text: str, size: int = _CHARACTERS) -> Iterator[NDArray[np.int32]]:
        """Ids of a normalized text, in parts."""
        known: _Known | None = getattr(self._local, "known", None)
        if known is None:
            known = self._local.known = _Known(self._model, self._ids)
        here = 0.0
        for part in self._parts(text, size):
            if len(known) > _CACHED_WORDS:
                known.forget()
            found, here = self._encode(known, words(part, self._space, self._cut), here)
            yield found

    def _parts(self, text: str, size: int) -> Iterator[str]:
        at, end = 0, len(text)
        while at < end:
            found = self._edge.search(text, at + size)
            stop = found.start() if found is not None else end
            yield text[at:stop]
            at = stop

    def _encode(self, known: _Known, some: list[str], here: float) -> tuple[NDArray[np.int32], float]:
        """(ids of words, sum behind them); ``here`` is the sum before them."""
        numbers = np.fromiter(map(known.__getitem__, some), dtype=np.int64, count=len(some))
        # copies: the arrays of a memory that grows cannot be lent
        sums, counts, limits = (np.array(part) for part in (known.sums, known.counts, known.limits))
        scores = np.array(known.scores)[_laid_out(sums, numbers)]
        other, here = self._other(some, scores, sums[numbers], limits[numbers], here)
        if not other:
            return np.array(known.ids)[_laid_out(counts, numbers)], here
        numbers[list(other)] = np.arange(len(other)) + len(counts)
        sizes = np.concatenate((counts, np.fromiter(map(len, other.values()), dtype=np.int64)))
        more = np.array([token for ids in other.values() for token in ids], dtype=np.int32)
        return np.concatenate((np.array(known.ids), more))[_laid_out(sizes, numbers)], here

    def _other(
        self,
        some: list[str],
        scores: NDArray[np.float32],
        sizes: NDArray[np.int64],
        limits: NDArray[np.float64],
        here: float,
    ) -> tuple[dict[int, list[int]], float]:
        """(place → ids of the words that have to be worked out where they are, sum at the end)."""
        out: dict[int, list[int]] = {}
        begins = np.concatenate(([0], np.cumsum(sizes)))
        at, window, count = 0, _MOST, len(some)
        while at < count:
            stop = min(at + window, count)
            added = np.empty(int(begins[stop] - begins[at]) + 1, dtype=np.float32)
            added[1:] = scores[begins[at] : begins[stop]]
            with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are unsure
                added[0] = here
                np.add.accumulate(added, out=added)
            before = added[begins[at : stop + 1] - begins[at]].astype(np.float64)
            unsure = np.flatnonzero(~(np.abs(before[:-1]) < limits[at:stop]))
            if not len(unsure):
                here, at = float(before[-1]), stop
                window = min(2 * window, _MOST)
                continue
            first = int(unsure[0])
            raw = some[at + first].encode()
            tokens, here = self._model.best(raw, float(before[first]))
            out[at + first] = self._ids(raw, tokens)
            at += first + 1
            window = max(_FEWEST, min(_MOST, (window + 3 * first) // 2))
        return out, here


def _laid_out(sizes: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of what these words have, if all that any has is laid end to end."""
    begins = (np.cumsum(sizes) - sizes).take(numbers)
    counts = sizes.take(numbers)
    skip = np.cumsum(counts) - counts
    places: NDArray[np.int64] = np.repeat(begins - skip, counts)
    places += np.arange(len(places))
    return places
