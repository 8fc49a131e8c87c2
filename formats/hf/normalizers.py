"""Normalizers of tokenizer.json (tokenizers/src/normalizers/)."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from tokpack.errors import FormatError, Location
from tokpack.ir.steps import (
    BertNormalizer,
    ByteLevelNormalizer,
    Lowercase,
    Nmt,
    NormalizerStep,
    Precompiled,
    Prepend,
    Replace,
    StripAccents,
    StripNormalizer,
    UnicodeNormalization,
)

from .components import Family, Untagged, no_fields, pattern
from .getters import Obj
from .notes import Notes

__all__ = ["read_normalizer", "replace"]

Steps = list[NormalizerStep]


def read_normalizer(value: Any, notes: Notes) -> tuple[NormalizerStep, ...]:
    """The ``normalizer`` key; null is no normalizer."""
    return () if value is None else tuple(_FAMILY.parse(value, "normalizer", notes))


def _bert(node: Obj, notes: Notes) -> Steps:
    return [
        BertNormalizer(
            clean_text=node.boolean("clean_text"),
            handle_chinese_chars=node.boolean("handle_chinese_chars"),
            strip_accents=node.boolean_or_none("strip_accents"),
            lowercase=node.boolean("lowercase"),
        )
    ]


def _strip(node: Obj, notes: Notes) -> Steps:
    return [StripNormalizer(node.boolean("strip_left"), node.boolean("strip_right"))]


def _sequence(node: Obj, notes: Notes) -> Steps:
    path = node.at("normalizers")
    steps: Steps = []
    for at, value in enumerate(node.array("normalizers")):
        steps += _FAMILY.parse(value, f"{path}[{at}]", notes)
    return steps


def _precompiled(node: Obj, notes: Notes) -> Steps:
    """Base64 without line breaks; the trie's size and the UTF-8 of the replacements are checked (spm_precompiled)."""
    where = Location(None, node.at("precompiled_charsmap"))
    text = node.string("precompiled_charsmap")
    padding = "=" * (-len(text) % 4)
    try:
        blob = base64.b64decode(text + padding, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"not base64: {error}", location=where) from error
    if base64.b64encode(blob).decode("ascii").rstrip("=") != text.rstrip("="):
        raise FormatError("not base64: bits are left over behind the last byte", location=where)
    size = int.from_bytes(blob[:4], "little") // 4 * 4
    if len(blob) < 4 or len(blob) - 4 < size:
        what = f"Cannot parse precompiled_charsmap: {len(blob)} bytes do not hold the trie of {size}"
        raise FormatError(what, location=where)
    try:
        blob[4 + size :].decode("utf-8")
    except UnicodeDecodeError as error:
        what = "Cannot parse precompiled_charsmap: the replacements are not UTF-8"
        raise FormatError(what, location=where) from error
    if not size:
        message = "the charsmap has no trie: tokenizers aborts on every text"
        notes.refuse("hf-panic", message, where.path, "leave the normalizer out")
    return [Precompiled(blob)]


def replace(node: Obj, notes: Notes) -> list[Any]:
    """Replace, a normalizer and a decoder."""
    text, dialect = pattern(node)
    return [Replace(text, node.string("content"), dialect)]


def _prepend(node: Obj, notes: Notes) -> Steps:
    return [Prepend(node.string("prepend"))]


_FAMILY: Family[NormalizerStep] = Family(
    "normalizer",
    {
        "Bert": _bert,
        "Strip": _strip,
        "StripAccents": no_fields(StripAccents()),
        "NFC": no_fields(UnicodeNormalization("NFC")),
        "NFD": no_fields(UnicodeNormalization("NFD")),
        "NFKC": no_fields(UnicodeNormalization("NFKC")),
        "NFKD": no_fields(UnicodeNormalization("NFKD")),
        "Sequence": _sequence,
        "Lowercase": no_fields(Lowercase()),
        "Nmt": no_fields(Nmt()),
        "Precompiled": _precompiled,
        "Replace": replace,
        "Prepend": _prepend,
        "ByteLevel": no_fields(ByteLevelNormalizer()),
    },
    (
        Untagged(
            "BertNormalizer",
            frozenset({"clean_text", "handle_chinese_chars", "lowercase"}),
            _bert,
            frozenset({"BertNormalizer"}),
        ),
        Untagged("Strip", frozenset({"strip_left", "strip_right"}), _strip, frozenset({"StripNormalizer"})),
        Untagged("Sequence", frozenset({"normalizers"}), _sequence),
        Untagged("Replace", frozenset({"pattern", "content"}), replace),
        Untagged("Prepend", frozenset({"prepend"}), _prepend),
    ),
)
