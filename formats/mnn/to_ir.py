"""A ``.mtok`` body → TokenizerIR whose reference is the MNN engine itself."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tokpack.errors import Location, UnsupportedError
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Reference,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
    model,
    steps,
)
from tokpack.ir import AddedToken as IrAddedToken

from . import parts
from .body import MtokBody
from .read_body import BodyFile
from .read_header import ENGINES
from .versions import version_finding

__all__ = ["UNICODE", "collect", "piece_types", "to_ir"]

UNICODE = "mnn-15.0"
_ROOM = 1 << 16  # ids that added tokens may leave out behind the model's
_BYTE_PIECES = frozenset(b"<0x%02X>" % byte for byte in range(256))
_ROW = struct.Struct("<IH")


def to_ir(file: BodyFile, engine: str = "v361", name: str | None = None) -> TokenizerIR:
    """The tokenizer that an engine makes of a body.

    Args:
        file: what :func:`~tokpack.formats.mnn.read_body.parse` found.
        engine: ``v361`` or ``head``.
        name: of the file, for messages.
    """
    body = file.body
    pieces = _printed(body.model)
    header = _header(file, engine)
    pieces = _with_added(pieces, body, name)
    bits = collect(pieces, body.special, _unknown_of(body.model))
    for token in body.added_tokens:
        if bits[token.id] == PieceAttr.NORMAL or token.id >= header.model_size:
            bits[token.id] = PieceAttr.CONTROL if token.special else PieceAttr.USER_DEFINED
    findings = [*file.findings, *_notes(file, engine, len(pieces)), version_finding(file)]
    template, extras = _template(body.chat_template)
    return TokenizerIR(
        reference=Reference.MNN,
        rules=ENGINES[engine],
        unicode=UNICODE,
        vocab=Vocab(
            tuple(pieces), piece_types(bits), np.array(bits, dtype=np.uint16), _scores(body.model, len(pieces))
        ),
        alphabet=Alphabet(_alphabet(body), getattr(body.model, "byte_fallback", False)),
        model=_model(body.model),
        matching=Matching(MatchingRule.HEADER_ORDER),
        normalizer=tuple(map(_normalizer, body.normalizer)),
        pre_tokenizer=tuple(map(_pre_tokenizer, body.pre_tokenizer)),
        decoder=tuple(map(_decoder, body.decoder)),
        post_processor=header,
        added_tokens=tuple(
            IrAddedToken(t.id, t.content, special=t.special, lstrip=t.lstrip, rstrip=t.rstrip)
            for t in body.added_tokens
        ),
        specials=_specials(body, pieces),
        chat_templates=template,
        source=Source("mnn", {"tokenizer_type": 4, "body_bytes": file.end, "vocabulary_entries": file.count}),
        extras=extras,
        findings=tuple(findings),
    )


def _header(file: BodyFile, engine: str) -> steps.MnnHeader:
    body = file.body
    written = _ops(body.post_ops)
    applied: tuple[int, ...] = ()
    if engine == "head":
        applied = written if file.misread_ops is None else _ops((None, *file.misread_ops))
    return steps.MnnHeader(
        tokenizer_type=4,
        special=body.special,
        stop=body.stop,
        prefix=body.prefix,
        model_size=file.count,
        pieces_end=len(body.model.pieces),
        post_ops=written,
        applied=applied,
        aliases=_aliases(body.model),
        merge_ranks=_shared_ranks(body.model),
        byte_level=getattr(body.model, "byte_level", False),
        clean_up_spaces=body.clean_up_spaces,
        eos=body.eos,
        bos=body.bos,
    )


def _ops(program: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(-1 if op is None else op & 0xFFFFFFFF for op in program)


def _printed(part: parts.Model) -> list[bytes | None]:
    """The text that the engine prints for each id; None for an id without one."""
    pieces: list[bytes | None] = list(part.pieces)
    aliases = part.aliases if isinstance(part, parts.Bpe) else ()
    pieces += [None] * (max((number for _, number in aliases), default=-1) + 1 - len(pieces))
    for text, number in aliases:
        before = pieces[number]
        pieces[number] = text if before is None else max(before, text)
    return pieces


def _aliases(part: parts.Model) -> bytes:
    aliases = part.aliases if isinstance(part, parts.Bpe) else ()
    return b"".join(_ROW.pack(number, len(text)) + text for text, number in aliases)


def _with_added(pieces: list[bytes | None], body: MtokBody, name: str | None) -> list[bytes | None]:
    """The pieces, and behind them the added tokens that the model does not have."""
    size = len(pieces)
    highest = max((token.id for token in body.added_tokens), default=-1)
    lowest = min((token.id for token in body.added_tokens), default=0)
    if lowest < 0 or highest >= size + len(body.added_tokens) + _ROOM:
        what = f"an added token has the id {lowest if lowest < 0 else highest}, the vocabulary {size} entries"
        raise UnsupportedError(what, location=Location(name, "mtok.added_tokens"), code="mnn-id-range")
    pieces = pieces + [None] * (highest + 1 - size)
    for token in body.added_tokens:
        if pieces[token.id] is None:
            pieces[token.id] = token.content
    return pieces


def collect(pieces: list[bytes | None], special: tuple[int, ...], unknown: int) -> list[PieceAttr]:
    """What each piece is: control for the ids of the header, unknown, byte pieces, else normal."""
    bits = [PieceAttr.BYTE if piece in _BYTE_PIECES else PieceAttr.NORMAL for piece in pieces]
    for token in special:
        if 0 <= token < len(pieces):
            bits[token] = PieceAttr.CONTROL
    if 0 <= unknown < len(pieces):
        bits[unknown] = PieceAttr.UNKNOWN
    return bits


_TYPE_OF = {
    PieceAttr.NORMAL: PieceType.NORMAL,
    PieceAttr.UNKNOWN: PieceType.UNKNOWN,
    PieceAttr.CONTROL: PieceType.CONTROL,
    PieceAttr.USER_DEFINED: PieceType.USER_DEFINED,
    PieceAttr.BYTE: PieceType.BYTE,
}


def piece_types(bits: list[PieceAttr]) -> Any:
    """Type numbers for :func:`collect`, uint8 ``[n]``."""
    return np.array([_TYPE_OF[bit] for bit in bits], dtype=np.uint8)


def _unknown_of(part: parts.Model) -> int:
    if isinstance(part, parts.Unigram):
        return part.unk_id
    if isinstance(part, parts.WordPiece) and part.unk_piece in part.pieces:
        return part.pieces.index(part.unk_piece)
    return -1


def _scores(part: parts.Model, size: int) -> Any:
    if not isinstance(part, parts.Unigram):
        return None
    scores = np.zeros(size, dtype=np.float64)
    scores[: len(part.scores)] = part.scores
    return scores


def _alphabet(body: MtokBody) -> AlphabetKind:
    spelled = any(isinstance(step, parts.ByteLevel) for step in body.pre_tokenizer)
    if isinstance(body.model, parts.Bpe) and (spelled or body.model.byte_level):
        return AlphabetKind.BYTE_LEVEL
    return AlphabetKind.UTF8


def _model(part: parts.Model) -> model.Model:
    if isinstance(part, parts.Unigram):
        return model.Unigram(part.unk_id, 0.0)
    if isinstance(part, parts.WordPiece):
        return model.WordPiece(part.unk_piece, part.prefix, part.max_bytes)
    pieces, rows = _printed(part), _by_rank(part)
    ranks = rows[:, 2].tolist()
    plain = ranks == list(range(len(ranks))) or bool(_shared_ranks(part))
    return BPE(
        merges=tuple((pieces[left] or b"", pieces[right] or b"") for left, right in rows[:, :2].tolist()),
        ranks=None if plain else tuple(ranks),
    )


def _by_rank(part: parts.Bpe) -> Any:
    """The merges by rank, then by ids."""
    merges = np.asarray(part.merges, dtype=np.uint32).reshape(-1, 3)
    return merges[np.lexsort((merges[:, 1], merges[:, 0], merges[:, 2]))]


def _shared_ranks(part: parts.Model) -> bytes:
    """The ranks of all merges if two of them are equal, else nothing."""
    if not isinstance(part, parts.Bpe):
        return b""
    ranks = _by_rank(part)[:, 2].astype(np.int64)
    return ranks.astype("<u4").tobytes() if bool((np.diff(ranks) == 0).any()) else b""


def _table(rows: tuple[tuple[int, str], ...]) -> bytes:
    encoded = [(code, text.encode("utf-8")) for code, text in rows]
    return b"".join(_ROW.pack(code, len(text)) + text for code, text in encoded)


def _normalizer(step: parts.Normalizer) -> steps.NormalizerStep:
    if isinstance(step, parts.Prepend):
        return steps.Prepend(step.content)
    if isinstance(step, parts.Replace):
        return steps.Replace(step.pattern, step.content)
    if isinstance(step, parts.Strip):
        return steps.StripNormalizer(step.left, step.right)
    if isinstance(step, parts.TableNormalizer):
        return steps.MnnTableNormalizer(_table(step.table))
    return steps.MnnBertNormalizer(
        step.clean_text, step.chinese_chars, step.strip_accents, step.lowercase, _table(step.table)
    )


def _pre_tokenizer(step: parts.PreTokenizer) -> steps.PreTokenizerStep:
    if isinstance(step, parts.ByteLevel):
        return steps.ByteLevel(False, step.use_regex)
    if isinstance(step, parts.Digits):
        return steps.Digits(step.individual_digits)
    if isinstance(step, parts.Metaspace):
        return steps.Metaspace(step.replacement, "always" if step.add_prefix_space else "never", split=False)
    if isinstance(step, parts.BertPreTokenizer):
        return steps.BertPreTokenizer()
    return steps.Split(step.pattern, steps.Dialect.MNN_FOLDED, steps.Behavior(step.behavior), step.invert)


def _decoder(step: parts.Decoder) -> steps.DecoderStep:
    if isinstance(step, parts.ByteLevelDecoder):
        return steps.ByteLevelDecoder()
    if isinstance(step, parts.ByteFallbackDecoder):
        return steps.ByteFallbackDecoder()
    if isinstance(step, parts.FuseDecoder):
        return steps.FuseDecoder()
    if isinstance(step, parts.MetaspaceDecoder):
        return steps.MetaspaceDecoder(step.replacement, "always" if step.add_prefix_space else "never")
    if isinstance(step, parts.WordPieceDecoder):
        return steps.WordPieceDecoder(step.prefix, step.cleanup)
    if isinstance(step, parts.ReplaceDecoder):
        return steps.Replace(step.pattern, step.content)
    return steps.StripDecoder(step.content, step.start, step.stop)


def _specials(body: MtokBody, pieces: list[bytes | None]) -> Specials:
    roles: dict[str, SpecialId] = {}
    for role, text in (("bos", body.bos), ("eos", body.eos)):
        added = next((token.id for token in body.added_tokens if token.content == text), None)
        found = added if added is not None else pieces.index(text) if text in pieces else None
        if text and found is not None:
            roles[role] = SpecialId(found, f"text of {role}")
    unknown = _unknown_of(body.model)
    if 0 <= unknown < len(pieces):
        roles["unk"] = SpecialId(unknown, "model")
    return Specials(roles, tuple(sorted({token for token in body.stop if 0 <= token < len(pieces)})))


def _template(raw: bytes) -> tuple[dict[str, str], dict[str, object]]:
    """The chat template as text; its bytes besides, when they are not UTF-8."""
    if not raw:
        return {}, {}
    try:
        return {"default": raw.decode("utf-8")}, {}
    except UnicodeDecodeError:
        return {"default": raw.decode("utf-8", "replace")}, {"mnn.chat_template": raw}


def _notes(file: BodyFile, engine: str, size: int) -> list[Finding]:
    body, found = file.body, []
    outside = [token for token in (*body.special, *body.stop, *body.prefix) if not 0 <= token < size]
    if outside:
        message = f"{len(outside)} ids of the header are outside the vocabulary, the first is {outside[0]}"
        found.append(Finding("mnn-header-ids", Severity.WARN, message, Location(None, "mtok.header")))
    if file.broken_ops:
        severity = Severity.REFUSE if engine == "head" else Severity.INFO
        message = f"engines that read the post-processor section read beside it: {file.broken_ops}"
        found.append(Finding("mnn-post-ops", severity, message, Location(None, "mtok.post_processor")))
    if file.misread_ops is not None:
        message = "engines that read the post-processor section take it for an older layout: its length is 4 per entry"
        where = Location(None, "mtok.post_processor")
        found.append(Finding("mnn-post-ops-layout", Severity.WARN, message, where, "add one byte behind the section"))
    if isinstance(body.model, parts.Unigram) and body.model.byte_fallback:
        missing = [byte for byte in range(256) if b"<0x%02X>" % byte not in body.model.pieces]
        if missing:
            message = (
                f"{len(missing)} byte pieces are missing, the first is <0x{missing[0]:02X}>: no text may need them"
            )
            found.append(Finding("mnn-byte-pieces", Severity.WARN, message, Location(None, "mtok.model")))
    return found
