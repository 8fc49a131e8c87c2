"""tiktoken (and tekken) as a MNN body: byte-level byte-pair encoding with merges derived from the ranks.

tiktoken joins the two neighbours whose joined bytes have the lowest rank (``byte_pair_merge`` in ``src/lib.rs``), MNN
the two whose pair has the lowest rank. One merge per piece gives the same ids: what happens within a stretch of text,
before a symbol crosses its ends, does not depend on what surrounds it. So when a text comes to two symbols that make a
piece, it came to them as that piece alone comes to its last two.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from tokpack.findings import Finding
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    RankMerge,
    Reference,
    TokenizerIR,
)
from tokpack.ir.patterns import Behavior, Dialect
from tokpack.ir.steps import ByteLevel, ByteLevelDecoder, Split
from tokpack.onig import FLAGS, translate
from tokpack.unicode import byte_level

from .body import MtokBody
from .core import refuse
from .hf import lower_hf
from .score_merge import derive_merges

__all__ = ["as_tokenizers", "lower_tiktoken"]


def lower_tiktoken(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to tiktoken's as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer that MNN has no form for.
        LossError: for what the format cannot hold.
    """
    body, findings = lower_hf(as_tokenizers(ir))
    return body, [replace(f, message=f.message.replace("tokenizers", "tiktoken")) for f in findings]


def as_tokenizers(ir: TokenizerIR) -> TokenizerIR:
    """The tokenizer of the library ``tokenizers`` that gives the same ids; its merges have tiktoken's ranks."""
    model = ir.model
    if not isinstance(model, RankMerge):
        raise refuse(f"no .mtok body can be made for a {model.kind} model of tiktoken")
    ranked = range(model.first_id, model.first_id + model.ranks)
    pieces = [
        byte_level.encode(piece).encode() if piece is not None and number in ranked else piece
        for number, piece in enumerate(ir.vocab.pieces)
    ]
    index = {piece: number for number, piece in enumerate(pieces) if piece is not None and number in ranked}
    texts = [piece if piece is not None and number in ranked else b"" for number, piece in enumerate(pieces)]
    table, no_part, _ = derive_merges(texts, [-float(number) for number in range(len(pieces))], index)
    if no_part:
        raise refuse(f"{len(no_part)} pieces are merged from the spelling of a byte, which MNN cannot do", "vocab")
    order = np.argsort(table[:, 2], kind="stable")
    pairs = table[order].tolist()
    attrs = np.full(len(pieces), PieceAttr.CONTROL, dtype=np.uint16)
    attrs[list(index.values())] = PieceAttr.NORMAL
    return replace(
        ir,
        reference=Reference.HUGGINGFACE,
        vocab=replace(ir.vocab, pieces=tuple(pieces), attrs=attrs),
        alphabet=Alphabet(AlphabetKind.BYTE_LEVEL),
        model=BPE(
            merges=tuple((texts[left], texts[right]) for left, right, _ in pairs),
            ranks=tuple(rank for _, _, rank in pairs),
            ignore_merges=True,
        ),
        matching=Matching(MatchingRule.LEFTMOST_LONGEST),
        pre_tokenizer=(*map(_split, ir.pre_tokenizer), ByteLevel(use_regex=False)),
        decoder=(ByteLevelDecoder(),),
        post_processor=None,
    )


def _split(step: object) -> Split:
    """The same pattern; text that it does not match is dropped."""
    assert isinstance(step, Split)
    translated = translate([step.pattern])
    compiled = re.compile(translated.patterns[0], FLAGS)
    blocks = translated.blocks.reshape(-1)
    covers = all(compiled.match(chr(char)) for char in np.unique(blocks).tolist())
    if covers:
        return Split(step.pattern, Dialect.ONIG)
    return Split(step.pattern, Dialect.ONIG, Behavior.REMOVED, invert=True)
