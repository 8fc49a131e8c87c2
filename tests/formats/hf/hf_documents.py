"""Small tokenizer.json documents for the tests of the reader."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

from tokpack.errors import TokpackError
from tokpack.formats.hf import read_bytes
from tokpack.ir import TokenizerIR

Json = Any

CHARSMAP = base64.b64encode(b"\x04\0\0\0" + b"\0\0\0\0" + b"abc\0").decode()
BPE: dict[str, Json] = {
    "type": "BPE",
    "dropout": None,
    "unk_token": "<u>",
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": True,
    "vocab": {"a": 0, "b": 1, "ab": 2, "<u>": 3},
    "merges": [["a", "b"]],
}
WORD_PIECE: dict[str, Json] = {
    "type": "WordPiece",
    "unk_token": "a",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {"a": 0, "##b": 1},
}
WORD_LEVEL: dict[str, Json] = {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1}}
UNIGRAM: dict[str, Json] = {
    "type": "Unigram",
    "unk_id": 0,
    "vocab": [["a", -1.5], ["b", -2], ["<0x00>", 0.0]],
    "byte_fallback": False,
}
TEMPLATE: dict[str, Json] = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "a", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
    ],
    "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}},
}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}

# (section, sample, fields that may be absent); every sample loads
COMPONENTS: list[tuple[str, dict[str, Json], set[str]]] = [
    (
        "normalizer",
        {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": True,
            "lowercase": True,
        },
        {"strip_accents"},
    ),
    ("normalizer", {"type": "Strip", "strip_left": True, "strip_right": False}, set()),
    ("normalizer", {"type": "StripAccents"}, set()),
    *[("normalizer", {"type": form}, set()) for form in ("NFC", "NFD", "NFKC", "NFKD")],
    ("normalizer", {"type": "Lowercase"}, set()),
    ("normalizer", {"type": "Nmt"}, set()),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": CHARSMAP}, set()),
    ("normalizer", {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}, set()),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}, set()),
    ("normalizer", {"type": "Prepend", "prepend": "x"}, set()),
    ("normalizer", {"type": "ByteLevel"}, set()),
    ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}]}, set()),
    ("pre_tokenizer", {"type": "BertPreTokenizer"}, set()),
    ("pre_tokenizer", BYTE_LEVEL, {"use_regex"}),
    ("pre_tokenizer", {"type": "CharDelimiterSplit", "delimiter": "-"}, set()),
    (
        "pre_tokenizer",
        {
            "type": "Metaspace",
            "replacement": "_",
            "prepend_scheme": "first",
            "split": True,
            "add_prefix_space": True,
            "str_rep": "_",
        },
        {"prepend_scheme", "split", "add_prefix_space", "str_rep"},
    ),
    ("pre_tokenizer", {"type": "Whitespace"}, set()),
    ("pre_tokenizer", {"type": "WhitespaceSplit"}, set()),
    (
        "pre_tokenizer",
        {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "MergedWithNext", "invert": False},
        set(),
    ),
    ("pre_tokenizer", {"type": "Punctuation", "behavior": "Removed"}, {"behavior"}),
    ("pre_tokenizer", {"type": "Digits", "individual_digits": True}, set()),
    ("pre_tokenizer", {"type": "UnicodeScripts"}, set()),
    ("pre_tokenizer", {"type": "FixedLength", "length": 4}, {"length"}),
    ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]}, set()),
    ("decoder", {"type": "BPEDecoder", "suffix": "</w>"}, set()),
    ("decoder", BYTE_LEVEL, {"use_regex"}),
    ("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}, set()),
    (
        "decoder",
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": True},
        {"split", "prepend_scheme"},
    ),
    ("decoder", {"type": "CTC", "pad_token": "p", "word_delimiter_token": "|", "cleanup": True}, set()),
    ("decoder", {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, set()),
    ("decoder", {"type": "Fuse"}, set()),
    ("decoder", {"type": "Strip", "content": " ", "start": 1, "stop": 0}, set()),
    ("decoder", {"type": "ByteFallback"}, set()),
    ("decoder", {"type": "Sequence", "decoders": [{"type": "Fuse"}]}, set()),
    ("post_processor", {"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]}, set()),
    (
        "post_processor",
        {
            "type": "RobertaProcessing",
            "sep": ["b", 1],
            "cls": ["a", 0],
            "trim_offsets": True,
            "add_prefix_space": True,
        },
        {"trim_offsets", "add_prefix_space"},  # it is a BertProcessing then
    ),
    ("post_processor", BYTE_LEVEL, {"use_regex"}),
    ("post_processor", TEMPLATE, set()),
    ("post_processor", {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]}, set()),
    ("model", BPE, set(BPE) - {"vocab", "merges"}),
    ("model", WORD_PIECE, set()),
    ("model", WORD_LEVEL, set()),
    ("model", UNIGRAM, {"unk_id", "byte_fallback"}),
    (
        "truncation",
        {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0},
        {"direction"},
    ),
    (
        "padding",
        {
            "strategy": {"Fixed": 3},
            "direction": "Left",
            "pad_to_multiple_of": 8,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "x",
        },
        {"pad_to_multiple_of"},
    ),
]


def added(content: str, **fields: Json) -> dict[str, Json]:
    """An added token with all of its fields."""
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": 0, "content": content, "special": True} | dict.fromkeys(flags, False) | fields


def document(**sections: Json) -> dict[str, Json]:
    """A document with these sections; the model is a small BPE unless it is given."""
    return {"version": "1.0", "model": copy.deepcopy(BPE)} | copy.deepcopy(sections)


def read_json(value: Json) -> TokenizerIR:
    """Read a document."""
    return read_bytes(json.dumps(value).encode())


def codes(ir: TokenizerIR) -> list[str]:
    """The codes of the reader's findings."""
    return [finding.code for finding in ir.findings]


def library_agrees(value: Json, *, loads: bool) -> bool:
    """Whether the library loads a document, or refuses it, as expected; true when it is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return True
    try:
        Tokenizer.from_str(json.dumps(value))
    except BaseException as error:  # a panic is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return not loads
    return loads


def refusal(value: Json) -> TokpackError | None:
    """Why a document is refused here, or None."""
    try:
        read_json(value)
    except TokpackError as error:
        return error
    return None
