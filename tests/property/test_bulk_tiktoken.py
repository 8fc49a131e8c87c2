"""Rank files: the bulk path, short texts field by field, and words one by one give the same ids, and those of tiktoken.

The ids of ``encode_spans`` are those of words one by one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, SharedData
from tests.peers import peer
from tests.property.pairs import budget, outcome
from tests.property.strategies import GROUPS, raw_bytes, texts
from tests.runtime.bulk.forcing import force
from tokpack.formats.tiktoken.encodings import encoding, names

HERE = FIXTURES / "tiktoken"
LIMITS = st.tuples(st.integers(1, 64), st.sampled_from([0, 1 << 20]), st.sampled_from([1, 50, 1 << 19]))
SOURCES = sorted(path.stem for path in HERE.glob("*.tiktoken") if path.stem not in ("raw", "bytes-last"))
WORDS = [
    *"aZ 1",
    "the",
    " the",
    "<a>",
    "<|x|>",
    "\n",
    "\t",
    "  ",
    "a\n",
    " \n",
    "/",
    "x)",
    "'s",
    " it's",
    "\x1c",
    "é",
    " é",
]
TEXTS = st.one_of(texts((b"<a>", b"<|x|>"), 40), st.lists(st.sampled_from(WORDS), max_size=30).map("".join))


def one_by_one(tokenizer: tokpack.Tokenizer, text: str | bytes, parse_special: bool) -> list[int] | str:
    spans = tokenizer._pipeline.encode_spans
    return outcome(lambda: [token for token, _, _ in spans(text, True, parse_special)])


def check_paths(
    tokenizer: tokpack.Tokenizer, text: str | bytes, parse_special: bool, limits: tuple[int, int, int]
) -> list[int] | str:
    expected = one_by_one(tokenizer, text, parse_special)
    force(tokenizer, *limits)
    for state in ("cold", "warm"):
        case = (text, parse_special, limits, state)
        assert outcome(lambda: tokenizer.encode(text, True, parse_special)) == expected, case
        assert outcome(lambda: tokenizer.encode_array(text, True, parse_special).tolist()) == expected, case
    return expected


@cache
def fixture(name: str, pattern: str) -> tokpack.Tokenizer:
    special = {"<a>": 5000, "<|x|>": 5001}
    return tokpack.load(HERE / f"{name}.tiktoken", pattern=encoding(pattern).pattern, special_tokens=special)


@pytest.mark.parametrize("pattern", sorted({encoding(name).pattern: name for name in names()}.values()))
def test_every_pattern(pattern: str) -> None:
    tokenizer = fixture("plain", pattern)
    theirs = live(tokenizer, pattern)

    @budget(4)
    @given(TEXTS, st.booleans(), LIMITS)
    def check(text: str, parse_special: bool, limits: tuple[int, int, int]) -> None:
        found = check_paths(tokenizer, text, parse_special, limits)
        if theirs is not None:
            ids = theirs.encode(text, allowed_special="all") if parse_special else theirs.encode_ordinary(text)
            assert found == ids, text

    check()


def live(tokenizer: tokpack.Tokenizer, pattern: str) -> Any:
    library = peer("tiktoken")
    if library is None:
        return None
    ranks = {tokenizer.id_to_bytes(token): token for token in range(tokenizer.vocab_size) if has(tokenizer, token)}
    special = {"<a>": 5000, "<|x|>": 5001}
    return library.Encoding("x", pat_str=encoding(pattern).pattern, mergeable_ranks=ranks, special_tokens=special)


def has(tokenizer: tokpack.Tokenizer, token: int) -> bool:
    """Whether an id has a piece that is no special token."""
    try:
        return bool(tokenizer.id_to_bytes(token)) and not tokenizer.is_special(token)
    except tokpack.EncodeError:
        return False


@pytest.mark.parametrize("name", SOURCES)
def test_every_fixture(name: str) -> None:
    tokenizer = fixture(name, "cl100k_base")
    assert force(tokenizer, 1)

    @budget(2)
    @given(st.one_of(TEXTS, raw_bytes((b"<a>",))), st.booleans(), LIMITS)
    def check(text: str | bytes, parse_special: bool, limits: tuple[int, int, int]) -> None:
        check_paths(tokenizer, text, parse_special, limits)

    check()


@pytest.mark.parametrize("name", ["tekken-v3", "tekken-v13"])
def test_tekken(name: str) -> None:
    tokenizer = tokpack.load(HERE / f"{name}.json")

    @budget(2)
    @given(TEXTS, LIMITS)
    def check(text: str, limits: tuple[int, int, int]) -> None:
        check_paths(tokenizer, text, True, limits)

    check()


def test_patterns_of_the_kind_that_vectorised_splitters_stand_for() -> None:
    for name in names():
        assert force(fixture("plain", name), 1), name


@pytest.mark.parametrize(
    "text", ["", "\0", "\0\0a\0", "a\0 b", "\ud800", "a \udfffb", "\ud83d\ude00 x", "é\0é\xff ", b"\xff "]
)
def test_odd_texts(text: str | bytes) -> None:
    tokenizer = fixture("plain", "cl100k_base")
    for repeat in (1, 40):
        check_paths(tokenizer, text * repeat, False, (3, 0, 1))


def test_every_space_before_every_character() -> None:
    """A field begins at a space before a character that is none, in each of the patterns."""
    chars = sorted({char for group in GROUPS for atom in group for char in atom})
    for name in ("gpt2", "cl100k_base", "llama3", "qwen", "o200k_base"):
        tokenizer = fixture("plain", name)
        for before in ("a", "1", "!", " ", "\n", "'", "é", "\u0301"):
            text = " ".join(f"{before} {char}" for char in chars)
            assert tokenizer.encode(text) == one_by_one(tokenizer, text, True), (name, before)
            for char in chars:
                text = f"{before} {char}s b"
                assert tokenizer.encode(text) == one_by_one(tokenizer, text, True), (name, text)


@pytest.mark.parametrize("name", ["plain", "gaps", "tekken-v3"])
def test_decoding_many_ids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scalar, bulk = (
        tokpack.load(HERE / f"{name}.json") if "tekken" in name else fixture(name, pattern)
        for pattern in ("gpt2", "cl100k_base")
    )
    monkeypatch.setattr("tokpack.runtime.tokenizer._MANY", 1)

    @budget(2)
    @given(st.lists(st.integers(-1, scalar.vocab_size), max_size=30), st.booleans())
    def check(ids: list[int], special: bool) -> None:
        expected = outcome(lambda: list(scalar._pipeline.detokenizer.detokenize(ids, False, special)))
        assert outcome(lambda: list(bulk.detokenize(ids, False, special))) == expected, ids
        array = np.array(ids, dtype=np.int32)
        assert outcome(lambda: list(bulk.detokenize(array, False, special))) == expected, ids

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_real_files(name: str, shared_data: SharedData) -> None:
    library = pytest.importorskip("tiktoken", "0.9", reason="the live comparison needs tiktoken")
    ranks = pytest.importorskip("tiktoken.load").load_tiktoken_bpe(str(shared_data(f"data/tiktoken/{name}.tiktoken")))
    theirs = library.Encoding(name, pat_str=encoding(name).pattern, mergeable_ranks=ranks, special_tokens={})
    tokenizer = tokpack.load(shared_data(f"data/tiktoken/{name}.tiktoken"), pattern=name)

    @budget(4)
    @given(texts((), 60), LIMITS)
    def check(text: str, limits: tuple[int, int, int]) -> None:
        assert check_paths(tokenizer, text, False, limits) == theirs.encode_ordinary(text), text

    check()


def test_a_pack_without_the_sections_of_the_bulk_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokpack.pack.build.bulk_sections", lambda *_: {})
    special = {"<a>": 5000, "<|x|>": 5001}
    tokenizer = tokpack.load(HERE / "plain.tiktoken", pattern="cl100k_base", special_tokens=special)
    assert not len(tokenizer.view.raw("bulk.words"))

    @budget(1)
    @given(TEXTS, LIMITS)
    def check(text: str, limits: tuple[int, int, int]) -> None:
        check_paths(tokenizer, text, False, limits)

    check()
