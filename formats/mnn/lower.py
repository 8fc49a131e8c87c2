"""From a tokenizer to the body of a ``.mtok`` file: llama.cpp's here, those of ``tokenizers`` in ``hf``.

One module per model says what MNN's model, normalizer and pre-tokenizer have to be; here stands what all of them have
in common, and which models MNN has no form for.
"""

from __future__ import annotations

from collections.abc import Callable

from tokpack.errors import Location, LossError
from tokpack.findings import Finding
from tokpack.ir import (
    BPE,
    AlphabetKind,
    GreedyTrie,
    MinCost,
    NoModel,
    PieceAttr,
    Reference,
    ScoreMerge,
    TokenizerIR,
    WordPieceGreedy,
)
from tokpack.ir import Unigram as UnigramIR
from tokpack.ir import steps as ir_steps
from tokpack.unicode import byte_level

from . import losses
from .body import MtokBody
from .byte_pair import lower_byte_pair
from .core import Core, Texts, decoder, refuse
from .from_ir import from_ir
from .hf import lower_hf
from .hf_around import lower_around
from .score_merge import lower_score_merge
from .sentencepiece import lower_sentencepiece
from .specials import place
from .tiktoken import lower_tiktoken
from .unigram import lower_unigram
from .word_piece import lower_word_piece

__all__ = ["around", "filled_pieces", "lower"]

_SPECIAL = int(PieceAttr.CONTROL | PieceAttr.USER_DEFINED | PieceAttr.UNKNOWN)
_FAMILIES: dict[type, Callable[[TokenizerIR, Texts], Core]] = {
    BPE: lower_byte_pair,
    ScoreMerge: lower_score_merge,
    UnigramIR: lower_unigram,
    WordPieceGreedy: lower_word_piece,
}
_REFUSED: dict[type, str] = {
    GreedyTrie: "MNN has no model for RWKV, whose pieces are any bytes, NUL too, and are matched over the whole text",
    MinCost: "MNN has no model for PLaMo2, which looks for the least rounded cost from the end of the text",
    NoModel: "there is no tokenizer model, so nothing can be encoded",
}


def lower(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to ``ir``'s as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer that MNN has no form for.
        LossError: for what the format cannot hold.
    """
    if ir.reference is Reference.HUGGINGFACE:
        return lower_hf(ir)
    if ir.reference is Reference.SENTENCEPIECE:
        return lower_sentencepiece(ir)
    if ir.reference is Reference.TIKTOKEN:
        return lower_tiktoken(ir)
    if ir.reference is Reference.MNN:
        return from_ir(ir), []
    family = _family(ir)
    pieces = filled_pieces(ir)
    index = {piece: number for number, piece in enumerate(pieces)}
    if len(index) != len(pieces):
        number = next(number for number, piece in enumerate(pieces) if index[piece] != number)
        where = Location(None, f"vocab.pieces[{number}]")
        raise LossError("a piece has the text of another piece", location=where, code="mtok-duplicate-piece")
    placement = place(ir, pieces, ir.model.merges if isinstance(ir.model, BPE) else ())
    stored = tuple(placement.spelling.get(number, piece) for number, piece in enumerate(pieces))
    core = family(ir, Texts(pieces, stored, index))
    findings = [*core.findings, *losses.piece_losses(ir, stored, index), *placement.findings]
    findings += losses.general_losses(ir)
    prefix, post_ops = around(ir)
    body = MtokBody(
        model=core.model,
        special=tuple(placement.header),
        stop=ir.specials.eog,
        prefix=prefix,
        normalizer=core.normalizer,
        pre_tokenizer=core.pre_tokenizer,
        decoder=decoder(ir),
        added_tokens=tuple(placement.added),
        chat_template=ir.chat_templates.get("default", "").encode("utf-8", "surrogatepass"),
        eos=_text_of(ir, ir.specials.get("eos")),
        clean_up_spaces=any(isinstance(s, ir_steps.LlamaDetokenize) and s.clean_spaces for s in ir.decoder),
        bos=_text_of(ir, ir.specials.get("bos")),
        post_ops=post_ops,
    )
    return body, findings


def _family(ir: TokenizerIR) -> Callable[[TokenizerIR, Texts], Core]:
    model = ir.model
    if type(model) in _REFUSED:
        raise refuse(_REFUSED[type(model)])
    if any(isinstance(step, ir_steps.DnaTags) for step in ir.pre_tokenizer):
        raise refuse("MNN has no form for hybriddna's k-mers between <dna> tags", "pre_tokenizer")
    family = _FAMILIES.get(type(model))
    plain = (
        ir.reference is Reference.LLAMA_CPP
        and all(isinstance(step, ir_steps.LlamaDetokenize) for step in ir.decoder)
        and (ir.post_processor is None or isinstance(ir.post_processor, ir_steps.BosEos))
    )
    if family is None or not plain:
        what = f"{model.kind} with {ir.alphabet.kind.value} pieces ({ir.reference})"
        raise refuse(f"no .mtok body can be made for {what} yet")
    return family


def around(ir: TokenizerIR) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """Prefix ids, and the program that engines after 3.6.1 run on the ids, the prefix included.

    What stands before a text is the prefix alone: in the program too, it would come twice in those engines.
    """
    post = ir.post_processor
    if isinstance(post, ir_steps.Template):
        return lower_around(ir)[0]
    if not isinstance(post, ir_steps.BosEos) or post.rule == "never":
        return (), ()
    classify = post.rule == "cls-sep"
    first = ir.specials.get("bos") if post.add_bos or classify else None
    last = ir.specials.get("sep" if classify else "eos") if post.add_eos or classify else None
    return () if first is None else (first,), () if last is None else (None, last)


def filled_pieces(ir: TokenizerIR) -> tuple[bytes, ...]:
    """Pieces by id; holes get texts of their own, because the loader indexes by id an array sized by count."""
    present = {piece for piece in ir.vocab.pieces if piece is not None}
    pieces = []
    for number, piece in enumerate(ir.vocab.pieces):
        if piece is None:
            piece = f"[HOLE_{number}]".encode()
            while piece in present:
                piece += b"_"
            present.add(piece)
        pieces.append(piece)
    return tuple(pieces)


def _text_of(ir: TokenizerIR, number: int | None) -> bytes:
    """The text of a token as llama.cpp shows it to a chat template."""
    piece = None if number is None else ir.vocab.pieces[number]
    if number is None or piece is None:
        return b""
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL and not int(ir.vocab.attrs[number]) & _SPECIAL:
        return byte_level.decode(piece) or piece
    return piece
