"""llama.cpp's WPM (``llm_tokenizer_wpm_session``, commit 0c1e570) as MNN WordPiece.

A GGUF file spells the first piece of a word with U+2581 and the others bare. MNN's WordPiece (``WordPieceModel``,
tag 3.6.1) looks up the longest prefix, and then the longest text that goes on, with a prefix of its own before it. With
an empty prefix, and U+2581 put before each word by the Metaspace pre-tokenizer, that is llama.cpp's search, and the
pieces keep their spelling.

Characters are mapped one by one, as llama.cpp does: MNN's table holds :mod:`tokpack.pack.chars`' actions.
"""

from __future__ import annotations

import numpy as np

from tokpack.findings import Finding, Severity
from tokpack.ir import TokenizerIR, WordPieceGreedy
from tokpack.ir import steps as ir_steps
from tokpack.pack.chars import BREAK, CODE_POINT, DROP, wpm_table

from . import losses
from .char_map import WHITE_SPACE, map_and_drop_marks, map_chars
from .core import SPACE_MARK, Core, Texts, char_in_pieces, refuse
from .parts import BertNormalizer, BertPreTokenizer, Metaspace, Normalizer, WordPiece

__all__ = ["LONGEST_WORD", "lower_word_piece"]

LONGEST_WORD = (
    4096  # bytes, some 0.7 s; WordPieceModel::tokenize copies each candidate, so its time grows with the cube
)
_PLANE_15 = 0xF0000
_SURROGATES = range(0xD800, 0xE000)
_NOT_CHINESE = range(0x2B820, 0x2B920)  # Chinese to MNN (BertNormalizer::is_chinese_char), not to llama.cpp
# What Unicode::is_whitespace of MNN knows, but for U+000B and U+000C, which MNN's table would drop unasked
_BLANKS = frozenset(" ").union(WHITE_SPACE) - set("\v\f\u0085\u2028\u2029")


def lower_word_piece(ir: TokenizerIR, texts: Texts) -> Core:
    """The map of characters, the words, and the pieces as they are."""
    model, step = ir.model, ir.normalizer[0] if len(ir.normalizer) == 1 else None
    if not isinstance(model, WordPieceGreedy) or not isinstance(step, ir_steps.BertNormalizer) or ir.pre_tokenizer:
        raise refuse("a WordPiece model of llama.cpp has BERT's normalizer and nothing else")
    strip = step.lowercase if step.strip_accents is None else step.strip_accents
    known = char_in_pieces(texts.pieces)
    mapping, findings = _mapping(known, strip_accents=strip, lowercase=step.lowercase)
    mapped = map_and_drop_marks(mapping) if strip else map_chars(mapping, known)
    isolate: tuple[Normalizer, ...] = (BertNormalizer(False, True, False, False),)
    unk = _unknown(texts, model.unk_id)
    message = (
        f"a word of more than {LONGEST_WORD} bytes is one unknown piece: MNN's time grows with the cube of its length, "
        "so it gets a limit that llama.cpp does not have"
    )
    findings += [Finding("mtok-long-words", Severity.IDS, message), *losses.unknown_losses(ir, model.unk_id)]
    return Core(
        WordPiece(texts.stored, unk, b"", LONGEST_WORD + len(SPACE_MARK.encode())),
        normalizer=(*mapped, *isolate),
        pre_tokenizer=(BertPreTokenizer(), Metaspace(SPACE_MARK, add_prefix_space=True)),
        findings=tuple(findings),
    )


def _unknown(texts: Texts, unk_id: int | None) -> bytes:
    """Text of the unknown piece; without one a text that no piece has, for which MNN gives -1, as llama.cpp does."""
    if unk_id is not None:
        return texts.stored[unk_id]
    text = b"[UNK]"
    while text in texts.index:
        text += b"_"
    return text


def _mapping(known: frozenset[str], *, strip_accents: bool, lowercase: bool) -> tuple[dict[str, str], list[Finding]]:
    """Character → text where a character does not stay what it is.

    Characters that stand alone are left to BertPreTokenizer (punctuation) and BertNormalizer (Chinese), blanks to
    BertPreTokenizer.
    """
    index, blocks = wpm_table(strip_accents=strip_accents, lowercase=lowercase)
    actions = blocks[index].reshape(-1)
    mapping: dict[str, str] = {}
    for code in np.flatnonzero(actions).tolist():
        action = int(actions[code])
        if code in _SURROGATES or code >= _PLANE_15 or chr(code) in _BLANKS:
            continue
        if action & (DROP | BREAK):
            mapping[chr(code)] = "" if action & DROP else " "
        elif action & CODE_POINT:
            mapping[chr(code)] = chr((action ^ code) & CODE_POINT)
    message = "MNN keeps the private-use characters of planes 15 and 16, which llama.cpp drops"
    if any(ord(char) in _NOT_CHINESE for char in known):
        message += ", and takes U+2B820 to U+2B91F for words of their own"
    else:
        # No piece has them, so a word with one of them is unknown; with any other unknown character it is so too.
        stand_in = next(char for char in map(chr, range(0xE000, 0xF900)) if char not in known)
        mapping |= {chr(code): stand_in for code in _NOT_CHINESE}
    return mapping, [Finding("mtok-char-classes", Severity.IDS, message)]
