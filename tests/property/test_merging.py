"""Long words merge as short ones do: by lowest rank, leftmost first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.pairs import Pair, budget, pair
from tokpack.unicode import byte_level

NAMES = ("demo", "boundaries", "odd-merges", "missing-bytes", "odd-tokens", "kimi-k2-no-merges", "sarvam-moe")


def words(both: Pair) -> st.SearchStrategy[bytes]:
    """Words of what pieces stand for, so that much merges; with runs, whose pairs all have one rank."""
    chunks = [both.slow.piece(token, True) for token in range(both.fast.vocab_size)]
    if not both.slow.byte_level:
        chunks = [chunk.replace(b" ", "▁".encode()) for chunk in chunks if _whole_characters(chunk)]
    usable = sorted({chunk for chunk in chunks if chunk})
    few = st.sampled_from(usable).flatmap(lambda chunk: st.integers(1, 40).map(lambda n: (chunk * n)[:120]))
    if not both.slow.byte_level:
        few = few.filter(_whole_characters)
    return st.lists(st.one_of(st.sampled_from(usable), few), min_size=1, max_size=40).map(b"".join)


def _whole_characters(raw: bytes) -> bool:
    return raw.decode("utf-8", "ignore").encode() == raw


def reference_ids(both: Pair, word: bytes) -> list[int]:
    spelled = byte_level.encode(word).encode() if both.slow.byte_level else word
    return [token for symbol in both.slow._merge(spelled) for token in both.slow._emit(symbol)]


@pytest.mark.parametrize("name", NAMES)
def test_long_words(name: str) -> None:
    both = pair(name)
    model = both.merging

    @budget()
    @given(words(both))
    def check(word: bytes) -> None:
        assert model.encode(word) == reference_ids(both, word)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_of_merging(name: str) -> None:
    both = pair(name)
    model = both.merging

    @budget()
    @given(words(both))
    def check(word: bytes) -> None:
        symbols, ends = model._symbols(word)
        short_symbols, short_ends = list(symbols), list(ends)
        model._merger._merge_short(short_symbols, short_ends)
        long_symbols, long_ends = model._merger._merge_long(list(symbols), list(ends))
        assert (short_symbols, short_ends) == (long_symbols, long_ends)

    check()


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 66, 127, 1000])
@pytest.mark.parametrize("chunk", ["a", "ab", "e", " ", "the", "é", "中", "\U0001f44d", "\n"])
def test_runs_around_the_length_where_the_ways_part(chunk: str, length: int) -> None:
    both = pair("demo")
    word = (chunk * length).encode()[: length if chunk.isascii() else None][:1000]
    assert both.merging.encode(word) == reference_ids(both, word)
