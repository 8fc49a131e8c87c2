"""tiktoken (and tekken) as a MNN body: byte-level byte-pair encoding with merges derived from the ranks.

Why one merge for each rank gives the same ids: :mod:`tokpack.formats.tiktoken.merges`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
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
from tokpack.ir.patterns import Behavior
from tokpack.ir.steps import ByteLevel, ByteLevelDecoder, Split
from tokpack.onig import FLAGS
from tokpack.onig.fancy import translate_fancy
from tokpack.unicode import byte_level

from ..tiktoken.merges import derive_merges
from .body import MtokBody
from .core import refuse
from .hf import lower_hf

__all__ = ["as_tokenizers", "lower_tiktoken"]


def lower_tiktoken(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to tiktoken's as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer that MNN has no form for.
        LossError: for what the format cannot hold.
    """
    body, findings = lower_hf(as_tokenizers(ir))
    findings = [replace(f, message=f.message.replace("tokenizers", str(ir.reference))) for f in findings]
    if ir.matching.rule is MatchingRule.NONE and ir.added_tokens:
        first = ir.added_tokens[0].content.decode("utf-8", "replace")
        message = f"MNN always reads the special tokens, such as {first!a}, in a text; the reference never does"
        where = Location(None, "added_tokens")
        findings.append(Finding("mtok-control-text", Severity.IDS, message, where, example=first))
    return body, findings


def as_tokenizers(ir: TokenizerIR) -> TokenizerIR:
    """The tokenizer of the library ``tokenizers`` that gives the same ids; its merges have tiktoken's ranks."""
    model = ir.model
    if not isinstance(model, RankMerge):
        raise refuse(f"no .mtok body can be made for a {model.kind} model of tiktoken")
    ranked = range(model.first_id, model.first_id + model.rank_count)
    pieces = [
        byte_level.encode(piece).encode() if piece is not None and number in ranked else piece
        for number, piece in enumerate(ir.vocab.pieces)
    ]
    attrs = np.full(len(pieces), PieceAttr.CONTROL, dtype=np.uint16)
    attrs[model.first_id : model.first_id + model.rank_count] = PieceAttr.NORMAL
    pairs = ((byte_level.encode(a).encode(), byte_level.encode(b).encode()) for a, b in derive_merges(ir))
    return replace(
        ir,
        reference=Reference.HUGGINGFACE,
        vocab=replace(ir.vocab, pieces=tuple(pieces), attrs=attrs),
        alphabet=Alphabet(AlphabetKind.BYTE_LEVEL),
        model=BPE(merges=tuple(pairs), ignore_merges=True),
        matching=Matching(MatchingRule.LEFTMOST_LONGEST),
        pre_tokenizer=(*map(_split, ir.pre_tokenizer), ByteLevel(use_regex=False)),
        decoder=(ByteLevelDecoder(),),
        post_processor=None,
    )


def _split(step: object) -> Split:
    """The same pattern; text that it does not match is dropped."""
    assert isinstance(step, Split)
    translated = translate_fancy([step.pattern])
    compiled = re.compile(translated.patterns[0], FLAGS)
    blocks = translated.blocks.reshape(-1)
    covers = all(compiled.match(chr(char)) for char in np.unique(blocks).tolist())
    if covers:
        return step
    return Split(step.pattern, step.dialect, Behavior.REMOVED, invert=True)
