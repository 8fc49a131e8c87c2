"""Normalizers against the installed ``tokenizers`` library."""

from __future__ import annotations

import base64
import json
import os
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SharedData, read_texts
from tests.runtime.hf.test_normalizers_cases import (
    CASES,
    POOLS,
    answer,
    build,
    edited,
    library,
    nasty_texts,
    run,
)
from tokpack.ir.normalizers import Precompiled, Replace
from tokpack.ir.patterns import Dialect
from tokpack.runtime.hf.normalizers import Normalizer

tokenizers = pytest.importorskip("tokenizers", reason="the tokenizers library is not installed")
if tokenizers.__version__ != "0.23.3":
    pytest.skip(f"tokenizers {tokenizers.__version__} is not the reference, 0.23.3 is", allow_module_level=True)

ALL = os.environ.get("TOKPACK_NORMALIZERS") == "all"  # some ten minutes
CHARSMAPS = ("t5_small", "marian_nmt")  # the two that the shared tokenizers have
PAIRS: dict[str, tuple[list[Normalizer], Any]] = {}
CHARS = st.one_of(st.sampled_from("".join(POOLS)), st.characters(exclude_categories=["Cs"]))
# contexts in which combining classes show, and the ways in which Precompiled cuts
ALONE = ("{}", "a{}a")
MARKS = (*ALONE, "e{}\u0301", "\u0301{}\u0323", "\u0323{}\u0301e", "{0}{0}", "\u0f71{}\u302e", "\u302e{}\U0001d165")
CUTS = (
    *(*ALONE, "{}a", "{}\u0302", "{}\r\n", "\r{}", "©\u200d{}", "{}\u200d©\u0302", "©{}\u200d©", "\u0600{}"),
    *("\u0915\u094d{}\u0302", "{}\u094d\u0915\u0302", "\u0915{}\u0915\u0302", "\U0001f1e6{}\u0302"),
    *("\u1100{}\u0302", "\u1161{}\u0302", "\u11a8{}\u0302", "{}\u1161\u0302", "{}\u11a8\u0302", "{}\u1100\u0302"),
)
CONTEXTS = {"Precompiled clusters": CUTS, "NFC": MARKS, "NFKD": MARKS, "Bert 11None1": MARKS}


def pair(name: str) -> tuple[list[Normalizer], Any]:
    if name not in PAIRS:
        PAIRS[name] = build(CASES[name]), library(CASES[name])
    return PAIRS[name]


def check(ours: list[Normalizer], theirs: Any, text: str) -> None:
    expected = answer(theirs, text)
    if expected is None:
        return
    at = text
    for normalizer in ours:
        result = normalizer.apply(at)
        assert edited(at, normalizer.edits(at)) == result, ascii(at)
        at = result
    assert at == expected, (ascii(text), ascii(at), ascii(expected))


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=2000 if ALL else 60, database=None)
@given(text=st.text(CHARS, max_size=12))
def test_any_text(name: str, text: str) -> None:
    check(*pair(name), text)


@pytest.mark.parametrize("name", CASES)
def test_nasty_texts(name: str) -> None:
    for text in nasty_texts(20_000 if ALL else 300, seed=11):
        check(*pair(name), text)


@pytest.mark.parametrize("name", CASES)
def test_every_code_point(name: str) -> None:
    """Each one alone, and in contexts; a seeded part of them unless TOKPACK_NORMALIZERS=all."""
    source = random.Random(name)
    codes: Any = range(0x110000) if ALL else sorted(source.sample(range(0x110000), 1000) + list(range(0, 0x3100, 29)))
    ours, theirs = pair(name)
    for code in codes:
        if not 0xD800 <= code < 0xE000:
            for context in CONTEXTS.get(name, ALONE):
                text = context.format(chr(code))
                if run(ours, text) != answer(theirs, text):
                    check(ours, theirs, text)


@pytest.mark.parametrize("file", ["corpus.jsonl", "corpus_hf.jsonl"])
def test_corpora(file: str, shared_data: SharedData) -> None:
    texts = [text for text in read_texts(shared_data("data/" + file)) if isinstance(text, str)]
    assert texts
    for name in CASES:
        ours, theirs = pair(name)
        for text in texts if ALL else texts[::10]:
            assert run(ours, text) == theirs.normalize_str(text), (name, ascii(text))


@pytest.mark.parametrize("name", CHARSMAPS)
def test_real_charsmaps(name: str, shared_data: SharedData) -> None:
    document = json.loads(shared_data(f"data/hf/{name}/tokenizer.json").read_text(encoding="utf-8"))
    blob = _charsmap(document["normalizer"])
    assert blob is not None
    steps = [Precompiled(blob)]
    ours, theirs = build(steps), library(steps)
    texts = nasty_texts(20_000 if ALL else 1000, seed=5)
    for file in ("corpus.jsonl", "corpus_hf.jsonl"):
        texts += [text for text in read_texts(shared_data("data/" + file)) if isinstance(text, str)][:: 1 if ALL else 4]
    source = random.Random(name)
    codes: Any = range(0x110000) if ALL else source.sample(range(0x110000), 2000)
    texts += [
        context.format(chr(c)) for c in codes if not 0xD800 <= c < 0xE000 for context in ("{}", "a{}", "{}\u0301")
    ]
    for text in texts:
        check(ours, theirs, text)


def _charsmap(normalizer: Any) -> bytes | None:
    for part in [normalizer] if normalizer["type"] != "Sequence" else normalizer["normalizers"]:
        if part["type"] == "Precompiled":
            return base64.b64decode(part["precompiled_charsmap"])
    return None


def onig_spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """What ``find_iter`` of the crate onig finds: no empty match right behind a match."""
    spans: list[tuple[int, int]] = []
    for found in pattern.finditer(text):
        if found.start() < found.end() or not spans or spans[-1][1] < found.start():
            spans.append(found.span())
    return spans


@pytest.mark.parametrize("pattern", [r"\A", " {2,}", "[ab]|", "(?=a)", "(?<=a)b*"])
def test_replace_by_a_regular_expression(pattern: str) -> None:
    compiled = re.compile(pattern)
    ours = build([Replace(pattern, "<é>", Dialect.ONIG)], [lambda text: onig_spans(compiled, text)])
    theirs = tokenizers.normalizers.Replace(tokenizers.Regex(pattern), "<é>")
    for text in ("", "a", "ba", "abbc", "a  b   c ", "日ab"):
        check(ours, theirs, text)
