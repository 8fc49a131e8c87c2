"""llama.cpp's UGM (``llm_tokenizer_ugm_session``, commit 0c1e570) as MNN Unigram.

Both look for the path of the highest total score, in doubles. MNN's ``UnigramModel`` (tag 3.6.1) takes every piece of
the vocabulary; pieces that llama.cpp does not look for get a score so low that MNN counts what it leads to as not
reached (``best_scores <= -1e17``). The score of an unknown character, lowest score minus ten, is written as the score
of the unknown piece, which is where MNN reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokpack.findings import Finding, Severity
from tokpack.ir import PieceAttr, PieceType, TokenizerIR
from tokpack.ir import Unigram as UnigramIR
from tokpack.ir import steps as ir_steps

from . import losses
from .char_map import map_chars
from .charsmap import entries, pairs
from .core import SPACE_MARK, Core, Texts, char_in_pieces, refuse
from .hf_chars import composites
from .parts import Metaspace, Normalizer, Prepend, PreTokenizer, Replace, Split, Unigram

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NOT_MATCHED", "break_ties", "lower_unigram"]

NOT_MATCHED = -1e18
_TIE, _EVEN = 1e-8, 1e-11  # far below the difference of two scores, far above the precision of a total
_MATCHED = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
_NO_NORMAL_SCORE = np.float32(3.4028234663852886e38)  # FLT_MAX: the minimum over no pieces
_HALVINGS = 32  # of runs of spaces; a text of 4 GiB has no longer one
_END_SPACE = r" (?!.|\n)"  # the space at the end of a text
_MARK = "\x0e"  # below 0x80, so that MNN's matcher tells it from all others
_UNKNOWN = tuple(map(chr, range(0xE000, 0xF900)))  # private use: what stands for an unknown character


def lower_unigram(ir: TokenizerIR, texts: Texts) -> Core:
    """The charsmap one character at a time, the spaces, and the scores."""
    model, step = ir.model, ir.normalizer[0] if ir.normalizer else None
    escaped = ir.normalizer[1:] == (ir_steps.Replace(" ", SPACE_MARK),)
    if not isinstance(model, UnigramIR) or not isinstance(step, ir_steps.Precompiled) or not escaped:
        raise refuse("a Unigram model of llama.cpp has a charsmap and escaped spaces")
    if ir.pre_tokenizer:
        raise refuse("a Unigram model of llama.cpp has no pre-tokenizer")
    if model.unk_id is None:
        raise refuse("there is no unknown id, and MNN would read a score in front of its array", code="mtok-no-unknown")
    known = char_in_pieces(texts.pieces)
    unknown = next(char for char in _UNKNOWN if char not in known)
    mapped, findings = _charsmap(ir, step.charsmap, known, unknown)
    spaces, split, more = _spaces(step, known, unknown)
    scores = _scores(ir, model, model.unk_id)
    findings += [*more, *_path_losses(ir, model.unk_id)]
    return Core(
        Unigram(texts.stored, tuple(scores.tolist()), model.unk_id, byte_fallback=False),
        normalizer=(*mapped, *spaces),
        pre_tokenizer=(*split, Metaspace(SPACE_MARK, add_prefix_space=False)),
        findings=tuple(findings),
    )


def break_ties(scores: NDArray[np.float64], pieces: Sequence[bytes]) -> NDArray[np.float64]:
    """Scores, float64 ``[n]``, that make MNN's choice among equal totals more often the others' choice.

    llama.cpp, sentencepiece and ``tokenizers`` take the path whose last piece is longest, MNN the one whose last piece
    is shortest. What comes nearest with sums: fewer pieces, then pieces of even length. Runs of one character have
    paths that no sum can tell apart, because they are the same pieces in another order.
    """
    lengths = np.array([len(piece.decode("utf-8", "replace")) for piece in pieces], dtype=np.float64)
    even: NDArray[np.float64] = scores - (_TIE + _EVEN * lengths**2)
    return even


def _scores(ir: TokenizerIR, model: UnigramIR, unk: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    raw = ir.vocab.scores
    file_scores = np.zeros(len(ir.vocab), np.float32) if raw is None else raw
    normal = file_scores[ir.vocab.types == PieceType.NORMAL]
    lowest = normal.min(initial=_NO_NORMAL_SCORE)
    scores = file_scores.astype(np.float64)
    scores = break_ties(scores, [piece or b"" for piece in ir.vocab.pieces])
    scores[(ir.vocab.attrs & PieceAttr.USER_DEFINED) != 0] = 0.0
    scores[~np.isin(ir.vocab.types, _MATCHED)] = NOT_MATCHED
    # llama.cpp begins at characters, MNN at any byte: it would find half a character
    scores[[not _is_text(piece) for piece in ir.vocab.pieces]] = NOT_MATCHED
    scores[unk] = float(np.float32(lowest - np.float32(model.unk_penalty)))
    return scores


def _is_text(piece: bytes | None) -> bool:
    try:
        return piece is not None and piece.decode() is not None
    except UnicodeDecodeError:
        return False


def _charsmap(
    ir: TokenizerIR, charsmap: bytes, known: frozenset[str], unknown: str
) -> tuple[list[Normalizer], list[Finding]]:
    """The charsmap, changed by llama.cpp's rule for user-defined pieces (``normalize_prefix``).

    What a text has in common with the beginning of a user-defined piece is copied, the charsmap notwithstanding. If
    that is half a character, its other bytes become U+FFFD, and no piece has what comes out.
    """
    table = entries(charsmap)
    user = [
        piece
        for piece, kind in zip(ir.vocab.pieces, ir.vocab.types.tolist(), strict=True)
        if piece and kind == PieceType.USER_DEFINED
    ]
    firsts = {piece[0] for piece in user}
    whole = {piece.decode("utf-8", "replace")[0] for piece in user}
    mapping = {char: text for char, text in table.single.items() if char not in whole}
    for first in firsts:
        mapping |= {char: unknown for char in _led_by(first) if char not in whole}
    together = [(key, text) for key, text in pairs(table, known | composites()) if key.encode()[0] not in firsts]
    findings = []
    left = len(table.several) + table.longer - len(together)
    if left:
        message = (
            f"{left} entries of the charsmap replace several characters together, such as a letter and its accents; "
            "MNN replaces single characters, and the pairs that become a character of the vocabulary"
        )
        findings.append(Finding("mtok-charsmap", Severity.IDS, message))
    inner = {char for piece in user for char in piece.decode("utf-8", "replace")[1:]}
    if inner & mapping.keys() or any(not char.isascii() for char in inner):
        message = (
            "llama.cpp does not normalize what a text has in common with the beginning of a user-defined piece, even "
            "half a character; MNN knows this rule for the first character only"
        )
        findings.append(Finding("mtok-user-prefix", Severity.IDS, message))
    return [*(Replace(key, text) for key, text in together), *map_chars(mapping, known)], findings


def _led_by(first: int) -> list[str]:
    """Characters of more than one byte that begin with the byte ``first``."""
    if 0xC2 <= first < 0xE0:
        codes = range((first & 0x1F) << 6, (first & 0x1F) + 1 << 6)
    elif 0xE0 <= first < 0xF0:
        codes = range(max(0x800, (first & 0xF) << 12), (first & 0xF) + 1 << 12)
    elif 0xF0 <= first < 0xF5:
        codes = range(max(0x10000, (first & 7) << 18), min(0x110000, (first & 7) + 1 << 18))
    else:
        return []
    return [chr(code) for code in codes if not 0xD800 <= code < 0xE000]


def _spaces(
    step: ir_steps.Precompiled, known: frozenset[str], unknown: str
) -> tuple[list[Normalizer], list[PreTokenizer], list[Finding]]:
    """Spaces before words, merged and dropped at the ends, as the flags say."""
    if step.remove_extra_whitespaces:
        # one space before every word, whatever stands there at first, and none at the end
        return [Prepend(" "), *[Replace("  ", " ")] * _HALVINGS], [Split(_END_SPACE, behavior="removed")], []
    if not step.add_space_prefix:
        return [], [], []
    if _MARK in known:
        message = "MNN puts a space before a text of nothing but spaces too, llama.cpp before words only"
        return [Prepend(" ")], [], [Finding("mtok-prefix-space", Severity.IDS, message)]
    # A mark shows where the text begins; a space behind it goes if only spaces follow, and the mark goes anyway.
    lonely = Split(rf"\x{ord(_MARK):02X} (?! *[^ ])", behavior="removed")
    mark = Split(rf"\x{ord(_MARK):02X}", behavior="removed")
    return [Replace(_MARK, unknown), Prepend(f"{_MARK} ")], [lonely, mark], []


def _path_losses(ir: TokenizerIR, unk: int) -> list[Finding]:
    message = (
        "of paths with the same total MNN takes the one whose last piece is shortest, llama.cpp the one whose last "
        "piece is longest; and MNN tries the unknown piece only where no other ends"
    )
    return [Finding("mtok-unigram-ties", Severity.IDS, message), *losses.unknown_losses(ir, unk)]
