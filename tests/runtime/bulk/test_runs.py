"""Very long words: the same symbols as one by one."""

from __future__ import annotations

import random

import pytest

from tests.property.pairs import pair
from tokpack.runtime.bulk.runs import merge_often


@pytest.mark.parametrize("name", ["demo", "odd-merges", "sarvam-moe", "boundaries"])
def test_runs_merge_as_one_by_one(name: str) -> None:
    model = pair(name).merging
    merger = model._merger
    source = random.Random(5)
    chunks = ["a", "ab", "e", " ", "the", "é", "\n", "abc ab", "x" * 7 + "y"]
    for _ in range(200):
        word = "".join(source.choice(chunks) * source.randint(1, 60) for _ in range(source.randint(1, 3))).encode()
        if name == "sarvam-moe":
            word = word.replace(b" ", b"_")
        symbols, ends = model._symbols(word)
        expected = merger._merge_long(list(symbols), list(ends))
        assert merger._merge_long(*merge_often(symbols, ends, *merger._sections)) == expected
