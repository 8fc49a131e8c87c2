"""Texts on which llama.cpp overflows its stack, dies or aborts: the same rules' ids, or an error."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.runtime.reference import ReferenceTokenizer

ABOVE = b"a\xf4\x90\x80\x80b"  # a sequence above U+10FFFF
# recorded from llama.cpp (xllamacpp 2026.10.11549)
RECORDED = {
    "spm": [287, 247, 147, 131, 131, 684],
    "rwkv": [98, 245, 145, 129, 129, 99],
    "plamo2": [648, 248, 148, 132, 132, 649],
    "ugm": [590, 454, 2, 455],
}
RUNS: dict[str, Callable[[int], str]] = {
    "letters": lambda n: "a" * n,
    "capitals": lambda n: "A" * n,
    "letters beyond ASCII": lambda n: "É" * n,
    "ideographs": lambda n: "中" * n,
    "digits": lambda n: "1" * n,
    "punctuation": lambda n: "!" * n,
    "marks": lambda n: "e" + "\u0301" * n,
    "spaces": lambda n: " " * n + "x",
    "newlines": lambda n: "\n" * n,
    "alternating": lambda n: "aA" * (n // 2),
    "words": lambda n: "a " * (n // 2),
}
# one fixture for each regular-expression engine of llama.cpp, and for each model
VOCABULARIES = (
    *("gpt-2", "llama-bpe", "qwen2", "deepseek-v3", "deepseek-llm", "gpt-4o", "tekken", "superbpe", "afmoe", "kimi-k2"),
    *("falcon", "spm", "wpm", "ugm", "rwkv", "plamo2", "gemma4", "whitespace"),
)


@pytest.mark.parametrize("name", RECORDED)
def test_above_the_last_code_point_where_bytes_count(name: str) -> None:
    assert tokpack.load(FIXTURES / f"{name}.gguf").encode(ABOVE, False, False) == RECORDED[name]


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "wpm", "gemma4", "hybriddna", "whitespace"])
def test_above_the_last_code_point_where_llamacpp_dies(name: str) -> None:
    with pytest.raises(tokpack.EncodeError, match=r"above U\+10FFFF"):
        tokpack.load(FIXTURES / f"{name}.gguf").encode(ABOVE, False, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
def test_long_runs_take_time_in_proportion(name: str) -> None:
    """100,000 characters in one class, on which llama.cpp overflows its stack with some pre-tokenizers."""
    tokenizer = tokpack.load(FIXTURES / f"{name}.gguf")
    for label, make in RUNS.items():
        times = []
        for size in (10_000, 100_000):
            text = make(size)
            start = time.process_time()
            ids = tokenizer.encode(text, False, False)
            times.append(time.process_time() - start)
            assert ids or label == "newlines", label  # white space makes no token in some models
        assert times[1] < 40 * times[0] + 1, (label, times)  # quadratic time would be a hundredfold


@pytest.mark.parametrize("name", ["gpt-2", "gpt-4o", "deepseek-llm", "superbpe"])
def test_long_runs_have_the_ids_of_the_rules(name: str) -> None:
    """A run that is longer than any cache and any short path, against the obvious implementation."""
    fast = tokpack.load(FIXTURES / f"{name}.gguf")
    slow = ReferenceTokenizer(tokpack.read(FIXTURES / f"{name}.gguf"))
    for label, make in RUNS.items():
        assert fast.encode(make(600), False) == slow.encode(make(600), False), label
