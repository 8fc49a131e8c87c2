"""Long texts to ids: chunks, words of each chunk, ids of the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.cuts import BytePairs
from tokpack.runtime.bulk.split import CHUNK, WordStarts, chunks
from tokpack.runtime.bulk.words import Chunk, WordIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Limits", "Parts", "WordEncoder", "Words", "by_pieces", "byte_places"]

_WORDS = 1 << 14  # words of the scalar splitter that are looked up at a time

# the words of a text in characters: (part of the text, ends of its words), no gaps, none empty
Words = Iterator[tuple[str, list[int]]]


@dataclass
class Limits:
    """When numpy is worth its while.

    Attributes:
        fragment: characters of a text between special tokens from which on it goes the bulk way.
        chunk: characters that are cut into words at a time.
    """

    fragment: int = 1 << 9
    chunk: int = CHUNK

    def force(self, ids: WordIds | None, chunk: int, few: int, group: int) -> None:
        """For tests: everything that can goes the bulk way, with limits of any size.

        Args:
            ids: forgets what it knows.
            chunk: characters that are cut into words at a time.
            few: new words up to which they are merged one by one.
            group: bytes of text whose new words are resolved together.
        """
        self.fragment, self.chunk = 1, chunk
        if ids is not None:
            ids.force(few, group)


class Parts:
    """Ids as they come, one by one or in arrays.

    Attributes:
        ids: those that came last, one by one.
    """

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self.ids = list(ids)
        self._arrays: list[NDArray[np.int32]] = []

    def extend(self, arrays: Iterable[NDArray[np.int32]]) -> None:
        """Add arrays."""
        if self.ids:
            self._arrays.append(np.array(self.ids, dtype=np.int32))
            self.ids = []
        self._arrays.extend(arrays)

    def array(self) -> NDArray[np.int32]:
        """All of them, int32 ``[n]``."""
        self.extend(())
        if len(self._arrays) == 1:
            return self._arrays[0]
        return np.concatenate(self._arrays) if self._arrays else np.zeros(0, dtype=np.int32)


def byte_places(raw: bytes, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Byte offsets of characters of a UTF-8 text; ``places`` may hold the number of characters as the last entry."""
    # read as signed, the bytes inside characters are those below -64; the end counts as a character
    lead = np.frombuffer(raw + b"\0", dtype=np.int8) >= -64
    found: NDArray[np.int64] = np.flatnonzero(lead).take(places)
    return found


class WordEncoder:
    """Texts of vocabularies whose words are cut by a pattern and encoded one by one.

    Args:
        starts: the vectorised splitter, or None when the pattern has none.
        words: the scalar splitter.
        ids: words to ids.
        pairs: where words may be cut into parts, or None.
    """

    def __init__(
        self, starts: WordStarts | None, words: Callable[[str], Words], ids: WordIds, pairs: BytePairs | None
    ) -> None:
        self._starts = starts
        self._words = words
        self.ids = ids
        self._pairs = pairs

    def encode(self, text: str, chunk: int = CHUNK) -> Iterator[NDArray[np.int32]]:
        """Ids of a text without special tokens, in parts."""
        return self.ids.encode(self._chunks(text, chunk))

    def _chunks(self, text: str, size: int) -> Iterator[Chunk]:
        if self._starts is None:
            yield from self._scalar(text)
            return
        at, end = 0, len(text)
        for part in chunks(text, size):
            at += len(part)
            found = self._starts.begins(part, last=at == end)
            if found is None:
                yield from self._scalar(part)
            else:
                yield self._chunk(part, *found)

    def _scalar(self, text: str) -> Iterator[Chunk]:
        for part, ends in self._words(text):
            begins = np.zeros(len(part) + 1, dtype=np.bool_)
            begins[0] = True
            begins[ends] = True
            raw = part.encode("utf-32-le", "surrogatepass")
            yield self._chunk(part, begins[:-1], np.frombuffer(raw, dtype="<u4"))

    def _chunk(self, text: str, begins: NDArray[np.bool_], points: NDArray[np.unsignedinteger]) -> Chunk:
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) == len(text):
            return Chunk(raw, _places(begins))
        cut = begins
        if self._pairs is not None:
            cut = begins.copy()
            cut[self._pairs.places(points)] = True
        starts = _places(cut)

        def parts() -> NDArray[np.bool_]:
            whole = np.append(begins, True)
            inner: NDArray[np.bool_] = ~(whole[starts[:-1]] & whole[starts[1:]])
            return inner

        return Chunk(raw, byte_places(raw, starts), parts)


def _places(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where words begin, and the end."""
    count = int(np.count_nonzero(begins))
    places = np.empty(count + 1, dtype=np.int64)
    places[:count] = np.flatnonzero(begins)
    places[count] = len(begins)
    return places


def by_pieces(text: str, ends: Iterable[int]) -> Words:
    """What :class:`WordEncoder` takes from the ends of all words of a text."""
    base = last = 0
    some: list[int] = []
    for end in ends:
        if end > last:
            some.append(end - base)
            last = end
            if len(some) >= _WORDS:
                yield text[base:last], some
                base, some = last, []
    if some:
        yield text[base:last], some
