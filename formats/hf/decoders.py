"""Decoders of tokenizer.json (tokenizers/src/decoders/)."""

from __future__ import annotations

from typing import Any

from tokpack.ir.steps import (
    BpeDecoder,
    ByteFallbackDecoder,
    ByteLevelDecoder,
    CtcDecoder,
    DecoderStep,
    FuseDecoder,
    MetaspaceDecoder,
    StripDecoder,
    WordPieceDecoder,
)

from .components import Family, Untagged, no_fields, prepend_scheme
from .getters import Obj
from .normalizers import replace
from .notes import Notes

__all__ = ["read_decoder"]

Steps = list[DecoderStep]


def read_decoder(value: Any, notes: Notes) -> tuple[DecoderStep, ...]:
    """The ``decoder`` key; null gives no steps, and tokens are then joined by spaces.

    A Sequence of nothing joins without spaces, which is what Fuse does.
    """
    if value is None:
        return ()
    return tuple(_FAMILY.parse(value, "decoder", notes)) or (FuseDecoder(),)


def _bpe(node: Obj, notes: Notes) -> Steps:
    return [BpeDecoder(node.string("suffix"))]


def _byte_level(node: Obj, notes: Notes) -> Steps:
    for key in ("add_prefix_space", "trim_offsets"):  # demanded, without influence on decoding
        node.boolean(key)
    node.boolean("use_regex", True)
    return [ByteLevelDecoder()]


def _word_piece(node: Obj, notes: Notes) -> Steps:
    return [WordPieceDecoder(node.string("prefix"), node.boolean("cleanup"))]


def _metaspace(node: Obj, notes: Notes) -> Steps:
    replacement = node.char("replacement")
    node.boolean_or_none("split")
    return [MetaspaceDecoder(replacement, prepend_scheme(node, notes))]


def _ctc(node: Obj, notes: Notes) -> Steps:
    return [CtcDecoder(node.string("pad_token"), node.string("word_delimiter_token"), node.boolean("cleanup"))]


def _strip(node: Obj, notes: Notes) -> Steps:
    step = StripDecoder(node.char("content"), node.unsigned("start", 64), node.unsigned("stop", 64))
    if step.stop:
        message = "Strip with stop > 0: tokenizers aborts on an empty token, and on one that start and stop both eat"
        notes.warn("hf-strip-decoder", message, node.path)
    return [step]


def _sequence(node: Obj, notes: Notes) -> Steps:
    path = node.at("decoders")
    steps: Steps = []
    for at, value in enumerate(node.array("decoders")):
        steps += _FAMILY.parse(value, f"{path}[{at}]", notes)
    return steps


_FAMILY: Family[DecoderStep] = Family(
    "decoder",
    {
        "BPEDecoder": _bpe,
        "ByteLevel": _byte_level,
        "WordPiece": _word_piece,
        "Metaspace": _metaspace,
        "CTC": _ctc,
        "Sequence": _sequence,
        "Replace": replace,
        "Fuse": no_fields(FuseDecoder()),
        "Strip": _strip,
        "ByteFallback": no_fields(ByteFallbackDecoder()),
    },
    (
        Untagged("BPEDecoder", frozenset({"suffix"}), _bpe),
        Untagged("WordPiece", frozenset({"prefix", "cleanup"}), _word_piece),
        Untagged("CTC", frozenset({"pad_token", "word_delimiter_token", "cleanup"}), _ctc),
        Untagged("Replace", frozenset({"pattern", "content"}), replace),
        Untagged("Strip", frozenset({"content", "start", "stop"}), _strip),
    ),
)
