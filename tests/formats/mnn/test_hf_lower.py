"""lower_hf(): what small tokenizers of the ``tokenizers`` library become, and which losses are announced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tokpack.errors import RefusedError
from tokpack.findings import Severity
from tokpack.formats.mnn import parts, write_body
from tokpack.formats.mnn.hf_chars import lower_normalizer
from tokpack.formats.mnn.hf_patterns import fold, parse_pattern
from tokpack.formats.mnn.hf_splits import lower_pre_tokenizer
from tokpack.formats.mnn.lower import lower
from tokpack.ir import (
    BPE,
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Reference,
    SpecialId,
    Specials,
    TokenizerIR,
    Unigram,
    Vocab,
    WordLevel,
    WordPiece,
    steps,
)
from tokpack.ir.patterns import Behavior, Dialect
from tokpack.unicode import byte_level

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

BYTES = tuple(char.encode() for char in byte_level.CHARS)
ONIG = Dialect.ONIG


def make(
    pieces: tuple[bytes | None, ...] = BYTES,
    model: Any = None,
    added: tuple[AddedToken, ...] = (),
    scores: tuple[float, ...] | None = None,
    kind: AlphabetKind = AlphabetKind.UTF8,
    byte_fallback: bool = False,
    **fields: Any,
) -> TokenizerIR:
    size = max(len(pieces), 1 + max((token.id for token in added), default=-1))
    attrs = np.array([PieceAttr.NORMAL if piece is not None else 0 for piece in pieces], dtype=np.uint16)
    attrs = np.concatenate((attrs, np.zeros(size - len(pieces), dtype=np.uint16)))
    texts = [*pieces, *[None] * (size - len(pieces))]
    for token in added:
        attrs[token.id] |= PieceAttr.CONTROL if token.special else PieceAttr.USER_DEFINED
        texts[token.id] = texts[token.id] or token.content
    return TokenizerIR(
        reference=Reference.HUGGINGFACE,
        rules="tokenizers 0.23.3",
        unicode="tokenizers-0.23",
        vocab=Vocab(
            tuple(texts),
            np.full(size, PieceType.NORMAL, dtype=np.uint8),
            attrs,
            None if scores is None else np.array(scores, dtype=np.float64),  # type: ignore[arg-type]
        ),
        alphabet=Alphabet(kind, byte_fallback),
        model=model or BPE(()),
        matching=Matching(MatchingRule.LEFTMOST_LONGEST),
        added_tokens=added,
        **fields,
    )


def byte_bpe(**fields: Any) -> TokenizerIR:
    fields.setdefault("pre_tokenizer", (steps.ByteLevel(),))
    fields.setdefault("decoder", (steps.ByteLevelDecoder(),))
    return make(kind=AlphabetKind.BYTE_LEVEL, **fields)


def codes(ir: TokenizerIR) -> set[str]:
    return {finding.code for finding in lower(ir)[1]}


# --- patterns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "folded"),
    [
        (r"\p{L}+", r"\p{L}+"),
        (r"(?i:'s|'t)", "'[Ss]|'[Tt]"),
        (r"[^\r\n\p{L}\p{N}]?+\p{L}++", r"[^\p{L}\p{N}\n\r]?\p{L}+"),
        (r"\s+(?!\S)|\s+", r"\s+(?!\S)|\s+"),
        (r"\p{N}{1,3}", r"\p{N}{1,3}"),
        (r"[a-z&&[^aeiou]]", "[b-df-hj-np-tv-z]"),
        (r"a(?=b)", "a(?!(?!b))"),
        (r"x$", r"x(?![^\n])"),
        (r"\.\[", r"\.\["),
    ],
)
def test_patterns_of_the_same_language(pattern: str, folded: str) -> None:
    result = fold(parse_pattern(pattern, ONIG))
    assert (result.pattern, result.reasons) == (folded, [])


@pytest.mark.parametrize(
    ("pattern", "folded"),
    [
        (r"(?<=a)b|c", "c"),  # a branch with a lookbehind is left out
        (r"^a|\bb", ""),
        (r"\p{Lu}", "[A-Z]"),
        (r"a+?b", "a+b"),
        (r"a*", ""),
    ],
)
def test_patterns_that_differ_are_announced(pattern: str, folded: str) -> None:
    result = fold(parse_pattern(pattern, ONIG))
    assert result.pattern == folded
    assert result.reasons
    split = steps.Split(pattern, ONIG)
    assert "mtok-pattern-differs" in codes(byte_bpe(pre_tokenizer=(split, steps.ByteLevel(use_regex=False))))


BEHAVIORS = {
    (Behavior.ISOLATED, False): ["-", "a", "-", "-", "b", "-", "c", "-"],
    (Behavior.REMOVED, False): ["a", "b", "c"],
    (Behavior.REMOVED, True): ["-", "-", "-", "-", "-"],
    (Behavior.MERGED_WITH_PREVIOUS, False): ["-", "a-", "-", "b-", "c-"],
    (Behavior.MERGED_WITH_NEXT, False): ["-a", "-", "-b", "-c", "-"],
    (Behavior.CONTIGUOUS, False): ["-", "a", "--", "b", "-", "c", "-"],
    (Behavior.MERGED_WITH_PREVIOUS, True): ["-a", "-", "-b", "-c", "-"],
    (Behavior.MERGED_WITH_NEXT, True): ["-", "a-", "-", "b-", "c-"],
}


@pytest.mark.parametrize(("behavior", "invert"), BEHAVIORS)
@pytest.mark.parametrize("literal", [False, True])
def test_behaviors(behavior: Behavior, invert: bool, literal: bool, ask: Ask) -> None:
    """``-a--b-c-`` at ``-``: the results of the library; words are pieces of a WordLevel model."""
    words = sorted({word for split in BEHAVIORS.values() for word in split})
    split = steps.Split("-", Dialect.LITERAL if literal else ONIG, behavior, invert)
    pieces = (b"[UNK]", *(word.encode() for word in words))
    ir = make(pieces, WordLevel(b"[UNK]"), pre_tokenizer=(split,))
    (answer,) = ask(write_body(ir)[0], "encode", ["-a--b-c-"])
    assert [pieces[number].decode() for number in answer] == BEHAVIORS[behavior, invert]


@pytest.mark.parametrize(
    ("step", "text", "words"),
    [
        (steps.WhitespaceWords(), "ab, c\u2028d", ["ab", ",", "c", "d"]),
        (steps.WhitespaceSplit(), "ab, c\u0085d", ["ab,", "c", "d"]),
        (steps.BertPreTokenizer(), "ab, c", ["ab", ",", "c"]),
        (steps.Punctuation(), "a$,b", ["a", "$", ",", "b"]),
        (steps.Digits(individual_digits=True), "a12", ["a", "1", "2"]),
        (steps.Digits(), "a½2", ["a", "½2"]),
        (steps.CharDelimiterSplit("é"), "aéb", ["a", "b"]),
        (steps.FixedLength(2), "aéb", ["aé", "b"]),
        (steps.Metaspace(), "a b", ["▁a", "▁b"]),
        (steps.Metaspace(prepend_scheme="never"), " a b", ["▁a", "▁b"]),
        (steps.Metaspace(split=False), "▁a b", ["▁a▁b"]),
        (steps.Split("[一-龥]+", ONIG), "a一二b", ["a", "一二", "b"]),
        (steps.Split(". ", Dialect.LITERAL, Behavior.MERGED_WITH_PREVIOUS), "a. b.c", ["a. ", "b.c"]),
    ],
    ids=lambda value: value.kind if hasattr(value, "kind") else "",
)
def test_pre_tokenizers(step: Any, text: str, words: list[str], ask: Ask) -> None:
    pieces = (b"[UNK]", *sorted({word.encode() for word in words}))
    ir = make(pieces, WordLevel(b"[UNK]"), pre_tokenizer=(step,))
    (answer,) = ask(write_body(ir)[0], "encode", [text])
    assert [pieces[number].decode() for number in answer] == words


def test_byte_level_with_prefix_space() -> None:
    words = lower_pre_tokenizer((steps.ByteLevel(add_prefix_space=True),), no_spaces=False)
    kinds = [type(step) for step in words.steps]
    assert kinds == [parts.Metaspace, parts.Split, parts.ByteLevel]


def test_scripts_are_left_out() -> None:
    assert "mtok-pre-tokenizer" in codes(byte_bpe(pre_tokenizer=(steps.UnicodeScripts(), steps.ByteLevel())))


# --- normalizers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normalizer", "text", "word"),
    [
        ((steps.Lowercase(),), "ÀB\u0130", "àbi\u0307"),
        ((steps.UnicodeNormalization("NFD"), steps.StripAccents()), "É가", "E\u1100\u1161"),
        ((steps.UnicodeNormalization("NFC"),), "\u212b\u200d\x01", "\u00c5\u200d\x01"),
        ((steps.UnicodeNormalization("NFKC"), steps.Lowercase()), "ﬁＡ", "fia"),
        ((steps.Nmt(),), "a\x01\u200bb", "a b"),
        ((steps.Replace("a", ""), steps.Prepend(">")), "xay", ">xy"),
        ((steps.Replace(r" {2,}", "▁", ONIG),), "a b     c", "a b▁c"),
        ((steps.Replace(r"\s+", " ", ONIG),), "a\t\n b", "a b"),
        ((steps.Replace(r"[\u00AD\u200B]", "", ONIG),), "a\u00adb\u200b", "ab"),
        ((steps.StripNormalizer(left=True, right=True),), " \n a b\t ", "a b"),
        ((steps.StripNormalizer(left=False, right=True),), " a ", " a"),
        ((steps.BertNormalizer(lowercase=True),), "É\x0b\x00f".replace("\0", ""), "ef"),
    ],
    ids=lambda value: "-".join(step.kind for step in value) if isinstance(value, tuple) else "",
)
def test_normalizers(normalizer: tuple[Any, ...], text: str, word: str, ask: Ask) -> None:
    """The normalized text is one piece of a WordLevel model."""
    ir = make((b"[UNK]", word.encode()), WordLevel(b"[UNK]"), normalizer=normalizer)
    assert ask(write_body(ir)[0], "encode", [text]) == [[1]]


def test_normalizers_without_a_form() -> None:
    lost = lower_normalizer((steps.Replace("^x|(?<=y)z", "", ONIG),), frozenset("x"), bytes_known=False)
    assert [finding.code for finding in lost.findings] == ["mtok-replace"]


def test_bytes_are_mapped_by_a_table(ask: Ask) -> None:
    normalizer = (steps.ByteLevelNormalizer(),)
    ir = make(BYTES, BPE(()), kind=AlphabetKind.BYTE_LEVEL, normalizer=normalizer)
    text = "é \n\u3042\U0001f642\x01"
    assert ask(write_body(ir)[0], "encode", [text]) == [
        [BYTES.index(byte_level.CHARS[b].encode()) for b in text.encode()]
    ]


# --- models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ir", "code"),
    [
        (make((b"a",), BPE((), continuing_subword_prefix=b"##", end_of_word_suffix=b"</w>")), "mtok-affix"),
        (make((b"a",), BPE((), continuing_subword_prefix=b"##")), "mtok-affix"),  # words may hold spaces
        (make((b"a",), Unigram(None), scores=(0.0,)), "mtok-no-unknown"),
        (make((b"a",), WordPiece(b"[UNK]")), "mtok-no-unknown"),
        (make((b"a",), WordLevel(b"[UNK]")), "mtok-no-unknown"),
    ],
)
def test_refused_by_name(ir: TokenizerIR, code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        lower(ir)
    assert caught.value.code == code


def test_spaces_stay_until_the_text_is_cut(ask: Ask) -> None:
    merges = (("▁".encode(), b"a"), (b"a", b"b"))
    pieces = (b"<unk>", "▁".encode(), b"a", b"b", "▁a".encode(), b"ab")
    normalizer = (steps.Prepend("▁"), steps.Replace(" ", "▁"))
    ir = make(pieces, BPE(merges), normalizer=normalizer)
    assert ask(write_body(ir)[0], "encode", ["ab a", "b"]) == [[4, 3, 4], [1, 3]]


def test_unused_byte_pieces_are_out_of_reach(ask: Ask) -> None:
    ir = make((b"a", b"<0x62>"), BPE(()))
    body, findings = write_body(ir)
    assert ask(body, "encode", ["ab"]) == [[0]]
    assert ("mtok-byte-pieces", Severity.TEXT) in {(finding.code, finding.severity) for finding in findings}


def test_whole_words() -> None:
    pieces = (*BYTES, b"ab")
    assert "mtok-whole-words" in codes(make(pieces, BPE((), ignore_merges=True), kind=AlphabetKind.BYTE_LEVEL))
    merged = BPE(((b"a", b"b"),), ignore_merges=True)
    assert "mtok-whole-words" not in codes(make(pieces, merged, kind=AlphabetKind.BYTE_LEVEL))


def test_unigram_bytes_cost_as_much_as_one_unknown_character(ask: Ask) -> None:
    pieces = (b"<unk>", b"a", *(b"<0x%02X>" % byte for byte in range(256)))
    scores = (0.0, -1.0, *[-2.0] * 256)
    ir = make(pieces, Unigram(0), scores=scores, byte_fallback=True)
    assert ask(write_body(ir)[0], "encode", ["aé"]) == [[1, 2 + 0xC3, 2 + 0xA9]]
    body, findings = lower(make(pieces[:-1], Unigram(0), scores=scores[:-1], byte_fallback=True))
    assert isinstance(body.model, parts.Unigram)
    assert not body.model.byte_fallback
    assert "mtok-byte-pieces" in {finding.code for finding in findings}


def test_the_last_of_equal_pieces_is_found(ask: Ask) -> None:
    ir = make((b"<unk>", b"a", b"a"), Unigram(0), scores=(0.0, -1.0, -2.0))
    body, findings = write_body(ir)
    assert ask(body, "encode", ["a"]) == [[2]]
    assert "mtok-duplicate-piece" in {finding.code for finding in findings}


# --- added tokens and what is around ----------------------------------------------------------------------------


def test_added_tokens(ask: Ask) -> None:
    added = (
        AddedToken(256, b"<s>"),
        AddedToken(257, b"<s>x"),
        AddedToken(260, b"<tool>", special=False),
        AddedToken(261, b"<mask>", lstrip=True),
    )
    ir = byte_bpe(added=added)
    body, _ = lower(ir)
    assert body.special == (257, 256)  # the longest first
    assert {token.id for token in body.added_tokens} == {260, 261}
    assert len(body.model.pieces) == 262  # holes are filled
    data, findings = write_body(ir)
    assert ask(data, "encode", ["<s>x<s><tool>a <mask>"]) == [[257, 256, 260, 0x61, 261]]
    assert ask(data, "decode", [260]) == [b"<tool>".hex()]
    assert {"mtok-strip-token", "mtok-special-shown"} <= {finding.code for finding in findings}


def test_flags_that_mnn_lacks() -> None:
    added = (AddedToken(256, b"x", single_word=True, normalized=True),)
    found = codes(byte_bpe(added=added, normalizer=(steps.Lowercase(),)))
    assert {"mtok-single-word", "mtok-normalized-token"} <= found


def test_template() -> None:
    item = steps.TemplateItem
    template = steps.Template((item(None, (97, 98)), item("A"), item(None, (99,))))
    specials = Specials({"bos": SpecialId(97, "test"), "eos": SpecialId(99, "test")}, eog=(99,))
    body, findings = lower(byte_bpe(post_processor=template, specials=specials, chat_templates={"default": "hi"}))
    assert (body.prefix, body.post_ops, body.stop) == ((97, 98), (None, 99), (99,))
    assert (body.bos, body.eos, body.chat_template) == (b"a", b"c", b"hi")
    assert {"mtok-prefix", "mtok-add-eos"} <= {finding.code for finding in findings}
    twice = steps.Template((item("A"), item(None, (97,)), item("A")))
    assert "mtok-template" in codes(byte_bpe(post_processor=twice))


def test_decoders() -> None:
    replace = steps.Replace("▁", " ")
    ir = byte_bpe(decoder=(replace, steps.ByteFallbackDecoder(), steps.FuseDecoder(), steps.StripDecoder(" ", 1, 0)))
    kinds = (parts.ReplaceDecoder, parts.ByteFallbackDecoder, parts.FuseDecoder, parts.StripDecoder)
    assert tuple(type(step) for step in lower(ir)[0].decoder) == kinds
    for decoder in ((), (steps.CtcDecoder(),), (steps.Replace("", " "),), (steps.Replace(r"\s", " ", ONIG),)):
        body, findings = lower(byte_bpe(decoder=decoder))
        assert body.decoder == (parts.FuseDecoder(),)
        assert "mtok-decoder" in {finding.code for finding in findings}
