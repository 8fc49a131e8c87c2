"""llama.cpp's BPE (``llm_tokenizer_bpe_session``, commit 0c1e570) as MNN BPE.

The family is ``tokenizer.ggml.model`` = ``gpt2`` with all its pre-tokenizers, ``gemma4`` and ``whitespace``:
byte-level ones, and those that work on characters with ``<0xHH>`` pieces. What MNN makes of it is ``BPEModel`` and the
pre-tokenizers in ``tokenizer.cpp`` of tag 3.6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, TokenizerIR
from tokpack.ir import steps as ir_steps

from . import losses
from .char_map import WHITE_SPACE, lower_case
from .core import SPACE_MARK, Core, Texts, refuse
from .cuts import exact_cuts
from .parts import Bpe, ByteLevel, Metaspace, Normalizer, PreTokenizer, Replace, Split
from .patterns import lower_split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["lower_byte_pair"]

_ESCAPE = ir_steps.Replace(" ", SPACE_MARK)


def lower_byte_pair(ir: TokenizerIR, texts: Texts) -> Core:
    """Splits, merges by ids, and what differs."""
    model = _require(ir)
    merges, findings = _merges(model, texts)
    normalizer, splits = _steps(ir)
    findings += losses.whole_word_losses(ir, texts.pieces)
    pre: list[PreTokenizer] = [*splits]
    cuts: tuple[Split, ...] = ()
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL:
        pre.append(ByteLevel(use_regex=False))
    elif _ESCAPE in ir.normalizer:
        # Spaces stay spaces until the text is split: MNN's matcher cannot tell U+2581 from other symbols.
        cuts = exact_cuts(left + right for left, right in model.merges)
        pre += [*cuts, Metaspace(SPACE_MARK, add_prefix_space=False)]
    findings += losses.pattern_losses((*splits, *cuts))
    findings.append(_slow_words(ir, bool(cuts)))
    return Core(
        Bpe(texts.stored, merges, byte_fallback=ir.alphabet.byte_fallback),
        normalizer=normalizer,
        pre_tokenizer=tuple(pre),
        findings=tuple(findings),
    )


def _require(ir: TokenizerIR) -> BPE:
    model, alphabet = ir.model, ir.alphabet
    assert isinstance(model, BPE)
    if model.unk_piece is not None or model.continuing_subword_prefix or model.end_of_word_suffix:
        raise refuse("MNN's byte-pair model has no unknown piece, no continuing prefix and no word suffix")
    characters = alphabet.kind is AlphabetKind.UTF8 and alphabet.byte_fallback
    if not characters and alphabet.kind is not AlphabetKind.BYTE_LEVEL:
        raise refuse(f"no .mtok body can be made for byte-pair encoding with {alphabet.kind.value} pieces")
    return model


def _steps(ir: TokenizerIR) -> tuple[tuple[Normalizer, ...], tuple[Split, ...]]:
    """Normalizers, and Splits; spaces are escaped elsewhere."""
    if any(step != _ESCAPE for step in ir.normalizer):
        raise refuse("llama.cpp's byte-pair encoding normalizes spaces and nothing else", "normalizer", "mtok-replace")
    steps = ir.pre_tokenizer
    normalizer: list[Normalizer] = []
    splits: list[Split] = []
    for at, step in enumerate(steps):
        where = f"pre_tokenizer[{at}]"
        if isinstance(step, (ir_steps.Split, ir_steps.ScannerSplit)):
            if at and isinstance(steps[at - 1], ir_steps.WhitespaceSplit) and step.pattern == r"\S+":
                continue  # what is left has no white space
            splits += lower_split(step, where)
        elif isinstance(step, ir_steps.WhitespaceSplit) and at == 0:
            normalizer += [Replace(char, " ") for char in WHITE_SPACE]
            normalizer += lower_case() if step.lowercase else ()
            splits.append(Split(" ", behavior="removed"))
        else:
            raise refuse(f"pre-tokenizer {type(step).__name__} has no MNN form here", where, "mtok-pattern")
    return tuple(normalizer), tuple(splits)


def _merges(model: BPE, texts: Texts) -> tuple[NDArray[np.uint32], list[Finding]]:
    """Merges by ids; those that cannot be said with ids are left out."""
    import numpy as np

    rows: list[tuple[int, int, int]] = []
    no_part: list[bytes] = []
    no_result: list[bytes] = []
    ranks = model.ranks or range(len(model.merges))
    get = texts.index.get
    for (left, right), rank in zip(model.merges, ranks, strict=True):
        first, second = get(left), get(right)
        if first is None or second is None:
            no_part.append(left + right)
        elif left + right not in texts.index:
            no_result.append(left + right)
        else:
            rows.append((first, second, rank))
    return np.array(rows, dtype=np.uint32).reshape(-1, 3), losses.merge_losses(no_part, no_result)


def _slow_words(ir: TokenizerIR, cut: bool) -> Finding:
    lines = len(ir.pre_tokenizer) == 1 and getattr(ir.pre_tokenizer[0], "scanner", "") == "newlines"
    message = "MNN's merging takes time that grows with the square of a word's length"
    if lines and not cut:
        return Finding("mtok-slow-words", Severity.WARN, f"{message}, and a word here is a whole line")
    return Finding("mtok-slow-words", Severity.INFO, f"{message}; words end at spaces only" if cut else message)
