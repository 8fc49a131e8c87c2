"""Sections that depend on the model: merges, tries, costs, character tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tokpack.errors import UnsupportedError
from tokpack.ir import (
    BPE,
    GreedyTrie,
    MinCost,
    NoModel,
    PieceType,
    ScoreMerge,
    TokenizerIR,
    Unigram,
    WordPieceGreedy,
)
from tokpack.ir.steps import BertNormalizer, Precompiled, ScannerSplit, WhitespaceSplit
from tokpack.pack import chars
from tokpack.pack.symbols import Sections, SymbolTable
from tokpack.pack.trie import build_trie
from tokpack.unicode import llamacpp, rwkv
from tokpack.unicode.utf8 import decode_lenient, split_characters

__all__ = ["build_sections", "merge_sections"]

_MATCHABLE = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
UNUSABLE = -(1 << 31)


def _texts(ir: TokenizerIR) -> list[tuple[bytes, int]]:
    return [(text, index) for index, text in enumerate(ir.vocab.pieces) if text is not None]


def merge_sections(left: Any, right: Any, rank: Any, result: Any) -> Sections:
    """``merge.*`` from parallel arrays: symbols of a pair, its rank, the symbol that it makes."""
    keys = left.astype(np.uint64) << np.uint64(32) | right.astype(np.uint64)
    order = np.argsort(keys, kind="stable")
    return {
        "merge.key": keys[order].astype("<u8").tobytes(),
        "merge.rank": rank[order].astype("<u4").tobytes(),
        "merge.result": result[order].astype("<u4").tobytes(),
    }


def _bpe(ir: TokenizerIR, table: SymbolTable) -> Sections:
    model = ir.model
    assert isinstance(model, BPE)
    symbols, count = table.symbols, len(model.merges)
    left = np.fromiter((symbols[pair[0]] for pair in model.merges), dtype=np.uint64, count=count)
    right = np.fromiter((symbols[pair[1]] for pair in model.merges), dtype=np.uint64, count=count)
    result = np.fromiter((symbols[pair[0] + pair[1]] for pair in model.merges), dtype=np.uint64, count=count)
    sections = merge_sections(left, right, np.arange(count), result)
    if model.ranks is not None:
        sections["merge.source_rank"] = np.asarray(model.ranks, dtype="<u4").tobytes()
    sections |= _classes(ir)
    for step in ir.pre_tokenizer:
        if isinstance(step, WhitespaceSplit):
            sections |= _chars(chars.whitespace_table(lowercase=step.lowercase))
    return sections


def _classes(ir: TokenizerIR) -> Sections:
    han = any(isinstance(step, ScannerSplit) and step.scanner == "kimi_k2" for step in ir.pre_tokenizer)
    index, blocks = llamacpp.class_table(han=han)
    spaces = llamacpp.whitespace()
    return {
        "class.index": index.astype("<u2").tobytes(),
        "class.blocks": blocks.tobytes(),
        "class.spaces": spaces[spaces > 127].astype("<u4").tobytes(),
    }


def _chars(table: chars.Table) -> Sections:
    index, blocks = table
    return {"char.index": index.astype("<u2").tobytes(), "char.blocks": blocks.astype("<u4").tobytes()}


def _score_merge(ir: TokenizerIR, table: SymbolTable) -> Sections:
    """Every pair of symbols whose texts make a piece; equal scores get equal ranks, so position decides among them.

    A symbol is a character or a piece (``llm_tokenizer_spm_session::try_add_bigram``), so the ways to cut a piece into
    two symbols are all the pairs that can ever merge.
    """
    scores = ir.vocab.scores
    values = np.zeros(len(ir.vocab), dtype=np.float32) if scores is None else scores
    _, descending = np.unique(-values, return_inverse=True)
    symbols = table.symbols
    left: list[int] = []
    right: list[int] = []
    result: list[int] = []
    for text, index in symbols.items():
        if index >= table.size:
            continue
        ends = split_characters(text)
        for at, cut in enumerate(ends[:-1]):
            first = symbols.get(text[:cut], -1)
            second = symbols.get(text[cut:], -1)
            # a part of several characters counts only as a piece, one of a single character always
            if (first >= 0 and (first < table.size or at == 0)) and (
                second >= 0 and (second < table.size or at == len(ends) - 2)
            ):
                left.append(first)
                right.append(second)
                result.append(index)
    results = np.asarray(result, dtype=np.int64)
    return merge_sections(
        np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64), descending[results], results
    )


def _unigram(ir: TokenizerIR, table: SymbolTable) -> Sections:
    types = ir.vocab.types.tolist()
    matchable = {text: index for text, index in _texts(ir) if types[index] in _MATCHABLE}
    user = {text: index for text, index in _texts(ir) if types[index] == PieceType.USER_DEFINED}
    charsmap = b"".join(step.charsmap for step in ir.normalizer if isinstance(step, Precompiled))
    return {**build_trie(matchable), **build_trie(user, "user"), "charsmap": charsmap}


def _word_piece(ir: TokenizerIR, table: SymbolTable) -> Sections:
    (step,) = (step for step in ir.normalizer if isinstance(step, BertNormalizer))
    lookup = chars.wpm_table(strip_accents=bool(step.strip_accents), lowercase=step.lowercase)
    return {**build_trie(dict(_texts(ir))), **_chars(lookup)}


def _greedy_trie(ir: TokenizerIR, table: SymbolTable) -> Sections:
    return build_trie({rwkv.unescape(text): index for text, index in _texts(ir)})


def _min_cost(ir: TokenizerIR, table: SymbolTable) -> Sections:
    """Costs of the pieces that are not byte pieces (``llm_tokenizer_plamo2``).

    The cost is -round(score * 10,000), halves away from zero.
    """
    types = ir.vocab.types.tolist()
    candidates = {
        decode_lenient(text).encode("utf-8", "surrogatepass"): index
        for text, index in _texts(ir)
        if types[index] != PieceType.BYTE
    }
    with np.errstate(invalid="ignore", over="ignore"):  # a signalling NaN makes even the cast warn
        scores = np.zeros(len(ir.vocab)) if ir.vocab.scores is None else ir.vocab.scores.astype(np.float64)
        scaled = (np.float32(1e4) * scores.astype(np.float32)).astype(np.float64)
        rounded = np.trunc(scaled + np.copysign(0.5, scaled))
    usable = np.isfinite(rounded) & (rounded > -20_000_000) & (rounded < 1 << 31)
    cost = np.full(len(scores), UNUSABLE, dtype=np.int64)
    cost[usable] = -rounded[usable].astype(np.int64)
    return {**build_trie(candidates), "piece.cost": cost.astype("<i4").tobytes()}


def _nothing(ir: TokenizerIR, table: SymbolTable) -> Sections:
    return {}


_MODELS: dict[type, Callable[[TokenizerIR, SymbolTable], Sections]] = {
    BPE: _bpe,
    ScoreMerge: _score_merge,
    Unigram: _unigram,
    WordPieceGreedy: _word_piece,
    GreedyTrie: _greedy_trie,
    MinCost: _min_cost,
    NoModel: _nothing,
}


def build_sections(ir: TokenizerIR, table: SymbolTable) -> tuple[dict[str, Any], Sections]:
    """(nothing for the meta section besides an empty list of patterns, sections) of a tokenizer of llama.cpp."""
    if type(ir.model) not in _MODELS:
        raise UnsupportedError(f"there is no runtime for {ir.model.kind} with the rules of {ir.reference} yet")
    return {"onig": []}, _MODELS[type(ir.model)](ir, table)
