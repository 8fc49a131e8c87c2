"""lower(): which body a small llama.cpp tokenizer becomes, which losses it announces, what the engine makes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tokpack.errors import LossError, UnsupportedError
from tokpack.findings import Severity
from tokpack.formats.mnn import write_body
from tokpack.formats.mnn.lower import lower
from tokpack.formats.mnn.parts import (
    AddedToken,
    Bpe,
    ByteFallbackDecoder,
    ByteLevel,
    ByteLevelDecoder,
    FuseDecoder,
    Metaspace,
    ReplaceDecoder,
    Split,
    StripDecoder,
)
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    GreedyTrie,
    Matching,
    MatchingRule,
    MinCost,
    NoModel,
    PieceAttr,
    Reference,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
    WordPiece,
    steps,
)
from tokpack.ir import AddedToken as SpecialToken
from tokpack.unicode import byte_level

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
BYTES = tuple(char.encode() for char in byte_level.CHARS)
CONTROL, USER = PieceAttr.CONTROL, PieceAttr.USER_DEFINED


def make(
    *more: tuple[bytes, PieceAttr] | bytes | None,
    merges: tuple[tuple[bytes, bytes], ...] = (),
    pieces: tuple[bytes, ...] = BYTES,
    ignore_merges: bool = False,
    strip: dict[bytes, str] | None = None,
    **rest: Any,
) -> TokenizerIR:
    """A tokenizer of the 256 byte pieces (or ``pieces``) and ``more``; special tokens longest first, as llama.cpp."""
    texts: list[bytes | None] = [*pieces]
    attrs = [PieceAttr.NORMAL] * len(texts)
    for entry in more:
        text, attr = entry if isinstance(entry, tuple) else (entry, PieceAttr.NORMAL)
        texts.append(text)
        attrs.append(attr)
    special = [i for i, attr in enumerate(attrs) if attr & (CONTROL | USER | PieceAttr.UNKNOWN)]
    tokens = []
    for number in sorted(special, key=lambda i: -len(texts[i] or b"")):
        content = texts[number] or b""
        flags = (strip or {}).get(content, "")
        tokens.append(SpecialToken(number, content, lstrip="l" in flags, rstrip="r" in flags))
    kind = rest.pop("kind", AlphabetKind.BYTE_LEVEL)
    parts: dict[str, Any] = {
        "reference": Reference.LLAMA_CPP,
        "rules": "test",
        "unicode": "llamacpp-15.1",
        "vocab": Vocab(tuple(texts), np.ones(len(texts), np.uint8), np.array(attrs, np.uint16)),
        "alphabet": Alphabet(kind, kind is AlphabetKind.UTF8),
        "model": BPE(merges, ignore_merges=ignore_merges),
        "matching": Matching(MatchingRule.PASS_PER_TOKEN),
        "pre_tokenizer": (steps.ScannerSplit("gpt2", GPT2),),
        "decoder": (steps.LlamaDetokenize(False),),
        "post_processor": steps.BosEos(False, False),
        "added_tokens": tuple(tokens),
    }
    return TokenizerIR(**(parts | rest))


def codes(ir: TokenizerIR) -> set[str]:
    return {finding.code for finding in lower(ir)[1]}


def test_a_plain_byte_level_tokenizer() -> None:
    ir = make(
        b"ab",
        (b"<s>", CONTROL),
        (b"</end>", CONTROL),
        merges=((b"a", b"b"),),
        post_processor=steps.BosEos(add_bos=True, add_eos=False),
        specials=Specials({"bos": SpecialId(257, "key"), "eos": SpecialId(258, "key")}, eog=(258,)),
        chat_templates={"default": "{{ bos }}", "tool": "x"},
    )
    body, findings = lower(ir)
    assert isinstance(body.model, Bpe)
    assert body.model.pieces == ir.vocab.pieces
    assert body.model.merges.tolist() == [[97, 98, 0]]
    assert (body.special, body.stop, body.prefix) == ((258, 257), (258,), (257,))
    assert body.pre_tokenizer == (Split(GPT2 + r"|\s+"), ByteLevel(use_regex=False))
    assert body.decoder == (ByteLevelDecoder(),)
    assert (body.chat_template, body.eos, body.bos) == (b"{{ bos }}", b"</end>", b"<s>")
    assert (body.added_tokens, body.normalizer, body.post_ops, body.clean_up_spaces) == ((), (), (), False)
    always = {"mtok-char-classes", "mtok-slow-words", "mtok-text-limits", "mtok-parse-special", "mtok-prefix"}
    assert {finding.code for finding in findings} == always | {"mtok-chat-templates"}


def test_eos_role_of_an_ordinary_piece_is_shown_as_text() -> None:
    ir = make("Ġ".encode() + b"x", specials=Specials({"eos": SpecialId(256, "default")}))
    assert lower(ir)[0].eos == b" x"


def test_user_defined_tokens_go_to_the_added_tokens() -> None:
    body, _ = lower(make((b"<x>", USER), (b"<s>", CONTROL)))
    assert body.special == (257,)
    assert body.added_tokens == (AddedToken(256, b"<x>"),)


def test_a_special_token_beyond_ascii_is_spelled_byte_level(ask: Ask) -> None:
    text = "<｜begin▁of▁sentence｜>"
    ir = make((text.encode(), CONTROL), ("é ü".encode(), USER))
    body, findings = lower(ir)
    assert isinstance(body.model, Bpe)
    assert body.model.pieces[256] == byte_level.encode(text.encode()).encode()
    assert body.special == (256,)
    assert "mtok-piece-text" not in {finding.code for finding in findings}
    data, _ = write_body(ir)
    assert ask(data, "encode", [f"a{text}é üb"]) == [[97, 256, 257, 98]]
    assert [bytes.fromhex(answer).decode() for answer in ask(data, "decode", [256, 257])] == [text, "é ü"]


def test_a_spelling_that_is_taken_stays_raw(ask: Ask) -> None:
    spelled = byte_level.encode("é".encode()).encode()
    ir = make(spelled, (b"\xc3\xa9x", CONTROL), ("é".encode(), USER), pieces=(*BYTES[:233], b"<233>", *BYTES[234:]))
    body, findings = lower(ir)
    assert isinstance(body.model, Bpe)
    assert body.model.pieces[258] == "é".encode()
    assert body.model.pieces[257] == byte_level.encode("éx".encode()).encode()
    assert "mtok-piece-text" in {finding.code for finding in findings}
    assert ask(write_body(ir)[0], "encode", ["éxé"]) == [[257, 258]]


def test_stripping_tokens_are_matched_in_stage_two(ask: Ask) -> None:
    ir = make((b"<mask>", CONTROL), (b"<s>", CONTROL), strip={b"<mask>": "l"})
    body, findings = lower(ir)
    assert body.special == (257,)
    assert body.added_tokens == (AddedToken(256, b"<mask>", special=True, lstrip=True),)
    assert "mtok-special-shown" in {finding.code for finding in findings}
    assert ask(write_body(ir)[0], "encode", ["a \t<mask> b<s>"]) == [[97, 256, 32, 98, 257]]


def test_a_control_text_inside_a_longer_user_defined_token(ask: Ask) -> None:
    ir = make((b"<s>", CONTROL), (b"x<s>y", USER))
    assert ask(write_body(ir)[0], "encode", ["x<s>y<s>x"]) == [[257, 256, 120]]


def test_overlapping_special_tokens_are_announced(ask: Ask) -> None:
    ir = make((b"<a>", CONTROL), (b">longer", CONTROL))
    found = {finding.code: finding for finding in lower(ir)[1]}
    assert found["mtok-special-overlap"].severity is Severity.IDS
    assert ask(write_body(ir)[0], "encode", ["<a>longer"])[0][0] == 256  # llama.cpp: "<a" and 257


@pytest.mark.parametrize("texts", [(b"  ", b"   ", b"    "), (b"<s>", b"</s>"), (b"<a>", b"<ab>")])
def test_special_tokens_that_overlap_harmlessly(texts: tuple[bytes, ...]) -> None:
    assert "mtok-special-overlap" not in codes(make(*[(text, USER) for text in texts]))


def test_merges_that_cannot_be_said_with_ids_are_left_out() -> None:
    ir = make(b"abc", merges=((b"a", b"b"), (b"ab", b"c"), (b"x", b"y")))
    body, findings = lower(ir)
    assert isinstance(body.model, Bpe)
    assert len(body.model.merges) == 0
    messages = {finding.code: finding.message for finding in findings}
    assert messages["mtok-merge-result"].startswith("2 merges")
    assert messages["mtok-merge-part"].startswith("1 merges")


def test_ranks_of_the_source_are_kept() -> None:
    ir = make(b"ab", b"cd", model=BPE(((b"a", b"b"), (b"c", b"d")), ranks=(3, 9)))
    model = lower(ir)[0].model
    assert isinstance(model, Bpe)
    assert model.merges[:, 2].tolist() == [3, 9]


def test_whole_words_that_merges_do_not_reach() -> None:
    merges = ((b"a", b"b"), (b"c", b"d"))
    ir = make(b"ab", b"cd", b"abcd", (b"abc", CONTROL), merges=merges, ignore_merges=True)
    messages = {finding.code: finding.message for finding in lower(ir)[1]}
    assert messages["mtok-whole-words"].startswith("1 pieces")
    assert "'abcd'" in messages["mtok-whole-words"]
    assert "mtok-whole-words" not in codes(make(b"ab", b"cd", b"abcd", merges=merges))


def test_absent_byte_pieces_are_announced() -> None:
    assert "mtok-byte-pieces" in codes(make(pieces=BYTES[:65] + BYTES[66:]))
    assert "mtok-byte-pieces" not in codes(make(pieces=BYTES[:0xF5]))  # no UTF-8 text has such a byte


def test_holes_get_texts_of_their_own(ask: Ask) -> None:
    ir = make(None, b"[HOLE_256]", (b"<s>", CONTROL))
    model = lower(ir)[0].model
    assert isinstance(model, Bpe)
    assert model.pieces[256] == b"[HOLE_256]_"
    assert ask(write_body(ir)[0], "encode", ["a<s>"]) == [[97, 258]]


def test_add_eos_is_written_for_later_engines_and_announced(ask: Ask) -> None:
    roles = Specials({"eos": SpecialId(256, "key")}, eog=(256,))
    ir = make((b"</s>", CONTROL), post_processor=steps.BosEos(False, True), specials=roles)
    body, findings = lower(ir)
    assert body.post_ops == (None, 256)
    assert "mtok-add-eos" in {finding.code for finding in findings}
    assert ask(write_body(ir)[0], "encode", ["a"]) == [[97]]


def test_bos_comes_before_every_text(ask: Ask) -> None:
    roles = Specials({"bos": SpecialId(256, "key")})
    ir = make((b"<s>", CONTROL), post_processor=steps.BosEos(True, False), specials=roles)
    assert ask(write_body(ir)[0], "encode", ["", "a"]) == [[256], [256, 97]]


def test_clean_spaces_sets_the_flag() -> None:
    body, findings = lower(make(decoder=(steps.LlamaDetokenize(clean_spaces=True),)))
    assert body.clean_up_spaces
    assert "mtok-clean-spaces" in {finding.code for finding in findings}


def test_a_leading_space_is_dropped_from_lists() -> None:
    body, findings = lower(make(decoder=(steps.LlamaDetokenize(False, strip_space=True),)))
    assert body.decoder == (ByteLevelDecoder(), StripDecoder(" ", 1, 0))
    assert "mtok-leading-space" in {finding.code for finding in findings}


def _characters(**rest: Any) -> TokenizerIR:
    fallback = tuple(f"<0x{byte:02X}>".encode() for byte in range(256))
    parts: dict[str, Any] = {
        "pieces": fallback,
        "kind": AlphabetKind.UTF8,
        "normalizer": (steps.Replace(" ", "▁"),),
        "pre_tokenizer": (steps.ScannerSplit("newlines", r"[^\n]+|[\n]+"),),
        "decoder": (steps.LlamaDetokenize(False, unescape_spaces=True),),
    }
    more = ("▁".encode(), b"a", b"b", "▁a".encode(), b"\n", b"\n\n", (b"<s>", CONTROL))
    return make(*more, merges=(("▁".encode(), b"a"),), **(parts | rest))


def test_pieces_of_characters_with_byte_fallback(ask: Ask) -> None:
    ir = _characters()
    body, findings = lower(ir)
    assert body.normalizer == ()
    assert body.pre_tokenizer[0] == Split(r"[^\n]+|[\n]+")
    assert body.pre_tokenizer[1] == Split(r"[^\x07 ](?!(?! ))", behavior="merged-with-previous")
    assert body.pre_tokenizer[-1] == Metaspace("▁", add_prefix_space=False)
    assert body.decoder == (ReplaceDecoder("▁", " "), ByteFallbackDecoder(), FuseDecoder())
    slow = next(finding for finding in findings if finding.code == "mtok-slow-words")
    assert slow.severity is Severity.INFO
    data, _ = write_body(ir)
    assert ask(data, "encode", ["b a\n<s>é"]) == [[258, 259, 260, 262, 0xC3, 0xA9]]


def test_spaces_of_lines_without_escaping_stay_uncut(ask: Ask) -> None:
    ir = _characters(normalizer=())
    body, findings = lower(ir)
    assert body.pre_tokenizer == (Split(r"[^\n]+|[\n]+"),)
    slow = next(finding for finding in findings if finding.code == "mtok-slow-words")
    assert slow.severity is Severity.WARN
    assert ask(write_body(ir)[0], "encode", ["b a"]) == [[258, 0x20, 257]]


@pytest.mark.parametrize("lowercase", [False, True])
def test_model_whitespace(lowercase: bool, ask: Ask) -> None:
    words = (steps.WhitespaceSplit(lowercase), steps.Split(r"\S+", steps.Dialect.STD_WREGEX))
    pieces = (b"a", b"b", b"A", b"ab", b"i", "\u0130".encode(), b"\x1c")
    ir = make(*pieces, pieces=(), kind=AlphabetKind.UTF8, merges=((b"a", b"b"),), pre_tokenizer=words, normalizer=())
    texts = ["ab\u2028ab", " \u0085\u00a0ab\n\v", "a\x1cA", "\u0130"]
    expected = [[3, 3], [3], [0, 6, 0 if lowercase else 2], [4 if lowercase else 5]]
    assert ask(write_body(ir)[0], "encode", texts) == expected


def test_words_of_newlines_that_merges_do_not_reach() -> None:
    merges: tuple[tuple[bytes, bytes], ...] = (("▁".encode(), b"a"),)
    assert "mtok-whole-words" in codes(_characters(model=BPE(merges, whole_newlines=True)))
    merges = (*merges, (b"\n", b"\n"))
    assert "mtok-whole-words" not in codes(_characters(model=BPE(merges, whole_newlines=True)))


@pytest.mark.parametrize(
    "changes",
    [
        {"reference": Reference.SENTENCEPIECE},
        {"model": WordPiece(b"[UNK]")},
        {"model": BPE((), unk_piece=b"a")},
        {"model": BPE((), end_of_word_suffix=b"</w>")},
        {"alphabet": Alphabet(AlphabetKind.RAW_BYTES)},
        {"alphabet": Alphabet(AlphabetKind.UTF8, byte_fallback=False)},
        {"normalizer": (steps.Lowercase(),)},
        {"normalizer": (steps.Replace("a", "b", steps.Dialect.ONIG),)},
        {"decoder": (steps.BpeDecoder(),)},
        {"model": GreedyTrie(None)},
        {"model": MinCost()},
        {"model": NoModel()},
        {"pre_tokenizer": (steps.DnaTags(0, 1, 2, 6, ()),)},
        {"pre_tokenizer": (steps.Digits(),)},
        {"pre_tokenizer": (steps.Split("a+(?=b)", steps.Dialect.STD_WREGEX),)},
        {"pre_tokenizer": (steps.Split(r"\p{N}", steps.Dialect.ONIG),)},
        {"pre_tokenizer": (steps.Split(r"\p{N}", steps.Dialect.STD_COLLAPSED, steps.Behavior.REMOVED),)},
        {"pre_tokenizer": (steps.ScannerSplit("gpt2", "another pattern"),)},
    ],
    ids=lambda changes: " ".join(f"{key}={value}"[:60] for key, value in changes.items()),
)
def test_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        lower(dataclasses.replace(make(), **changes))
    assert ".tokpack" in str(caught.value)


def test_equal_pieces_are_refused() -> None:
    with pytest.raises(LossError, match="another piece"):
        lower(make(b"ab", b"ab"))


def test_a_piece_beyond_the_format_is_refused() -> None:
    with pytest.raises(LossError, match="65536 bytes"):
        write_body(make(b"x" * 65_536))


def test_equal_tokenizers_give_equal_bytes() -> None:
    assert write_body(make((b"<s>", CONTROL)))[0] == write_body(make((b"<s>", CONTROL)))[0]
