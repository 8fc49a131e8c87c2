"""Merging by rank against tiktoken itself and a direct implementation, on small vocabularies made to be awkward."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokpack.errors import EncodeError
from tokpack.formats.tiktoken.merges import last_merge, merge_list
from tokpack.formats.tiktoken.ranks import read_bytes
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

EXAMPLES = int(os.environ.get("TOKPACK_EXAMPLES", "120"))
ANY = r"(?s:.+)"
Ranks = dict[bytes, int]


@st.composite
def vocabularies(draw: st.DrawFn) -> Ranks:
    """Pieces over two or three letters in any order of ranks, maybe with holes, maybe without some single bytes."""
    letters = draw(st.sampled_from(["ab", "abc"]))
    pieces = draw(st.lists(st.text(letters, min_size=2, max_size=6), unique=True, max_size=24))
    singles = [letter for letter in letters if draw(st.integers(0, 9))]
    order = draw(st.permutations([*pieces, *singles]))
    if not order:
        order = ["a"]
    step = draw(st.sampled_from([1, 1, 3]))
    return {piece.encode(): step * i for i, piece in enumerate(order)}


def rank_file(ranks: Mapping[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(piece) + b" %d\n" % rank for piece, rank in ranks.items())


def tokenizer(ranks: Ranks, pattern: str = ANY, special: Mapping[str, int] | None = None) -> Tokenizer:
    return Tokenizer(PackView(build_pack(read_bytes(rank_file(ranks), None, pattern, special))))


def directly(
    word: bytes, ranks: Mapping[bytes, int], pairs: Mapping[tuple[bytes, bytes], int] | None = None
) -> list[bytes]:
    """The rule as it is written: lowest rank, leftmost; with ``pairs`` only these merge."""
    parts = [word[i : i + 1] for i in range(len(word))]
    while True:
        found = [
            (rank, i)
            for i, (a, b) in enumerate(pairwise(parts))
            if (rank := ranks.get(a + b) if pairs is None else pairs.get((a, b))) is not None
        ]
        if not found:
            return parts
        _, at = min(found)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(vocabularies(), st.lists(st.text("abc", min_size=1, max_size=90), min_size=1, max_size=6))
def test_ids_are_those_of_tiktoken(ranks: Ranks, words: list[str]) -> None:
    tiktoken: Any = pytest.importorskip("tiktoken", "0.9", reason="the live comparison needs tiktoken")
    ours = tokenizer(ranks)
    theirs = tiktoken.Encoding("t", pat_str=ANY, mergeable_ranks=ranks, special_tokens={})
    for word in words:
        try:
            expected = theirs.encode_ordinary(word)
        except BaseException as error:
            assert type(error).__name__ == "PanicException"  # noqa: PT017
            with pytest.raises(EncodeError, match="no piece for byte"):
                ours.encode(word)
            continue
        assert ours.encode(word) == expected
        raw = word.encode()
        assert expected == ([ranks[raw]] if raw in ranks else [ranks[part] for part in directly(raw, ranks)])
        assert [word.encode()[s:e] for _, s, e in ours._pipeline.encode_spans(raw, False, False)] == [
            theirs.decode_single_token_bytes(i) for i in expected
        ]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(vocabularies(), st.lists(st.text("abc", min_size=1, max_size=40), min_size=1, max_size=8))
def test_one_merge_for_each_rank_is_enough(ranks: Ranks, words: list[str]) -> None:
    """The list of :func:`merge_list` merges every word as the ranks do, whatever their order."""
    made = merge_list(read_bytes(rank_file(ranks), None, ANY))
    pairs = {pair: ranks[pair[0] + pair[1]] for pair in made.merges}
    assert list(pairs.values()) == sorted(pairs.values())
    assert len({a + b for a, b in pairs}) == len(pairs)
    for word in [*map(str.encode, words), *ranks]:
        assert directly(word, ranks, pairs) == directly(word, ranks)
    assert set(made.unreachable) == {p for p in ranks if len(p) > 1 and directly(p, ranks) != [p]}
    assert made.is_exact(whole_words=True)
    assert made.is_exact(whole_words=False) == all(directly(p, ranks) == [p] for p in ranks)


@settings(max_examples=100, deadline=None)
@given(vocabularies(), st.text("ab", min_size=49, max_size=200))
def test_last_merges_of_long_pieces(ranks: Ranks, text: str) -> None:
    piece = text.encode()
    ranks = {**ranks, piece: 1000}
    parts = directly(piece, {p: r for p, r in ranks.items() if p != piece})
    assert last_merge(piece, ranks) == (tuple(parts) if len(parts) == 2 else None)


def test_a_piece_that_needs_parts_of_higher_rank() -> None:
    """Ranks that do not ascend with the merges: abc (1) is made of ab (9)."""
    ranks = {b"a": 0, b"abc": 1, b"b": 2, b"c": 3, b"ab": 9}
    made = merge_list(read_bytes(rank_file(ranks), None, ANY))
    assert made.merges == ((b"ab", b"c"), (b"a", b"b"))
    assert tokenizer(ranks).encode("xabc".removeprefix("x") + "ab") == [1, 9]
