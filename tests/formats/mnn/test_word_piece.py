"""llama.cpp's WordPiece in the real engine: words, characters, unknown words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tokpack.errors import UnsupportedError
from tokpack.formats.mnn import write_body
from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.formats.mnn.lower import lower
from tokpack.formats.mnn.parts import BertNormalizer, FuseDecoder, ReplaceDecoder, WordPiece
from tokpack.formats.mnn.word_piece import LONGEST_WORD
from tokpack.ir import (
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    Reference,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
    WordPieceGreedy,
    steps,
)
from tokpack.pack import chars

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]
UNK, CLS, SEP = 0, 1, 2
NAMES = ("[UNK]", "[CLS]", "[SEP]", "▁a", "▁b", "b", "▁ab", "▁!", "c", "▁中", "▁É", "É", "▁é", "▁e")


def make(*more: str, strip: bool | None = None, lowercase: bool = True, unk: int | None = UNK) -> TokenizerIR:
    names = (*NAMES, *more)
    attrs = [PieceAttr.UNKNOWN, PieceAttr.CONTROL, PieceAttr.CONTROL] + [PieceAttr.NORMAL] * (len(names) - 3)
    return TokenizerIR(
        reference=Reference.LLAMA_CPP,
        rules="test",
        unicode="llamacpp-15.1",
        vocab=Vocab(tuple(map(str.encode, names)), np.ones(len(names), np.uint8), np.array(attrs, np.uint16)),
        alphabet=Alphabet(AlphabetKind.UTF8),
        model=WordPieceGreedy(unk),
        matching=Matching(MatchingRule.PASS_PER_TOKEN),
        normalizer=(steps.BertNormalizer(strip_accents=strip, lowercase=lowercase),),
        decoder=(steps.LlamaDetokenize(True, unescape_spaces=True),),
        post_processor=steps.BosEos(True, False, True, rule="cls-sep"),
        added_tokens=tuple(AddedToken(i, NAMES[i].encode()) for i in (UNK, CLS, SEP)),
        specials=Specials({"bos": SpecialId(CLS, "key"), "sep": SpecialId(SEP, "key")}),
    )


def test_the_body() -> None:
    ir = make()
    body, findings = lower(ir)
    assert isinstance(body.model, WordPiece)
    assert (body.model.pieces, body.model.unk_piece, body.model.prefix) == (ir.vocab.pieces, b"[UNK]", b"")
    assert (body.special, body.added_tokens, body.prefix, body.post_ops) == ((0, 1, 2), (), (CLS,), (None, SEP))
    assert body.decoder == (ReplaceDecoder("▁", " "), FuseDecoder())
    assert {"mtok-add-sep", "mtok-prefix", "mtok-char-classes", "mtok-long-words"} <= {f.code for f in findings}


def test_words(ask: Ask) -> None:
    cases = {
        "": [],
        "a  b": [3, 4],
        "ab abc": [6, 6, 8],
        "abx ab": [UNK, 6],  # one bad place makes the whole word unknown
        "a!b": [3, 7, 4],
        "a中b": [3, 9, 4],
        "AB\u0301 É": [6, 13],  # marks go, capitals and accents too
        "a[SEP]b": [3, SEP, 4],
        "a\u200bb\u2028a\u0085b\x0b": [6, 3, 4],
        "▁ab": [UNK],
        "\u212a": [UNK],
    }
    answers = ask(write_body(make())[0], "encode", cases)
    assert answers == [[CLS, *ids] for ids in cases.values()]


def test_cased(ask: Ask) -> None:
    cases = {
        "É ab É": [10, 6, 10],
        "É": [10],
        "e\u0301": [UNK],
        "a\x01b": [6],
        "a\u200db": [6],
        "a\x0bb\x0c": [3, 4],
        "Ab": [UNK],
    }
    answers = ask(write_body(make(strip=False, lowercase=False))[0], "encode", cases)
    assert answers == [[CLS, *ids] for ids in cases.values()]
    assert ask(write_body(make(strip=False))[0], "encode", ["É"]) == [[CLS, 12]]
    assert ask(write_body(make(strip=True, lowercase=False))[0], "encode", ["É"]) == [[CLS, UNK]]


def test_pieces_are_printed_as_llama_cpp_prints_them(ask: Ask) -> None:
    answers = ask(write_body(make())[0], "decode", range(len(NAMES)))
    assert [bytes.fromhex(answer).decode() for answer in answers] == [name.replace("▁", " ") for name in NAMES]


def test_no_unknown_piece(ask: Ask) -> None:
    ir = make(unk=None)
    model = lower(ir)[0].model
    assert isinstance(model, WordPiece)
    assert model.unk_piece == b"[UNK]_"
    assert ask(write_body(ir)[0], "encode", ["abx b"]) == [[CLS, -1, 4]]


def test_an_unknown_piece_that_is_an_ordinary_piece_is_announced() -> None:
    assert "mtok-unknown-piece" in {finding.code for finding in lower(make(unk=3))[1]}
    assert "mtok-unknown-piece" not in {finding.code for finding in lower(make())[1]}


def test_the_longest_word(ask: Ask) -> None:
    data = write_body(make())[0]
    assert ask(data, "encode", ["ab" + "c" * (LONGEST_WORD - 2), "ab" + "c" * (LONGEST_WORD - 1)]) == [
        [CLS, 6, *[8] * (LONGEST_WORD - 2)],
        [CLS, UNK],
    ]


def test_characters_that_only_mnn_takes_for_chinese(ask: Ask) -> None:
    only = "\U0002b820"
    assert ask(write_body(make())[0], "encode", [f"a{only}b"]) == [[CLS, UNK]]
    known = make("▁a" + only)
    assert "U+2B820" in next(f.message for f in lower(known)[1] if f.code == "mtok-char-classes")
    assert "U+2B820" not in next(f.message for f in lower(make())[1] if f.code == "mtok-char-classes")


@pytest.mark.parametrize(("strip", "lowercase"), [(True, True), (False, False)])
def test_every_character(strip: bool, lowercase: bool, ask: Ask) -> None:
    """MNN's words of a<character>b are those of llama.cpp's table, for each character below the private planes."""
    body, _ = lower(make(strip=strip, lowercase=lowercase))
    single = tuple(bytes((byte,)) for byte in range(1, 256))
    mark = len(single)
    model = WordPiece((*single, "▁".encode(), b"[UNK]"), b"[UNK]", b"", 10_000)
    data = serialize(MtokBody(model, normalizer=body.normalizer, pre_tokenizer=body.pre_tokenizer))

    index, blocks = chars.wpm_table(strip_accents=strip, lowercase=lowercase)
    actions = blocks[index].reshape(-1)
    unknown = {*range(0x2B820, 0x2B920), 0x2581, 0x2065, *range(0xFFF0, 0xFFF9)}  # what is replaced by another unknown
    codes = [code for code in range(1, 0xF0000) if not 0xD800 <= code < 0xE000 and code not in unknown]
    groups = [codes[start : start + 200] for start in range(0, len(codes), 200)]

    def words(code: int) -> bytes:
        action = int(actions[code])
        char = chr((action ^ code) & chars.CODE_POINT)
        if action & chars.DROP:
            parts = ["ab"]
        elif action & chars.BREAK:
            parts = ["a", "b"]
        else:
            parts = ["a", char, "b"] if action & chars.ALONE else [f"a{char}b"]
        return b"".join(b"\0" + part.encode() for part in parts)

    answers = ask(data, "encode", ["".join(f"a{chr(code)}b\n" for code in group) for group in groups])
    for group, ids in zip(groups, answers, strict=True):
        got = b"".join(b"\0" if number == mark else single[number] for number in ids)
        assert got == b"".join(map(words, group)), f"U+{group[0]:04X} to U+{group[-1]:04X}"


def test_other_normalizers_are_refused() -> None:
    ir = make()
    changed = TokenizerIR(
        ir.reference, ir.rules, ir.unicode, ir.vocab, ir.alphabet, ir.model, ir.matching, (steps.Lowercase(),)
    )
    with pytest.raises(UnsupportedError, match=r"\.tokpack"):
        lower(changed)


def test_no_character_changes_without_its_table() -> None:
    assert BertNormalizer(False, True, False, False) in lower(make())[0].normalizer
