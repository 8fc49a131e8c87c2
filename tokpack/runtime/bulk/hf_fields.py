"""Fields of tokenizers whose words lie between spaces and punctuation, by the rules of the ``tokenizers`` library."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.pack.view import PackView
from tokpack.runtime.bulk.fields import ALONE, CAREFUL, GAP, INSIDE, FieldEncoder, FieldResolver, best_path, greedy
from tokpack.runtime.bulk.words import WordIds, nothing_known
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.hf.models import UnigramModel, WordPieceModel
from tokpack.runtime.hf.sets import PUNCTUATION, SPACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokpack.runtime.hf.pipeline import HfPipeline

__all__ = ["unigram_fields", "word_piece_fields"]

_ALNUM = (string.ascii_letters + string.digits).encode()
# characters beside which a space is a grapheme of its own: letters that do not combine
_PLAIN: tuple[tuple[int, int], ...] = (
    (0x21, 0x7E),
    (0xC0, 0x24F),
    (0x391, 0x3CE),
    (0x410, 0x44F),
    (0x3041, 0x3096),
    (0x30A1, 0x30FA),
)
_PLAIN += ((0x3001, 0x3002), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF01, 0xFF5E))


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


def _kinds(steps: Sequence[Any]) -> list[str]:
    return [step["kind"] for step in steps]


def word_piece_fields(view: PackView, pipeline: HfPipeline, model: WordPieceModel) -> FieldEncoder | None:
    """BertNormalizer and BertPreTokenizer; None for other steps."""
    normalizer = view.meta["normalizer"]
    if _kinds(normalizer) != ["bert-normalizer"] or _kinds(view.meta["pre_tokenizer"]) != ["bert-pre-tokenizer"]:
        return None
    masks = _masks(view)
    codes = np.full(0x110000, INSIDE, dtype=np.uint8)
    for code in np.flatnonzero(masks & (PUNCTUATION | SPACE)).tolist():
        normalized = pipeline.normalize(chr(code))
        inside = masks[[ord(char) for char in normalized]] if normalized else np.zeros(0, dtype=np.uint8)
        if len(inside) and (inside & SPACE).all():
            codes[code] = GAP
        elif len(inside) and (inside & (PUNCTUATION | SPACE)).all():
            codes[code] = ALONE
    if normalizer[0]["handle_chinese_chars"]:
        # all that the normalizer puts between spaces
        for first, last in ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)):
            for edge in (first, last):
                if pipeline.normalize(chr(edge))[:1] != " ":
                    return None
            codes[first : last + 1] = ALONE
    lower = bool(normalizer[0]["lowercase"])
    resolve = FieldResolver(
        greedy(model.own_pieces(), model.prefix, model.longest, model.required),
        _ALNUM,
        str.lower if lower else str,
        lambda word: _scalar(pipeline, word),
    )
    return FieldEncoder(codes, WordIds(nothing_known(), resolve))


def unigram_fields(view: PackView, pipeline: HfPipeline, model: UnigramModel) -> FieldEncoder | None:
    """A charsmap, WhitespaceSplit, and Metaspace in front of each word; None for other steps."""
    steps = view.meta["pre_tokenizer"]
    if _kinds(view.meta["normalizer"]) not in ([], ["precompiled"]):
        return None
    if _kinds(steps) != ["whitespace-split", "metaspace"] or steps[1]["prepend_scheme"] != "always":
        return None
    mark = str(steps[1]["replacement"])
    masks = _masks(view)
    codes = np.full(0x110000, CAREFUL, dtype=np.uint8)
    for first, last in _PLAIN:
        codes[first : last + 1] = INSIDE
    if not _only_spaces(pipeline.normalize("\r\n"), masks):
        return None
    for char in " \t\n\r":
        if _only_spaces(pipeline.normalize(char), masks):
            codes[ord(char)] = GAP
    graphic = [char for char in map(chr, range(0x21, 0x7F)) if pipeline.normalize(char) == char != mark]
    missing, unknown = model.unknown
    path = best_path(model.scored_pieces(), missing, unknown)

    def plain(word: str) -> list[int]:
        text = mark + word
        found = path(text)
        if found is None or any(token == unknown for token, _, _ in found):
            return [token for token, _ in model.encode(text)]
        return [token for token, _, _ in reversed(found)]

    spaces = re.compile("[" + re.escape("".join(map(chr, np.flatnonzero(masks & SPACE).tolist())) + mark) + "]")

    def scalar(word: bytes) -> Iterable[int]:
        text = pipeline.normalize(word.decode("utf-8"))
        return plain(text) if text and spaces.search(text) is None else _scalar(pipeline, word)

    resolve = FieldResolver(plain, "".join(graphic).encode(), str, scalar)
    return FieldEncoder(codes, WordIds(nothing_known(), resolve))


def _only_spaces(text: str, masks: NDArray[np.uint8]) -> bool:
    return bool(text) and all(masks[ord(char)] & SPACE for char in text)
