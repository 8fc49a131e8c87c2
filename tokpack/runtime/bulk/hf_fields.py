"""Fields of tokenizers whose words lie between spaces and punctuation, by the rules of the ``tokenizers`` library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.errors import EncodeError
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.batches import UnigramBatch, WordPieceBatch
from tokpack.runtime.bulk.char_trie import CharTrie
from tokpack.runtime.bulk.field_chars import ALONE, CAREFUL, EACH, GAP, INSIDE, NEW, START, FieldChars
from tokpack.runtime.bulk.fields import FieldEncoder, FieldResolver
from tokpack.runtime.bulk.hf_chars import SPACES, FreeChars
from tokpack.runtime.bulk.hf_plain import CHINESE, untouched
from tokpack.runtime.bulk.longest import LongestMatch
from tokpack.runtime.bulk.words import WordIds, nothing_known
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.hf.models import UnigramModel, WordPieceModel
from tokpack.runtime.hf.sets import PUNCTUATION, SPACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokpack.runtime.hf.pipeline import HfPipeline

__all__ = ["unigram_fields", "word_piece_fields"]

_LARGEST = 1e290  # a score that cannot make a sum infinite


def _masks(view: PackView) -> NDArray[np.uint8]:
    view.two_stage("hf.sets")  # checks it
    index = np.frombuffer(view.raw("hf.sets.index"), dtype="<u2")
    blocks = np.frombuffer(view.raw("hf.sets.blocks"), dtype=np.uint8)
    masks: NDArray[np.uint8] = blocks.reshape(-1, 256)[index].reshape(-1)
    return masks


def _scalar(pipeline: HfPipeline, word: bytes) -> Iterator[int]:
    """A field through all steps."""
    for _, tokens in pipeline.words(Fragment(pipeline.normalize(word.decode("utf-8")))):
        for token, _ in tokens:
            yield token


def _words(pipeline: HfPipeline, text: str) -> list[str]:
    """The words of a normalized text."""
    parts = [Fragment(text)] if text else []
    for step in pipeline.stages().pre_tokenizers:
        parts = [piece for part in parts for piece in step(part) if piece.text]
    return [part.text for part in parts]


def _kinds(steps: Sequence[Any]) -> list[str]:
    return [step["kind"] for step in steps]


def word_piece_fields(view: PackView, pipeline: HfPipeline, model: WordPieceModel) -> FieldEncoder | None:
    """WordPiece behind BertPreTokenizer; None for other steps."""
    steps = view.meta["normalizer"]
    free = FreeChars(view, pipeline.normalizers, steps)
    if not free.known or _kinds(view.meta["pre_tokenizer"]) != ["bert-pre-tokenizer"]:
        return None
    if free.strips or free.collapses is not None:
        return None
    masks = _masks(view)
    guarded = frozenset("".join(old for old, _ in free.replaced))
    # marks change places with each other, not with spaces and punctuation
    beside = INSIDE if _kinds(steps) == ["bert-normalizer"] else CAREFUL

    def cut(char: str) -> int:
        return int(masks[ord(char)]) & (PUNCTUATION | SPACE)

    def ask(char: str) -> tuple[int, str | None]:
        text = free.text(char)
        if text is None or char in guarded:
            return beside, None
        if text and cut(text[0]) and cut(text[-1]):
            word = "".join(part for part in text if not cut(part) & SPACE)
            if not word:
                return GAP, None
            return ALONE, word if len(word) == 1 else None
        return INSIDE, None if any(map(cut, text)) else text

    def words(field: str) -> list[str]:
        text = pipeline.normalize(field)
        return _words(pipeline, text) if any(map(cut, text)) else [text] * bool(text)

    def plain(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
        stays = untouched(view, pipeline.normalizers, steps, points)
        sets = masks.take(points)
        codes = np.where(sets & PUNCTUATION, ALONE, INSIDE)
        if any(step["kind"] == "bert-normalizer" and step["handle_chinese_chars"] for step in steps):
            for first, last in CHINESE:
                codes[(points >= first) & (points <= last)] = ALONE
        return np.where(stays & (sets & SPACE == 0), codes, NEW).astype(np.uint8)

    match = LongestMatch(CharTrie.of(view, view.meta["vocab_size"]), model.prefix)
    chars = FieldChars(ask, plain)
    resolve = FieldResolver(
        chars,
        WordPieceBatch(match, model.longest, model.required),
        words,
        lambda field: _scalar(pipeline, field),
        replaced=free.replaced,
    )
    return FieldEncoder(chars, WordIds(nothing_known(), resolve))


def unigram_fields(view: PackView, pipeline: HfPipeline, model: UnigramModel) -> FieldEncoder | None:
    """Unigram behind Metaspace, with WhitespaceSplit before that or not; None for other steps."""
    steps = view.meta["pre_tokenizer"]
    free = FreeChars(view, pipeline.normalizers, view.meta["normalizer"])
    split = _kinds(steps) == ["whitespace-split", "metaspace"]
    if not free.known or not (split or _kinds(steps) == ["metaspace"]):
        return None
    scores = np.frombuffer(view.raw("piece.scores64"), dtype="<f8")
    if steps[-1]["prepend_scheme"] != "always" or not (split or steps[-1]["split"]):
        return None
    if not bool((np.abs(np.append(scores, model.unknown[0])) < _LARGEST).all()):
        return None
    mark = str(steps[-1]["replacement"])
    if len(mark) != 1:
        return None
    chars = _split_chars(view, pipeline, free, mark) if split else _space_chars(view, pipeline, free, mark)
    if chars is None:
        return None
    masks = _masks(view)

    def words(field: str) -> list[str]:
        text = pipeline.normalize(field)
        if split:
            single = text and mark not in text and not any(masks[ord(char)] & SPACE for char in text)
        else:
            text = text.replace(" ", mark)
            single = text and mark not in text[1:]
        return [mark + text.removeprefix(mark)] if single else _words(pipeline, text)

    missing, unknown = model.unknown
    trie, falls_back = CharTrie.of(view, view.meta["vocab_size"]), bool(view.meta["byte_fallback"])
    batch = UnigramBatch(trie, scores, missing, unknown, falls_back=falls_back)
    resolve = FieldResolver(chars, batch, words, lambda field: _scalar(pipeline, field), mark, free.replaced)
    return FieldEncoder(chars, WordIds(nothing_known(), resolve))


def _inside(view: PackView, pipeline: HfPipeline, mark: str) -> Callable[[NDArray[np.uint32]], NDArray[np.uint8]]:
    """Codes of characters that stay as they are."""
    masks, steps = _masks(view), view.meta["normalizer"]

    def plain(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
        stays = untouched(view, pipeline.normalizers, steps, points)
        stays &= (masks.take(points) & SPACE == 0) & (points != ord(mark))
        return np.where(stays, INSIDE, NEW).astype(np.uint8)

    return plain


def _split_chars(view: PackView, pipeline: HfPipeline, free: FreeChars, mark: str) -> FieldChars | None:
    """Fields between spaces, which are left out."""
    if free.strips or free.collapses not in (None, " "):
        return None
    masks = _masks(view)
    try:
        breaks = [pipeline.normalize(text) for text in ("\r", "\n", "\r\n")]
    except EncodeError:
        breaks = [""]
    lines = all(text and all(masks[ord(char)] & SPACE for char in text) for text in breaks)

    def ask(char: str) -> tuple[int, str | None]:
        if char in "\r\n":  # together they are one character to some normalizers
            return GAP if lines else CAREFUL, None
        text = free.text(char)
        if text is None:
            return CAREFUL, None
        spaces = [bool(masks[ord(part)] & SPACE) for part in text]
        if text and all(spaces):
            return GAP, None
        return (CAREFUL if any(spaces) else INSIDE), None if any(spaces) or mark in text else text

    return FieldChars(ask, _inside(view, pipeline, mark))


def _space_chars(view: PackView, pipeline: HfPipeline, free: FreeChars, mark: str) -> FieldChars | None:
    """Fields that begin with spaces: with one each, or with all of a run where a run becomes one."""
    if free.collapses not in (None, " ", mark) or (free.strips and free.collapses is None):
        return None
    guarded = frozenset("".join(old for old, _ in free.replaced))

    def ask(char: str) -> tuple[int, str | None]:
        text = free.text(char)
        if char == text == " " and free.collapses is None:
            return EACH, None
        if char in SPACES and text == " " and free.collapses is not None and free.single_space(char):
            return START, None
        if char in SPACES and free.strips:
            return CAREFUL, None
        if not text or " " in text or mark in text or char in guarded:
            return CAREFUL, None if text is None or " " in text or mark in text else text
        return INSIDE, text

    return FieldChars(ask, _inside(view, pipeline, mark))
