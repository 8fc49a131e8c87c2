"""Sections of a tokenizer whose reference is tiktoken.

``merge.*`` hold every way to cut a piece into two symbols (pieces or single bytes), each with the rank of the piece.
Whatever stands between two merges is such a symbol, so these are all the pairs that can ever merge, and pairs with the
same joined bytes have equal ranks, among which the leftmost wins, as in ``_byte_pair_merge`` (src/lib.rs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tokpack.errors import UnsupportedError
from tokpack.ir import PieceAttr, RankMerge, TokenizerIR
from tokpack.ir.steps import Dialect, Split
from tokpack.onig.fancy import translate_fancy
from tokpack.pack.models import merge_sections
from tokpack.pack.symbols import Sections, SymbolTable

__all__ = ["build_sections", "splits"]


def build_sections(ir: TokenizerIR, table: SymbolTable) -> tuple[dict[str, Any], Sections]:
    """({"patterns": [[source, translated, whether it can match nothing]]} for the meta section, sections)."""
    if not isinstance(ir.model, RankMerge) or ir.normalizer:
        raise UnsupportedError(f"there is no runtime for {ir.model.kind} with the rules of {ir.reference}")
    patterns, sections = _patterns(ir)
    return {"patterns": patterns}, sections | _merges(ir, table)


def _patterns(ir: TokenizerIR) -> tuple[list[list[Any]], Sections]:
    sources = []
    for step in ir.pre_tokenizer:
        if not isinstance(step, Split) or step.dialect is not Dialect.PCRE:
            raise UnsupportedError(f"the pre-tokenizer step {step.kind} with the rules of {ir.reference}")
        sources.append(step.pattern)
    if len(sources) > 1:
        raise UnsupportedError(f"{len(sources)} patterns: tiktoken has one")
    if not sources:
        return [], {}
    made = translate_fancy(sources)
    return [[sources[0], made.patterns[0], made.can_be_empty[0]]], {
        "onig.index": made.index.astype("<u2").tobytes(),
        "onig.blocks": made.blocks.astype("<u2").tobytes(),
    }


def _merges(ir: TokenizerIR, table: SymbolTable) -> Sections:
    control = (ir.vocab.attrs & PieceAttr.CONTROL) != 0
    symbols = {t: i for i, t in enumerate(ir.vocab.pieces) if t and not control[i]}
    pieces = set(symbols.values())
    for byte, symbol in enumerate(table.byte_symbols):
        symbols[bytes([byte])] = symbol
    rows = np.array([row for row in splits(symbols) if row[2] in pieces], dtype=np.int64).reshape(-1, 3)
    return merge_sections(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 2])


def splits(symbols: Mapping[bytes, int]) -> Iterator[tuple[int, int, int]]:
    """(left, right, whole) for every symbol that is two symbols end to end.

    Prefixes of a text that are symbols stand right before it in sorted order, so each text knows the longest of its
    own; the same for suffixes. The work is the number of these, not the square of the lengths.
    """
    texts = list(symbols)
    before = _longest_prefixes(texts)
    behind = _longest_prefixes([text[::-1] for text in texts])
    for place, text in enumerate(texts):
        if len(text) < 2 or before[place] < 0 or behind[place] < 0:
            continue
        lefts: dict[int, int] = {}
        at = before[place]
        while at >= 0:
            lefts[len(texts[at])] = at
            at = before[at]
        at, size = behind[place], len(text)
        while at >= 0:
            left = lefts.get(size - len(texts[at]))
            if left is not None:
                yield symbols[texts[left]], symbols[texts[at]], symbols[text]
            at = behind[at]


def _longest_prefixes(texts: Sequence[bytes]) -> list[int]:
    """For each text the place of its longest proper prefix among the texts, -1 for none."""
    found = [-1] * len(texts)
    stack: list[int] = []
    for place in sorted(range(len(texts)), key=texts.__getitem__):
        text = texts[place]
        while stack and not text.startswith(texts[stack[-1]]):
            stack.pop()
        if stack:
            found[place] = stack[-1]
        stack.append(place)
    return found
