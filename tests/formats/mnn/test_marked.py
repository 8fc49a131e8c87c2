"""Byte-pair models with a prefix or a suffix, in the real MNN engine: marks before words and behind characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack.errors import RefusedError
from tokpack.formats.mnn import write_body
from tokpack.formats.mnn.hf_patterns import parse_pattern
from tokpack.formats.mnn.marks import Marks
from tokpack.ir import (
    BPE,
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    Reference,
    TokenizerIR,
    Vocab,
    steps,
)
from tokpack.ir.patterns import Behavior, Dialect
from tokpack.unicode.byte_level import CHARS

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]
CLIP = r"'s|'t|'re|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def make(
    pieces: tuple[str, ...], model: BPE, pre: tuple[Any, ...], kind: AlphabetKind = AlphabetKind.UTF8
) -> TokenizerIR:
    raw = tuple(piece.encode() for piece in pieces)
    return TokenizerIR(
        reference=Reference.HUGGINGFACE,
        rules="tokenizers 0.23.3",
        unicode="huggingface",
        vocab=Vocab(raw, np.ones(len(raw), np.uint8), np.full(len(raw), int(PieceAttr.NORMAL), np.uint16)),
        alphabet=Alphabet(kind),
        model=model,
        matching=Matching(MatchingRule.LEFTMOST_LONGEST),
        pre_tokenizer=pre,
        added_tokens=(AddedToken(0, raw[0], special=True),) if raw[0] == b"<unk>" else (),
    )


def merges(*pairs: str) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((left.encode(), right.encode()) for left, right in (pair.split() for pair in pairs))


def ids(ir: TokenizerIR, *pieces: str) -> list[int]:
    return [ir.vocab.pieces.index(piece.encode()) for piece in pieces]


def test_suffix_of_characters(ask: Ask) -> None:
    pieces = ("<unk>", "a", "b", "é", "a</w>", "b</w>", "é</w>", "ab", "ab</w>", "éa", "aba", "bé</w>")
    model = BPE(merges("a b", "a b</w>", "é a", "ab a", "b é</w>"), unk_piece=b"<unk>", end_of_word_suffix=b"</w>")
    ir = make(pieces, model, (steps.WhitespaceSplit(),))
    body, _ = write_body(ir)
    answers = ask(body, "encode", ["ab", "aba b", "éa", " a\u2028aab", "bé x axa", "<unk>a", "abab"])
    assert answers == [
        ids(ir, "ab</w>"),
        ids(ir, "ab", "a</w>", "b</w>"),
        ids(ir, "é", "a</w>"),
        ids(ir, "a</w>", "a", "ab</w>"),
        ids(ir, "bé</w>", "<unk>", "a", "<unk>", "a</w>"),
        ids(ir, "<unk>", "a</w>"),
        ids(ir, "ab", "ab</w>"),
    ]


def test_suffix_of_bytes(ask: Ask) -> None:
    base = (*CHARS, *(char + "</w>" for char in CHARS))
    pieces = (*base, "ab</w>", "ä¸", "ä¸Ń</w>", "'s</w>")
    model = BPE(merges("a b</w>", "ä ¸", "ä¸ Ń</w>", "' s</w>"), end_of_word_suffix=b"</w>")
    pre = (steps.Split(CLIP, Dialect.ONIG, Behavior.REMOVED, invert=True), steps.ByteLevel(use_regex=False))
    ir = make(pieces, model, pre, AlphabetKind.BYTE_LEVEL)
    body, _ = write_body(ir)
    answers = ask(body, "encode", ["ab it's", "中", "中中", "12", "a!?b", "\u0661\u0662"])
    assert answers == [
        ids(ir, "ab</w>", "i", "t</w>", "'s</w>"),
        ids(ir, "ä¸Ń</w>"),
        ids(ir, "ä¸", "Ń", "ä¸Ń</w>"),
        ids(ir, "1</w>", "2</w>"),
        ids(ir, "a</w>", "!", "?</w>", "b</w>"),
        ids(ir, "Ù", "¡</w>", "Ù", "¢</w>"),
    ]


def test_prefix(ask: Ask) -> None:
    pieces = ("<unk>", "a", "b", "##a", "##b", "ab", "##ab", "'", "##é", "aba")
    model = BPE(merges("##a ##b", "a ##b", "ab ##a"), unk_piece=b"<unk>", continuing_subword_prefix=b"##")
    ir = make(pieces, model, (steps.BertPreTokenizer(),))
    body, _ = write_body(ir)
    answers = ask(body, "encode", ["ab", "bab aba", "a'b", "aé é", "xa", "ax", "'"])
    assert answers == [
        ids(ir, "ab"),
        ids(ir, "b", "##ab", "aba"),
        ids(ir, "a", "'", "b"),
        ids(ir, "a", "##é", "<unk>"),
        ids(ir, "<unk>", "##a"),
        ids(ir, "a", "<unk>"),
        ids(ir, "'"),
    ]


def test_words_that_cannot_be_marked_are_refused() -> None:
    suffix = BPE((), end_of_word_suffix=b"</w>")
    for pre in ((steps.UnicodeScripts(),), (steps.Split(r"(?<=a)b", Dialect.ONIG),)):
        with pytest.raises(RefusedError) as caught:
            write_body(make(("a", "a</w>"), suffix, pre))
        assert caught.value.code == "mtok-affix"


KNOWN = frozenset("abcé中1!'st")


@cache
def marked(known: frozenset[str] | None) -> tuple[Marks, dict[str, str]]:
    marks = Marks([parse_pattern(CLIP, Dialect.ONIG)], known)
    return marks, marks.table()


@settings(max_examples=150, deadline=None)
@given(st.characters(exclude_categories=["Cs"], exclude_characters="\0", max_codepoint=0x1FFFF))
def test_each_character_has_marks_that_can_be_taken_off(char: str) -> None:
    marks, table = marked(KNOWN)
    assert table[char][0] == char if char in KNOWN else table[char] in marks.unknown
    marks, table = marked(None)
    symbols = "".join(symbol for symbol in table[char] if symbol not in marks.behind)
    assert symbols == "".join(CHARS[byte] for byte in char.encode())
    assert len(table[char]) == 2 * len(symbols)
