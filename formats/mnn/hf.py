"""From a tokenizer of the ``tokenizers`` library to the body of a ``.mtok`` file.

The parts are lowered by :mod:`~tokpack.formats.mnn.hf_chars` (normalizers), :mod:`~tokpack.formats.mnn.hf_splits`
(pre-tokenizers), :mod:`~tokpack.formats.mnn.hf_models`, :mod:`~tokpack.formats.mnn.hf_added` (added tokens) and
:mod:`~tokpack.formats.mnn.hf_around` (decoders and what is put around a text).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, TokenizerIR, Unigram, WordLevel, WordPiece
from tokpack.ir import steps as ir_steps
from tokpack.unicode import byte_level

from . import losses
from .body import MtokBody
from .core import SPACE_MARK, char_in_pieces, refuse
from .cuts import exact_cuts
from .hf_added import place_added
from .hf_around import lower_around, lower_decoder, not_kept
from .hf_chars import lower_normalizer
from .hf_models import lower_model
from .hf_splits import lower_pre_tokenizer, stripped
from .marked import lower_marked
from .parts import Decoder, Metaspace, Model, Normalizer, PreTokenizer, Split
from .specials import respell, shown
from .unknown import Unknown, unknown_of_tokenizers

__all__ = ["lower_hf"]

_ESCAPE = ir_steps.Replace(" ", SPACE_MARK)
_BYTE_PIECES = frozenset(b"<0x%02X>" % byte for byte in range(256))
_PREFIX = ir_steps.Prepend(SPACE_MARK)


def lower_hf(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to ``ir``'s as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer that MNN has no form for.
        LossError: for what the format cannot hold, or what MNN would read out of bounds for.
    """
    if not isinstance(ir.model, (BPE, Unigram, WordPiece, WordLevel)):
        raise refuse(f"no .mtok body can be made for a {ir.model.kind} model of tokenizers")
    stored, findings = _stored(ir)
    core, stored = _core(ir, stored)
    placement = place_added(ir, stored)
    decoder, text_losses = lower_decoder(ir) if core.decoder is None else (core.decoder, [])
    (prefix, post_ops), around = lower_around(ir)
    findings += [*core.findings, *placement.findings, *text_losses, *around, *not_kept(ir), *losses.not_kept(ir)]
    findings += _piece_losses(ir, stored)
    body = MtokBody(
        model=core.model,
        special=tuple(placement.header),
        stop=ir.specials.eog,
        prefix=prefix,
        normalizer=core.normalizer,
        pre_tokenizer=core.pre_tokenizer,
        decoder=decoder,
        added_tokens=tuple(placement.added),
        chat_template=ir.chat_templates.get("default", "").encode("utf-8", "surrogatepass"),
        eos=_text_of(ir, "eos"),
        bos=_text_of(ir, "bos"),
        post_ops=post_ops,
    )
    return body, findings


@dataclass(frozen=True, slots=True)
class _Core:
    """From the text to the ids; ``decoder`` where it depends on how the pieces are stored."""

    model: Model
    normalizer: tuple[Normalizer, ...]
    pre_tokenizer: tuple[PreTokenizer, ...]
    findings: list[Finding]
    decoder: tuple[Decoder, ...] | None = None


def _core(ir: TokenizerIR, stored: tuple[bytes, ...]) -> tuple[_Core, tuple[bytes, ...]]:
    """The core, and the texts of the pieces as it stores them."""
    if isinstance(ir.model, BPE) and (ir.model.continuing_subword_prefix or ir.model.end_of_word_suffix):
        marked = lower_marked(ir, stored)
        core = _Core(marked.model, marked.normalizer, marked.pre_tokenizer, marked.findings, marked.decoder)
        return core, marked.model.pieces
    unknown = unknown_of_tokenizers(ir, stored)
    if unknown is not None and unknown.piece in stored:
        stored = tuple(unknown.stand_in.encode() if piece == unknown.piece else piece for piece in stored)
    model, findings = lower_model(ir, stored, handled=unknown is not None)
    normalizer, pre_tokenizer, lost = _words(ir, stored, unknown)
    return _Core(model, normalizer, pre_tokenizer, [*findings, *lost]), stored


def _stored(ir: TokenizerIR) -> tuple[tuple[bytes, ...], list[Finding]]:
    """Pieces as the body spells them: each has a text, and no two the same.

    MNN indexes by id an array sized by the number of pieces, so holes are filled; and it finds the first of equal
    texts where ``tokenizers`` finds the last.
    """
    merges = ir.model.merges if isinstance(ir.model, BPE) else ()
    raw = ir.vocab.pieces
    spelling = respell(ir, [piece or b"" for piece in raw], merges)
    texts = [spelling.get(number, piece) for number, piece in enumerate(raw)]
    present = {piece for piece in texts if piece is not None}
    last = {piece: number for number, piece in enumerate(texts)}
    unused = _unused_bytes(ir)
    stored: list[bytes] = []
    duplicates: list[int] = []
    unwritten: list[int] = []
    for number, piece in enumerate(texts):
        if piece and b"\0" not in piece and last[piece] == number and number not in unused:
            stored.append(piece)
            continue
        if piece is not None and number not in unused:
            (duplicates if piece and b"\0" not in piece else unwritten).append(number)
        text = f"[HOLE_{number}]".encode()
        while text in present:
            text += b"_"
        present.add(text)
        stored.append(text)
    findings = []
    if unused:
        message = f"{len(unused)} pieces <0xHH> lose their text: MNN would take them for characters without a piece"
        findings.append(Finding("mtok-byte-pieces", Severity.TEXT, message))
    if duplicates:
        message = f"{len(duplicates)} pieces, such as id {duplicates[0]}, have the text of a later one and lose it"
        findings.append(Finding("mtok-duplicate-piece", Severity.TEXT, message))
    if unwritten:
        message = f"{len(unwritten)} pieces, such as id {unwritten[0]}, are empty or hold a NUL, where MNN ends a text"
        findings.append(Finding("mtok-nul-piece", Severity.TEXT, message))
    return tuple(stored), findings


def _unused_bytes(ir: TokenizerIR) -> frozenset[int]:
    """``<0xHH>`` pieces of a byte-pair model without byte_fallback: MNN takes them whatever the file says."""
    if not isinstance(ir.model, BPE) or ir.alphabet.byte_fallback:
        return frozenset()
    added = {token.id for token in ir.added_tokens}
    pieces = enumerate(ir.vocab.pieces)
    return frozenset(number for number, piece in pieces if piece in _BYTE_PIECES and number not in added)


def _words(
    ir: TokenizerIR, stored: Sequence[bytes], unknown: Unknown | None
) -> tuple[tuple[Normalizer, ...], tuple[PreTokenizer, ...], list[Finding]]:
    """Normalizers and pre-tokenizers.

    Where a text is merged as a whole, it is cut at places that no merge crosses (:mod:`tokpack.formats.mnn.cuts`);
    for that, spaces stay spaces until then.
    """
    byte = ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
    steps = list(ir.normalizer)
    escaped = bool(steps) and isinstance(steps[-1], ir_steps.Replace) and steps[-1].pattern == " "
    no_spaces = escaped and isinstance(steps[-1], ir_steps.Replace) and " " not in steps[-1].content
    words = lower_pre_tokenizer(ir.pre_tokenizer, no_spaces=no_spaces)
    pre = words.steps
    cuts: tuple[Split, ...] = ()
    whole = isinstance(ir.model, BPE) and not byte and all(isinstance(step, Metaspace) for step in pre)
    if whole and isinstance(ir.model, BPE) and (pre or (steps and steps[-1] == _ESCAPE)):
        cuts = exact_cuts(left + right for left, right in ir.model.merges)
        if pre:
            pre[-1:] = [*cuts, pre[-1]]
        else:
            steps.pop()
            steps = [ir_steps.Prepend(" ") if step == _PREFIX else step for step in steps]
            pre = [*cuts, Metaspace(SPACE_MARK, add_prefix_space=False)]
    known = char_in_pieces(stored) if unknown is None else unknown.known | set(unknown.stand_in)
    normalized = lower_normalizer(steps, known, bytes_known=byte or ir.alphabet.byte_fallback, unknown=unknown)
    findings = [*normalized.findings, *words.findings]
    if normalized.left or normalized.right:
        pre = [stripped(left=normalized.left, right=normalized.right), *pre]
    findings += _engine_losses([step for step in pre if isinstance(step, Split)])
    return (*normalized.steps, *words.normalizer), tuple(pre), findings


def _engine_losses(splits: Sequence[Split]) -> list[Finding]:
    """Where MNN's character classes and engines leave those of ``tokenizers``."""
    found = {finding.code: finding for finding in losses.pattern_losses(splits)}
    if "mtok-char-classes" in found:
        message = (
            "MNN cuts words by its own classes, of Unicode 15.0: U+0085, U+2028 and U+2029 are not white space, U+0001 "
            "to U+0007 count as letter, number, space, other, mark, punctuation and symbol, newer ones as unassigned"
        )
        found["mtok-char-classes"] = Finding("mtok-char-classes", Severity.IDS, message)
    return list(found.values())


def _piece_losses(ir: TokenizerIR, stored: Sequence[bytes]) -> list[Finding]:
    """Pieces that MNN prints as another text."""
    kind = ir.alphabet.kind
    wrong = {token.id for token in ir.added_tokens if shown(stored[token.id], kind) != token.content}
    if not wrong:
        return []
    message = (
        f"MNN prints {len(wrong)} added tokens as another text, such as id {min(wrong)}: it reads U+2581 as a space, "
        "<0xHH> as a byte and GPT-2's characters as bytes in every piece"
    )
    return [Finding("mtok-piece-text", Severity.TEXT, message)]


def _text_of(ir: TokenizerIR, role: str) -> bytes:
    """The text of a role's token, for the chat template."""
    number = ir.specials.get(role)
    if number is None:
        return b""
    for token in ir.added_tokens:
        if token.id == number:
            return token.content
    piece = ir.vocab.pieces[number] or b""
    return (byte_level.decode(piece) or piece) if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL else piece
