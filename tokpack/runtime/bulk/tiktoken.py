"""The bulk path of packs with the rules of tiktoken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.classes import CharCodes
from tokpack.runtime.bulk.encoder import Limits, Parts, WordEncoder, by_pieces
from tokpack.runtime.bulk.encoder import Words as TextWords
from tokpack.runtime.bulk.known import rules_of_pattern
from tokpack.runtime.bulk.pieces import batch_merger, known_words, piece_places, section, symbol_pairs
from tokpack.runtime.bulk.resolve import BatchResolver, one_by_one
from tokpack.runtime.bulk.split import WordStarts
from tokpack.runtime.bulk.words import WordIds, nothing_known
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.tiktoken.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TiktokenBulk"]

Fragments = Callable[[str, bool], Iterable[tuple[int, int, int]]]


class TiktokenBulk:
    """Texts to arrays.

    A word that is a piece is that piece, others are merged by rank (``byte_pair_encode``, src/lib.rs); a part of a word
    is merged only, so that a piece which merging does not reach is not found in it.

    Args:
        view, pieces: the pack.
        words: the scalar path of what is between special tokens.
        fragments: cuts out special tokens.

    Attributes:
        limits: when numpy is worth its while.
    """

    def __init__(self, view: PackView, pieces: PieceTable, words: Words, fragments: Fragments) -> None:
        self.limits = Limits()
        self._words = words
        self._fragments = fragments
        with meta_errors(view.file):
            self._encoder = _encoder(view, pieces, words)

    def force(self, chunk: int, few: int, group: int) -> bool:
        """See :meth:`Limits.force`; whether there is a bulk path for this pattern."""
        encoder = self._encoder
        self.limits.force(None if encoder is None else encoder.ids, chunk, few, group)
        return encoder is not None

    def encode(self, text: str, parse_special: bool) -> NDArray[np.int32]:
        """Ids of a text without surrogates, int32 ``[n]``."""
        out, limits, encoder = Parts(), self.limits, self._encoder
        for token, start, end in self._fragments(text, parse_special):
            if token >= 0:
                out.ids.append(token)
            elif encoder is not None and end - start >= limits.fragment:
                out.extend(encoder.encode(text[start:end], limits.chunk))
            else:
                out.ids.extend(self._words.encode(text[start:end]))
        return out.array()


def _encoder(view: PackView, pieces: PieceTable, words: Words) -> WordEncoder | None:
    """None for a pattern that may leave text out or match nothing."""
    rules, starts = None, None
    if words.source is not None:
        rules = rules_of_pattern(words.source, onig=False)
        if rules is None or not isinstance(words.pattern, re.Pattern):
            return None
        view.two_stage("onig")  # checks it
        index, blocks = section(view, "onig.index", "H"), section(view, "onig.blocks", "H")
        starts = WordStarts(rules, CharCodes(index, blocks, words.pattern, rules.family))

    def cut(text: str) -> TextWords:
        return by_pieces(text, (end for _, end in words.cut(text)))

    model = words.model
    first = np.array(model.first, dtype=np.int32)
    resolve = BatchResolver(
        lambda: batch_merger(view, first), model.encode, model.merged, pieces.size, np.zeros(256, dtype=np.bool_)
    )
    if not len(section(view, "bulk.words", "B")):
        # a pack that does not say which pieces are words only as a whole
        return WordEncoder(starts, cut, WordIds(nothing_known(), partial(one_by_one, model.encode)), None)
    places = piece_places(view, pieces)
    known = known_words(view, pieces, places, resolve.merge)
    return WordEncoder(starts, cut, WordIds(known, resolve), symbol_pairs(view, places, 0x80))
