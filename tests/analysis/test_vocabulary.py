"""Columns of a vocabulary, and choosing pieces: against llama.cpp's recorded texts and by counting by hand."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import regex

import tokpack
from tests.analysis.test_subject import as_json, validator
from tests.conftest import FIXTURES, SharedData
from tokpack.analysis import (
    Vocabulary,
    byte_coverage,
    duplicates,
    holding_bytes,
    holding_text,
    in_range,
    in_script,
    length_histogram,
    matching,
    near_duplicates,
    of_type,
    open_vocabulary,
    piece_scripts,
    reserved_runs,
    script_names,
    scripts_of,
    statistics,
    unused,
)
from tokpack.analysis.listing import listing
from tokpack.errors import TokpackError, UsageError
from tokpack.formats.gguf.header import read_header

DEMO = FIXTURES / "demo.gguf"


@pytest.fixture(scope="module")
def demo() -> Vocabulary:
    return open_vocabulary(DEMO)


def test_bytes_are_those_of_llamacpp() -> None:
    """``id_to_piece`` is checked against llama.cpp itself elsewhere; unused pieces decode to nothing there."""
    compared = 0
    for path in sorted(FIXTURES.glob("*.gguf")):
        if path.name.startswith("refused-"):
            continue
        vocabulary = open_vocabulary(path)
        tokenizer = vocabulary.tokenizer
        if tokenizer is None:
            continue
        for token in range(vocabulary.size):
            shown = tokenizer.id_to_piece(token)
            odd = vocabulary.attrs[token] & 4 and b"[UNK_BYTE" in shown
            if not vocabulary.attrs[token] & (1 | 2 | 8) and vocabulary.attrs[token] and not odd:
                assert vocabulary.bytes[token] == shown, (path.name, token)
                compared += 1
    assert compared > 35_000


def test_rows_fit_the_schema_for_every_fixture() -> None:
    schema = validator("vocab")
    figures = validator("vocab-stats")
    files = sorted([*FIXTURES.glob("*.gguf"), *FIXTURES.glob("hf/*.json"), *FIXTURES.glob("sentencepiece/*.model")])
    checked = 0
    for path in files:
        try:
            vocabulary = open_vocabulary(path)
        except TokpackError:
            continue
        middle = vocabulary.size // 2
        for offset in (0, middle, vocabulary.size - 20):
            schema.validate(as_json(listing(vocabulary, {}, max(0, offset), 20).as_dict()))
        assert listing(vocabulary, {}).ids.tolist() == list(range(vocabulary.size))
        figures.validate(as_json(statistics(vocabulary)))
        checked += 1
    assert checked > 100


def test_ranks_are_those_of_the_merge_list(demo: Vocabulary) -> None:
    entries = read_header(DEMO.read_bytes()).entries
    tokens = entries["tokenizer.ggml.tokens"].value
    ids = {text: index for index, text in enumerate(tokens)}
    expected = [-1] * len(tokens)
    for rank, merge in reversed(list(enumerate(entries["tokenizer.ggml.merges"].value))):
        left, _, right = merge.partition(b" ")
        if left + right in ids:
            expected[ids[left + right]] = rank
    assert demo.ranks is not None
    assert demo.ranks.tolist() == expected
    assert demo.scores is None


def test_scores_types_and_lengths_are_those_of_the_file() -> None:
    path = FIXTURES / "spm.gguf"
    entries = read_header(path.read_bytes()).entries
    vocabulary, tokenizer = open_vocabulary(path), tokpack.load(path)
    assert vocabulary.scores is not None
    assert vocabulary.scores.tolist() == entries["tokenizer.ggml.scores"].value.tolist()
    assert tokenizer.token_types.tolist() == entries["tokenizer.ggml.token_type"].value.tolist()
    assert tokenizer.token_types.dtype == np.uint8
    assert tokenizer.token_lengths.dtype == np.int32
    assert tokenizer.token_lengths.tolist() == [len(text) for text in entries["tokenizer.ggml.tokens"].value]
    assert tokpack.load(DEMO).token_lengths.tolist() == open_vocabulary(DEMO).lengths.tolist()
    assert vocabulary.lengths.dtype == np.int32


def test_search_is_for_readable_text_not_for_its_spelling(demo: Vocabulary) -> None:
    expected = [token for token, raw in enumerate(demo.bytes) if b" t" in raw]
    assert holding_text(demo, " t").tolist() == expected
    assert holding_text(demo, "Ġt").size == 0
    assert holding_bytes(demo, "2074").tolist() == expected
    assert matching(demo, r"^ t").tolist() == [token for token, raw in enumerate(demo.bytes) if raw.startswith(b" t")]
    assert set(holding_text(open_vocabulary(FIXTURES / "spm.gguf"), " the")) > {271}


def test_partial_characters_are_found_by_bytes_and_by_surrogates(demo: Vocabulary) -> None:
    alone = demo.bytes.index(b"\xe2")
    assert alone in holding_bytes(demo, "e2")
    assert alone in matching(demo, "^\udce2$")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("5", 5, 5), ("5-9", 5, 9), ("5:9", 5, 9), ("1,990-", 1990, 2000), ("-3", 0, 3), ("1999-5000", 1999, 2000)],
)
def test_ranges(demo: Vocabulary, text: str, first: int, last: int) -> None:
    assert in_range(demo, text).tolist() == list(range(first, last + 1))


def test_what_cannot_be_understood_says_so(demo: Vocabulary) -> None:
    for call, words in (
        (lambda: in_range(demo, "x"), "not a range"),
        (lambda: in_range(demo, "9-5"), "ends before it begins"),
        (lambda: in_range(demo, "-"), "not a range"),
        (lambda: holding_bytes(demo, "xyz"), "hexadecimal"),
        (lambda: matching(demo, "("), "regular expression"),
        (lambda: matching(demo, "a{99999999999999999999}"), "regular expression"),
        (lambda: of_type(demo, "contrl"), "did you mean control"),
        (lambda: in_script(demo, "Hann"), "did you mean Han"),
        (lambda: in_script(demo, "klingon1"), "unknown script"),
    ):
        with pytest.raises(UsageError, match=words):
            call()


def test_types_cover_the_vocabulary_once(demo: Vocabulary) -> None:
    names = ("undefined", "normal", "unknown", "control", "user-defined", "unused", "byte", "hole")
    found = [token for name in names for token in of_type(demo, name).tolist()]
    assert sorted(found) == list(range(demo.size))


def test_scripts_are_those_of_unicode() -> None:
    assert scripts_of("Hello") == ("Latin",)
    assert scripts_of("漢字とカナ") == ("Han", "Hiragana", "Katakana")
    assert scripts_of(" 1!") == ("Common",)
    assert scripts_of("é1 ") == ("Latin",)
    assert scripts_of("\u0301") == ("Inherited",)
    assert scripts_of("") == ()
    assert len(script_names()) > 160
    assert {"Latin", "Han", "Old_Turkic", "SignWriting", "Nko"} <= set(script_names())
    for code in range(0, 0x30000, 97):
        if 0xD800 <= code < 0xE000:
            continue
        (name,) = scripts_of(chr(code))
        if regex.match(r"\p{Cn}", chr(code)) is None:  # other versions of the package know more characters
            assert regex.match(rf"\p{{Script={name}}}", chr(code)), hex(code)


def test_script_filter_takes_any_case_and_finds_what_regex_finds(demo: Vocabulary) -> None:
    expected = [t for t, raw in enumerate(demo.bytes) if regex.search(r"\p{Script=Han}", raw.decode("utf-8", "ignore"))]
    assert len(expected) > 50
    assert in_script(demo, "Han").tolist() == in_script(demo, "hAN").tolist() == expected


def test_duplicates_of_a_file_that_has_some() -> None:
    path = FIXTURES / "refused-duplicate-tokens.gguf"
    tokens = [text.split(b"\0")[0] for text in read_header(path.read_bytes()).entries["tokenizer.ggml.tokens"].value]
    counts = Counter(tokens)
    groups = duplicates(open_vocabulary(path))
    assert sorted(map(len, groups)) == sorted(count for count in counts.values() if count > 1)
    assert all(len({tokens[token] for token in group}) == 1 for group in groups)
    assert groups


@pytest.mark.parametrize(
    ("name", "holes", "same"),
    [
        ("gemma-4", 0, 0),
        ("llama-bpe", 0, 0),
        ("qwen2", 0, 0),
        ("bert-bge", 0, 0),
        ("baichuan", 0, 0),
    ],
)
@pytest.mark.slow
def test_duplicates_and_holes_of_known_ggufs(shared_data: SharedData, name: str, holes: int, same: int) -> None:
    path = shared_data(f"data/gguf/ggml-vocab-{name}.gguf")
    tokens = read_header(path.read_bytes()).entries["tokenizer.ggml.tokens"].value
    vocabulary = open_vocabulary(path)
    assert len(tokens) - len(set(tokens)) == same == sum(len(group) - 1 for group in duplicates(vocabulary))
    assert int(vocabulary.holes.sum()) == holes


def _raw_ids(path: Path) -> tuple[list[int], int]:
    """(ids that a tokenizer.json names, number of model entries)."""
    data = json.loads(path.read_bytes())
    vocab = data["model"]["vocab"]
    ids = list(vocab.values()) if isinstance(vocab, dict) else list(range(len(vocab)))
    return ids + [token["id"] for token in data.get("added_tokens") or []], len(vocab)


@pytest.mark.parametrize("name", ["phi2_codegen", "bert_base_cased", "t5_small", "marian_nmt"])
def test_holes_of_known_tokenizer_json_files(shared_data: SharedData, name: str) -> None:
    path = shared_data(f"data/hf/{name}/tokenizer.json")
    ids, _ = _raw_ids(path)
    vocabulary = open_vocabulary(path)
    assert int(vocabulary.holes.sum()) == vocabulary.size - len(set(ids))
    assert of_type(vocabulary, "hole").tolist() == sorted(set(range(vocabulary.size)) - set(ids))


def test_unused_are_what_types_and_names_say() -> None:
    rwkv = open_vocabulary(FIXTURES / "rwkv.gguf")
    assert unused(rwkv).tolist() == np.flatnonzero(rwkv.types == 5).tolist() != []
    llama = open_vocabulary(FIXTURES / "llama-bpe.gguf")
    named = [t for t, text in enumerate(llama.texts) if b"reserved_special_token" in text]
    assert unused(llama).tolist() == named != []


def test_reserved_runs_are_the_unused_and_the_holes() -> None:
    for path in ("rwkv.gguf", "llama-bpe.gguf", "no-vocab.gguf", "hf/added-ids.json", "demo.gguf"):
        vocabulary = open_vocabulary(FIXTURES / path)
        runs = reserved_runs(vocabulary)
        covered = [token for first, last, _ in runs for token in range(first, last + 1)]
        expected = set(unused(vocabulary).tolist()) | set(np.flatnonzero(vocabulary.holes).tolist())
        assert covered == sorted(expected)
        assert all(a[1] < b[0] for a, b in pairwise(runs))


def test_near_duplicates_are_found_by_hand(demo: Vocabulary) -> None:
    texts = {}
    for token, raw in enumerate(demo.bytes):
        if not demo.attrs[token] & 9:
            try:
                texts[token] = raw.decode()
            except UnicodeDecodeError:
                continue
    near = near_duplicates(demo)
    for kind, change in (("case", str.casefold), ("space", lambda text: text.removeprefix(" "))):
        counts = Counter(map(change, texts.values()))
        assert sorted(map(len, near[kind])) == sorted(count for count in counts.values() if count > 1)
        for group in near[kind]:
            assert len({change(texts[token]) for token in group}) == 1
    assert near["normalization"] == []


def test_pieces_in_two_normal_forms(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    composed, decomposed = "\u00e9", unicodedata.normalize("NFD", "\u00e9")
    vocab = {"[UNK]": 0, composed: 1, decomposed: 2, "E": 3, "e": 4, " e": 5}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], **empty, "model": model}))
    near = near_duplicates(open_vocabulary(path))
    assert near["normalization"] == [[1, 2]]
    assert near["case"] == [[3, 4]]
    assert near["space"] == [[4, 5]]


def test_figures_add_up(demo: Vocabulary) -> None:
    figures = statistics(demo)
    assert figures["bytes"]["total"] == sum(map(len, demo.bytes))
    assert sum(entry["pieces"] for entry in figures["lengths"]) == demo.size
    assert sum(piece_scripts(demo).values()) == demo.size
    assert sum(figures["types"].values()) == demo.size
    assert byte_coverage(demo).all()
    for first, last, count in length_histogram(demo):
        assert count == sum(first <= len(raw) <= last for raw in demo.bytes)
    missing = open_vocabulary(FIXTURES / "missing-bytes.gguf")
    alone = {raw[0] for raw in missing.bytes if len(raw) == 1}
    assert statistics(missing)["byte_coverage"]["missing"] == sorted(set(range(256)) - alone) != []


def test_pages_and_combined_filters(demo: Vocabulary) -> None:
    whole = listing(demo, {"search": "e", "kind": "normal", "span": "100-900"})
    expected = [t for t in range(100, 901) if b"e" in demo.bytes[t] and demo.types[t] == 1]
    assert whole.ids.tolist() == expected
    assert whole.matched == len(expected)
    page = listing(demo, {"search": "e", "kind": "normal", "span": "100-900"}, 3, 4)
    assert page.ids.tolist() == expected[3:7]
    assert page.matched == whole.matched
    assert listing(demo, {}, 10**9, 5).ids.size == 0


def test_a_regular_expression_sees_the_text_that_a_person_reads(demo: Vocabulary) -> None:
    compiled = re.compile(r"^\s+$")
    expected = [t for t, raw in enumerate(demo.bytes) if compiled.search(raw.decode("utf-8", "surrogateescape"))]
    assert matching(demo, r"^\s+$").tolist() == expected
