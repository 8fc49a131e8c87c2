"""Models whose words lie between separators: fields of the raw text, each encoded once by itself.

A field goes through everything that the scalar path does with a text, normalizers included. That is exact where the
scalar path treats the text left and right of a separator on its own; a place where that is not certain is no separator,
which only makes a longer field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.encoder import byte_places
from tokpack.runtime.bulk.resolve import Resolved, Scalar, one_by_one
from tokpack.runtime.bulk.split import CHUNK
from tokpack.runtime.bulk.words import Chunk, WordIds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALONE", "GAP", "INSIDE", "FieldEncoder", "FieldResolver", "best_path", "greedy"]

INSIDE, ALONE, GAP, CAREFUL = range(4)  # part of a field; a field of its own; between fields; no separator beside it


class FieldEncoder:
    """Texts to ids.

    Args:
        codes: INSIDE, ALONE, GAP or CAREFUL for each code point, uint8 ``[0x110000]``.
        ids: fields to ids.
    """

    def __init__(self, codes: NDArray[np.uint8], ids: WordIds) -> None:
        self._codes = codes
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
            codes = self._codes.take(points)
            cut, gap = _cuts(codes)
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


def _cuts(codes: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(whether a field or a gap begins at each character, whether the character is a gap)."""
    special = (codes == ALONE) | (codes == GAP)
    careful = codes == CAREFUL
    if careful.any():
        beside = careful.copy()
        beside[:-1] |= careful[1:]
        beside[1:] |= careful[:-1]
        special &= ~beside
    gap = special & (codes == GAP)
    cut = special.copy()
    cut[1:] |= special[:-1]
    cut[1:] &= ~(gap[1:] & gap[:-1])
    return cut, gap


class FieldResolver:
    """Fields to ids.

    Args:
        plain: what encodes a field of nothing but ``chars``.
        chars: characters (ASCII) that the normalizers leave as they are, but for ``fold``.
        fold: what they do to them.
        scalar: what encodes any field.
    """

    def __init__(
        self, plain: Callable[[str], Sequence[int]], chars: bytes, fold: Callable[[str], str], scalar: Scalar
    ) -> None:
        self._plain = plain
        self._chars = chars
        self._fold = fold
        self._scalar = scalar

    def __call__(self, words: Sequence[bytes]) -> Resolved:
        """(ids laid end to end, how many each field has)."""
        return one_by_one(self._encode, words)

    def _encode(self, word: bytes) -> Sequence[int]:
        if word.translate(None, self._chars):
            return list(self._scalar(word))
        return self._plain(self._fold(word.decode("ascii")))


def greedy(
    pieces: Mapping[str, int], prefix: str, longest: int, unknown: Callable[[], int]
) -> Callable[[str], list[int]]:
    """``WordPiece::tokenize``: longest pieces from the left, or unknown.

    Args:
        pieces: piece → id.
        prefix: in front of all pieces of a word but the first.
        longest: characters of a word that is not unknown.
        unknown: gives the id of unknown words.
    """
    first = {text: token for text, token in pieces.items() if text}
    later = {text[len(prefix) :]: token for text, token in first.items() if text.startswith(prefix) and text != prefix}
    width = max(map(len, first), default=0)

    def encode(word: str) -> list[int]:
        whole = first.get(word)
        size = len(word)
        if size > longest:
            return [unknown()]
        if whole is not None:
            return [whole]
        out: list[int] = []
        at, table = 0, first
        while at < size:
            for end in range(min(size, at + width), at, -1):
                token = table.get(word[at:end])
                if token is not None:
                    break
            else:
                return [unknown()]
            out.append(token)
            at, table = end, later
        return out

    return encode


def best_path(
    pieces: Mapping[str, tuple[float, int]], missing: float, unknown: int
) -> Callable[[str], list[tuple[int, int, int]] | None]:
    """``Unigram::encode_optimized`` without what follows it: (id, start, end) of the best path, backwards.

    Args:
        pieces: piece → (score, id).
        missing: score of a character without a piece.
        unknown: its id; None is returned for a text with such a character if this is below 0.
    """
    by_first: dict[str, int] = {}
    for text in pieces:
        if text and by_first.get(text[0], 0) < len(text):
            by_first[text[0]] = len(text)
    lengths = by_first.get

    def encode(word: str) -> list[tuple[int, int, int]] | None:
        size = len(word)
        scores = [0.0] * (size + 1)
        tokens = [-1] * (size + 1)
        starts = [-1] * (size + 1)
        get = pieces.get
        for at in range(size):
            here = scores[at]
            for end in range(at + 1, min(size, at + lengths(word[at], 0)) + 1):
                found = get(word[at:end])
                if found is not None:
                    challenger = found[0] + here
                    if starts[end] < 0 or challenger > scores[end]:
                        scores[end], tokens[end], starts[end] = challenger, found[1], at
            if word[at] not in pieces:
                if unknown < 0:
                    return None
                challenger, end = missing + here, at + 1
                if starts[end] < 0 or challenger > scores[end]:
                    scores[end], tokens[end], starts[end] = challenger, unknown, at
        path = []
        end = size
        while end:
            path.append((tokens[end], starts[end], end))
            end = starts[end]
        return path

    return encode
