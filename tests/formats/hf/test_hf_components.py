"""Every component: its step, each field absent or of a wrong type, and how the library guesses without a type."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.formats.hf.hf_documents import (
    BPE,
    BYTE_LEVEL,
    CHARSMAP,
    COMPONENTS,
    TEMPLATE,
    codes,
    document,
    library_agrees,
    read_json,
    refusal,
)
from tokpack.errors import FormatError, UnsupportedError
from tokpack.findings import Severity
from tokpack.ir import AlphabetKind, TokenizerIR
from tokpack.ir import steps as s
from tokpack.ir.steps import Behavior, Dialect, TemplateItem

IDS = [f"{section}-{sample.get('type', section)}" for section, sample, _ in COMPONENTS]
FIELDS = [
    pytest.param(section, sample, field, field in optional, id=f"{name}-{field}")
    for (section, sample, optional), name in zip(COMPONENTS, IDS, strict=True)
    for field in sample
    if field != "type"
]


@pytest.mark.parametrize(("section", "sample", "optional"), COMPONENTS, ids=IDS)
def test_sample_loads(section: str, sample: Any, optional: set[str]) -> None:
    value = document(**{section: sample})
    assert refusal(value) is None
    assert library_agrees(value, loads=True)


@pytest.mark.parametrize(("section", "sample", "field", "optional"), FIELDS)
def test_field_absent(section: str, sample: Any, field: str, optional: bool) -> None:
    sample = copy.deepcopy(sample)
    del sample[field]
    value = document(**{section: sample})
    error = refusal(value)
    if optional:
        assert error is None
    else:
        assert isinstance(error, FormatError)
        assert error.location.path == section
        assert f"`{field}`" in error.what or f"Missing {field}" in error.what
    assert library_agrees(value, loads=optional)


@pytest.mark.parametrize(("section", "sample", "field", "optional"), FIELDS)
def test_field_of_a_wrong_type(section: str, sample: Any, field: str, optional: bool) -> None:
    old = sample[field]
    number = isinstance(old, int) and not isinstance(old, bool)
    wrong: Any = "seven" if number or field == "dropout" else 7
    value = document(**{section: sample | {field: wrong}})
    error = refusal(value)
    if sample.get("type") == "RobertaProcessing" and optional:  # BertProcessing does not look at it
        assert error is None
        return
    assert isinstance(error, FormatError)
    assert error.location.path == f"{section}.{field}"
    assert "invalid type" in error.what or "untagged enum MergeType" in error.what
    assert library_agrees(value, loads=False)


@pytest.mark.parametrize(("section", "sample", "field", "optional"), FIELDS)
def test_field_null(section: str, sample: Any, field: str, optional: bool) -> None:
    value = document(**{section: sample | {field: None}})
    error = refusal(value)
    assert library_agrees(value, loads=error is None)
    assert error is None or (error.location.path or "").startswith(section)


@pytest.mark.parametrize("section", ["normalizer", "pre_tokenizer", "decoder", "post_processor", "model"])
@pytest.mark.parametrize("kind", ["Foo", "", "nfc", "Delimiter", None, 3])
def test_unknown_type(section: str, kind: Any) -> None:
    error = refusal(document(**{section: {"type": kind}}))
    assert error is not None
    assert (error.location.path or "").startswith(section)
    if isinstance(kind, str):
        assert isinstance(error, UnsupportedError)
        assert error.location.path == f"{section}.type"
    nested = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}.get(section)
    if nested and kind == "Foo":
        inner: Any = {"type": "Sequence", nested: [{"type": kind}]}
        error = refusal(document(**{section: {"type": "Sequence", nested: [inner]}}))
        assert error is not None
        assert error.location.path == f"{section}.{nested}[0].{nested}[0].type"


def test_unknown_keys_inside_a_component_are_ignored() -> None:
    assert read_json(document(normalizer={"type": "NFC", "foo": 1})).normalizer == (s.UnicodeNormalization("NFC"),)


def test_normalizer_steps() -> None:
    samples = [sample for section, sample, _ in COMPONENTS if section == "normalizer"]
    ir = read_json(document(normalizer={"type": "Sequence", "normalizers": samples}))
    assert ir.normalizer == (
        s.BertNormalizer(True, True, True, True),
        s.StripNormalizer(True, False),
        s.StripAccents(),
        *[s.UnicodeNormalization(form) for form in ("NFC", "NFD", "NFKC", "NFKD")],
        s.Lowercase(),
        s.Nmt(),
        s.Precompiled(b"\x04\0\0\0\0\0\0\0abc\0"),
        s.Replace("a", "b", Dialect.LITERAL),
        s.Replace("a+", "b", Dialect.ONIG),
        s.Prepend("x"),
        s.ByteLevelNormalizer(),
        s.UnicodeNormalization("NFC"),
    )
    assert ir.alphabet.kind is AlphabetKind.BYTE_LEVEL


def test_pre_tokenizer_steps() -> None:
    samples = [sample for section, sample, _ in COMPONENTS if section == "pre_tokenizer"]
    ir = read_json(document(pre_tokenizer={"type": "Sequence", "pretokenizers": samples}))
    assert ir.pre_tokenizer == (
        s.BertPreTokenizer(),
        s.ByteLevel(True, True),
        s.CharDelimiterSplit("-"),
        s.Metaspace("_", "first", True),
        s.WhitespaceWords(),
        s.WhitespaceSplit(),
        s.Split("a", Dialect.ONIG, Behavior.MERGED_WITH_NEXT, False),
        s.Punctuation(Behavior.REMOVED),
        s.Digits(True),
        s.UnicodeScripts(),
        s.FixedLength(4),
        s.WhitespaceWords(),
    )
    assert ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
    assert read_json(document()).alphabet.kind is AlphabetKind.UTF8


def test_decoder_steps() -> None:
    samples = [sample for section, sample, _ in COMPONENTS if section == "decoder"]
    ir = read_json(document(decoder={"type": "Sequence", "decoders": samples}))
    assert ir.decoder == (
        s.BpeDecoder("</w>"),
        s.ByteLevelDecoder(),
        s.WordPieceDecoder("##", True),
        s.MetaspaceDecoder("_", "never"),
        s.CtcDecoder("p", "|", True),
        s.Replace("_", " ", Dialect.LITERAL),
        s.FuseDecoder(),
        s.StripDecoder(" ", 1, 0),
        s.ByteFallbackDecoder(),
        s.FuseDecoder(),
    )


def test_no_decoder_is_not_an_empty_sequence() -> None:
    assert read_json(document()).decoder == ()
    assert read_json(document(decoder=None)).decoder == ()
    assert read_json(document(decoder={"type": "Sequence", "decoders": []})).decoder == (s.FuseDecoder(),)


def test_defaults() -> None:
    def first(value: Any) -> Any:
        return read_json(document(pre_tokenizer=value)).pre_tokenizer[0]

    assert first({"type": "Punctuation"}) == s.Punctuation(Behavior.ISOLATED)
    assert first({"type": "FixedLength"}) == s.FixedLength(5)
    assert first({"type": "Metaspace", "replacement": "▁"}) == s.Metaspace("▁", "always", True)
    assert first({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}) == s.ByteLevel(False, True)


@pytest.mark.parametrize(
    ("fields", "scheme"),
    [
        ({}, "always"),
        ({"prepend_scheme": "first"}, "first"),
        ({"add_prefix_space": True}, "always"),
        ({"add_prefix_space": True, "prepend_scheme": "never"}, "never"),
        ({"add_prefix_space": False, "prepend_scheme": "never"}, "never"),
        ({"add_prefix_space": None, "prepend_scheme": "first"}, "first"),
        ({"add_prefix_space": False}, None),
        ({"add_prefix_space": False, "prepend_scheme": "always"}, None),
        ({"prepend_scheme": "First"}, None),
    ],
)
@pytest.mark.parametrize("section", ["pre_tokenizer", "decoder"])
def test_metaspace_spellings(section: str, fields: Any, scheme: str | None) -> None:
    value = document(**{section: {"type": "Metaspace", "replacement": "▁"} | fields})
    assert library_agrees(value, loads=scheme is not None)
    if scheme is None:
        assert refusal(value) is not None
        return
    ir = read_json(value)
    (step,) = getattr(ir, section)
    assert step.prepend_scheme == scheme
    assert ("hf-legacy-metaspace" in codes(ir)) == (fields.get("add_prefix_space") is not None)


@pytest.mark.parametrize(
    ("section", "value", "step"),
    [
        ("normalizer", {"type": "Foo", "strip_left": True, "strip_right": False}, s.StripNormalizer(True, False)),
        ("normalizer", {"strip_left": True, "strip_right": False}, s.StripNormalizer(True, False)),
        ("normalizer", {"type": None, "prepend": "x"}, s.Prepend("x")),
        ("normalizer", {"type": ["a"], "prepend": "x"}, s.Prepend("x")),
        ("normalizer", {"pattern": {"String": "a"}, "content": "b"}, s.Replace("a", "b")),
        ("normalizer", {"normalizers": [{"type": "NFC"}]}, s.UnicodeNormalization("NFC")),
        ("decoder", {"type": "?", "suffix": "x", "prefix": "y", "cleanup": True}, s.BpeDecoder("x")),
        ("decoder", {"prefix": "y", "cleanup": True}, s.WordPieceDecoder("y", True)),
        ("decoder", {"content": "a", "start": 1, "stop": 0}, s.StripDecoder("a", 1, 0)),
    ],
)
def test_untagged(section: str, value: Any, step: Any) -> None:
    whole = document(**{section: value})
    assert library_agrees(whole, loads=True)
    ir = read_json(whole)
    assert getattr(ir, section) == (step,)
    assert "hf-untagged" in codes(ir)


@pytest.mark.parametrize("kind", ["StripNormalizer", "Strip"])
def test_strip_has_two_types(kind: str) -> None:
    ir = read_json(document(normalizer={"type": kind, "strip_left": True, "strip_right": True}))
    assert not ir.findings


@pytest.mark.parametrize(
    "value",
    [
        {"precompiled_charsmap": CHARSMAP},  # without a type
        {"type": "Precompiled", "precompiled_charsmap": ""},
        {"type": "Precompiled", "precompiled_charsmap": CHARSMAP[:6] + "\n" + CHARSMAP[6:]},
        {"type": "Precompiled", "precompiled_charsmap": "/w8AAA=="},  # a trie of 4,095 bytes
        {"type": "Precompiled", "precompiled_charsmap": "AAAAAP8="},  # replacements that are not UTF-8
        {"type": "Precompiled", "precompiled_charsmap": "AAAAAGF="},  # bits left over
        {"type": "Precompiled", "precompiled_charsmap": "AAAA=AAA"},
        {"type": "Precompiled", "precompiled_charsmap": "AAAA__8="},
    ],
)
def test_charsmap_refused(value: Any) -> None:
    whole = document(normalizer=value)
    assert library_agrees(whole, loads=False)
    assert isinstance(refusal(whole), FormatError)


def test_charsmap_without_padding_or_trie() -> None:
    ir = read_json(document(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAAAA"}))
    assert ir.normalizer == (s.Precompiled(b"\0\0\0\0"),)
    assert codes(ir) == ["hf-panic"]


@pytest.mark.parametrize(
    "pattern", [{}, {"String": "a", "Regex": "b"}, {"string": "a"}, {"String": 3}, "a", None, ["String", "a"]]
)
def test_pattern_refused(pattern: Any) -> None:
    value = document(pre_tokenizer={"type": "Split", "pattern": pattern, "behavior": "Removed", "invert": False})
    assert library_agrees(value, loads=False)
    error = refusal(value)
    assert error is not None
    assert (error.location.path or "").startswith("pre_tokenizer.pattern")


def test_findings_for_panics() -> None:
    ir = read_json(document(pre_tokenizer={"type": "FixedLength", "length": 0}))
    assert [(f.code, f.severity) for f in ir.findings] == [("hf-panic", Severity.REFUSE)]
    ir = read_json(document(decoder={"type": "Strip", "content": " ", "start": 0, "stop": 1}))
    assert codes(ir) == ["hf-strip-decoder"]


def template(value: Any) -> s.Template | None:
    found = read_json(document(post_processor=value)).post_processor
    assert found is None or isinstance(found, s.Template)
    return found


def ids(*values: int, type_id: int = 0) -> TemplateItem:
    return TemplateItem(None, values, type_id)


A, B = TemplateItem("A"), TemplateItem("B")
B1 = TemplateItem("B", type_id=1)
BERT = {"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["b", 1],
    "cls": ["a", 0],
    "trim_offsets": 1 < 2,
    "add_prefix_space": True,
}


def test_post_processors() -> None:
    assert template(None) is None
    assert template(BYTE_LEVEL) is None
    assert template({"type": "Sequence", "processors": [BYTE_LEVEL, BYTE_LEVEL]}) is None
    assert template(BERT) == s.Template((ids(0), A, ids(1)), (ids(0), A, ids(1), B1, ids(1, type_id=1)))
    assert template(ROBERTA) == s.Template((ids(0), A, ids(1)), (ids(0), A, ids(1), ids(1), B, ids(1)))
    assert template(TEMPLATE) == s.Template((ids(0), A), (A, ids(0), B1))


def test_post_processor_is_what_its_fields_are() -> None:
    assert template(ROBERTA | {"type": "BertProcessing"}) == template(ROBERTA)
    assert template(BERT | {"type": "RobertaProcessing"}) == template(BERT)
    assert template(ROBERTA | {"type": "Sequence"}) == template(ROBERTA)


def test_sequences_of_post_processors() -> None:
    assert template({"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE, BYTE_LEVEL]}) == template(TEMPLATE)
    nested = {"type": "Sequence", "processors": [{"type": "Sequence", "processors": [BERT]}, BYTE_LEVEL]}
    assert template(nested) == template(BERT)
    twice = template({"type": "Sequence", "processors": [BERT, BERT]})
    assert twice is not None
    assert twice.single == (ids(0), ids(0), A, ids(1), ids(1))
    with pytest.raises(UnsupportedError, match="in another order"):
        template({"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]})
    longer = TEMPLATE | {"single": [*TEMPLATE["single"], *TEMPLATE["single"]]}
    with pytest.raises(UnsupportedError, match="around 4 encodings"):
        template({"type": "Sequence", "processors": [longer, TEMPLATE]})


def test_special_token_of_several_ids() -> None:
    value = copy.deepcopy(TEMPLATE)
    value["special_tokens"]["a"] = {"id": "a", "ids": [2, 0, 99], "tokens": ["x", "y"]}
    ir = read_json(document(post_processor=value))
    assert ir.post_processor == s.Template((ids(2, 0, 99), A), (A, ids(2, 0, 99), B1))
    assert codes(ir) == ["hf-template-id"]


def test_templates_on_which_the_library_aborts() -> None:
    value = copy.deepcopy(TEMPLATE)
    value["single"].append({"SpecialToken": {"id": "gone", "type_id": 0}})
    assert codes(read_json(document(post_processor=value))) == ["hf-template-token"]
    value = copy.deepcopy(TEMPLATE)
    value["single"].append({"Sequence": {"id": "B", "type_id": 0}})
    assert codes(read_json(document(post_processor=value))) == ["hf-panic"]


@pytest.mark.parametrize(
    "piece",
    [
        "$A",
        {},
        {"Sequence": {"id": "C", "type_id": 0}},
        {"Sequence": {"id": "A"}},
        {"Sequence": {"id": "A", "type_id": -1}},
        {"SpecialToken": {"id": 3, "type_id": 0}},
        {"Foo": {"id": "A", "type_id": 0}},
    ],
)
def test_template_piece_refused(piece: Any) -> None:
    value = copy.deepcopy(TEMPLATE)
    value["pair"].append(piece)
    whole = document(post_processor=value)
    assert library_agrees(whole, loads=False)
    error = refusal(whole)
    assert error is not None
    assert (error.location.path or "").startswith("post_processor.pair[3]")


def test_truncation_and_padding_are_carried() -> None:
    truncation = {"max_length": 1, "strategy": "OnlyFirst", "stride": 0}
    padding = {"strategy": "BatchLongest", "direction": "Left", "pad_id": 3, "pad_type_id": 0, "pad_token": "x"}
    ir: TokenizerIR = read_json(document(truncation=truncation, padding=padding, post_processor=BERT))
    assert ir.extras["truncation"] == ["json", truncation]
    assert ir.extras["padding"] == ["json", padding]
    assert codes(ir) == ["hf-truncation-short"]
    for strategy in ("Fixed", {"Fixed": -1}, {"Fixed": 1, "x": 2}, None, 3):
        assert refusal(document(padding=padding | {"strategy": strategy})) is not None
        assert library_agrees(document(padding=padding | {"strategy": strategy}), loads=False)


def test_top_level() -> None:
    for value in (
        [],
        3,
        {},
        {"model": None},
        document(foo=1),
        document(version="2.0"),
        document(version=None),
        document(added_tokens=None),
        document(model=[1]),
    ):
        assert refusal(value) is not None
        assert library_agrees(value, loads=False)
    assert read_json({"model": BPE}).source.facts == {"model": "BPE", "model_typed": True, "merges": "pairs"}
