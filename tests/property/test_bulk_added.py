"""Added tokens that are runs of one character are found by arrays where the scalar path finds them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.pairs import budget
from tokpack.runtime.bulk.added_runs import AddedRuns
from tokpack.runtime.bulk.segments import Given
from tokpack.runtime.hf.added import AddedMatcher, AddedToken

WORDS = ["\n", "\n\n\n", "▁", "▁▁", "<a>", "<a>b", "a", "b", "ab", "é", " ", "<"]


def plain(token: int, pattern: str, special: bool = False) -> AddedToken:
    return AddedToken(token, pattern, special, single_word=False, lstrip=False, rstrip=False)


@st.composite
def tokens(draw: st.DrawFn) -> list[AddedToken]:
    low, high = sorted((draw(st.integers(1, 5)), draw(st.integers(1, 5))))
    found = [plain(10 + size, "\n" * size) for size in range(low, high + 1)]
    found += [plain(30 + size, "▁" * size) for size in range(2, 4)]
    others = [plain(50, "<a>", special=True), plain(51, "<a>b"), plain(52, "ab"), plain(53, "\n")]
    return found + draw(st.lists(st.sampled_from(others), unique=True))


def test_as_the_matcher_finds_them() -> None:
    @budget(10)
    @given(tokens(), st.lists(st.sampled_from(WORDS), max_size=30).map("".join), st.booleans())
    def check(added: list[AddedToken], text: str, skip: bool) -> None:
        runs = AddedRuns.of(added)
        if runs is None:
            return
        found = runs.find(text, skip)
        matcher = AddedMatcher(added, lambda _: False, lambda _: False)
        expected = Given.of(matcher.spans(text, skip))
        assert found.starts.tolist() == expected.starts.tolist()
        assert found.ends.tolist() == expected.ends.tolist()
        assert found.ids.tolist() == expected.ids.tolist()

    check()


def test_what_competes_is_left_to_the_matcher() -> None:
    line = [plain(1, "\n"), plain(2, "\n\n")]
    assert AddedRuns.of(line) is not None
    assert AddedRuns.of([*line, plain(3, "a\n")]) is None
    assert AddedRuns.of([*line, plain(3, "\n\n\n\n")]) is None
    assert (
        AddedRuns.of([*line, AddedToken(3, "b", special=False, single_word=True, lstrip=False, rstrip=False)]) is None
    )
    assert AddedRuns.of([plain(3, "ab")]) is None
