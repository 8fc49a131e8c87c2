"""Models whose words lie between separators: fields of the raw text, each encoded once by itself.

A field goes through everything that the scalar path does with a text, normalizers included. That is exact where the
scalar path treats the text left and right of a separator on its own; a place where that is not certain is no separator,
which only makes a longer field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.encoder import byte_places
from tokpack.runtime.bulk.field_chars import ALONE, CAREFUL, EACH, GAP, START, FieldChars
from tokpack.runtime.bulk.resolve import Resolved, Scalar, in_order, one_by_one
from tokpack.runtime.bulk.split import CHUNK
from tokpack.runtime.bulk.words import Chunk, WordIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FieldEncoder", "FieldResolver", "WordBatch"]

_FEW = 24  # fields up to which the scalar path is faster

# (code points of words laid end to end, how many each has) → (ids laid end to end, how many each word has, whether the
# word could be encoded: else it has no ids)
WordBatch = Callable[
    ["NDArray[np.int32]", "NDArray[np.int64]"], "tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]"
]


class FieldEncoder:
    """Texts to ids.

    Args:
        chars: where fields begin and end.
        ids: fields to ids.
    """

    def __init__(self, chars: FieldChars, ids: WordIds) -> None:
        self._chars = chars
        self.ids = ids

    def encode(self, text: str, chunk: int = CHUNK) -> Iterator[NDArray[np.int32]]:
        """Ids of a text, in parts."""
        return self.ids.encode(self._chunks(text, chunk))

    def _chunks(self, text: str, size: int) -> Iterator[Chunk]:
        at, window = 0, size
        while at < len(text):
            stop = min(at + window, len(text))
            # a separator depends on the character behind it
            points = np.frombuffer(text[at : stop + 1].encode("utf-32-le", "surrogatepass"), dtype="<u4")
            cut, gap = _cuts(self._chars.codes_of(points), ends=stop >= len(text))
            if stop < len(text):
                cut, gap = cut[:-1], gap[:-1]
                places = np.flatnonzero(cut)
                if not len(places) or not places[-1]:
                    window *= 2
                    continue
                stop = at + int(places[-1])
            else:
                places = np.append(np.flatnonzero(cut), len(points))
            if places[0]:
                places = np.concatenate(([0], places))
            raw = text[at:stop].encode("utf-8", "surrogatepass")
            between = gap[places[:-1]]
            if len(raw) != stop - at:
                places = byte_places(raw, places)
            yield Chunk(raw, places, gaps=between)
            at, window = stop, size


def _cuts(codes: NDArray[np.uint8], *, ends: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(whether a field or a gap begins at each character, whether the character is a gap).

    ``ends``: the text ends behind these.
    """
    gap = codes == GAP
    special = gap | (codes == ALONE)
    each = codes == EACH
    careful = codes == CAREFUL
    if careful.any():
        beside = careful.copy()
        beside[:-1] |= careful[1:]
        beside[1:] |= careful[:-1]
        for kind in (special, each, gap):
            kind &= ~beside
    cut = special.copy()
    cut[1:] |= special[:-1]
    cut[1:] &= ~(gap[1:] & gap[:-1])
    cut |= each
    run = codes == START
    if run.any():
        cut[_runs(run, careful, ends=ends)] = True
    return cut, gap


def _runs(run: NDArray[np.bool_], careful: NDArray[np.bool_], *, ends: bool) -> NDArray[np.int64]:
    """Where the runs begin that have no character to be careful of on either side."""
    edges = np.flatnonzero(run[1:] != run[:-1]) + 1
    if run[0]:
        edges = np.concatenate(([0], edges))
    if len(edges) % 2:
        edges = np.append(edges, len(run)) if ends else edges[:-1]  # else its end is not in sight
    begins, stops = edges[::2], edges[1::2]
    guarded = np.concatenate((careful, [False]))  # the last one: behind the text, and before it
    good: NDArray[np.int64] = begins[~(guarded.take(begins - 1) | guarded.take(stops))]
    return good


class FieldResolver:
    """Fields to ids.

    Args:
        chars: what becomes of free characters.
        batch: words to ids.
        words: the words that a field becomes.
        scalar: ids of any field.
        mark: what is in front of the word that a field of free characters becomes.
        replaced: texts that are replaced before all else, and what takes their place.
    """

    def __init__(
        self,
        chars: FieldChars,
        batch: WordBatch,
        words: Callable[[str], Sequence[str]],
        scalar: Scalar,
        mark: str = "",
        replaced: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._chars = chars
        self._batch = batch
        self._words = words
        self._scalar = scalar
        self._mark = np.array([ord(char) for char in mark], dtype=np.int32)
        self._replaced = [(old.encode(), new.encode()) for old, new in replaced]
        self.few = _FEW

    def __call__(self, words: Sequence[bytes]) -> Resolved:
        """(ids laid end to end, how many each field has)."""
        if len(words) <= self.few:
            return one_by_one(self._scalar, words)
        points, sizes, free = self._free(words)
        field = np.flatnonzero(free & (sizes > 0))  # of each word
        if len(field) < len(words):
            kept = np.repeat(free, sizes)
            points, sizes = points[kept], sizes[field]
        if len(self._mark):
            points, sizes = _marked(points, sizes, self._mark)
        others = np.flatnonzero(~free).tolist()
        if others:
            cut = [self._words(words[at].decode("utf-8", "surrogatepass")) for at in others]
            texts = list(chain.from_iterable(cut))
            joined = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<i4")
            points = np.concatenate((points, joined))
            sizes = np.concatenate((sizes, np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))))
            field = np.concatenate((field, np.repeat(others, list(map(len, cut)))))
        if not len(field):
            return np.zeros(0, dtype=np.int32), np.zeros(len(words), dtype=np.int64)
        flat, counts, good = self._batch(points, sizes)
        totals = np.zeros(len(words), dtype=np.int64)
        np.add.at(totals, field, counts)
        bad = np.unique(field[~good])
        if len(bad):
            flat = flat[np.repeat(~np.isin(field, bad), counts)]
            totals[bad] = 0
        order = np.concatenate((np.flatnonzero(free), np.array(others, dtype=np.int64)))
        redone = one_by_one(self._scalar, [words[at] for at in bad.tolist()])
        return in_order([(order, (flat, totals[order])), (bad, redone)], len(words))

    def _free(self, words: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
        raw = b"".join(words)
        for old, new in self._replaced:
            if old in raw:
                words = [word.replace(old, new) for word in words]
                raw = b"".join(words)
        sizes = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        text = raw.decode("utf-8", "surrogatepass")
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        if len(points) != len(raw):
            lead = (np.frombuffer(raw, dtype=np.uint8) & 0xC0) != 0x80
            ends = np.concatenate(([0], np.cumsum(lead))).take(np.cumsum(sizes))
            sizes = np.diff(ends, prepend=0)
        out, counts, free = self._chars.normalized(points, sizes)
        if len(self._mark):
            free &= counts > 0  # a mark alone: whether there is one depends
        return out, counts, free


def _marked(
    points: NDArray[np.int32], sizes: NDArray[np.int64], mark: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """With the mark in front of each word."""
    longer = sizes + len(mark)
    begins = np.cumsum(longer) - longer
    out = np.empty(len(points) + len(mark) * len(sizes), dtype=np.int32)
    inner = np.ones(len(out), dtype=np.bool_)
    for at, char in enumerate(mark.tolist()):
        out[begins + at] = char
        inner[begins + at] = False
    out[inner] = points
    return out, longer
