"""What MNN 3.6.1 does otherwise than llama.cpp, as findings.

Each function looks at one cause and says where and why ids or text differ. Sources: ``BPEModel::tokenize``,
``PipelineTokenizer::encode`` and ``decode`` (``tokenizer.cpp``), ``fold_text`` (``unicode.cpp``) of MNN tag 3.6.1.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, PieceAttr, ScoreMerge, TokenizerIR
from tokpack.ir.steps import BosEos, LlamaDetokenize
from tokpack.unicode import byte_level

from .parts import Split
from .patterns import GROUP_LIMIT, repeats_group, uses_wregex
from .specials import shown

__all__ = [
    "fallback_losses",
    "general_losses",
    "merge_losses",
    "not_kept",
    "pattern_losses",
    "piece_losses",
    "reached",
    "unknown_losses",
    "whole_word_losses",
]

_IN_TEXT = (*range(1, 0xC0), *range(0xC2, 0xF5))  # bytes of UTF-8, but for NUL, where a text ends for MNN
_LONGEST_MERGED = 1024  # bytes; real pieces stay below, and the time to try grows with the square
_SPECIAL = int(PieceAttr.CONTROL | PieceAttr.USER_DEFINED | PieceAttr.UNKNOWN)


def _examples(texts: Sequence[bytes], count: int = 3) -> str:
    return ", ".join(ascii(text.decode("utf-8", "replace")) for text in texts[:count])


def pattern_losses(splits: Sequence[Split]) -> list[Finding]:
    """Where MNN's character classes and engines leave llama.cpp's."""
    findings = []
    folded = [split.pattern for split in splits if not uses_wregex(split.pattern)]
    if any("\\p{" in pattern or "\\s" in pattern or "\\S" in pattern for pattern in folded):
        message = (
            "MNN cuts words by its own classes: U+0085, U+2028 and U+2029 are not white space, U+0001 to U+0007 count "
            "as letter, number, space, other, mark, punctuation and symbol, and the 627 characters new in Unicode 15.1 "
            "(U+2EBF0 to U+2EE5D, U+2FFC to U+2FFF, U+31EF) are unassigned"
        )
        findings.append(Finding("mtok-char-classes", Severity.IDS, message))
    if any(repeats_group(pattern) for pattern in folded):
        message = f"MNN repeats a group of a pattern {GROUP_LIMIT:,} times at most: longer words or digit runs are cut"
        findings.append(Finding("mtok-group-limit", Severity.IDS, message))
    if any(uses_wregex(split.pattern) for split in splits):
        message = (
            "patterns with characters beyond ASCII run on std::wregex, slower than MNN's own matcher; where wchar_t "
            "has 16 bits (Windows) they misread characters beyond U+FFFF"
        )
        findings.append(Finding("mtok-wregex", Severity.INFO, message))
    return findings


def merge_losses(no_part: Sequence[bytes], no_result: Sequence[bytes]) -> list[Finding]:
    """Merges that were left out: MNN merges ids, llama.cpp texts."""
    findings = []
    if no_part:
        message = (
            f"{len(no_part)} merges have a part that is not a piece and are left out, such as the one that gives "
            f"{_examples(no_part, 1)}: MNN merges ids, llama.cpp texts"
        )
        findings.append(Finding("mtok-merge-part", Severity.IDS, message))
    if no_result:
        message = (
            f"{len(no_result)} merges give a text that is not a piece and are left out, such as "
            f"{_examples(no_result, 1)}: MNN would stop merging the word there, llama.cpp goes on"
        )
        findings.append(Finding("mtok-merge-result", Severity.IDS, message))
    return findings


def fallback_losses(index: Mapping[bytes, int], otherwise: str) -> list[Finding]:
    """Bytes without ``<0xHH>`` piece, where characters without a piece fall back on those."""
    absent = [b for b in _IN_TEXT if b"<0x%02X>" % b not in index and (b >= 0x80 or bytes((b,)) not in index)]
    if not absent:
        return []
    message = (
        f"{len(absent)} bytes have no piece <0xHH>, such as 0x{absent[0]:02X}: MNN drops them, llama.cpp {otherwise}"
    )
    return [Finding("mtok-byte-pieces", Severity.IDS, message)]


def unknown_losses(ir: TokenizerIR, unk: int | None) -> list[Finding]:
    """An unknown piece that a text may also hold; ``WordPieceModel`` and ``UnigramModel`` never find it there."""
    if unk is None or int(ir.vocab.attrs[unk]) & (_SPECIAL & ~int(PieceAttr.USER_DEFINED)):
        return []
    message = f"the unknown piece, id {unk}, is an ordinary piece to llama.cpp; MNN never looks for its text"
    return [Finding("mtok-unknown-piece", Severity.IDS, message)]


def piece_losses(ir: TokenizerIR, pieces: Sequence[bytes], index: Mapping[bytes, int]) -> list[Finding]:
    """Byte pieces that are absent, and pieces whose text comes out differently."""
    findings = []
    kind = ir.alphabet.kind
    if kind is AlphabetKind.BYTE_LEVEL:
        absent = [byte for byte in _IN_TEXT if byte_level.CHARS[byte].encode() not in index]
        if absent:
            message = (
                f"{len(absent)} bytes have no piece, such as 0x{absent[0]:02X}: MNN drops them before it merges (or "
                "takes a piece <0xHH> if there is one), llama.cpp after, so their neighbours may merge"
            )
            findings.append(Finding("mtok-byte-pieces", Severity.IDS, message))
    wrong = {i for i, piece in enumerate(pieces) if (b"<0x" in piece or b"\xe2\x96\x81" in piece) and _misread(ir, i)}
    wrong.update(token.id for token in ir.added_tokens if shown(pieces[token.id], kind) != token.content)
    if wrong:
        message = (
            f"MNN prints {len(wrong)} pieces as another text, such as id {min(wrong)}: it reads U+2581 as a space, "
            "<0xHH> as a byte and GPT-2's characters as bytes in every piece"
        )
        findings.append(Finding("mtok-piece-text", Severity.TEXT, message))
    return findings


def _misread(ir: TokenizerIR, index: int) -> bool:
    """Whether a piece with U+2581 or ``<0x`` in it stands for something else than MNN prints."""
    attr = int(ir.vocab.attrs[index])
    if attr & (_SPECIAL | int(PieceAttr.BYTE)):
        return False  # special tokens are compared on their own; byte pieces are what MNN takes them for
    piece = ir.vocab.pieces[index] or b""
    return ir.alphabet.kind is AlphabetKind.BYTE_LEVEL or b"<0x" in piece


def whole_word_losses(ir: TokenizerIR, pieces: Sequence[bytes]) -> list[Finding]:
    """Words that llama.cpp takes whole although merging does not lead to them."""
    model = ir.model
    assert isinstance(model, BPE)
    if not (model.ignore_merges or model.whole_newlines):
        return []
    ranks = {pair: rank for rank, pair in enumerate(model.merges)}
    attrs = ir.vocab.attrs.tolist()
    lost = [
        piece
        for index, piece in enumerate(pieces)
        if not attrs[index] & _SPECIAL and (model.ignore_merges or not piece.strip(b"\n")) and not reached(piece, ranks)
    ]
    if not lost:
        return []
    message = (
        f"{len(lost)} pieces are reached as whole words only (llama.cpp's "
        f"{'ignore_merges' if model.ignore_merges else 'rule for words of newlines'}), not by merges, such as "
        f"{_examples(lost)}: MNN has no such rule and splits these words"
    )
    return [Finding("mtok-whole-words", Severity.IDS, message)]


def reached(piece: bytes, ranks: Mapping[tuple[bytes, bytes], int]) -> bool:
    """Whether merging the characters of ``piece`` ends in ``piece``; not tried for very long ones."""
    if len(piece) > _LONGEST_MERGED:
        return False
    symbols = [char.encode() for char in piece.decode("utf-8", "replace")]
    never = len(ranks)
    get = ranks.get
    found = [get(pair, never) for pair in itertools.pairwise(symbols)]
    while found:
        best = min(found)
        if best == never:
            return False
        at = found.index(best)
        symbols[at] += symbols.pop(at + 1)
        del found[at]
        if at < len(found):
            found[at] = get((symbols[at], symbols[at + 1]), never)
        if at:
            found[at - 1] = get((symbols[at - 1], symbols[at]), never)
    return True


def general_losses(ir: TokenizerIR) -> list[Finding]:
    """What holds for every tokenizer of this family."""
    invalid = "MNN keeps invalid UTF-8 as bytes where llama.cpp takes U+FFFD for each bad byte"
    if isinstance(ir.model, ScoreMerge):
        invalid = "MNN and llama.cpp cut invalid UTF-8 at different bytes"
    findings = [
        Finding("mtok-text-limits", Severity.IDS, f"{invalid}; MNN matches no special token across a NUL"),
        Finding(
            "mtok-parse-special",
            Severity.INFO,
            "MNN always reads special tokens in a text, also in text from outside (parse_special is always true)",
        ),
    ]
    rules = [step for step in ir.decoder if isinstance(step, LlamaDetokenize)]
    if any(step.strip_space for step in rules):
        message = "MNN's decoding of a list drops a space at its beginning; llama.cpp keeps it if it drops a BOS too"
        findings.append(Finding("mtok-leading-space", Severity.TEXT, message))
    if any(step.clean_spaces for step in rules):
        message = (
            "MNN's clean-up of spaces, in the decoding of a list, keeps spaces before ? ! . , and drops the one "
            "before n't; llama.cpp does it the other way round"
        )
        findings.append(Finding("mtok-clean-spaces", Severity.TEXT, message))
    return findings + _around_losses(ir) + not_kept(ir)


def _around_losses(ir: TokenizerIR) -> list[Finding]:
    """What stands before and after a text."""
    post = ir.post_processor
    if not isinstance(post, BosEos) or post.rule == "never":
        return []
    findings = []
    classify = post.rule == "cls-sep"
    if post.add_bos or classify:
        first = "[CLS]" if classify else "BOS"
        message = f"MNN puts {first} before every text, the empty one included"
        findings.append(Finding("mtok-prefix", Severity.INFO, message))
    if post.add_eos or classify:
        last, code = ("[SEP]", "mtok-add-sep") if classify else ("EOS", "mtok-add-eos")
        message = f"MNN 3.6.1 puts nothing after a text: {last} is missing (later engines read it from the file)"
        findings.append(Finding(code, Severity.IDS, message))
    return findings


def not_kept(ir: TokenizerIR) -> list[Finding]:
    """Facts that have no place in the body; the index keeps them."""
    findings = []
    roles = sorted(set(ir.specials.roles) - {"bos", "eos"})
    if roles:
        message = f"the body has no field for the roles {', '.join(roles)} (end-of-generation ids are its stop ids)"
        findings.append(Finding("mtok-roles", Severity.INFO, message))
    if ir.specials.suppress:
        message = f"the body has no field for the {len(ir.specials.suppress)} ids never to be sampled"
        findings.append(Finding("mtok-suppress", Severity.INFO, message))
    names = sorted(set(ir.chat_templates) - {"default"})
    if names:
        message = f"the body has one chat template; not kept: {', '.join(names)}"
        findings.append(Finding("mtok-chat-templates", Severity.INFO, message))
    return findings
