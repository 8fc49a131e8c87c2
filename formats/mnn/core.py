"""What the lowerings of all models share: the texts of the pieces, the result, and the refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tokpack.errors import Location, UnsupportedError
from tokpack.findings import Finding
from tokpack.ir import AlphabetKind, TokenizerIR
from tokpack.ir.steps import LlamaDetokenize

from .parts import (
    ByteFallbackDecoder,
    ByteLevelDecoder,
    Decoder,
    FuseDecoder,
    Model,
    Normalizer,
    PreTokenizer,
    ReplaceDecoder,
    StripDecoder,
)

__all__ = ["HINT", "SPACE_MARK", "Core", "Texts", "char_in_pieces", "decoder", "refuse"]

HINT = "write a .tokpack, which needs no MNN body"
SPACE_MARK = "▁"


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of the pieces by id, without holes.

    Attributes:
        pieces: as the source spells them.
        stored: as the body spells them (special tokens may need another spelling).
        index: source spelling → id.
    """

    pieces: tuple[bytes, ...]
    stored: tuple[bytes, ...]
    index: Mapping[bytes, int]


@dataclass(frozen=True, slots=True)
class Core:
    """The part of a body that depends on the model: from the text to the ids, and what is lost there."""

    model: Model
    normalizer: tuple[Normalizer, ...] = ()
    pre_tokenizer: tuple[PreTokenizer, ...] = ()
    findings: tuple[Finding, ...] = ()


def refuse(reason: str, where: str | None = None, code: str = "mtok-family") -> UnsupportedError:
    """The error for a tokenizer that MNN has no form for."""
    return UnsupportedError(reason, location=None if where is None else Location(None, where), hint=HINT, code=code)


def char_in_pieces(pieces: Iterable[bytes]) -> frozenset[str]:
    """Every character that stands in some piece."""
    return frozenset("".join({piece.decode("utf-8", "ignore") for piece in pieces}))


def decoder(ir: TokenizerIR) -> tuple[Decoder, ...]:
    """Steps that print what llama.cpp's detokenizer prints, where MNN can."""
    rules = [step for step in ir.decoder if isinstance(step, LlamaDetokenize)]
    steps: list[Decoder] = []
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL:
        steps.append(ByteLevelDecoder())
    else:
        if any(rule.unescape_spaces for rule in rules):
            steps.append(ReplaceDecoder(SPACE_MARK, " "))
        if ir.alphabet.byte_fallback:
            steps.append(ByteFallbackDecoder())
        steps.append(FuseDecoder())
    if any(rule.strip_space for rule in rules):
        steps.append(StripDecoder(" ", 1, 0))
    return tuple(steps)
