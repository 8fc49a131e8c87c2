"""Short texts part by part give the ids that the whole text gives: caches cold, warm, and too small for anything."""

from __future__ import annotations

import json
import os
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import tokpack
from tests.conftest import FIXTURES
from tests.property.pairs import budget, pair
from tests.property.strategies import atoms, texts
from tokpack.formats.gguf.rules import pre_names, pre_type
from tokpack.runtime import spaced
from tokpack.runtime.spaced import PLAIN, SpacedParts, Words, crosses, is_plain

HF = FIXTURES / "hf"
HF_NAMES = sorted(path.stem for path in HF.glob("*.json") if not path.stem.startswith("refused-"))
GGUF_NAMES = sorted(path.stem for path in FIXTURES.glob("*.gguf") if not path.stem.startswith(("refused-", "n")))
SWITCHES = st.tuples(st.booleans(), st.booleans())
WORDS = """
    the of The I'm don't (so) 3.14 1234567 naïve Ωmega Привет 한국어 中文 カナ x=1; «é» a_b ##a 'll <0x41> ``x`` ▁a
""".split()  # noqa: SIM905
GAPS = [" "] * 12 + ["  ", "   ", "\n", " \n", "\n    ", "\t", "\r\n", "\u3000", "\xa0", "\x1c", "\v", ""]


def spaced_texts(specials: list[bytes]) -> SearchStrategy[str]:
    """Words of any kind with mostly single spaces between them."""
    word = st.one_of(st.sampled_from(WORDS), atoms(specials), st.tuples(atoms(specials), atoms(specials)).map("".join))
    parts = st.lists(st.tuples(word, st.sampled_from(GAPS)), min_size=1, max_size=12)
    return st.one_of(parts.map(lambda some: "".join(a + b for a, b in some)), texts(specials))


@cache
def tokenizer(name: str) -> tokpack.Tokenizer:
    return tokpack.load(HF / f"{name}.json")


def in_one(made: tokpack.Tokenizer, text: str, parse: bool) -> list[int] | str:
    try:
        text.encode()
        ids: list[int] = made._pipeline.scalar(text, parse)  # type: ignore[attr-defined]
    except (tokpack.EncodeError, UnicodeEncodeError):
        return "failed"
    return ids


def in_parts(made: tokpack.Tokenizer, text: str | bytes, parse: bool) -> list[int] | str:
    try:
        return made.encode(text, False, parse)
    except tokpack.EncodeError:
        return "failed"


@pytest.mark.parametrize("name", HF_NAMES)
def test_spaces_beside_tokens(name: str) -> None:
    made = tokenizer(name)
    passes = made._pipeline.stages().passes  # type: ignore[attr-defined]
    for token in [token for part in passes for token in part.patterns][:6]:
        for text in ("{0} a {0}b{0}", "a {0} b", "a {0}", "{0} a", "a{0} b", "a {0}b", "a  {0}", "x a\n{0}"):
            for parse in (False, True):
                assert in_parts(made, text.format(token), parse) == in_one(made, text.format(token), parse)


VARIANTS = ["llama2", "gemma", "unsplit"]


@cache
def variant(name: str) -> tokpack.Tokenizer:
    """Models that merge a whole text, with added tokens that are always cut out and look at nothing beside them."""
    raw = json.loads((HF / "llama2.json").read_text(encoding="utf-8"))
    size = len(raw["model"]["vocab"])
    raw["added_tokens"] = [token for token in raw["added_tokens"] if not token["normalized"] and token["id"] < size]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    if name == "gemma":
        raw["normalizer"] = spaces
        raw["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}
        raw["pre_tokenizer"]["invert"] = False
    elif name == "unsplit":
        raw["normalizer"] = None
        raw["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    for content in ("\n", "\n\n", "<x>", "``", "\u2581\u2581"):
        raw["model"]["vocab"].setdefault(content, len(raw["model"]["vocab"]))
        raw["added_tokens"].append({"id": raw["model"]["vocab"][content], "content": content, **flags})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(raw), encoding="utf-8")
        return tokpack.load(path)


@pytest.mark.parametrize("name", VARIANTS)
def test_whole_texts(name: str) -> None:
    compare(variant(name))


@pytest.mark.parametrize("name", HF_NAMES)
def test_tokenizers(name: str) -> None:
    compare(tokenizer(name))


def compare(made: tokpack.Tokenizer) -> None:
    passes = made._pipeline.stages().passes  # type: ignore[attr-defined]
    added = [token.encode() for part in passes for token in part.patterns]

    @budget()
    @given(spaced_texts(added), st.booleans())
    def check(text: str, parse: bool) -> None:
        expected = in_one(made, text, parse)
        assert in_parts(made, text, parse) == expected
        assert in_parts(made, text, parse) == expected  # now known
        if expected != "failed":
            assert in_parts(made, text.encode(), parse) == expected

    check()


def whole_fragments(made: tokpack.Tokenizer, text: str, parse: bool) -> list[int] | str:
    """What llama.cpp's pipeline makes of a text without cutting it at spaces."""
    pipeline: Any = made._pipeline
    raw = text.encode("utf-8", "surrogatepass")
    ids: list[int] = []
    after_special = True
    try:
        for token, start, end in pipeline._partition.cut(raw, parse):
            if token >= 0:
                ids.append(token)
            else:
                ids += [piece for piece, _, _ in pipeline._fragments.spans(raw[start:end], after_special)]
            after_special = token >= 0
    except tokpack.EncodeError:
        return "failed"
    return ids


@cache
def from_gguf(name: str) -> tokpack.Tokenizer:
    return tokpack.load(FIXTURES / f"{name}.gguf")


@pytest.mark.parametrize("name", GGUF_NAMES)
def test_llamacpp(name: str) -> None:
    made = from_gguf(name)
    specials = [token.content for token in made._pipeline._partition.tokens]  # type: ignore[attr-defined]

    @budget()
    @given(spaced_texts(specials), st.booleans())
    def check(text: str, parse: bool) -> None:
        expected = whole_fragments(made, text, parse)
        assert in_parts(made, text, parse) == expected
        assert in_parts(made, text, parse) == expected
        assert in_parts(made, text.encode("utf-8", "surrogatepass"), parse) == expected

    check()


@pytest.mark.parametrize("name", pre_names())
def test_pre_tokenizers(name: str) -> None:
    kind = pre_type(name)
    assert kind is not None
    both = pair("boundaries" if kind.byte_encode else "sarvam-moe", name)

    @budget(0.3)
    @given(spaced_texts(both.specials), SWITCHES)
    def check(text: str, switches: tuple[bool, bool]) -> None:
        both.check(text, *switches)

    check()


def has_parts(made: tokpack.Tokenizer) -> bool:
    return made._pipeline._short is not None  # type: ignore[attr-defined]


def test_which_files_go_in_parts() -> None:
    """So that the tests above test something."""
    assert {name for name in HF_NAMES if has_parts(tokenizer(name))} >= {
        "gpt2", "llama3", "o200k", "qwen2", "deepseek", "bert-cased", "t5", "metaspace-always", "words-by-regex",
    }  # fmt: skip
    assert all(has_parts(variant(name)) for name in VARIANTS)
    assert {name for name in GGUF_NAMES if has_parts(from_gguf(name))} >= {
        "gpt-2", "falcon", "gpt-4o", "llama-bpe", "qwen2", "gemma4", "spm-bare", "spm-no-prefix", "wpm-cased",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["gpt-2", "gemma4", "spm-bare", "wpm-cased"])
def test_the_state_of_the_caches_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in (FIXTURES / "corpus.txt").read_text(encoding="utf-8").splitlines() if line][:60]
    random.Random(int(os.environ["TOKPACK_SEED"])).shuffle(lines)
    expected = [whole_fragments(from_gguf(name), line, True) for line in lines]
    for size, length in ((1 << 16, 64), (3, 64), (1, 1), (0, 0)):
        monkeypatch.setattr(spaced, "_CACHED", size)
        monkeypatch.setattr(spaced, "_CACHED_LENGTH", length)
        made = tokpack.load(FIXTURES / f"{name}.gguf")
        for _ in range(2):
            assert [made.encode(line, False) for line in lines] == expected


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaced, "_CACHED", 8)
    known = Words(lambda text: map(ord, text))
    for at in range(100):
        assert known[str(at)] == tuple(map(ord, str(at)))
        assert len(known) <= 8
    assert known["x" * 1000] == (120,) * 1000
    assert "x" * 1000 not in known


def test_where_a_text_is_cut() -> None:
    seen: list[tuple[str, str]] = []

    def first(text: str) -> list[int]:
        seen.append(("first", text))
        return []

    def later(text: str) -> list[int]:
        seen.append(("later", text))
        return []

    def cut(text: str, joins: str = "") -> list[tuple[str, str]]:
        seen.clear()
        made = SpacedParts(first, later, lambda part: "<" in part, lambda char: char in joins, gaps="")
        assert (made.encode(text) is None) == ("<" in text)
        return list(seen)

    assert cut("a b c") == [("first", "a"), ("later", "b"), ("later", "c")]
    assert cut("a  b c ") == [("first", "a  b"), ("later", "c ")]
    assert cut("ax bx c", "x") == [("first", "ax bx c")]
    assert cut("ax b c", "x") == [("first", "ax b"), ("later", "c")]
    assert cut(" a") == [("first", " a")]
    assert cut("e\u0301 b") == [("first", "e\u0301 b")]
    assert cut("") == [("first", "")]
    cut("a <b")


def test_spaces_inside_tokens() -> None:
    assert all(map(crosses, ("a b", " a", "a ", " ", "<x> <y>", "é é")))
    assert not any(map(crosses, ("", "  ", "   ", "a  b", "ab", "\u0301 a")))
    assert all(is_plain(char) for char in "!~azé中가")
    assert not any(is_plain(char) for char in " \t\n\u0301\u2581\x7f\xa0")
    assert " " not in PLAIN
