"""One pass for special tokens gives what a pass for each of them gives; its time does not grow with their number."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES
from tests.property.pairs import budget
from tokpack.runtime.occurrences import Special, finder
from tokpack.runtime.partition import Fragment, Partition

ALPHABETS = (b"ab", b"ab ", b"abc \n", b"a", b"<|> \t")


def partition(tokens: list[Special]) -> Partition:
    """Of tokens alone."""
    made: Any = object.__new__(Partition)
    made.tokens, made._finders, made._start = tokens, {}, None
    found: Partition = made
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Special], bytes]:
    letters = draw(st.sampled_from(ALPHABETS))
    content = st.lists(st.sampled_from(letters), min_size=1, max_size=6).map(bytes)
    flags = st.tuples(*[st.sampled_from([False, False, True])] * 3)
    some = draw(st.lists(st.tuples(content, flags), min_size=1, max_size=9))
    tokens = [Special(at, text, *flag) for at, (text, flag) in enumerate(some)]
    tokens.sort(key=lambda token: -len(token.content))
    text = draw(st.lists(st.sampled_from(letters + b"z"), min_size=1, max_size=40).map(bytes))
    return tokens, text


@budget(40)
@given(cases(), st.booleans())
def test_one_pass_equals_many(case: tuple[list[Special], bytes], parse: bool) -> None:
    tokens, text = case
    made = partition(tokens)
    assert finder(tokens) is not None
    assert made.cut(text, parse) == made._passes(text, parse)


def test_any_order_of_tokens() -> None:
    tokens = [Special(0, b"a", False, False, False), Special(1, b"ab", False, False, False)]
    assert finder(tokens) is None
    expected: list[Fragment] = [(0, 0, 1), (-1, 1, 2)]
    assert partition(tokens).cut(b"ab", True) == expected
    assert finder([]) is not None
    assert partition([]).cut(b"ab", True) == [(-1, 0, 2)]


def many(count: int) -> list[Special]:
    tokens = [Special(i, b"<t%d>" % (i * 7919), False, False, False) for i in range(count)]
    return sorted(tokens, key=lambda token: -len(token.content))


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (many(20_000), b"".join(b"x<t%d>" % (i * 7919) for i in range(20_000)) * 3),
        ([Special(size, b"a" * size, False, False, False) for size in range(60, 0, -1)], b"a" * 60_000),
        ([Special(0, b"abab", True, True, False), Special(1, b"bab", True, False, False)], b"ab ab" * 12_000),
        ([Special(0, b"<x>", True, True, False)], b"<x>" + b" " * 1_000_000 + b"<x>"),
    ],
    ids=["many", "nested", "overlapping", "spaces"],
)
def test_the_time_is_linear(tokens: list[Special], text: bytes) -> None:
    """Seconds at worst on a slow machine; a pass for each token, or for each place, takes minutes."""
    start = time.process_time()
    found = partition(tokens).cut(text, True)
    assert time.process_time() - start < 10
    assert found[-1][2] <= len(text)


def test_beginnings() -> None:
    def may_hold(contents: list[bytes], text: str) -> bool:
        return partition([Special(0, content, False, False, False) for content in contents]).may_hold(text)

    assert not may_hold([], "<x>")
    assert may_hold([b"<x>", b"[y"], "a<x")
    assert not may_hold([b"<x>", b"[y"], "a<y[x]-^")
    assert may_hold([b"]", b"^", b"-"], "a-b")
    assert may_hold([b"\xe4\xb8"], "any")
    assert may_hold([b"\n"], "a\n")


def test_a_fixture_of_overlapping_tokens() -> None:
    made: Any = tokpack.load(FIXTURES / "overlapping-specials.gguf")._pipeline
    contents = [token.content for token in made._partition.tokens]

    @budget(5)
    @given(st.lists(st.sampled_from([*contents, b" ", b"a", b"<"]), max_size=12).map(b"".join), st.booleans())
    def check(text: bytes, parse: bool) -> None:
        if text:
            assert made._partition.cut(text, parse) == made._partition._passes(text, parse)

    check()
