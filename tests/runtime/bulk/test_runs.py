"""Very long words: the same symbols as one by one."""

from __future__ import annotations

import random
from array import array

import pytest

from tests.property.pairs import pair
from tests.seeds import run_seed
from tokpack.runtime.bpe import Merger
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


class _View:
    """A pack of nothing but merges."""

    def __init__(self, merges: dict[int, tuple[int, int]]) -> None:
        pairs = sorted(merges.items())
        self._sections = {
            "merge.key": array("Q", [key for key, _ in pairs]),
            "merge.rank": array("I", [rank for _, (rank, _) in pairs]),
            "merge.result": array("I", [result for _, (_, result) in pairs]),
        }

    def array(self, name: str) -> memoryview:
        return memoryview(self._sections[name])


class _Pieces:
    symbols = 1 << 30


def random_merges(source: random.Random, first: int) -> dict[int, tuple[int, int]]:
    """Merges of any order: ranks that fall, that are equal, and results that have been there before."""
    merges: dict[int, tuple[int, int]] = {}
    count, again, equal = first, source.random() < 0.2, source.random() < 0.6
    for number in range(source.randint(1, 40)):
        key = source.randrange(count) << 32 | source.randrange(count)
        if key not in merges:
            result = source.randrange(count + 1) if again else count
            merges[key] = source.randrange(60) if equal else number, result
            count = max(count, result + 1)
    return merges


def test_any_table_merges_as_one_by_one() -> None:
    seed = run_seed()
    print(f"seed {seed}")
    source = random.Random(seed)
    whole = 0
    for _ in range(600):
        first = source.randint(2, 6)
        view = _View(random_merges(source, first))
        merger = Merger(view, _Pieces())  # type: ignore[arg-type]
        choices = [source.randrange(first), *range(first), -1 if source.random() < 0.2 else 0]
        symbols = source.choices(choices, k=source.choice((2, 5, 20, 100, 400)))
        if source.random() < 0.3:
            symbols = [symbol for symbol in symbols for _ in range(source.randint(1, 9))]
        ends = list(range(1, len(symbols) + 1))
        expected = merger._merge_long(list(symbols), list(ends))
        found = merge_often(symbols, ends, *merger._sections)
        whole += found == expected
        assert merger._merge_long(*found) == expected
    assert whole > 500, "most words are merged to the end"
