"""Sections of a tokenizer whose reference is sentencepiece.

* ``merge.*`` (BPE): every pair of symbols whose texts make a piece that merging may make, ranked by descending score.
* ``trie.*`` (Unigram, word, char): the pieces that the model can find, by their bytes.
* ``user.*``: the user-defined pieces, which are found in the text before anything else.
* ``charsmap``, ``decoder.charsmap``: as in the source.

The meta section has an entry ``sentencepiece``: ``unk`` (id of the unknown piece, or -1), ``unk_score`` (Unigram),
``unused`` (whether merging makes pieces that are then cut up again), ``cut`` (see :func:`_cut`), ``user_text`` and
``user_spaces`` (whether the user-defined pieces are UTF-8, and whether one has two spaces in a row), ``longest``
(bytes of the longest piece that the model can find).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import UnsupportedError
from tokpack.ir import Characters, PieceAttr, ScoreMerge, TokenizerIR, Unigram, WordLevel
from tokpack.ir.steps import SentencePieceDecoder, SentencePieceNormalizer
from tokpack.pack.models import merge_sections
from tokpack.pack.symbols import Sections, SymbolTable
from tokpack.pack.trie import build_trie
from tokpack.unicode.utf8 import is_utf8, split_characters

__all__ = ["build_sections"]

_MARK = "▁".encode()
_NORMAL, _UNKNOWN, _USER, _UNUSED = map(
    int, (PieceAttr.NORMAL, PieceAttr.UNKNOWN, PieceAttr.USER_DEFINED, PieceAttr.UNUSED)
)
_FOUND = _NORMAL | _USER
_FREE = _FOUND | _UNUSED  # all that is not reserved: the ``pieces_`` of ModelInterface
_NUL = b"\0"


def build_sections(ir: TokenizerIR, table: SymbolTable) -> tuple[dict[str, Any], Sections]:
    """({"sentencepiece": facts} for the meta section, sections)."""
    if len(ir.normalizer) != 1 or not isinstance(ir.normalizer[0], SentencePieceNormalizer):
        raise UnsupportedError("sentencepiece has one normalizer, its own")
    if len(ir.decoder) != 1 or not isinstance(ir.decoder[0], SentencePieceDecoder):
        raise UnsupportedError("sentencepiece has one decoder, its own")
    step = ir.normalizer[0]
    attrs: list[int] = ir.vocab.attrs.tolist()
    _reserved_first(table, attrs)
    user = _with(ir, attrs, _USER)
    usable = _with(ir, attrs, _FREE if isinstance(ir.model, ScoreMerge) else _FOUND)
    facts: dict[str, Any] = {
        "unk": next((i for i, attr in enumerate(attrs) if attr & _UNKNOWN), -1),
        "unused": any(attr & _UNUSED for attr in attrs),
        "cut": _cut(usable, _MARK if step.escape_whitespaces else b" "),
        "user_text": all(is_utf8(text) for text in user),
        "user_spaces": any(b"  " in text for text in user),
        "longest": max(map(len, usable), default=0),
    }
    sections: Sections = {"charsmap": step.charsmap, "decoder.charsmap": ir.decoder[0].charsmap}
    if user:
        sections |= build_trie(user, "user")
    if isinstance(ir.model, ScoreMerge):
        sections |= _merges(ir, table, attrs)
    elif isinstance(ir.model, (Unigram, WordLevel, Characters)):
        sections |= build_trie(usable)
        facts["unk_score"] = _unk_score(ir, attrs)
    else:
        raise UnsupportedError(f"there is no runtime for {ir.model.kind} with the rules of {ir.reference}")
    return {"sentencepiece": facts}, sections


def _with(ir: TokenizerIR, attrs: list[int], wanted: int) -> dict[bytes, int]:
    """Text → id of the pieces with one of these attributes; a piece of one NUL is in no map of sentencepiece's."""
    pieces = enumerate(ir.vocab.pieces)
    return {text: index for index, text in pieces if text and text != _NUL and attrs[index] & wanted}


def _reserved_first(table: SymbolTable, attrs: list[int]) -> None:
    """Of equal texts ``PieceToId`` gives the control, unknown or byte piece."""
    reserved: dict[bytes, int] = {}
    for index, attr in enumerate(attrs):
        text = table.texts[index]
        if text is not None and not attr & _FREE:
            reserved.setdefault(text, index)
    table.symbols.update(reserved)


def _cut(usable: dict[bytes, int], mark: bytes) -> str:
    """Where a text falls into parts that no piece joins: ``before`` or ``after`` runs of spaces, or ``""`` for nowhere.

    The model then does with a part what it does with it inside the text.
    """
    before = re.compile(b"(?s)(?<=.)(?<!" + mark + b")" + mark)
    after = re.compile(b"(?s)" + mark + b"(?!" + mark + b").")
    if not any(before.search(text) for text in usable):
        return "before"
    return "" if any(after.search(text) for text in usable) else "after"


def _unk_score(ir: TokenizerIR, attrs: list[int]) -> float:
    """The score of an unknown character: ten below the lowest, in single precision (``unigram::Model``)."""
    scores = np.zeros(len(attrs), dtype=np.float32) if ir.vocab.scores is None else ir.vocab.scores.astype(np.float32)
    normal = scores[np.array([bool(attr & _NORMAL) for attr in attrs], dtype=bool)]
    lowest = np.finfo(np.float32).max
    for score in normal:  # std::min(lowest, score): a NaN is never the lower one
        lowest = score if score < lowest else lowest
    penalty = ir.model.unk_penalty if isinstance(ir.model, Unigram) else 10.0
    with np.errstate(over="ignore"):
        return float(np.float32(lowest) - np.float32(penalty))


def _ranks(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """0 for the highest score; equal scores have equal ranks.

    sentencepiece compares the bits of scores (``SymbolPairComparator``): -0 is below 0, and a NaN has its place.
    """
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    keys = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF) - 1)
    _, inverse = np.unique(-keys, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64)


def _merges(ir: TokenizerIR, table: SymbolTable, attrs: list[int]) -> Sections:
    """A symbol is a character, whatever piece it is, or a piece that merging has made."""
    scores = np.zeros(len(attrs), dtype=np.float32) if ir.vocab.scores is None else ir.vocab.scores
    ranks = _ranks(np.asarray(scores, dtype=np.float32))
    symbols, size = table.symbols, table.size
    free = [bool(attr & _FREE) for attr in attrs]
    left: list[int] = []
    right: list[int] = []
    result: list[int] = []
    for text, index in symbols.items():
        if index >= size or not free[index] or text == _NUL:
            continue
        ends = split_characters(text)
        last = len(ends) - 2
        for at, cut in enumerate(ends[:-1]):
            first, second = symbols.get(text[:cut], -1), symbols.get(text[cut:], -1)
            if first < 0 or second < 0:
                continue
            if (at == 0 or (first < size and free[first])) and (at == last or (second < size and free[second])):
                left.append(first)
                right.append(second)
                result.append(index)
    results = np.asarray(result, dtype=np.int64)
    return merge_sections(np.asarray(left, np.int64), np.asarray(right, np.int64), ranks[results], results)
