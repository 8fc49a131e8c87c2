"""TokenizerIR of a ``.mtok`` body → the body: the inverse of :mod:`~tokpack.formats.mnn.to_ir`."""

from __future__ import annotations

import numpy as np

from tokpack.errors import FormatError, UnsupportedError
from tokpack.ir import BPE, Reference, TokenizerIR, model, steps
from tokpack.runtime.mnn.rows import read_rows

from . import parts
from .body import MtokBody

__all__ = ["from_ir"]


def from_ir(ir: TokenizerIR) -> MtokBody:
    """The body that ``ir`` was read from.

    Raises:
        UnsupportedError: ``ir`` does not come from a .mtok body.
    """
    header = ir.post_processor
    if ir.reference is not Reference.MNN or not isinstance(header, steps.MnnHeader) or header.tokenizer_type != 4:
        raise UnsupportedError("only a tokenizer read from a .mtok body has a body of its own", code="mtok-family")
    template = ir.extras.get("mnn.chat_template")
    if not isinstance(template, bytes):
        template = ir.chat_templates.get("default", "").encode("utf-8")
    return MtokBody(
        _model_back(ir, header),
        special=header.special,
        stop=header.stop,
        prefix=header.prefix,
        normalizer=tuple(map(_normalizer_back, ir.normalizer)),
        pre_tokenizer=tuple(map(_pre_tokenizer_back, ir.pre_tokenizer)),
        decoder=tuple(map(_decoder_back, ir.decoder)),
        added_tokens=tuple(parts.AddedToken(t.id, t.content, t.special, t.lstrip, t.rstrip) for t in ir.added_tokens),
        chat_template=template,
        eos=header.eos,
        clean_up_spaces=header.clean_up_spaces,
        bos=header.bos,
        post_ops=tuple(None if op < 0 else op - ((op & 1 << 31) << 1) for op in header.post_ops),
    )


def _model_back(ir: TokenizerIR, header: steps.MnnHeader) -> parts.Model:
    size = header.pieces_end
    pieces = tuple(piece or b"" for piece in ir.vocab.pieces[:size])
    if isinstance(ir.model, model.Unigram):
        scores = () if ir.vocab.scores is None else tuple(ir.vocab.scores[:size].tolist())
        return parts.Unigram(pieces, scores, ir.model.unk_id or 0, ir.alphabet.byte_fallback)
    if isinstance(ir.model, model.WordPiece):
        plain = ir.model
        return parts.WordPiece(pieces, plain.unk_piece, plain.continuing_subword_prefix, plain.max_input_chars_per_word)
    assert isinstance(ir.model, BPE)
    aliases = tuple((text, number) for number, text in read_rows(header.aliases))
    ids: dict[bytes, int] = dict(reversed(aliases))
    ids |= {piece: size - 1 - back for back, piece in enumerate(reversed(pieces))}
    shared = np.frombuffer(header.merge_ranks, dtype="<u4").tolist()
    ranks = shared or ir.model.ranks or range(len(ir.model.merges))
    rows = [(ids[a], ids[b], rank) for (a, b), rank in zip(ir.model.merges, ranks, strict=True)]
    merges = np.array(sorted(rows), dtype=np.uint32).reshape(-1, 3)
    return parts.Bpe(pieces, merges, header.byte_level, ir.alphabet.byte_fallback, aliases)


def _rows(raw: bytes) -> tuple[tuple[int, str], ...]:
    try:
        return tuple((code, text.decode("utf-8")) for code, text in read_rows(raw))
    except ValueError as error:
        raise FormatError(
            f"a table of the normalizer is damaged: {error}", hint="convert the tokenizer again"
        ) from error


def _normalizer_back(step: steps.NormalizerStep) -> parts.Normalizer:
    if isinstance(step, steps.Prepend):
        return parts.Prepend(step.content)
    if isinstance(step, steps.Replace):
        return parts.Replace(step.pattern, step.content)
    if isinstance(step, steps.StripNormalizer):
        return parts.Strip(step.left, step.right)
    if isinstance(step, steps.MnnTableNormalizer):
        return parts.TableNormalizer(_rows(step.table))
    assert isinstance(step, steps.MnnBertNormalizer)
    return parts.BertNormalizer(
        step.clean_text, step.chinese_chars, step.strip_accents, step.lowercase, _rows(step.table)
    )


def _pre_tokenizer_back(step: steps.PreTokenizerStep) -> parts.PreTokenizer:
    if isinstance(step, steps.ByteLevel):
        return parts.ByteLevel(step.use_regex)
    if isinstance(step, steps.Digits):
        return parts.Digits(step.individual_digits)
    if isinstance(step, steps.Metaspace):
        return parts.Metaspace(step.replacement, step.prepend_scheme != "never")
    if isinstance(step, steps.BertPreTokenizer):
        return parts.BertPreTokenizer()
    assert isinstance(step, steps.Split)
    return parts.Split(step.pattern, step.invert, step.behavior.value)


def _decoder_back(step: steps.DecoderStep) -> parts.Decoder:
    if isinstance(step, steps.ByteLevelDecoder):
        return parts.ByteLevelDecoder()
    if isinstance(step, steps.ByteFallbackDecoder):
        return parts.ByteFallbackDecoder()
    if isinstance(step, steps.FuseDecoder):
        return parts.FuseDecoder()
    if isinstance(step, steps.MetaspaceDecoder):
        return parts.MetaspaceDecoder(step.replacement, step.prepend_scheme != "never")
    if isinstance(step, steps.WordPieceDecoder):
        return parts.WordPieceDecoder(step.prefix, step.cleanup)
    if isinstance(step, steps.Replace):
        return parts.ReplaceDecoder(step.pattern, step.content)
    assert isinstance(step, steps.StripDecoder)
    return parts.StripDecoder(step.content, step.start, step.stop)
