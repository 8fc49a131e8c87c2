"""Pre-tokenizers of tokenizer.json (tokenizers/src/pre_tokenizers/)."""

from __future__ import annotations

from typing import Any

from tokpack.ir.steps import (
    BertPreTokenizer,
    ByteLevel,
    CharDelimiterSplit,
    Digits,
    FixedLength,
    Metaspace,
    PreTokenizerStep,
    Punctuation,
    Split,
    UnicodeScripts,
    WhitespaceSplit,
    WhitespaceWords,
)

from .components import BEHAVIORS, Family, no_fields, pattern, prepend_scheme
from .getters import Obj
from .notes import Notes

__all__ = ["read_pre_tokenizer"]

Steps = list[PreTokenizerStep]


def read_pre_tokenizer(value: Any, notes: Notes) -> tuple[PreTokenizerStep, ...]:
    """The ``pre_tokenizer`` key; null is no pre-tokenizer."""
    return () if value is None else tuple(_FAMILY.parse(value, "pre_tokenizer", notes))


def _byte_level(node: Obj, notes: Notes) -> Steps:
    node.boolean("trim_offsets")  # demanded, without influence on ids
    return [ByteLevel(node.boolean("add_prefix_space"), node.boolean("use_regex", True))]


def _metaspace(node: Obj, notes: Notes) -> Steps:
    replacement = node.char("replacement")
    split = node.boolean_or_none("split")
    return [Metaspace(replacement, prepend_scheme(node, notes), split is not False)]


def _split(node: Obj, notes: Notes) -> Steps:
    text, dialect = pattern(node)
    return [Split(text, dialect, node.choice("behavior", BEHAVIORS), node.boolean("invert"))]


def _sequence(node: Obj, notes: Notes) -> Steps:
    path = node.at("pretokenizers")
    steps: Steps = []
    for at, value in enumerate(node.array("pretokenizers")):
        steps += _FAMILY.parse(value, f"{path}[{at}]", notes)
    return steps


def _punctuation(node: Obj, notes: Notes) -> Steps:
    return [Punctuation(node.choice("behavior", BEHAVIORS, "Isolated"))]


def _digits(node: Obj, notes: Notes) -> Steps:
    return [Digits(node.boolean("individual_digits"))]


def _char_delimiter(node: Obj, notes: Notes) -> Steps:
    return [CharDelimiterSplit(node.char("delimiter"))]


def _fixed_length(node: Obj, notes: Notes) -> Steps:
    length = node.unsigned("length", 64, 5)
    if length == 0:
        message = "FixedLength of 0 characters: tokenizers aborts on every text"
        notes.refuse("hf-panic", message, node.at("length"), "give it a length")
    return [FixedLength(length)]


_FAMILY: Family[PreTokenizerStep] = Family(
    "pre-tokenizer",
    {
        "BertPreTokenizer": no_fields(BertPreTokenizer()),
        "ByteLevel": _byte_level,
        "Metaspace": _metaspace,
        "Whitespace": no_fields(WhitespaceWords()),
        "Sequence": _sequence,
        "Split": _split,
        "Punctuation": _punctuation,
        "WhitespaceSplit": no_fields(WhitespaceSplit()),
        "Digits": _digits,
        "UnicodeScripts": no_fields(UnicodeScripts()),
        "FixedLength": _fixed_length,
        "CharDelimiterSplit": _char_delimiter,  # the one type that checks itself; "Delimiter" never loads
    },
)
