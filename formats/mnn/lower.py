"""From a llama.cpp byte-pair tokenizer to the body of a ``.mtok`` file.

The family is ``tokenizer.ggml.model`` = ``gpt2`` with all its pre-tokenizers: byte-level ones, and the few that work on
characters with ``<0xHH>`` pieces. What the MNN engine needs, and what it makes of it, is in the sources of MNN tag
3.6.1, ``transformers/llm/engine/src/tokenizer/tokenizer.cpp`` (``load_vocab_binary``, ``BPEModel``,
``PipelineTokenizer``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokpack.errors import Location, LossError, UnsupportedError
from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, PieceAttr, Reference, TokenizerIR
from tokpack.ir import steps as ir_steps
from tokpack.unicode import byte_level

from . import losses
from .body import MtokBody
from .parts import (
    Bpe,
    ByteFallbackDecoder,
    ByteLevel,
    ByteLevelDecoder,
    Decoder,
    FuseDecoder,
    PreTokenizer,
    Replace,
    ReplaceDecoder,
    Split,
)
from .patterns import lower_split
from .specials import place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["lower"]

_SPECIAL = int(PieceAttr.CONTROL | PieceAttr.USER_DEFINED | PieceAttr.UNKNOWN)
_HINT = "write a .tokpack, which needs no MNN body"


def lower(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to ``ir``'s as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer outside the family.
        LossError: for what the format cannot hold.
    """
    model = _require_family(ir)
    pieces = _pieces(ir)
    index = {piece: number for number, piece in enumerate(pieces)}
    if len(index) != len(pieces):
        number = next(number for number, piece in enumerate(pieces) if index[piece] != number)
        where = Location(None, f"vocab.pieces[{number}]")
        raise LossError("a piece has the text of another piece", location=where, code="mtok-duplicate-piece")
    merges, findings = _merges(model, index)
    placement = place(ir, pieces, model.merges)
    stored = [placement.spelling.get(number, piece) for number, piece in enumerate(pieces)]
    splits = [split for at, step in enumerate(ir.pre_tokenizer) for split in _splits(step, at)]
    findings += losses.whole_word_losses(ir, pieces)
    findings += losses.pattern_losses(splits)
    findings += _long_words(ir)
    findings += losses.piece_losses(ir, stored, index)
    findings += placement.findings
    findings += losses.general_losses(ir)
    post = ir.post_processor
    assert post is None or isinstance(post, ir_steps.BosEos)
    bos, eos = ir.specials.get("bos"), ir.specials.get("eos")
    pre: list[PreTokenizer] = [*splits]
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL:
        pre.append(ByteLevel(use_regex=False))
    body = MtokBody(
        model=Bpe(tuple(stored), merges, byte_fallback=ir.alphabet.byte_fallback),
        special=tuple(placement.header),
        stop=ir.specials.eog,
        prefix=(bos,) if post is not None and post.add_bos and bos is not None else (),
        normalizer=tuple(Replace(step.pattern, step.content) for step in _replacements(ir)),
        pre_tokenizer=tuple(pre),
        decoder=_decoder(ir),
        added_tokens=tuple(placement.added),
        chat_template=ir.chat_templates.get("default", "").encode("utf-8", "surrogatepass"),
        eos=_text_of(ir, eos),
        clean_up_spaces=any(isinstance(s, ir_steps.LlamaDetokenize) and s.clean_spaces for s in ir.decoder),
        bos=_text_of(ir, bos),
        # Engines after 3.6.1 run this program on the ids, the prefix included.
        post_ops=(None, eos) if post is not None and post.add_eos and eos is not None else (),
    )
    return body, findings


def _require_family(ir: TokenizerIR) -> BPE:
    model = ir.model
    plain = (
        ir.reference is Reference.LLAMA_CPP
        and isinstance(model, BPE)
        and model.unk_piece is None
        and not model.continuing_subword_prefix
        and not model.end_of_word_suffix
        and (
            ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
            or (ir.alphabet.kind is AlphabetKind.UTF8 and ir.alphabet.byte_fallback)
        )
        and all(isinstance(step, ir_steps.Replace) for step in ir.normalizer)
        and all(isinstance(step, ir_steps.LlamaDetokenize) for step in ir.decoder)
        and (ir.post_processor is None or isinstance(ir.post_processor, ir_steps.BosEos))
    )
    if not plain or not isinstance(model, BPE):
        what = f"{model.kind} with {ir.alphabet.kind.value} pieces ({ir.reference})"
        raise UnsupportedError(f"no .mtok body can be made for {what} yet", hint=_HINT, code="mtok-family")
    return model


def _replacements(ir: TokenizerIR) -> list[ir_steps.Replace]:
    steps = [step for step in ir.normalizer if isinstance(step, ir_steps.Replace)]
    for step in steps:
        if step.dialect is not ir_steps.Dialect.LITERAL:
            what = f"the normalizer replaces the pattern {step.pattern!r}; MNN replaces literal texts only"
            raise UnsupportedError(what, location=Location(None, "normalizer"), hint=_HINT, code="mtok-replace")
    return steps


def _splits(step: object, at: int) -> tuple[Split, ...]:
    where = f"pre_tokenizer[{at}]"
    if isinstance(step, (ir_steps.Split, ir_steps.ScannerSplit)):
        return lower_split(step, where)
    what = f"pre-tokenizer {type(step).__name__} has no MNN form here"
    raise UnsupportedError(what, location=Location(None, where), hint=_HINT, code="mtok-pattern")


def _pieces(ir: TokenizerIR) -> list[bytes]:
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
    return pieces


def _merges(model: BPE, index: dict[bytes, int]) -> tuple[NDArray[np.uint32], list[Finding]]:
    """Merges by ids; those that cannot be said with ids are left out."""
    import numpy as np

    rows: list[tuple[int, int, int]] = []
    no_part: list[bytes] = []
    no_result: list[bytes] = []
    ranks = model.ranks or range(len(model.merges))
    get = index.get
    for (left, right), rank in zip(model.merges, ranks, strict=True):
        first, second = get(left), get(right)
        if first is None or second is None:
            no_part.append(left + right)
        elif left + right not in index:
            no_result.append(left + right)
        else:
            rows.append((first, second, rank))
    return np.array(rows, dtype=np.uint32).reshape(-1, 3), losses.merge_losses(no_part, no_result)


def _decoder(ir: TokenizerIR) -> tuple[Decoder, ...]:
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL:
        return (ByteLevelDecoder(),)
    decoder: list[Decoder] = []
    if any(isinstance(step, ir_steps.LlamaDetokenize) and step.unescape_spaces for step in ir.decoder):
        decoder.append(ReplaceDecoder("▁", " "))
    return (*decoder, ByteFallbackDecoder(), FuseDecoder())


def _text_of(ir: TokenizerIR, number: int | None) -> bytes:
    """The text of a token as llama.cpp shows it to a chat template."""
    piece = None if number is None else ir.vocab.pieces[number]
    if number is None or piece is None:
        return b""
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL and not int(ir.vocab.attrs[number]) & _SPECIAL:
        return byte_level.decode(piece) or piece
    return piece


def _long_words(ir: TokenizerIR) -> list[Finding]:
    steps: Sequence[object] = ir.pre_tokenizer
    lines = len(steps) == 1 and isinstance(steps[0], ir_steps.ScannerSplit) and steps[0].scanner == "newlines"
    message = "MNN's merging takes time that grows with the square of a word's length"
    if lines:
        return [Finding("mtok-slow-words", Severity.WARN, f"{message}, and a word here is a whole line")]
    return [Finding("mtok-slow-words", Severity.INFO, message)]
