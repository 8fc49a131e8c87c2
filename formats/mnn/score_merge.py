"""llama.cpp's SPM (``llm_tokenizer_spm_session``, commit 0c1e570) as MNN BPE.

SPM joins two neighbouring symbols when their text is a piece, the highest score first, the leftmost of equal scores;
MNN's BPE (``BPEModel::tokenize``, tag 3.6.1) joins two ids that are in its merge table, the lowest rank first, the
leftmost of equal ranks. So the rank of a merge is the position of its result's score among the distinct scores:
pieces with equal scores share a rank, and ties fall as they do in llama.cpp.

One merge per piece suffices. What happens within a stretch of text, before a symbol crosses its ends, does not depend
on its surroundings. So when a text comes to two symbols that make a piece, it came to them as that piece alone comes
to its last two symbols.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokpack.findings import Finding, Severity
from tokpack.ir import ScoreMerge, TokenizerIR
from tokpack.ir import steps as ir_steps

from . import losses
from .core import SPACE_MARK, Core, Texts, refuse
from .cuts import exact_cuts
from .parts import Bpe, Metaspace, Normalizer, Prepend

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["derive_merges", "lower_score_merge"]

LONGEST = 1024  # bytes of a piece whose merges are derived; the time grows with the square, real pieces have 100
_BYTE_PIECE = re.compile(rb"<0x[0-9A-F]{2}>")


def lower_score_merge(ir: TokenizerIR, texts: Texts) -> Core:
    """Merges from scores, and the cuts that keep MNN from merging whole texts."""
    space = ir_steps.Replace(" ", SPACE_MARK)
    prefixed = ir.normalizer == (ir_steps.SpacePrefix(), space)
    if not isinstance(ir.model, ScoreMerge) or ir.pre_tokenizer or not (prefixed or ir.normalizer == (space,)):
        raise refuse("only the spaces of a score-merge model may be normalized, and it has no pre-tokenizer")
    raw = ir.vocab.scores
    # a score that is no number merges last, as it does here (llama.cpp's own order is then undefined)
    scores = [0.0] * len(texts.pieces) if raw is None else np.where(np.isnan(raw), -np.inf, raw).tolist()
    merges, no_part, long = derive_merges(texts.pieces, scores, texts.index)
    findings = [*losses.merge_losses(no_part, ()), *losses.fallback_losses(texts.index, "takes the byte itself")]
    if long:
        message = f"{len(long)} pieces of more than {LONGEST} bytes, such as id {long[0]}, are not reached by merges"
        findings.append(Finding("mtok-long-pieces", Severity.IDS, message))
    cuts = exact_cuts(texts.pieces[left] + texts.pieces[right] for left, right, _ in merges.tolist())
    findings += losses.pattern_losses(cuts)
    message = "MNN's merging takes time that grows with the square of a word's length; words end at spaces only"
    findings.append(Finding("mtok-slow-words", Severity.INFO, message))
    normalizer: tuple[Normalizer, ...] = (Prepend(" "),) if prefixed else ()
    return Core(
        Bpe(texts.stored, merges, byte_fallback=True),
        normalizer=normalizer,
        pre_tokenizer=(*cuts, Metaspace(SPACE_MARK, add_prefix_space=False)),
        findings=tuple(findings),
    )


def derive_merges(
    pieces: Sequence[bytes], scores: Sequence[float], index: Mapping[bytes, int]
) -> tuple[NDArray[np.uint32], list[bytes], list[int]]:
    """(left id, right id, rank) per piece that merging reaches; pieces that MNN cannot reach; pieces too long to try.

    A piece is out of MNN's reach when one of its last two symbols has no id, or has the id that MNN takes for a byte
    of an unknown character.
    """
    rows: list[tuple[int, int, float]] = []
    no_part: list[bytes] = []
    long: list[int] = []
    for number, piece in enumerate(pieces):
        if len(piece) > LONGEST:
            long.append(number)
            continue
        pair = _last_pair(piece, scores, index)
        if pair is None:
            continue
        left, right = (-1 if _BYTE_PIECE.fullmatch(part) else index.get(part, -1) for part in pair)
        if left < 0 or right < 0:
            no_part.append(piece)
        else:
            rows.append((left, right, scores[number]))
    order = {score: rank for rank, score in enumerate(sorted({row[2] for row in rows}, reverse=True))}
    table = [(left, right, order[score]) for left, right, score in rows]
    return np.array(table, dtype=np.uint32).reshape(-1, 3), no_part, long


def _last_pair(piece: bytes, scores: Sequence[float], index: Mapping[bytes, int]) -> tuple[bytes, bytes] | None:
    """The two symbols that become ``piece`` when it is encoded alone; None if it has one character or falls apart."""
    try:
        symbols = [char.encode() for char in piece.decode()]
    except UnicodeDecodeError:
        return None  # no valid text has it
    if len(symbols) < 2:
        return None
    never = -float("inf")

    def worth(left: bytes, right: bytes) -> tuple[bool, float]:
        number = index.get(left + right)
        return (number is not None, never if number is None else scores[number])

    found = [worth(*pair) for pair in itertools.pairwise(symbols)]
    while len(found) > 1:
        best = max(found)
        if not best[0]:
            return None
        at = found.index(best)
        symbols[at] += symbols.pop(at + 1)
        del found[at]
        if at < len(found):
            found[at] = worth(symbols[at], symbols[at + 1])
        if at:
            found[at - 1] = worth(symbols[at - 1], symbols[at])
    return symbols[0], symbols[1]
