"""Stages against what can be worked out by hand or by trying everything, limits, damaged packs."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import limit
from tests.pack.helpers import pack_of
from tokpack.analysis import explain
from tokpack.analysis.explanation import TEXT_LIMIT, Choice, Match, Merge, as_document
from tokpack.analysis.explanation.lattice import best_path
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer


def test_merges_by_hand(tmp_path: Path) -> None:
    """The lowest rank first, of equal ones the leftmost; ranks are lines of the file."""
    vocab = ["a", "b", "c", "ab", "bc", "abc", "cc"]
    merges = ["b c", "a b", "a bc", "c c"]
    model = {"type": "BPE", "vocab": {text: i for i, text in enumerate(vocab)}, "merges": merges}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}), encoding="utf-8")
    (part,) = explain(tokpack.load(path), "abcbccc").parts
    (word,) = part.words
    assert word.symbols == (b"a", b"b", b"c", b"b", b"c", b"c", b"c")
    assert word.actions == (
        Merge(0, None, b"b", b"c", b"bc", 1, 3),
        Merge(0, None, b"b", b"c", b"bc", 3, 5),
        Merge(2, None, b"a", b"bc", b"abc", 0, 3),
        Merge(3, None, b"c", b"c", b"cc", 5, 7),
    )
    assert [token.text for token in word.tokens] == [b"abc", b"bc", b"cc"]


PIECES = {b"a": -3.0, b"b": -2.5, b"ab": -4.0, b"ba": -5.5, b"aba": -7.0, b"bb": -4.75}


@settings(deadline=None, max_examples=200)
@given(st.text("ab", min_size=1, max_size=9).map(str.encode))
def test_best_path_against_all_paths(text: bytes) -> None:
    ids = {piece: number for number, piece in enumerate(PIECES)}

    def edges(at: int) -> tuple[int, list[tuple[int, float, int]]]:
        found = [(len(p), score, ids[p]) for p, score in PIECES.items() if text.startswith(p, at)]
        return 1, sorted(found)

    def ways(at: int) -> list[float]:
        if at == len(text):
            return [0.0]
        return [score + rest for size, score, _ in edges(at)[1] for rest in ways(at + size)]

    path = best_path(text, edges)
    assert b"".join(choice.text for choice in path) == text
    assert path[-1].total == max(ways(0))
    assert list(itertools.accumulate(choice.value for choice in path)) == [choice.total for choice in path]
    for choice in path:
        assert choice.rival is None or choice.rival[2] <= choice.total


def test_word_piece_matches_are_the_longest() -> None:
    tokenizer = tokpack.load(FIXTURES / "wpm.gguf")
    for part in explain(tokenizer, "hello unhelloing world").parts:
        for word in part.words:
            for action in word.actions:
                assert isinstance(action, Match)
                longer = word.text[action.start : action.end + 1]
                assert tokenizer.token_to_id(longer) is None or action.end == len(word.text)


def test_costs_of_a_path_add_up() -> None:
    tokenizer = tokpack.load(FIXTURES / "plamo2.gguf")
    (part,) = explain(tokenizer, "Hello world 世界", add_special_tokens=False).parts
    (word,) = part.words
    choices = [action for action in word.actions if isinstance(action, Choice)]
    assert list(itertools.accumulate(choice.value for choice in choices)) == [choice.total for choice in choices]
    assert b"".join(choice.text for choice in reversed(choices)) == word.text


def test_parts_of_a_text_with_special_tokens() -> None:
    found = explain(tokpack.load(FIXTURES / "demo.gguf"), "a<|im_end|>b")
    assert [(part.kind, part.text, part.start, part.end) for part in found.parts] == [
        ("text", b"a", 0, 1),
        ("token", b"<|im_end|>", 1, 11),
        ("text", b"b", 11, 12),
    ]
    (part,) = explain(tokpack.load(FIXTURES / "demo.gguf"), "a<|im_end|>b", parse_special=False).parts
    assert part.kind == "text"


def test_ids_that_the_vocabulary_lacks() -> None:
    """llama.cpp emits -1 for what is unknown where no unknown piece is named."""
    tokenizer = tokpack.load(FIXTURES / "rwkv-no-unk.gguf")
    found = explain(tokenizer, "a\u4e00", add_special_tokens=False)
    assert -1 in found.ids
    assert found.ids == tokenizer.encode("a\u4e00", add_special_tokens=False)


def test_ids_on_which_decoding_fails() -> None:
    """words-by-regex: the Strip decoder panics on some pieces by themselves; they have ids all the same."""
    tokenizer = tokpack.load(FIXTURES / "hf/words-by-regex.json")
    failing = []
    for text in map(chr, range(32, 0x250)):
        ids = tokenizer.encode(text)
        try:
            tokenizer.decode(ids)
        except tokpack.EncodeError:
            failing.append(text)
            assert explain(tokenizer, text).ids == ids
            assert [piece.id for piece in tokenizer.pieces(text)] == ids
    assert failing


def test_text_of_nothing() -> None:
    for name in ("demo.gguf", "spm.gguf", "hf/t5.json", "sentencepiece/unigram.model"):
        tokenizer = tokpack.load(FIXTURES / name)
        assert explain(tokenizer, "").ids == tokenizer.encode("")
        assert explain(tokenizer, b"", add_special_tokens=False).ids == []


@pytest.mark.parametrize("name", ["demo.gguf", "spm.gguf", "ugm.gguf", "wpm.gguf", "plamo2.gguf", "hf/llama2.json"])
def test_long_texts_take_seconds_and_longer_ones_are_refused(name: str) -> None:
    tokenizer = tokpack.load(FIXTURES / name)
    with limit(20):
        explain(tokenizer, "a" * (TEXT_LIMIT // 4))
    with pytest.raises(tokpack.UsageError, match=r"65,537 bytes.*explain a part"):
        explain(tokenizer, "a" * (TEXT_LIMIT + 1))


def test_where_the_reference_aborts_there_is_no_explanation() -> None:
    with pytest.raises(tokpack.EncodeError):
        explain(tokpack.load(FIXTURES / "demo.gguf"), b"\xf7\xbf\xbf\xbf")


@pytest.mark.parametrize("name", ["small", "llama-bpe", "sarvam-moe"])
def test_damaged_packs(name: str) -> None:
    """Any bytes in any section: a named error, or an explanation; never another exception, never for long."""
    data = pack_of(name)
    rng = random.Random(4_711)
    sections = PackView(data).sections
    for section, (start, size) in sorted(sections.items()):
        for _ in range(4):
            damaged = bytearray(data)
            for _ in range(3):
                at = start + rng.randrange(max(size, 1))
                damaged[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", rng.randbytes(4)])
            error = ""
            with limit(5):
                try:
                    tokenizer = Tokenizer(PackView(bytes(damaged), "bad.tokpack"))
                    as_document(explain(tokenizer, "Hello <|im_end|> wörld 12"))
                except tokpack.TokpackError as found:
                    error = str(found)
            assert "internal fault" not in error, section
