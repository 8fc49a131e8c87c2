"""The bulk path of packs with the rules of sentencepiece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.pack.pieces import NORMAL, USER_DEFINED, PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.charsmap import LongMap, moving_characters
from tokpack.runtime.bulk.encoder import Limits
from tokpack.runtime.bulk.pieces import batch_merger, char_symbols, known_words, piece_places, section, symbol_pairs
from tokpack.runtime.bulk.segments import CharResolver, Given, SegmentEncoder
from tokpack.runtime.bulk.sp_unigram import UnigramEncoder
from tokpack.runtime.bulk.words import WordIds
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.sentencepiece.models import MergeModel
from tokpack.runtime.sentencepiece.normalizer import Normalizer
from tokpack.runtime.sentencepiece.unigram import UnigramModel
from tokpack.runtime.sentencepiece.user import PrefixMatcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokpack.runtime.sentencepiece.pipeline import SentencePiecePipeline

__all__ = ["SentencePieceBulk"]


class SentencePieceBulk:
    """Texts to arrays.

    Args:
        view, pieces: the pack.
        pipeline: the scalar path.

    Attributes:
        limits: when numpy is worth its while.
    """

    def __init__(self, view: PackView, pieces: PieceTable, pipeline: SentencePiecePipeline) -> None:
        self.limits = Limits()
        self._pipeline = pipeline
        self._user = pipeline.user
        self._replace = _long_map(pipeline.normalizer)
        self._encoder: SegmentEncoder | None = None
        self._words: UnigramEncoder | None = None
        with meta_errors(view.file):
            model = pipeline.model
            if isinstance(model, MergeModel) and not model.cuts_up and self._user.is_text:
                self._encoder = _segments(view, pieces, pipeline)
            elif isinstance(model, UnigramModel) and model.word_cut:
                model.hasten()
                self._words = UnigramEncoder(model, pipeline.ids_of, pipeline.space, model.word_cut)

    def force(self, chunk: int, few: int, group: int) -> bool:
        """See :meth:`Limits.force`; whether there is a bulk path for this model."""
        encoder = self._encoder
        self.limits.force(None if encoder is None else encoder.ids, chunk, few, group)
        if self._words is not None:
            self._words.force()
        return encoder is not None or self._words is not None

    def encode(self, text: str | bytes) -> NDArray[np.int32]:
        """Ids of a text, int32 ``[n]``."""
        pipeline, encoder = self._pipeline, self._encoder
        normalized = pipeline.normalized(text, self._replace if len(text) >= self.limits.fragment else None)
        if isinstance(normalized, bytes) or len(normalized) < self.limits.fragment:
            return np.array(pipeline.encode_normalized(normalized), dtype=np.int32)
        if encoder is not None:
            given = Given.of(()) if self._user.empty else _given(self._user, normalized)
            arrays = list(encoder.encode(normalized, self.limits.chunk, given))
        elif self._words is not None:
            arrays = list(self._words.encode(normalized, 8 * self.limits.chunk))
        else:
            return np.array(pipeline.encode_normalized(normalized), dtype=np.int32)
        ids = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return ids if pipeline.falls_back else _joined(ids, pipeline.unknown)


def _long_map(normalizer: Normalizer) -> LongMap | None:
    """None where the charsmap has to be asked for each character."""
    charsmap = normalizer.charsmap
    if charsmap is None or charsmap.empty:
        return None
    moves = moving_characters(np.frombuffer(charsmap.units, dtype="<u4"))
    return None if moves is None else LongMap(moves, normalizer.replaced)


def _given(user: PrefixMatcher, text: str) -> Given:
    """The user-defined pieces of a normalized text."""
    raw = text.encode()
    found = [part for part in user.split(raw, valid=True) if part[0] >= 0]
    if not found:
        return Given.of(())
    spans = np.array(found, dtype=np.int64)
    if len(raw) != len(text):
        begun = np.cumsum((np.frombuffer(raw, dtype=np.uint8) & 0xC0) != 0x80)
        before = np.concatenate(([0], begun))
        spans[:, 1:] = before[spans[:, 1:]]
    return Given(spans[:, 1], spans[:, 2], spans[:, 0].astype(np.int32))


def _joined(ids: NDArray[np.int32], unknown: int) -> NDArray[np.int32]:
    """Neighbouring unknown pieces are one."""
    odd = ids == unknown
    again = odd[1:] & odd[:-1]
    if not again.any():
        return ids
    joined: NDArray[np.int32] = ids[np.concatenate(([True], ~again))]
    return joined


def _segments(view: PackView, pieces: PieceTable, pipeline: SentencePiecePipeline) -> SegmentEncoder:
    places = piece_places(view, pieces)
    shown = np.zeros(max(pieces.symbols, 1), dtype=np.bool_)
    shown[: pieces.size] = section(view, "piece.attrs", "H")[: pieces.size] & (NORMAL | USER_DEFINED) != 0
    shown[pieces.size :] = True  # of these the resolver takes care

    def symbols() -> NDArray[np.int32]:
        table = char_symbols(places, pieces.symbols, lambda char: pieces.find_raw(char.encode(), False))
        table[(table >= 0) & ~shown.take(table, mode="clip")] = -1  # such a piece is found, but stands for no text
        return table

    def scalar(word: bytes) -> list[int]:
        return pipeline.encode_part(word)

    resolve = CharResolver(lambda: batch_merger(view), symbols, scalar, pieces.size)
    known = known_words(view, pieces, places, resolve)
    return SegmentEncoder(symbol_pairs(view, places, 0), WordIds(known, resolve))
