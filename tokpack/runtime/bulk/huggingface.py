"""The bulk path of packs with the rules of the ``tokenizers`` library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.added_runs import AddedRuns
from tokpack.runtime.bulk.classes import CharCodes
from tokpack.runtime.bulk.encoder import Limits, Parts, WordEncoder, Words, by_pieces
from tokpack.runtime.bulk.fields import FieldEncoder
from tokpack.runtime.bulk.hf_fields import unigram_fields, word_piece_fields
from tokpack.runtime.bulk.known import known_split, rules_of_chain, rules_of_steps
from tokpack.runtime.bulk.normalize import LongNormalizer
from tokpack.runtime.bulk.pieces import batch_merger, char_symbols, known_words, piece_places, section, symbol_pairs
from tokpack.runtime.bulk.resolve import BatchResolver
from tokpack.runtime.bulk.segments import CharResolver, Given, SegmentEncoder
from tokpack.runtime.bulk.split import WordStarts
from tokpack.runtime.bulk.words import WordIds
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.hf.added import read_added
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.hf.models import BpeModel, UnigramModel, WordPieceModel
from tokpack.runtime.hf.normalize_unicode import UnicodeNormalizer
from tokpack.runtime.hf.pre_tokenizers import GPT2_PATTERN
from tokpack.runtime.hf.sets import NUMERIC
from tokpack.unicode import byte_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokpack.runtime.hf.pipeline import HfPipeline

__all__ = ["HfBulk"]


class FragmentEncoder(Protocol):
    """What encodes a long text without added tokens."""

    @property
    def ids(self) -> WordIds: ...

    def encode(self, text: str, chunk: int) -> Iterable[NDArray[np.int32]] | None:
        """Ids in parts; None if the scalar path has to do it."""
        ...


class HfBulk:
    """Texts to arrays.

    Args:
        view, pieces: the pack.
        pipeline: the scalar path.

    Attributes:
        limits: when numpy is worth its while.
    """

    def __init__(self, view: PackView, pieces: PieceTable, pipeline: HfPipeline) -> None:
        self.limits = Limits()
        self._pipeline = pipeline
        self._longs: dict[int, LongNormalizer] = {}  # by the step, which the pipeline keeps
        with meta_errors(view.file):
            self._steps = view.meta["normalizer"]
            self._in_place = all(
                step["kind"] == "replace"
                and step["dialect"] == "literal"
                and len(step["pattern"]) == len(step["content"]) == 1
                for step in self._steps
            )
            self.encoder: FragmentEncoder | None = _encoder(view, pieces, pipeline)
            raw = (token for token, normalized in read_added(view, pieces.size) if not normalized)
            self._runs = AddedRuns.of(list(raw)) if isinstance(self.encoder, Segments) else None

    def force(self, chunk: int, few: int, group: int) -> bool:
        """See :meth:`Limits.force`; whether there is a bulk path for this model."""
        encoder = self.encoder
        self.limits.force(None if encoder is None else encoder.ids, chunk, few, group)
        return encoder is not None

    def encode(self, text: str, parse_special: bool, before: list[int], after: list[int]) -> NDArray[np.int32]:
        """Ids of a text, those of ``before`` and ``after`` around them: int32 ``[n]``."""
        out = Parts(before)
        pipeline, encoder = self._pipeline, self.encoder
        if encoder is None or pipeline.asks_for_first:
            return np.array([*before, *pipeline.scalar(text, parse_special), *after], dtype=np.int32)
        if isinstance(encoder, Segments):
            self._joined(out, encoder, text, parse_special)
        else:
            raw = isinstance(encoder, FieldEncoder)
            normalize = _as_it_is if raw else self._normalize
            for token, part in pipeline.fragments(Fragment(text), parse_special, normalize):
                if raw and token < 0 and len(part.text) < self.limits.fragment:
                    part = self._normalize(part)
                if token >= 0:
                    out.ids.append(token)
                else:
                    self._part(out, part, encoder)
        out.ids += after
        return out.array()

    @property
    def in_one_go(self) -> bool:
        """Whether an added token costs no more than a word: texts that are joined by them are encoded together."""
        return self._in_place and isinstance(self.encoder, Segments) and self._pipeline.stages().passes[1].empty

    def _part(self, out: Parts, part: Fragment, encoder: FragmentEncoder) -> None:
        """A text between added tokens."""
        limits = self.limits
        arrays = encoder.encode(part.text, limits.chunk) if len(part.text) >= limits.fragment else None
        if arrays is not None:
            out.extend(arrays)
        else:
            for _, tokens in self._pipeline.words(part):
                out.ids.extend(piece for piece, _ in tokens)

    def _joined(self, out: Parts, encoder: Segments, text: str, parse_special: bool) -> None:
        """Texts and the added tokens between them in one go: some vocabularies have one for every line end."""
        skip = not parse_special
        first, second = self._pipeline.stages().passes
        if self._in_place and second.empty:
            # no need to normalize each text between tokens on its own
            runs = self._runs
            given = Given.of(first.spans(text, skip)) if runs is None else runs.find(text, skip)
            normalized = self._normalize(Fragment(text))
            if given.apart and encoder.takes(normalized.text):
                out.extend(encoder.inner.encode(normalized.text, self.limits.chunk, given))
                return
        for token, part in first.split(Fragment(text), skip):
            if token >= 0:
                out.ids.append(token)
                continue
            normalized = self._normalize(part)
            if len(part.text) >= self.limits.fragment and encoder.takes(normalized.text):
                given = Given.of(second.spans(normalized.text, skip))
                if given.apart:
                    out.extend(encoder.inner.encode(normalized.text, self.limits.chunk, given))
                    continue
            for later, piece in second.split(normalized, skip):
                if later >= 0:
                    out.ids.append(later)
                else:
                    self._part(out, piece, encoder)

    def _normalize(self, fragment: Fragment) -> Fragment:
        text = fragment.text
        for step, plain in zip(self._pipeline.normalizers, self._steps, strict=True):
            if plain["kind"] == "replace" and plain["dialect"] == "literal" and plain["pattern"]:
                text = text.replace(plain["pattern"], plain["content"])
            elif isinstance(step, UnicodeNormalizer) and len(text) >= self.limits.fragment:
                text = self._long(step).apply(text)
            else:
                text = step.apply(text)
        return fragment if text is fragment.text else Fragment(text, None, fragment.first)

    def _long(self, step: UnicodeNormalizer) -> LongNormalizer:
        found = self._longs.get(id(step))
        if found is None:
            found = self._longs[id(step)] = LongNormalizer(step)
        return found


def _as_it_is(fragment: Fragment) -> Fragment:
    return fragment


def _encoder(view: PackView, pieces: PieceTable, pipeline: HfPipeline) -> FragmentEncoder | None:
    steps, model = list(view.meta["pre_tokenizer"]), pipeline.model
    if isinstance(model, BpeModel) and model.plain and pieces.byte_level and _keeps_all(steps):
        return _byte_words(view, pieces, pipeline, model, steps)
    if isinstance(model, BpeModel) and not pieces.byte_level and model.falls_back and _keeps_whole(steps):
        return _segments(view, pieces, model, spaces=not steps)
    if not pipeline.stages().passes[1].empty:
        return None  # tokens are looked for in normalized text
    if isinstance(model, WordPieceModel):
        return word_piece_fields(view, pipeline, model)
    if isinstance(model, UnigramModel):
        return unigram_fields(view, pipeline, model)
    return None


def _keeps_whole(steps: Sequence[Any]) -> bool:
    """Whether a text without spaces goes to the model as it is."""
    return not steps or (
        len(steps) == 1
        and steps[0]["kind"] == "split"
        and (steps[0]["pattern"], steps[0]["dialect"]) == (" ", "literal")
    )


def _segments(view: PackView, pieces: PieceTable, model: BpeModel, *, spaces: bool) -> FragmentEncoder | None:
    if model.looks_up or not model.plain:
        return None
    keys = section(view, "merge.key", "Q")
    parts = np.concatenate((keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)))
    if np.isin(parts, np.array(model.byte_ids, dtype=np.uint64)).any():
        return None  # bytes of characters without a piece could merge over a boundary

    def scalar(word: bytes) -> Iterator[int]:
        return (token for token, _ in model.merged(word.decode("utf-8")))

    places = piece_places(view, pieces)
    resolve = CharResolver(
        lambda: batch_merger(view), lambda: char_symbols(places, pieces.size, model.find), scalar, pieces.size
    )
    known = known_words(view, pieces, places, resolve)
    return Segments(SegmentEncoder(symbol_pairs(view, places, 0), WordIds(known, resolve)), spaces=spaces)


class Segments:
    """Models that merge a whole text.

    Args:
        inner: does it.
        spaces: whether a text with spaces is one word, too; else the pre-tokenizer would cut there, although the
            normalizer leaves none.
    """

    def __init__(self, inner: SegmentEncoder, *, spaces: bool) -> None:
        self.inner = inner
        self._spaces = spaces

    @property
    def ids(self) -> WordIds:
        """What keeps words."""
        return self.inner.ids

    def takes(self, text: str) -> bool:
        """Whether a normalized text is one word."""
        return self._spaces or " " not in text

    def encode(self, text: str, chunk: int) -> Iterable[NDArray[np.int32]] | None:
        """See :class:`FragmentEncoder`."""
        return self.inner.encode(text, chunk) if self.takes(text) else None


def _keeps_all(steps: Sequence[Any]) -> bool:
    """Whether the words are the text cut somewhere, then spelled as bytes; what a prefix space needs is not there."""
    if not steps or steps[-1]["kind"] != "byte-level":
        return False
    last = steps[-1]
    if last["add_prefix_space"] and len(steps) > 1:
        return False
    return all(_cuts(step) for step in steps[:-1])


def _cuts(step: Any) -> bool:
    if step["kind"] == "split":
        return step["behavior"] != "removed" or known_split(step) is not None
    return bool(step["kind"] == "digits" or (step["kind"] == "punctuation" and step["behavior"] != "removed"))


def _byte_words(
    view: PackView, pieces: PieceTable, pipeline: HfPipeline, model: BpeModel, steps: Sequence[Any]
) -> FragmentEncoder:
    def scalar(word: bytes) -> Iterator[int]:
        return (token for token, _ in model.encode(byte_level.encode(word)))

    def merged(word: bytes) -> Iterator[int]:
        return (token for token, _ in model.merged(byte_level.encode(word)))

    def words(text: str) -> Words:
        return by_pieces(text, _ends(pipeline.cut_words(text)))

    first = np.array([model.find(char) for char in byte_level.CHARS], dtype=np.int32)
    resolve = BatchResolver(lambda: batch_merger(view, first), scalar, merged, pieces.size, first < 0)
    places = piece_places(view, pieces)
    known = known_words(view, pieces, places, resolve.merge)
    prefixed = bool(steps[-1]["add_prefix_space"])
    # bytes without a piece vanish, and what is left and right of them may merge
    pairs = None if (first < 0).any() else symbol_pairs(view, places, 0x80)
    inner = WordEncoder(_starts(view, pipeline, steps), words, WordIds(known, resolve), pairs)
    return _Prefixed(inner) if prefixed else inner


class _Prefixed:
    """A space in front of a text that has none (``add_prefix_space``)."""

    def __init__(self, inner: WordEncoder) -> None:
        self._inner = inner

    @property
    def ids(self) -> WordIds:
        """What keeps words."""
        return self._inner.ids

    def encode(self, text: str, chunk: int) -> Iterable[NDArray[np.int32]]:
        return self._inner.encode(text if text.startswith(" ") else " " + text, chunk)


def _ends(words: Iterable[str]) -> Iterator[int]:
    end = 0
    for word in words:
        end += len(word)
        yield end


def _starts(view: PackView, pipeline: HfPipeline, steps: Sequence[Any]) -> WordStarts | None:
    """The vectorised splitter of these steps, or None."""
    chain_of = rules_of_chain(steps)
    found = rules_of_steps(steps, GPT2_PATTERN)
    if chain_of is not None:
        rules, (*before, source) = chain_of
    elif found is not None:
        (rules, source), before = found, []
    else:
        return None
    alone = None
    if rules.alone:
        index, blocks = section(view, "hf.sets.index", "H"), section(view, "hf.sets.blocks", "B")
        view.two_stage("hf.sets")  # checks it
        alone = (blocks.reshape(-1, 256)[index].reshape(-1) & NUMERIC) != 0
    view.two_stage("onig")
    index, blocks = section(view, "onig.index", "H"), section(view, "onig.blocks", "H")
    patterns = [one for one in map(pipeline.compiled, (*before, source)) if isinstance(one, re.Pattern)]
    if len(patterns) <= len(before):
        return None  # one that may take long
    return WordStarts(rules, CharCodes(index, blocks, patterns[-1], rules.family, alone, patterns[:-1]))
