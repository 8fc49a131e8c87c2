"""Models that merge a whole text: segments between sure boundaries, encoded as words are.

See :mod:`tokpack.runtime.bulk.cuts`: where no symbol holds two neighbouring characters, no merge crosses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.bpe import WIDTHS, BatchMerger
from tokpack.runtime.bulk.cuts import BytePairs
from tokpack.runtime.bulk.encoder import byte_places
from tokpack.runtime.bulk.resolve import FEW, Resolved, Scalar, in_order, one_by_one
from tokpack.runtime.bulk.split import CHUNK
from tokpack.runtime.bulk.words import Chunk, WordIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CharResolver", "Given", "SegmentEncoder"]


class SegmentEncoder:
    """Texts to ids.

    Args:
        pairs: the pairs of characters that symbols hold.
        ids: segments to ids.
        apart: a character whose runs are words of their own.
    """

    def __init__(self, pairs: BytePairs, ids: WordIds, apart: str = "") -> None:
        self._pairs = pairs
        self.ids = ids
        self._apart = ord(apart) if apart else None

    def encode(self, text: str, chunk: int = CHUNK, given: Given | None = None) -> Iterator[NDArray[np.int32]]:
        """Ids of a text, as the model gets it, in parts; ``given`` are tokens in it that are known."""
        return self.ids.encode(self._chunks(text, chunk, given or Given.of(())))

    def _chunks(self, text: str, size: int, given: Given) -> Iterator[Chunk]:
        at, window = 0, size
        while at < len(text):
            stop = min(at + window, len(text))
            points = np.frombuffer(text[at:stop].encode("utf-32-le", "surrogatepass"), dtype="<u4")
            cut = np.zeros(len(points) + 1, dtype=np.bool_)
            self._mark(cut, points)
            here = given.between(at, stop)
            here.cut(cut)
            cut[0] = True
            cut[-1] = stop == len(text)
            places = np.flatnonzero(cut)
            if stop < len(text):
                if len(places) < 2:
                    window *= 2  # nothing certain in it: the segment goes on
                    continue
                stop = at + int(places[-1])
            raw = text[at:stop].encode("utf-8", "surrogatepass")
            names = np.searchsorted(places, here.starts)
            inside = names < len(places) - 1
            known = (names[inside], here.ids[inside]) if len(names) else None
            yield Chunk(raw, places if len(raw) == stop - at else byte_places(raw, places), None, known)
            at, window = stop, size

    def _mark(self, cut: NDArray[np.bool_], points: NDArray[np.uint32]) -> None:
        cut[self._pairs.places(points)] = True
        if self._apart is not None:
            apart = points == self._apart
            cut[1:-1] &= ~(apart[1:] & apart[:-1])
            cut[1:-1] |= apart[1:] != apart[:-1]


@dataclass(frozen=True, slots=True)
class Given:
    """Tokens of a text that are known: where they start and end, in characters, and their ids; they do not overlap."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    ids: NDArray[np.int32]

    @staticmethod
    def of(spans: Iterable[tuple[int, int, int]]) -> Given:
        """From (start, end, id), ascending."""
        flat = np.fromiter(chain.from_iterable(spans), dtype=np.int64).reshape(-1, 3)
        return Given(flat[:, 0], flat[:, 1], flat[:, 2].astype(np.int32))

    @property
    def apart(self) -> bool:
        """Whether none overlaps another, or is empty."""
        return not ((self.starts[1:] < self.ends[:-1]).any() or (self.starts >= self.ends).any())

    def between(self, start: int, stop: int) -> Given:
        """Those that start in a part of the text, counted from its start."""
        first, last = np.searchsorted(self.starts, (start, stop))
        return Given(self.starts[first:last] - start, self.ends[first:last] - start, self.ids[first:last])

    def cut(self, cut: NDArray[np.bool_]) -> None:
        """Boundaries before and behind each token, none inside."""
        if not len(self.starts):
            return
        ends = self.ends[self.ends < len(cut)]
        depth = np.zeros(len(cut) + 1, dtype=np.int8)
        depth[self.starts + 1] += 1
        depth[ends] -= 1
        cut[np.cumsum(depth[:-1], dtype=np.int8) > 0] = False
        cut[self.starts] = True
        cut[ends] = True


class CharResolver:
    """Segments of vocabularies whose first symbols are characters.

    Args:
        merger: the merges, made when needed.
        symbols: makes the symbols of all code points, int32 ``[0x110000]``: -1 for one that takes more than merging.
        scalar: ids of a segment, by the scalar path.
        size: number of pieces; a segment that keeps a symbol behind them goes to the scalar path.
    """

    def __init__(
        self,
        merger: Callable[[], BatchMerger],
        symbols: Callable[[], NDArray[np.int32]],
        scalar: Scalar,
        size: int,
    ) -> None:
        self._make = merger, symbols
        self._made: tuple[BatchMerger, NDArray[np.int32]] | None = None
        self._scalar = scalar
        self._size = size
        self.few = FEW

    def __call__(self, words: Sequence[bytes]) -> Resolved:
        """(ids laid end to end, how many each segment has)."""
        if len(words) <= self.few:
            return one_by_one(self._scalar, words)
        if self._made is None:
            self._made = self._make[0](), self._make[1]()
        merger, table = self._made
        texts = [word.decode("utf-8", "surrogatepass") for word in words]
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(words))
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        symbols = np.append(table.take(points), np.zeros(WIDTHS[-1], dtype=np.int32))
        starts = np.cumsum(sizes) - sizes
        odd = sizes > WIDTHS[-1]
        strange = np.flatnonzero(symbols < 0)
        odd[np.searchsorted(starts, strange, side="right") - 1] = True
        parts: list[tuple[NDArray[np.int64], Resolved]] = []
        shorter = 0
        for width in WIDTHS:
            chosen = np.flatnonzero(~odd & (sizes > shorter) & (sizes <= width))
            shorter = width
            if not len(chosen):
                continue
            flat, counts = merger.merge(symbols[starts[chosen][:, None] + np.arange(width)], sizes[chosen])
            beyond = np.zeros(len(chosen), dtype=np.bool_)
            beyond[np.repeat(np.arange(len(chosen)), counts)[flat >= self._size]] = True
            odd[chosen[beyond]] = True
            parts.append((chosen[~beyond], (flat[np.repeat(~beyond, counts)], counts[~beyond])))
        chosen = np.flatnonzero(odd)
        if len(chosen):
            parts.append((chosen, one_by_one(self._scalar, [words[at] for at in chosen.tolist()])))
        return in_order(parts, len(words))
