"""Every ambiguous or undefined case of a byte-level GGUF vocabulary, one test each.

The numbers 9.x are those of the list of such cases that this reader was written from. What llama.cpp does stands in
``fixtures/golden`` where a fixture shows the case; the other facts were asked of the same build on the files that the
tests make.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.hostile.gguf_builder import (
    BYTE,
    CONTROL,
    MERGES,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Key,
    byte_chars,
    gguf,
    spell,
    vocabulary,
    walk,
)
from tokpack.errors import EncodeError, FormatError, RefusedError, UnsupportedError
from tokpack.findings import Finding, Severity
from tokpack.formats.gguf import read_bytes
from tokpack.ir import BPE, PieceAttr, TokenizerIR
from tokpack.ir.steps import BosEos, LlamaDetokenize
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
MODES = ((False, False), (False, True), (True, False), (True, True))
END = 256 + len(MERGES)  # id of <|endoftext|> in vocabulary()
FIRST = END + 1  # id of the first extra token
G = "tokenizer.ggml."


@cache
def golden(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(FIXTURES / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
    return meta, arrays


@cache
def probe_texts() -> list[str | bytes]:
    lines = (FIXTURES / "texts.jsonl").read_text("utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    return [b64decode(item["b64"]) if "b64" in item else item["text"] for item in items]


def as_llama_cpp_does(name: str) -> Tokenizer:
    """The tokenizer of a fixture, after comparing its ids for every probe text and mode with llama.cpp's."""
    tokenizer = tokpack.load(FIXTURES / f"{name}.gguf")
    _, arrays = golden(name)
    expected = np.split(arrays["ids"], np.cumsum(arrays["lens"].reshape(-1).astype(np.int64))[:-1])
    at = 0
    for text in probe_texts():
        for add, parse in MODES:
            assert tokenizer.encode(text, add, parse) == expected[at].tolist(), (text, add, parse)
            at += 1
    return tokenizer


def read_fixture(name: str) -> TokenizerIR:
    return tokpack.read(FIXTURES / f"{name}.gguf")


def ir_of(keys: Iterable[Key], **options: Any) -> TokenizerIR:
    built: TokenizerIR = read_bytes(gguf(keys), "case.gguf", **options)
    return built


def run(ir: TokenizerIR) -> Tokenizer:
    return Tokenizer(PackView(build_pack(ir)))


def finding(ir: TokenizerIR, code: str) -> Finding:
    found = [item for item in ir.findings if item.code == code]
    assert len(found) == 1, [item.code for item in ir.findings]
    return found[0]


def codes(ir: TokenizerIR) -> set[str]:
    return {item.code for item in ir.findings}


def at_key(data: bytes, key: str) -> int:
    """Offset of the value of a key, found without the reader under test."""
    fields = walk(data)[0]
    return next(field.offset for field in fields if field.what == f"type of {key}") + 4


def located(item: Finding, keys: Iterable[Key], key: str, path: str | None = None) -> bool:
    """Whether a finding names the key and the byte offset of its value."""
    return (item.location.path, item.location.offset) == (path or key, at_key(gguf(keys), key))


def refuses(name: str, code: str) -> Finding:
    """llama.cpp refused the fixture: reading gives a finding, loading refuses with it."""
    meta, _ = golden(name)
    assert meta["refused"]
    item = finding(read_fixture(name), code)
    assert item.severity is Severity.REFUSE
    with pytest.raises(RefusedError) as caught:
        tokpack.load(FIXTURES / f"{name}.gguf")
    assert caught.value.code == code
    assert (caught.value.location.path, caught.value.location.offset) == (item.location.path, item.location.offset)
    tokpack.load(FIXTURES / f"{name}.gguf", allow={code}).encode("Hello world 123")
    return item


# --- 9.1 … 9.6: roles, order, duplicates, merges, bytes --------------------------------------------------------------


def test_9_1_several_candidates_for_a_role_go_by_the_order_of_a_hash_map() -> None:
    as_llama_cpp_does("fim-candidates")
    meta, arrays = golden("fim-candidates")
    ir = read_fixture("fim-candidates")
    for role in ("fim_pre", "fim_suf", "fim_mid", "fim_pad", "eot"):
        assert ir.specials.get(role) == meta["special_ids"][role], role
    assert list(ir.specials.eog) == meta["eog"]
    assert ir.vocab.attrs.tolist() == arrays["attrs"].tolist()  # only the winner is CONTROL
    ambiguous = [item for item in ir.findings if item.code == "gguf-role-ambiguous"]
    shown = " ".join(item.message for item in ambiguous)
    assert all(role in shown for role in ("fim_pre", "fim_suf", "fim_pad"))
    assert "eot" not in shown  # whatever wins, every candidate is an end of generation and control
    assert "fim_mid" not in shown  # all candidates are control already
    assert all(item.severity is Severity.WARN for item in ambiguous)
    assert all(item.fix is not None for item in ambiguous)


def test_9_1_one_ordinary_candidate_beside_a_control_one_is_ambiguous_too() -> None:
    """Whether the ordinary one becomes CONTROL, and so is cut out of a text, depends on the order of the hash map."""
    ir = ir_of(vocabulary([("<PRE>", CONTROL), ("<fim_prefix>", NORMAL)]))
    assert "gguf-role-ambiguous" in codes(ir)


def test_9_1_a_key_ends_the_ambiguity() -> None:
    extra = [("<PRE>", NORMAL), ("<fim_prefix>", NORMAL)]
    ir = ir_of(vocabulary(extra, change=[Key(f"{G}fim_pre_token_id", "u32", FIRST)]))
    assert ir.specials.get("fim_pre") == FIRST
    assert "gguf-role-ambiguous" not in codes(ir)
    assert ir.vocab.attrs[FIRST : FIRST + 2].tolist() == [PieceAttr.NORMAL, PieceAttr.NORMAL]  # keys set no CONTROL


def test_9_2_overlapping_specials_of_equal_length_go_by_an_unstable_sort() -> None:
    as_llama_cpp_does("overlapping-specials")
    ir = read_fixture("overlapping-specials")
    sizes = [len(token.content) for token in ir.added_tokens]
    assert sizes == sorted(sizes, reverse=True)
    stable = sorted(ir.added_tokens, key=lambda token: (-len(token.content), token.id))
    assert list(ir.added_tokens) != stable


def test_9_3_duplicate_texts_are_refused() -> None:
    item = refuses("refused-duplicate-tokens", "gguf-duplicate-pieces")
    assert golden("refused-duplicate-tokens")[0]["process"] == "aborted"
    assert item.location.path == f"{G}tokens"
    assert item.location.offset is not None


def test_9_3_two_equal_tokens_name_both_ids_and_keep_both() -> None:
    keys = vocabulary([("twin", NORMAL), ("twin", NORMAL)])
    ir = ir_of(keys)
    item = finding(ir, "gguf-duplicate-pieces")
    assert located(item, keys, f"{G}tokens")
    assert str(FIRST) in item.message
    assert str(FIRST + 1) in item.message
    assert ir.vocab.pieces[FIRST : FIRST + 2] == (b"twin", b"twin")
    tokenizer = run(ir)
    assert [tokenizer.decode_bytes([i]) for i in (FIRST, FIRST + 1)] == [b"twin", b"twin"]
    assert tokenizer.token_to_id("twin") == FIRST + 1  # as the finding's remedy says: the last of equal ones


@pytest.mark.parametrize(
    "extra",
    [
        [("", NORMAL), (f"[EMPTY_{FIRST}]", NORMAL)],
        [(f"[EMPTY_{FIRST + 1}]", NORMAL), (b"\0", NORMAL)],
        [("cut", NORMAL), (b"cut\0again", NORMAL)],
    ],
)
def test_9_3_texts_that_become_equal_are_refused(extra: list[tuple[str | bytes, int]]) -> None:
    assert finding(ir_of(vocabulary(extra)), "gguf-duplicate-pieces").severity is Severity.REFUSE


def test_9_4_merges_whose_result_is_no_piece() -> None:
    as_llama_cpp_does("odd-merges")
    ir = read_fixture("odd-merges")
    item = finding(ir, "gguf-merge-result-missing")
    assert (item.severity, item.location.path) == (Severity.WARN, f"{G}merges")
    assert item.location.offset == at_key((FIXTURES / "odd-merges.gguf").read_bytes(), f"{G}merges")


def test_9_4_the_bytes_of_such_a_merge_are_emitted_one_by_one() -> None:
    keys = vocabulary(merges=[*MERGES, "q x", "Ã ©"])
    ir = ir_of(keys)
    assert "2 merges" in finding(ir, "gguf-merge-result-missing").message
    tokenizer = run(ir)
    chars = {byte: tokenizer.token_to_id(spell(chr(byte))) for byte in b"qx"}
    assert tokenizer.encode("qx") == [chars[ord("q")], chars[ord("x")]]
    assert tokenizer.encode("é") == []  # each half is spelled with two bytes, which are no pieces by themselves


def test_9_5_odd_merges_are_counted_and_harmless() -> None:
    ir = read_fixture("odd-merges")
    malformed, duplicate = finding(ir, "gguf-merge-malformed"), finding(ir, "gguf-merge-duplicate")
    assert malformed.message.startswith("3 ")  # "nospace", "" and " e"
    assert duplicate.message.startswith("4 ")  # three that come again, and one that was learnt and also put in front
    assert malformed.severity is Severity.WARN
    assert duplicate.severity is Severity.INFO


def test_9_5_split_at_the_first_space_behind_byte_0_and_the_first_of_equal_pairs_counts() -> None:
    lines: list[str | bytes] = ["a b", "nospace", "", " e", "e ", "x  y", "a b c", "a b", b"c d\0e f", b"\0a b"]
    ir = ir_of(vocabulary(merges=lines))
    assert isinstance(ir.model, BPE)
    # " e" has its only space at byte 0: no pair
    assert ir.model.merges == ((b"a", b"b"), (b"e", b""), (b"x", b" y"), (b"a", b"b c"), (b"c", b"d"))
    assert ir.model.ranks == (0, 4, 5, 6, 8)
    assert finding(ir, "gguf-merge-malformed").message.startswith("4 ")
    assert finding(ir, "gguf-merge-duplicate").message.startswith("1 ")


def test_9_6_bytes_without_a_piece_vanish_and_are_listed() -> None:
    as_llama_cpp_does("missing-bytes")
    item = finding(read_fixture("missing-bytes"), "gguf-byte-missing")
    assert item.severity is Severity.WARN
    assert item.location.path == f"{G}tokens"
    assert item.message.startswith("9 bytes")
    assert "0x0A" in item.message


def test_9_6_a_byte_whose_spelling_is_there_in_halves_gives_two_ids() -> None:
    """llama.cpp looks up each byte of the spelling: C4 and A0 for a space."""
    tokens: list[str | bytes] = [char for char in byte_chars() if char != "Ġ"]
    keys = vocabulary(merges=[], types=False, change=[Key(f"{G}tokens", "[str]", [*tokens, b"\xc4", b"\xa0"])])
    tokenizer = run(ir_of(keys))
    assert tokenizer.encode("a b") == [96, 255, 256, 97]
    assert tokenizer.encode("b ") == [97, 255, 256]
    pieces = tokenizer.pieces("a b ")
    assert [piece.id for piece in pieces] == [96, 255, 256, 97, 255, 256]
    assert [(piece.start, piece.end) for piece in pieces if piece.id < 255] == [(0, 1), (2, 3)]
    assert all(0 <= piece.start <= piece.end <= 4 for piece in pieces)


# --- 9.8 … 9.10: types -----------------------------------------------------------------------------------------------


def test_9_8_without_types_everything_is_normal_but_for_known_texts() -> None:
    as_llama_cpp_does("no-types")
    ir = read_fixture("no-types")
    assert set(ir.vocab.types.tolist()) == {NORMAL}
    assert ir.vocab.attrs.tolist() == golden("no-types")[1]["attrs"].tolist()
    item = finding(ir, "gguf-types-missing")
    assert (item.severity, item.location.path) == (Severity.INFO, f"{G}token_type")


def test_9_9_short_types_are_refused() -> None:
    item = refuses("refused-short-types", "gguf-array-short")
    assert item.location.path == f"{G}token_type"
    assert item.location.offset == at_key((FIXTURES / "refused-short-types.gguf").read_bytes(), f"{G}token_type")
    assert "100" in item.message


@pytest.mark.parametrize("kind", ["[f32]", "[i32]"])
def test_9_9_short_scores_are_refused(kind: str) -> None:
    """A report of 2026: a scores array of another length was accepted and read beyond its end."""
    keys = vocabulary(change=[Key(f"{G}scores", kind, [0] * END)])
    item = finding(ir_of(keys), "gguf-array-short")
    assert item.severity is Severity.REFUSE
    assert located(item, keys, f"{G}scores")
    assert str(END) in item.message
    assert str(END + 1) in item.message


def test_9_9_longer_arrays_are_fine() -> None:
    change = [Key(f"{G}scores", "[f32]", [1.5] * 1000), Key(f"{G}token_type", "[i32]", [1] * 999)]
    ir = ir_of(vocabulary(change=change))
    assert ir.vocab.scores is not None
    assert ir.vocab.scores.tolist() == [1.5] * (END + 1)
    assert not {item for item in ir.findings if item.severity is Severity.REFUSE}


@pytest.mark.parametrize("name", ["scores", "token_type"])
@pytest.mark.parametrize("kind", ["[u8]", "[i8]", "[u16]", "[u32]", "[u64]", "[f64]", "[bool]"])
def test_9_9_arrays_of_another_number_type_are_refused(name: str, kind: str) -> None:
    """A report of 2026: one-byte elements were read as four-byte ones, beyond the end."""
    keys = vocabulary(change=[Key(f"{G}{name}", kind, [1] * (END + 1))])
    ir = ir_of(keys)
    item = finding(ir, "gguf-wrong-type")
    assert item.severity is Severity.REFUSE
    assert located(item, keys, f"{G}{name}")
    assert run(ir).encode("Hello")


@pytest.mark.parametrize("name", ["scores", "token_type", "tokens", "merges"])
@pytest.mark.parametrize(("kind", "value"), [("[[i32]]", [[1]]), ("u32", 1), ("str", "x")])
def test_9_9_values_that_are_no_such_array_are_an_error(name: str, kind: str, value: object) -> None:
    keys = vocabulary(change=[Key(f"{G}{name}", kind, value)])
    with pytest.raises(FormatError, match="expected array") as caught:
        ir_of(keys)
    assert caught.value.location.path == f"{G}{name}"
    assert caught.value.location.offset == at_key(gguf(keys), f"{G}{name}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30])
def test_9_9_types_that_are_no_integers_give_findings_not_warnings(value: float) -> None:
    ir = ir_of(vocabulary(change=[Key(f"{G}token_type", "[f32]", [value] * (END + 1))]))
    assert {"gguf-wrong-type", "gguf-type-unknown"} <= codes(ir)


def test_9_9_scores_beyond_float32_give_a_finding_not_a_warning() -> None:
    ir = ir_of(vocabulary(change=[Key(f"{G}scores", "[f64]", [1e300] * (END + 1))]))
    assert "gguf-wrong-type" in codes(ir)


def test_9_10_unknown_types_have_no_attributes() -> None:
    as_llama_cpp_does("odd-tokens")
    ir = read_fixture("odd-tokens")
    _, arrays = golden("odd-tokens")
    assert ir.vocab.attrs.tolist() == arrays["attrs"].tolist()
    item = finding(ir, "gguf-type-unknown")
    assert item.severity is Severity.WARN
    assert item.location.path == f"{G}token_type[260]"
    assert item.message.startswith("5 ")


# --- 9.11 … 9.13: pre-tokenizer and merges ---------------------------------------------------------------------------


def test_9_11_a_missing_pre_is_default_with_a_warning() -> None:
    as_llama_cpp_does("default")
    ir = read_fixture("default")
    item = finding(ir, "gguf-pre-missing")
    assert item.severity is Severity.WARN
    assert item.location.path == f"{G}pre"
    assert ir.source.facts["pre"] == "default"


@pytest.mark.parametrize("empty", ["", "\0qwen2"])
def test_9_11_an_empty_pre_is_default_with_a_warning(empty: str) -> None:
    keys = vocabulary(pre=empty)
    ir = ir_of(keys)
    assert ir.source.facts["pre"] == "default"
    assert located(finding(ir, "gguf-pre-missing"), keys, f"{G}pre")


def test_9_12_an_unknown_pre_is_refused_by_name() -> None:
    assert golden("refused-unknown-pre")[0]["refused"]
    path = FIXTURES / "refused-unknown-pre.gguf"
    for verb in (tokpack.read, tokpack.load):
        with pytest.raises(UnsupportedError, match="nobody-knows-this") as caught:
            verb(path)
        where = caught.value.location
        assert (where.path, where.offset) == (f"{G}pre", at_key(path.read_bytes(), f"{G}pre"))
        assert "--pre" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("wrong", "right"), [("deepseek-r1-qwen2", "deepseek-r1-qwen"), ("llama-bpe2", "llama-bpe"), ("gpt2", "gpt-2")]
)
def test_9_12_the_nearest_names_are_suggested(wrong: str, right: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        ir_of(vocabulary(pre=wrong))
    assert right in str(caught.value.hint)


def test_9_12_nothing_is_suggested_for_what_looks_like_no_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        ir_of(vocabulary(pre="@@@@"))
    assert "did you mean" not in str(caught.value.hint)


@pytest.mark.parametrize("name", ["qwen2", "llama-bpe", "tekken", "jina-v2-code", "gpt-2"])
def test_9_12_pre_overrides_what_the_file_says(name: str) -> None:
    """The override gives what a file with that name gives, LSTRIP of ``<mask>`` included."""
    extra = [("<mask>", CONTROL)]
    forced = ir_of(vocabulary(extra, pre="nobody-knows-this"), pre=name)
    said = ir_of(vocabulary(extra, pre=name))
    assert forced.source.facts["pre"] == name
    assert forced.pre_tokenizer == said.pre_tokenizer
    assert forced.post_processor == said.post_processor
    assert forced.decoder == said.decoder
    assert forced.vocab.attrs.tolist() == said.vocab.attrs.tolist()
    assert forced.added_tokens == said.added_tokens


def test_9_12_pre_overrides_a_missing_one_without_a_warning() -> None:
    assert "gguf-pre-missing" not in codes(ir_of(vocabulary(pre=None), pre="qwen2"))


def test_9_12_an_override_has_to_be_known_too() -> None:
    with pytest.raises(UnsupportedError, match="unknown pre-tokenizer 'qwen-2'") as caught:
        tokpack.read(FIXTURES / "demo.gguf", pre="qwen-2")
    assert "qwen2" in str(caught.value.hint)


def test_9_13_missing_merges_are_refused() -> None:
    item = refuses("refused-no-merges", "gguf-merges-missing")
    assert item.location.path == f"{G}merges"
    tokenizer = tokpack.load(FIXTURES / "refused-no-merges.gguf", allow={"gguf-merges-missing"})
    assert len(tokenizer.encode("Hello")) == 5


def test_9_13_one_pre_tokenizer_may_come_without_merges() -> None:
    as_llama_cpp_does("kimi-k2-no-merges")
    assert "gguf-merges-missing" not in codes(read_fixture("kimi-k2-no-merges"))


# --- 9.14 … 9.17: special ids and flags ------------------------------------------------------------------------------


def test_9_14_an_id_of_type_i32_is_refused() -> None:
    item = refuses("refused-int32-id", "gguf-wrong-type")
    assert item.location.path == f"{G}bos_token_id"
    assert item.location.offset == at_key((FIXTURES / "refused-int32-id.gguf").read_bytes(), f"{G}bos_token_id")


ID_KEYS = [
    "bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask",
    "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix", "middle",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["i32", "u64", "u8", "bool"])
@pytest.mark.parametrize("name", ID_KEYS)
def test_9_14_every_id_key_demands_u32(name: str, kind: str) -> None:
    key = f"{G}{name}_token_id"
    keys = vocabulary(change=[Key(key, kind, 1)])
    ir = ir_of(keys)
    item = finding(ir, "gguf-wrong-type")
    assert located(item, keys, key)
    assert 1 in {entry.id for entry in ir.specials.roles.values()}


@pytest.mark.parametrize(("kind", "value"), [("str", "5"), ("f32", 5.0), ("[u32]", [5])])
def test_9_14_an_id_that_is_no_integer_is_an_error(kind: str, value: object) -> None:
    keys = vocabulary(change=[Key(f"{G}eos_token_id", kind, value)])
    with pytest.raises(FormatError, match="expected u32, found") as caught:
        ir_of(keys)
    assert caught.value.location.path == f"{G}eos_token_id"
    assert caught.value.location.offset == at_key(gguf(keys), f"{G}eos_token_id")


def test_9_14_flags_demand_bool() -> None:
    item = refuses("refused-uint8-flag", "gguf-wrong-type")
    assert item.location.path == f"{G}add_bos_token"


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("add_eos_token", "u8", 1),
        ("add_sep_token", "u8", 1),
        ("add_space_prefix", "u8", 1),
        ("remove_extra_whitespaces", "u8", 1),
        ("normalizer.lowercase", "u8", 1),
        ("normalizer.strip_accents", "u8", 1),
        ("token_type_count", "i32", 1),
        ("suppress_tokens", "[u8]", [1]),
        ("suppress_tokens", "[u32]", [1]),
        ("suppress_tokens", "i32", 1),
    ],
)
def test_9_14_llama_cpp_demands_the_type_of_every_key_that_it_reads(name: str, kind: str, value: object) -> None:
    """It does not load such a file, though some of these keys do not matter to a byte-level vocabulary."""
    keys = vocabulary(change=[Key(f"{G}{name}", kind, value)])
    try:
        item = finding(ir_of(keys), "gguf-wrong-type")
    except FormatError as error:  # no number at all: cannot be used even if allowed
        item = Finding("gguf-wrong-type", Severity.REFUSE, error.what, replace(error.location, file=None))
    assert item.severity is Severity.REFUSE
    assert located(item, keys, f"{G}{name}")


def test_9_15_ids_out_of_range_are_ignored_and_the_default_stays() -> None:
    as_llama_cpp_does("special-ids")
    meta, _ = golden("special-ids")
    ir = read_fixture("special-ids")
    found = [item for item in ir.findings if item.code == "gguf-id-range"]
    assert {item.location.path for item in found} == {f"{G}{n}_token_id" for n in ("bos", "eos", "padding")}
    assert all(item.location.offset is not None and item.severity is Severity.WARN for item in found)
    assert (ir.specials.get("bos"), ir.specials.get("eos")) == (meta["special_ids"]["bos"], meta["special_ids"]["eos"])
    assert ir.specials.get("pad") is None


def test_9_15_an_id_equal_to_the_vocabulary_size_is_out_of_range() -> None:
    last = ir_of(vocabulary(change=[Key(f"{G}eos_token_id", "u32", END)]))
    assert last.specials.get("eos") == END
    beyond = ir_of(vocabulary(change=[Key(f"{G}eos_token_id", "u32", END + 1)]))
    assert beyond.specials.get("eos") == 11
    assert "gguf-id-range" in codes(beyond)


def test_9_15_defaults_out_of_range_are_none() -> None:
    keys = [
        Key("general.architecture", "str", "gpt2"),
        Key(f"{G}model", "str", "gpt2"),
        Key(f"{G}pre", "str", "gpt-2"),
        Key(f"{G}tokens", "[str]", ["H", "i", "Hi"]),
        Key(f"{G}merges", "[str]", ["H i"]),
    ]
    ir = ir_of(keys)
    assert (ir.specials.get("bos"), ir.specials.get("eos"), ir.specials.eog) == (None, None, ())
    assert run(ir).encode("Hi") == [2]


@pytest.mark.parametrize("role", ["bos", "eos"])
def test_9_16_adding_an_id_that_is_not_there_is_an_error_on_use(role: str) -> None:
    """llama.cpp aborts on an assertion when special ids are added; without them it works."""
    keys = [
        Key("general.architecture", "str", "gpt2"),
        Key(f"{G}model", "str", "gpt2"),
        Key(f"{G}pre", "str", "gpt-2"),
        Key(f"{G}tokens", "[str]", ["H", "i", "Hi"]),
        Key(f"{G}merges", "[str]", ["H i"]),
        Key(f"{G}add_{role}_token", "bool", True),
    ]
    ir = ir_of(keys)
    assert located(finding(ir, "gguf-special-id-missing"), keys, f"{G}add_{role}_token")
    tokenizer = run(ir)
    assert tokenizer.encode("Hi", add_special_tokens=False) == [2]
    with pytest.raises(EncodeError, match=role.upper()):
        tokenizer.encode("Hi")
    with pytest.raises(EncodeError, match=role.upper()):
        tokenizer.pieces("Hi")


def test_9_16_three_pre_tokenizers_have_no_default_bos() -> None:
    for pre in ("chatglm-bpe", "glm4", "glm5"):
        change = [Key(f"{G}add_bos_token", "bool", True)]
        ir = ir_of(vocabulary(pre=pre, without=["bos_token_id"], change=change))
        assert ir.specials.get("bos") is None
        with pytest.raises(EncodeError):
            run(ir).encode("Hi")


def test_9_17_without_keys_bos_and_eos_are_11() -> None:
    as_llama_cpp_does("no-bos-eos")
    meta, _ = golden("no-bos-eos")
    ir = read_fixture("no-bos-eos")
    assert (ir.specials.get("bos"), ir.specials.get("eos")) == (11, 11)
    assert list(ir.specials.eog) == meta["eog"]
    for role in ("bos", "eos"):
        item = finding(ir, f"gguf-{role}-default")
        assert (item.severity, item.location.path) == (Severity.WARN, f"{G}{role}_token_id")
        assert "default" in ir.specials.roles[role].origin


# --- 9.20 … 9.22: texts ----------------------------------------------------------------------------------------------


def test_9_20_bytes_that_are_not_utf8_become_one_replacement_character_each() -> None:
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    assert any(isinstance(text, bytes) for text in probe_texts())
    for raw, same in ((b"a\xffb", "a�b"), (b"\xe4\xb8", "��"), (b"\xc3(", "�("), (b"\xf8\x88\x80\x80\x80", "�" * 5)):
        assert tokenizer.encode(raw) == tokenizer.encode(same)


def test_9_21_sequences_above_unicode_are_an_error_and_nul_is_an_ordinary_byte() -> None:
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    with pytest.raises(EncodeError, match="10FFFF"):
        tokenizer.encode(b"ab\xf4\x90\x80\x80")
    assert tokenizer.decode_bytes(tokenizer.encode("a\0b")) == b"a\0b"


@pytest.mark.parametrize(
    "name", ["gpt-4o", "tekken", "deepseek-v3", "smollm", "superbpe", "afmoe", "falcon", "default"]
)
@pytest.mark.parametrize("text", ["a" * 26_000, " " * 26_000, "7" * 26_000, "!" * 26_000, "\n" * 26_000, "é" * 26_000])
def test_9_22_long_runs_of_one_class_give_ids(name: str, text: str) -> None:
    """On 26,000 equal letters a recursive std::regex overflows the stack of llama.cpp."""
    tokenizer = tokpack.load(FIXTURES / f"{name}.gguf")
    start = time.process_time()
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert time.process_time() - start < 2
    assert tokenizer.detokenize(ids).decode() == text


# --- 9.25 … 9.27 -----------------------------------------------------------------------------------------------------


def test_9_25_a_byte_piece_shorter_than_three_bytes_is_refused() -> None:
    item = refuses("refused-short-byte-token", "gguf-byte-piece-short")
    assert item.location.path == f"{G}tokens[265]"
    assert item.location.offset == at_key((FIXTURES / "refused-short-byte-token.gguf").read_bytes(), f"{G}tokens")


@pytest.mark.parametrize("text", ["<0x-1>", "<0xZZ>", "<0x", "<0xff>", "0x41", "<0x414>"])
def test_9_25_odd_byte_pieces_load_with_a_warning(text: str) -> None:
    """A report of 2026: a sign was accepted, and the index became negative."""
    keys = vocabulary([(text, BYTE)])
    ir = ir_of(keys)
    item = finding(ir, "gguf-byte-piece-odd")
    assert item.severity is Severity.WARN
    assert located(item, keys, f"{G}tokens", f"{G}tokens[{FIRST}]")
    assert len(run(ir).decode_bytes([FIRST])) == 1


def test_9_26_a_model_called_phi_3_needs_four_pieces() -> None:
    item = refuses("refused-phi-3", "gguf-phi3-pieces")
    assert item.location.path == "general.name"
    for text in ("</s>", "<unk>", "<s>", "<|endoftext|>"):
        assert (text in item.message) == (text != "<|endoftext|>")


def test_9_26_with_the_four_pieces_specials_swallow_the_space_at_their_right() -> None:
    as_llama_cpp_does("phi-3")
    assert read_fixture("phi-3").vocab.attrs.tolist() == golden("phi-3")[1]["attrs"].tolist()


SPECIALS = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<mask>", CONTROL), ("[MASK]", CONTROL)]


@pytest.mark.parametrize(
    ("name", "architecture", "left", "right"),
    [
        ("anything", "gpt2", set(), set()),
        ("My PHI-3 mini", "gpt2", set(), {"</s>", "<mask>", "[MASK]"}),
        ("phi3", "gpt2", set(), {"</s>", "<mask>", "[MASK]"}),
        ("modern-bert", "gpt2", {"[MASK]"}, set()),
        ("phi-3", "nomic-bert-moe", {"<mask>"}, set()),
        ("modern-bert", "jina-bert-v3", {"<mask>"}, set()),
    ],
)
def test_9_27_names_decide_which_specials_strip_spaces(
    name: str, architecture: str, left: set[str], right: set[str]
) -> None:
    change = [Key("general.name", "str", name), Key("general.architecture", "str", architecture)]
    ir = ir_of(vocabulary(SPECIALS, change=change))
    assert {t.content.decode() for t in ir.added_tokens if t.lstrip} == left
    assert {t.content.decode() for t in ir.added_tokens if t.rstrip} == right
    assert (ir.source.facts["name"], ir.source.facts["architecture"]) == (name, architecture)
    tokenizer = run(ir)
    ids = tokenizer.encode("a <mask> b")
    space = tokenizer.token_to_id("Ġ")
    assert ids.count(space or -1) == 2 - ("<mask>" in left) - ("<mask>" in right)


def test_9_27_the_mask_of_recorded_vocabularies() -> None:
    for name in ("jina-v2-code", "modern-bert"):
        as_llama_cpp_does(name)
        assert read_fixture(name).vocab.attrs.tolist() == golden(name)[1]["attrs"].tolist()


# --- keys outside that list ------------------------------------------------------------------------------------------


def test_add_space_prefix_takes_a_leading_space_when_detokenizing() -> None:
    """llama.cpp, on this file: ``[" 12"]`` gives "12"; a BOS that is removed leaves the space alone."""
    keys = vocabulary(change=[Key(f"{G}add_space_prefix", "bool", True), Key(f"{G}add_bos_token", "bool", True)])
    ir = ir_of(keys)
    (decoder,) = ir.decoder
    assert isinstance(decoder, LlamaDetokenize)
    tokenizer = run(ir)
    word = tokenizer.token_to_id("Ġ12")
    assert word is not None
    assert tokenizer.encode(" 12") == [END, word]
    assert tokenizer.detokenize([word]) == b"12"
    assert tokenizer.detokenize([END, word], remove_special=True) == b" 12"
    assert tokenizer.detokenize([32, 32, 72]) == b" H"


def test_suppressed_ids_are_carried_and_those_out_of_range_are_not() -> None:
    ir = ir_of(vocabulary(change=[Key(f"{G}suppress_tokens", "[i32]", [7, 99_999, -1, 3])]))
    assert sorted(ir.specials.suppress) == [3, 7]


def test_flags_of_the_file_win_over_those_of_the_pre_tokenizer() -> None:
    plain = ir_of(vocabulary(pre="llama-bpe")).post_processor
    assert isinstance(plain, BosEos)
    assert plain.add_bos
    off = ir_of(vocabulary(pre="llama-bpe", change=[Key(f"{G}add_bos_token", "bool", False)])).post_processor
    assert isinstance(off, BosEos)
    assert not off.add_bos
    on = ir_of(
        vocabulary(change=[Key(f"{G}add_{n}_token", "bool", True) for n in ("bos", "eos", "sep")])
    ).post_processor
    assert isinstance(on, BosEos)
    assert (on.add_bos, on.add_eos, on.add_sep) == (True, True, True)


def test_the_model_of_llamacpps_own_tests_is_named() -> None:
    keys = vocabulary(change=[Key(f"{G}model", "str", "test")])
    with pytest.raises(UnsupportedError, match=r"'test' is for llama\.cpp's own tests") as caught:
        ir_of(keys)
    assert (caught.value.location.path, caught.value.location.offset) == (f"{G}model", at_key(gguf(keys), f"{G}model"))


@pytest.mark.parametrize("model", ["gpt3", "", "GPT2", "gpt2 "])
def test_tokenizer_models_that_llama_cpp_does_not_know(model: str) -> None:
    with pytest.raises(UnsupportedError, match=r"not known to llama\.cpp"):
        ir_of(vocabulary(change=[Key(f"{G}model", "str", model)]))


def test_a_file_without_a_tokenizer_says_so() -> None:
    with pytest.raises(FormatError, match=r"no tokenizer\.ggml\.model") as caught:
        ir_of([Key("general.architecture", "str", "clip")])
    assert caught.value.location.path == f"{G}model"
    assert caught.value.hint is not None


def test_a_file_without_tokens_says_so() -> None:
    with pytest.raises(FormatError, match=r"no tokenizer\.ggml\.tokens"):
        ir_of(vocabulary(without=["tokens"]))


def test_an_empty_vocabulary_says_so() -> None:
    keys = vocabulary(change=[Key(f"{G}tokens", "[str]", [])])
    with pytest.raises(FormatError, match="empty") as caught:
        ir_of(keys)
    where = caught.value.location
    assert (where.path, where.offset) == (f"{G}tokens", at_key(gguf(keys), f"{G}tokens"))


def test_a_piece_above_the_limit_says_where() -> None:
    limits = tokpack.limits.Limits(piece_bytes=100)
    keys = vocabulary([("x" * 101, NORMAL)])
    with pytest.raises(FormatError, match="limit of 100") as caught:
        ir_of(keys, limits=limits)
    where = caught.value.location
    assert str(where.path).startswith(f"{G}tokens")
    assert where.offset == at_key(gguf(keys), f"{G}tokens")
    with pytest.raises(FormatError, match="limit of 10"):
        ir_of(keys, limits=tokpack.limits.Limits(pieces=10))


def test_merges_are_limited_too() -> None:
    with pytest.raises(FormatError, match="limit of 5"):
        ir_of(vocabulary(), limits=tokpack.limits.Limits(merges=5))


def test_a_file_without_architecture_is_refused_as_llama_cpp_does() -> None:
    keys = [key for key in vocabulary() if key.name != "general.architecture"]
    ir = ir_of(keys)
    item = finding(ir, "gguf-architecture-missing")
    assert item.severity is Severity.REFUSE
    assert item.location.path == "general.architecture"


def test_empty_texts_are_named_after_their_id_and_texts_are_cut_at_nul() -> None:
    extra: list[tuple[str | bytes, int]] = [
        ("", NORMAL),
        (b"zz\0b", USER_DEFINED),
        (b"\0x", NORMAL),
        (b"cd\0", CONTROL),
    ]
    keys = vocabulary(extra)
    ir = ir_of(keys)
    assert ir.vocab.pieces[FIRST:] == (b"[EMPTY_%d]" % FIRST, b"zz", b"[EMPTY_%d]" % (FIRST + 2), b"cd")
    nul = [item for item in ir.findings if item.code == "gguf-piece-nul"]
    assert [item.location.path for item in nul] == [f"{G}tokens[{FIRST + i}]" for i in (1, 2, 3)]
    assert all(item.severity is Severity.WARN for item in nul)
    assert {item.location.offset for item in nul} == {at_key(gguf(keys), f"{G}tokens")}


# --- templates and extras --------------------------------------------------------------------------------------------


def test_chat_templates_unnamed_and_named() -> None:
    change = [
        Key("tokenizer.chat_templates", "[str]", ["tool_use", "rag"]),
        Key("tokenizer.chat_template", "str", "{{ messages }}\n"),
        Key("tokenizer.chat_template.tool_use", "str", "{{ tools }}"),
        Key("tokenizer.chat_template.rag", "str", "é\0x"),
    ]
    ir = ir_of(vocabulary(change=change))
    assert ir.chat_templates == {"default": "{{ messages }}\n", "tool_use": "{{ tools }}", "rag": "é\0x"}
    assert ir.extras == {"tokenizer.chat_templates": ["array[string]", [b"tool_use", b"rag"]]}
    assert run(ir).chat_templates == ir.chat_templates


def test_a_template_that_is_not_utf8_is_carried_as_bytes() -> None:
    raw = b"{{ \xff }}"
    keys = vocabulary(change=[Key("tokenizer.chat_template.odd", "str", raw)])
    ir = ir_of(keys)
    assert ir.chat_templates == {}
    assert ir.extras == {"tokenizer.chat_template.odd": ["string", raw]}
    assert located(finding(ir, "gguf-template-encoding"), keys, "tokenizer.chat_template.odd")


@pytest.mark.parametrize("name", ["tokenizer.chat_template.default", "tokenizer.chat_template."])
def test_no_named_template_replaces_the_unnamed_one_in_silence(name: str) -> None:
    change = [Key("tokenizer.chat_template", "str", "unnamed"), Key(name, "str", "named")]
    ir = ir_of(vocabulary(change=change))
    assert ir.chat_templates["default"] == "unnamed"
    assert "named" in ir.chat_templates.values() or name in ir.extras


def test_unknown_tokenizer_keys_are_carried_with_their_types() -> None:
    change = [
        Key("tokenizer.huggingface.json", "str", "{}"),
        Key("tokenizer.rwkv.world", "str", b"\xff"),
        Key("tokenizer.x.u64", "u64", (1 << 64) - 1),
        Key("tokenizer.x.i64", "i64", -(1 << 63)),
        Key("tokenizer.x.f64", "f64", 0.1),
        Key("tokenizer.x.bool", "bool", True),
        Key("tokenizer.x.list", "[f32]", [0.5, 1.5]),
        Key("tokenizer.x.texts", "[str]", [b"a", b"\xfe"]),
        Key("tokenizer.x.none", "[i16]", []),
    ]
    ir = ir_of(vocabulary(change=change))
    assert ir.extras == {
        "tokenizer.huggingface.json": ["string", b"{}"],
        "tokenizer.rwkv.world": ["string", b"\xff"],
        "tokenizer.x.u64": ["u64", (1 << 64) - 1],
        "tokenizer.x.i64": ["i64", -(1 << 63)],
        "tokenizer.x.f64": ["f64", 0.1],
        "tokenizer.x.bool": ["bool", True],
        "tokenizer.x.list": ["array[f32]", np.array([0.5, 1.5], "<f4").tobytes()],
        "tokenizer.x.texts": ["array[string]", [b"a", b"\xfe"]],
        "tokenizer.x.none": ["array[i16]", b""],
    }


def test_extras_of_a_big_endian_file_are_the_same() -> None:
    keys = vocabulary(change=[Key("tokenizer.x.list", "[i32]", [1, -2]), Key("tokenizer.x.n", "u32", 258)])
    little, big = (read_bytes(gguf(keys, order=order)) for order in "<>")
    assert little.extras == big.extras


@pytest.mark.parametrize("kind", ["[[u8]]", "[[f32]]", "[[str]]", "[[[i32]]]"])
def test_nested_arrays_are_carried_into_a_pack(kind: str) -> None:
    value: Any = [["a"], []] if "str" in kind else [[1, 2], []]
    if kind.startswith("[[["):
        value = [value, []]
    ir = ir_of(vocabulary(change=[Key("tokenizer.x.nest", kind, value)]))
    assert "tokenizer.x.nest" in ir.extras
    assert run(ir).encode("Hello") == [259]


def test_other_keys_are_passed_over() -> None:
    change = [
        Key("llama.block_count", "u32", 4),
        Key("llama.list", "[f32]", [0.0] * 1000),
        Key("general.tags", "[str]", ["a", "b"]),
        Key("quantize.imatrix.file", "str", "x"),
    ]
    ir = ir_of(vocabulary(change=change))
    assert ir.extras == {}
    assert not any("llama.block_count" in str(fact) for fact in ir.source.facts)
