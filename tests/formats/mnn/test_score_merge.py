"""Merges from scores: the same ids as llama.cpp's score merge, ties included."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tokpack.errors import UnsupportedError
from tokpack.formats.mnn import write_body
from tokpack.formats.mnn.core import char_in_pieces
from tokpack.formats.mnn.cuts import exact_cuts
from tokpack.formats.mnn.lower import lower
from tokpack.formats.mnn.parts import Bpe, Metaspace, Prepend, Split, StripDecoder
from tokpack.formats.mnn.score_merge import LONGEST, derive_merges
from tokpack.ir import (
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    Reference,
    ScoreMerge,
    TokenizerIR,
    Vocab,
    steps,
)

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]
FALLBACK = tuple(f"<0x{byte:02X}>".encode() for byte in range(256))
MARK = "▁".encode()
ESCAPE = steps.Replace(" ", "▁")


def make(*more: tuple[bytes, float], fallback: tuple[bytes, ...] = FALLBACK, **rest: Any) -> TokenizerIR:
    """Byte pieces, U+2581 and ``more`` pieces with scores."""
    entries = [*((piece, 0.0) for piece in fallback), (MARK, -1.0), *more]
    attrs = [PieceAttr.BYTE] * len(fallback) + [PieceAttr.NORMAL] * (len(more) + 1)
    parts: dict[str, Any] = {
        "reference": Reference.LLAMA_CPP,
        "rules": "test",
        "unicode": "llamacpp-15.1",
        "vocab": Vocab(
            tuple(piece for piece, _ in entries),
            np.ones(len(entries), np.uint8),
            np.array(attrs, np.uint16),
            np.array([score for _, score in entries], np.float32),
        ),
        "alphabet": Alphabet(AlphabetKind.UTF8, byte_fallback=True),
        "model": ScoreMerge(),
        "matching": Matching(MatchingRule.PASS_PER_TOKEN),
        "normalizer": (steps.SpacePrefix(), ESCAPE),
        "decoder": (steps.LlamaDetokenize(False, unescape_spaces=True, strip_space=True),),
        "post_processor": steps.BosEos(False, False),
    }
    return TokenizerIR(**(parts | rest))


def reference(ir: TokenizerIR, text: str) -> list[int]:
    """The rule itself: of neighbours whose text is a piece the highest score, then the leftmost."""
    index = {piece: number for number, piece in enumerate(ir.vocab.pieces)}
    assert ir.vocab.scores is not None
    scores = ir.vocab.scores.tolist()
    spaced = " " + text if steps.SpacePrefix() in ir.normalizer else text
    symbols = [char.encode() for char in spaced.replace(" ", "▁")]
    while True:
        found = [
            (-scores[index[left + right]], at)
            for at, (left, right) in enumerate(itertools.pairwise(symbols))
            if left + right in index
        ]
        if not found:
            break
        at = min(found)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return [n for s in symbols for n in ([index[s]] if s in index else [index[b"<0x%02X>" % byte] for byte in s])]


def codes(ir: TokenizerIR) -> set[str]:
    return {finding.code for finding in lower(ir)[1]}


def test_a_small_vocabulary() -> None:
    body, findings = lower(make((b"a", -1), (b"b", -1), (b"ab", -3), (MARK + b"a", -2), (b"aab", -9)))
    assert isinstance(body.model, Bpe)
    assert body.model.merges.tolist() == [[257, 258, 1], [256, 257, 0], [257, 259, 2]]
    assert body.normalizer == (Prepend(" "),)
    assert body.pre_tokenizer[0] == Split(r"[^\x07 ](?!(?! ))", behavior="merged-with-previous")
    assert body.pre_tokenizer[-1] == Metaspace("▁", add_prefix_space=False)
    assert body.decoder[-1] == StripDecoder(" ", 1, 0)
    assert {f.code for f in findings} == {
        "mtok-slow-words",
        "mtok-text-limits",
        "mtok-parse-special",
        "mtok-leading-space",
        "mtok-wregex",
    }


def test_equal_scores_share_a_rank_and_fall_to_the_left(ask: Ask) -> None:
    ir = make(*((piece, -1.0) for piece in (b"a", b"b", b"c", b"ab", b"bc", b"aa")), normalizer=(ESCAPE,))
    texts = ["abc", "aab", "aaa", "aabc", "bcab"]
    assert ask(write_body(ir)[0], "encode", texts) == [reference(ir, text) for text in texts]
    assert lower(ir)[0].model.merges[:, 2].tolist() == [0, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(6))
def test_random_vocabularies(seed: int, ask: Ask) -> None:
    """Few distinct scores, pieces in no order, some that merging never reaches: the same ids on every text."""
    choose = random.Random(seed)
    letters = ["a", "b", "é", "▁", "。"][: choose.randint(3, 5)]
    texts = {"".join(choose.choices(letters, k=choose.randint(2, 5))) for _ in range(40)} - {"▁"}
    entries = [(letter.encode(), -1.0) for letter in letters if letter != "▁"]
    entries += [(text.encode(), float(-choose.randint(0, choose.choice((1, 4, 40))))) for text in sorted(texts)]
    ir = make(*entries)
    probes = ["".join(choose.choices([*letters, " "], k=choose.randint(0, 12))) for _ in range(250)]
    probes = [probe for probe in probes if probe]
    assert ask(write_body(ir)[0], "encode", probes) == [reference(ir, probe) for probe in probes]


def test_the_prefix_stands_before_each_fragment(ask: Ask) -> None:
    ir = make((b"a", -1), (MARK + b"a", -2), (b"<s>", 0))
    ir.vocab.attrs[259] = PieceAttr.CONTROL
    with_token = make((b"a", -1), (MARK + b"a", -2), (b"<s>", 0), added_tokens=(AddedToken(259, b"<s>"),))
    with_token.vocab.attrs[259] = PieceAttr.CONTROL
    answers = ask(write_body(with_token)[0], "encode", ["", "a", "<s>a<s> a"])
    assert answers == [[], [258], [259, 258, 259, 256, 258]]


def test_pieces_with_characters_that_are_no_pieces_are_announced() -> None:
    assert "mtok-merge-part" in codes(make((b"a", -1), (b"ax", -2)))
    spelled = [b"<0x41>a"[:end] for end in (1, 2, 3, 4, 5, 7)] + [b"0", b"x", b"4", b"1", b">", b"a"]
    assert "mtok-merge-part" in codes(make(*((piece, -1.0) for piece in spelled)))
    assert "mtok-merge-part" not in codes(make((b"a", -1), (b"ab", -2), (b"b", -1)))


def test_absent_byte_pieces_are_announced() -> None:
    assert "mtok-byte-pieces" in codes(make((b"a", -1), fallback=FALLBACK[:0xE2]))
    assert "mtok-byte-pieces" not in codes(make((b"a", -1), fallback=FALLBACK[:0xF5]))
    assert "mtok-byte-pieces" not in codes(make((b"a", -1), fallback=FALLBACK[:97] + FALLBACK[98:0xF5]))


def test_very_long_pieces_are_not_tried() -> None:
    pieces = [b"a", b"a" * (LONGEST + 1)]
    merges, no_part, long = derive_merges(pieces, [0.0, 0.0], {piece: i for i, piece in enumerate(pieces)})
    assert (merges.tolist(), no_part, long) == ([], [], [1])
    assert "mtok-long-pieces" in codes(make((pieces[0], 0.0), (pieces[1], 0.0)))


def test_no_scores_are_scores_of_zero() -> None:
    ir = make((b"a", 0), (b"aa", 0))
    vocab = Vocab(ir.vocab.pieces, ir.vocab.types, ir.vocab.attrs, None)
    model = lower(make((b"a", 0), (b"aa", 0), vocab=vocab))[0].model
    assert isinstance(model, Bpe)
    assert model.merges.tolist() == [[257, 257, 0]]


@pytest.mark.parametrize(
    "changes", [{"normalizer": ()}, {"normalizer": (ESCAPE, ESCAPE)}, {"pre_tokenizer": (steps.Digits(),)}]
)
def test_steps_that_llama_cpp_does_not_have_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"\.tokpack"):
        lower(make(**changes))


def test_cuts_leave_out_what_a_merge_joins() -> None:
    def patterns(*results: str) -> list[str]:
        return [cut.pattern for cut in exact_cuts(text.encode() for text in results)]

    assert patterns("▁a", "▁▁", "ab")[0] == r"[^\x07 ](?!(?! ))"
    assert patterns(">▁", "]▁", "a▁b")[0] == r"[^\x07 >\]a](?!(?! ))"
    assert patterns("é▁")[0] == r"[^\x01\x02\x03\x04\x05\x06\x07 ](?!(?! ))"
    assert "。" in patterns("a。")[1]
    assert "。" not in patterns("。a", "b")[1]
    assert "、" not in patterns("。、a")[1]
    assert all(cut.behavior == "merged-with-previous" for cut in exact_cuts([]))


def test_long_texts_without_spaces_stay_fast(ask: Ask) -> None:
    ir = make(*((char.encode(), -1.0) for char in "今天很好。"), ("今天".encode(), -2))
    texts = ["今天很好。" * 20_000, " " * 100_000, "今 " * 50_000]
    assert [len(ids) for ids in ask(write_body(ir)[0], "encode", texts)] == [80_001, 100_001, 100_001]


def test_char_in_pieces() -> None:
    assert char_in_pieces(["aé".encode(), b"\xff", b"a"]) == {"a", "é"}
