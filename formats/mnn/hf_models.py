"""Models of ``tokenizers`` as MNN models (``tokenizers/src/models`` of 0.23.3, ``tokenizer.cpp`` of MNN 3.6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokpack.errors import FormatError, Location, LossError
from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, PieceAttr, TokenizerIR
from tokpack.ir import Unigram as UnigramIR
from tokpack.ir import WordLevel as WordLevelIR
from tokpack.ir import WordPiece as WordPieceIR

from . import losses
from .core import char_in_pieces
from .parts import Bpe, Model, Unigram, WordPiece
from .unigram import NOT_MATCHED, break_ties

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["lower_model"]

_BYTES = range(256)
_LONGEST_TRIED = 1024  # bytes of a piece for which merging is tried


@dataclass(frozen=True, slots=True)
class _Texts:
    """Pieces as the model has them (None for an id that it does not have) and as the body spells them."""

    own: Sequence[bytes | None]
    stored: tuple[bytes, ...]


def lower_model(ir: TokenizerIR, stored: tuple[bytes, ...], *, handled: bool) -> tuple[Model, list[Finding]]:
    """The model, and what MNN's does otherwise.

    ``handled``: characters that the byte-pair model does not know are replaced before it sees them.

    Raises:
        LossError: for what the format cannot hold or MNN would read out of bounds for.
    """
    normal = ir.vocab.attrs & int(PieceAttr.NORMAL)
    own = [piece if flag else None for piece, flag in zip(ir.vocab.pieces, normal.tolist(), strict=True)]
    texts = _Texts(own, stored)
    if isinstance(ir.model, BPE):
        return _bpe(ir, ir.model, texts, handled)
    if isinstance(ir.model, UnigramIR):
        return _unigram(ir, ir.model, texts)
    if isinstance(ir.model, WordPieceIR):
        return _word_piece(ir.model, texts)
    assert isinstance(ir.model, WordLevelIR)
    return _word_level(ir.model, texts)


# --- byte-pair encoding -----------------------------------------------------------------------------------------


def _bpe(ir: TokenizerIR, model: BPE, texts: _Texts, handled: bool) -> tuple[Model, list[Finding]]:
    index = {piece: number for number, piece in enumerate(texts.own) if piece is not None}
    merges, findings = _merges(model, index, texts.stored)
    if handled:
        message = "unassigned characters beyond U+1FFFF that have no piece are dropped by MNN"
        findings.append(Finding("mtok-unknown-characters", Severity.IDS, message))
    else:
        findings += _unknown(ir, model, index)
    if model.ignore_merges:
        findings += _whole_words(model, texts)
    message = "MNN's merging takes time that grows with the square of a word's length"
    findings.append(Finding("mtok-slow-words", Severity.INFO, message))
    return Bpe(texts.stored, merges, byte_fallback=ir.alphabet.byte_fallback), findings


def _merges(
    model: BPE, index: Mapping[bytes, int], stored: Sequence[bytes]
) -> tuple[NDArray[np.uint32], list[Finding]]:
    """Merges by ids; MNN finds the result by its text, as the body spells it."""
    present = frozenset(stored)
    rows: list[tuple[int, int, int]] = []
    lost: list[bytes] = []
    for (left, right), rank in zip(model.merges, model.ranks or range(len(model.merges)), strict=True):
        first, second = index.get(left), index.get(right)
        if first is None or second is None:  # no reader lets this pass, a damaged pack may have it
            part = left if first is None else right
            raise FormatError(f"a merge names {part[:40]!r}, which is no piece", location=Location(None, "merges"))
        if stored[first] + stored[second] in present:
            rows.append((first, second, rank))
        else:
            lost.append(left + right)
    findings = []
    if lost:
        message = f"{len(lost)} merges give a text that the body cannot hold and are left out"
        findings.append(Finding("mtok-merge-result", Severity.IDS, message))
    return np.array(rows, dtype=np.uint32).reshape(-1, 3), findings


def _unknown(ir: TokenizerIR, model: BPE, index: Mapping[bytes, int]) -> list[Finding]:
    """Characters without a piece: MNN takes the ``<0xHH>`` pieces that there are, or drops the character."""
    has_bytes = sum(b"<0x%02X>" % byte in index for byte in _BYTES) if ir.alphabet.byte_fallback else 0
    findings = []
    if 0 < has_bytes < len(_BYTES):
        message = (
            f"{has_bytes} bytes have a piece <0xHH>: MNN takes those it finds for a character without a piece, "
            "tokenizers only if all bytes of the character have one"
        )
        findings.append(Finding("mtok-byte-pieces", Severity.IDS, message))
    complete = has_bytes == len(_BYTES)
    if model.unk_piece is not None and not complete and ir.alphabet.kind is not AlphabetKind.BYTE_LEVEL:
        message = "MNN drops characters without a piece, tokenizers gives the unknown token for them"
        findings.append(Finding("mtok-unknown-characters", Severity.IDS, message))
    return findings


def _whole_words(model: BPE, texts: _Texts) -> list[Finding]:
    ranks = dict(zip(model.merges, model.ranks or range(len(model.merges)), strict=True))
    lost = [piece for piece in texts.own if piece and (len(piece) > _LONGEST_TRIED or not losses.reached(piece, ranks))]
    if not lost:
        return []
    shown = ", ".join(ascii(piece.decode("utf-8", "replace")) for piece in lost[:3])
    message = (
        f"{len(lost)} pieces are reached as whole words only (ignore_merges), not by merges, such as {shown}: MNN has "
        "no such rule and splits these words"
    )
    return [Finding("mtok-whole-words", Severity.IDS, message)]


# --- Unigram ----------------------------------------------------------------------------------------------------


def _unigram(ir: TokenizerIR, model: UnigramIR, texts: _Texts) -> tuple[Model, list[Finding]]:
    """Scores as they are; the unknown piece has what ``Unigram::encode_optimized`` gives an unknown character."""
    if model.unk_id is None:
        what = "there is no unknown id, and MNN would read a score in front of its array"
        raise LossError(what, location=Location(None, "model.unk_id"), code="mtok-no-unknown")
    size = len(texts.stored)
    raw = ir.vocab.scores
    scores = np.zeros(size, dtype=np.float64) if raw is None else raw.astype(np.float64)
    matched = np.array(
        [piece is not None and piece == text for piece, text in zip(texts.own, texts.stored, strict=True)], dtype=bool
    )
    in_model = np.array([piece is not None for piece in texts.own], dtype=bool)
    worst = float(scores[in_model].min(initial=0.0)) - model.unk_penalty
    scores = break_ties(scores, texts.stored)
    scores[~matched] = NOT_MATCHED
    message = (
        "of paths with the same total MNN takes the one whose last piece is shortest, tokenizers the one whose last "
        "piece is longest; and MNN tries the unknown piece only where no other ends"
    )
    findings = [Finding("mtok-unigram-ties", Severity.IDS, message)]
    fallback = ir.alphabet.byte_fallback
    numbers = {piece: number for number, piece in enumerate(texts.own)}
    byte_ids = [numbers.get(b"<0x%02X>" % byte) for byte in _BYTES]
    if fallback and None in byte_ids:
        fallback = False
        message = (
            f"{byte_ids.count(None)} bytes have no piece <0xHH>, and MNN would read a score in front of its array: "
            "unknown characters become the unknown piece"
        )
        findings.append(Finding("mtok-byte-pieces", Severity.IDS, message))
    if fallback:
        # an unknown character costs the same, whatever bytes it has: the first one bears the cost
        for byte, number in enumerate(byte_ids):
            assert number is not None
            scores[number] = 0.0 if 0x80 <= byte < 0xC0 else worst
    scores[model.unk_id] = worst
    return Unigram(texts.stored, tuple(scores.tolist()), model.unk_id, byte_fallback=fallback), findings


# --- words ------------------------------------------------------------------------------------------------------


def _word_piece(model: WordPieceIR, texts: _Texts) -> tuple[Model, list[Finding]]:
    _need_unknown(model.unk_piece, texts)
    limit = model.max_input_chars_per_word
    findings = [
        Finding(
            "mtok-long-words",
            Severity.IDS,
            f"MNN takes a word of more than {limit} bytes for unknown, tokenizers one of more than {limit} characters",
        )
    ]
    return WordPiece(texts.stored, model.unk_piece, model.continuing_subword_prefix, min(limit, 4096)), findings


def _word_level(model: WordLevelIR, texts: _Texts) -> tuple[Model, list[Finding]]:
    """WordPiece whose words do not go on: no piece has the prefix, so a word is one piece or unknown."""
    _need_unknown(model.unk_piece, texts)
    known = char_in_pieces(texts.stored)
    prefix = next(char for char in map(chr, range(0xE000, 0xF900)) if char not in known)
    longest = max(map(len, texts.stored))
    return WordPiece(texts.stored, model.unk_piece, prefix.encode(), min(longest, 4096)), []


def _need_unknown(unk: bytes, texts: _Texts) -> None:
    if unk not in texts.stored:
        what = "the unknown token is not in the vocabulary: MNN would give the id -1"
        raise LossError(what, location=Location(None, "model.unk_token"), code="mtok-no-unknown")
