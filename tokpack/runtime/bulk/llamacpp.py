"""The bulk path of packs with the rules of llama.cpp."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import MergeModel
from tokpack.runtime.bulk.batches import WordPieceBatch
from tokpack.runtime.bulk.char_trie import CharTrie
from tokpack.runtime.bulk.classes import CharCodes
from tokpack.runtime.bulk.encoder import Limits, Parts, WordEncoder, Words, by_pieces
from tokpack.runtime.bulk.field_chars import ALONE, GAP, INSIDE, FieldChars
from tokpack.runtime.bulk.fields import FieldEncoder, FieldResolver
from tokpack.runtime.bulk.known import HAN_RANGES, rules_of_collapsed, rules_of_scanners
from tokpack.runtime.bulk.longest import LongestMatch
from tokpack.runtime.bulk.pieces import batch_merger, char_symbols, known_words, piece_places, section, symbol_pairs
from tokpack.runtime.bulk.resolve import BatchResolver, one_by_one
from tokpack.runtime.bulk.segments import CharResolver, SegmentEncoder
from tokpack.runtime.bulk.split import WordStarts
from tokpack.runtime.bulk.words import WordIds, nothing_known
from tokpack.runtime.chars import ALONE as ALONE_ACTION
from tokpack.runtime.chars import BREAK, DROP, CharActions
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.partition import Partition
from tokpack.runtime.scanners import SCANNERS
from tokpack.runtime.split import compile_collapsed
from tokpack.runtime.whole import ScoreMergeFragments, WordPieceFragments
from tokpack.runtime.words import WordFragments
from tokpack.unicode.utf8 import decode_lenient

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LlamaBulk"]

_CLASS_NUMBER = 0xD1
_MARK = "\u2581"
_CODE_POINT = (1 << 21) - 1  # the bits of an action that are one


class LlamaBulk:
    """Texts to arrays.

    Args:
        view, pieces: the pack.
        partition: cuts out special tokens.
        fragments: the scalar path of what is between them.

    Attributes:
        limits: when numpy is worth its while.
    """

    def __init__(self, view: PackView, pieces: PieceTable, partition: Partition, fragments: Any) -> None:
        self.limits = Limits()
        self._partition = partition
        self._fragments = fragments
        self._encoder: WordEncoder | None = None
        self._segments: SegmentEncoder | None = None
        self._fields: FieldEncoder | None = None
        with meta_errors(view.file):
            if isinstance(fragments, WordFragments):
                if pieces.byte_level and fragments.plain:
                    self._encoder = _word_encoder(view, pieces, fragments)
                elif not pieces.byte_level and fragments.escaping and _newlines(view):
                    self._segments = _segment_encoder(view, pieces, fragments.model, newlines=True)
            elif isinstance(fragments, ScoreMergeFragments):
                self._segments = _segment_encoder(view, pieces, fragments.model, newlines=False)
            elif isinstance(fragments, WordPieceFragments):
                self._fields = _word_piece_fields(view, pieces, fragments)

    def force(self, chunk: int, few: int, group: int) -> bool:
        """See :meth:`Limits.force`; whether there is a bulk path for this model."""
        encoder = self._encoder or self._segments or self._fields
        self.limits.force(None if encoder is None else encoder.ids, chunk, few, group)
        return encoder is not None

    def encode(self, text: str | bytes, parse_special: bool, before: list[int], after: list[int]) -> NDArray[np.int32]:
        """Ids of a text, those of ``before`` and ``after`` around them: int32 ``[n]``."""
        out = Parts(before)
        if self._encoder is not None and isinstance(text, str) and not self._partition.may_hold(text):
            self._fragment(out, text, True)
        else:
            raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
            after_special = True
            for token, start, end in self._partition.cut(raw, parse_special):
                if token >= 0:
                    out.ids.append(token)
                else:
                    self._fragment(out, raw[start:end], after_special)
                after_special = token >= 0
        out.ids += after
        return out.array()

    def _fragment(self, out: Parts, fragment: str | bytes, after_special: bool) -> None:
        limits = self.limits
        if len(fragment) >= limits.fragment:
            if self._encoder is not None:
                text = fragment if isinstance(fragment, str) else decode_lenient(fragment)
                out.extend(self._encoder.encode(text, limits.chunk))
                return
            if self._segments is not None:
                escaped = self._escaped(fragment, after_special)
                if escaped is not None:
                    out.extend(self._segments.encode(escaped, limits.chunk))
                    return
            if self._fields is not None:
                text = fragment if isinstance(fragment, str) else decode_lenient(fragment)
                out.extend(self._fields.encode(text, limits.chunk))
                return
        if isinstance(fragment, str):
            out.ids.extend(self._fragments.encode_text(fragment))
        else:
            out.ids.extend(self._fragments.encode(fragment, after_special))

    def _escaped(self, fragment: str | bytes, after_special: bool) -> str | None:
        """The text that the model merges; None if that is not certain."""
        if isinstance(fragment, str):
            text = fragment
        else:
            try:
                text = fragment.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                return None
        text = text.replace(" ", "▁")
        return "▁" + text if after_special and getattr(self._fragments, "prefix", False) else text


def _word_piece_fields(view: PackView, pieces: PieceTable, fragments: WordPieceFragments) -> FieldEncoder:
    actions = CharActions(view)

    def ask(char: str) -> tuple[int, str | None]:
        action = actions.action(char)
        if action & DROP:
            return INSIDE, ""
        text = chr(action & _CODE_POINT)
        if action & ALONE_ACTION:
            return ALONE, text
        return (GAP, None) if action & BREAK else (INSIDE, text)

    def scalar(word: bytes) -> Iterable[int]:
        return fragments.encode(word, False)

    def words(field: str) -> list[str]:
        return [_MARK + word for word, _ in actions.words(field)]

    chars, trie = FieldChars(ask), CharTrie.of(view, pieces.size)
    if not trie.complete:
        return FieldEncoder(chars, WordIds(nothing_known(), partial(one_by_one, scalar)))
    batch = WordPieceBatch(LongestMatch(trie, ""))
    return FieldEncoder(chars, WordIds(nothing_known(), FieldResolver(chars, batch, words, scalar, _MARK)))


def _newlines(view: PackView) -> bool:
    """Whether words are runs of line feeds and what is between them."""
    steps = [(step["kind"], step.get("scanner")) for step in view.meta["pre_tokenizer"]]
    return steps == [("scanner-split", "newlines")] and bool(view.meta["model"]["whole_newlines"])


def _segment_encoder(view: PackView, pieces: PieceTable, model: MergeModel, *, newlines: bool) -> SegmentEncoder | None:
    if view.meta["model"].get("ignore_merges"):
        return None
    places = piece_places(view, pieces)

    def symbols() -> NDArray[np.int32]:
        table = char_symbols(places, pieces.symbols, lambda char: pieces.find_raw(char.encode(), False))
        if newlines:
            table[0x0A] = -1  # a run of them is looked up as a whole
        return table

    resolve = CharResolver(lambda: batch_merger(view), symbols, model.encode, pieces.size)
    known = known_words(view, pieces, places, resolve)
    return SegmentEncoder(symbol_pairs(view, places, 0), WordIds(known, resolve), "\n" if newlines else "")


def _word_encoder(view: PackView, pieces: PieceTable, fragments: WordFragments) -> WordEncoder:
    """What encodes fragments of a byte-level vocabulary."""
    splitter, model = fragments.splitter, fragments.model

    def words(text: str) -> Words:
        return by_pieces(text, splitter.ends(text))

    first = section(view, "byte.symbol", "I").astype(np.int32)
    places = piece_places(view, pieces)
    resolve = BatchResolver(
        lambda: batch_merger(view, first), model.encode, model.merged, pieces.size, np.zeros(256, dtype=np.bool_)
    )
    known = known_words(view, pieces, places, resolve.merge)
    return WordEncoder(_starts(view), words, WordIds(known, resolve), symbol_pairs(view, places, 0x80))


def _starts(view: PackView) -> WordStarts | None:
    steps = list(view.meta["pre_tokenizer"])
    collapsed, found = rules_of_collapsed(steps), rules_of_scanners(steps)
    if collapsed is not None:
        rules, sources = collapsed
        *before, pattern = map(compile_collapsed, sources)
    elif found is not None:
        rules, before, pattern = found[0], [], re.compile(SCANNERS[found[1]], re.ASCII)
    else:
        return None
    index, blocks = (section(view, f"class.{part}", code) for part, code in (("index", "H"), ("blocks", "B")))
    view.two_stage("class")  # checks it
    alone = han = None
    if rules.alone:
        alone = (blocks.reshape(-1, 256)[index] == _CLASS_NUMBER).reshape(-1)
        alone[ord("0") : ord("9") + 1] = True
    if rules.family == "deepseek":
        han = np.zeros(0x110000, dtype=np.bool_)
        for first, last in HAN_RANGES:
            han[first : last + 1] = True
    return WordStarts(rules, CharCodes(index, blocks, pattern, rules.family, alone, before, han))
