"""The fast runtime equals the reference runtime, on every pre-tokenizer name and every fixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.property.pairs import FIXTURE_NAMES, Pair, budget, pair
from tests.property.strategies import raw_bytes, texts
from tokpack.formats.gguf.rules import pre_names, pre_type
from tokpack.ir import AddedToken, PieceAttr, Vocab
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.reference import ReferenceTokenizer

PRE_NAMES = pre_names()
COMPLETE = [name for name in FIXTURE_NAMES if pair(name).complete]
LOSSLESS = [name for name in COMPLETE if not pair(name).slow.detokenizer.clean_spaces]
SWITCHES = st.tuples(st.booleans(), st.booleans())


def with_pre(name: str) -> Pair:
    """A vocabulary that shows where ``name`` cuts: merges over every boundary, or over characters."""
    kind = pre_type(name)
    assert kind is not None
    return pair("boundaries" if kind.byte_encode else "sarvam-moe", name)


def test_every_name_and_many_fixtures_are_tried() -> None:
    assert len(PRE_NAMES) == 91
    assert len(FIXTURE_NAMES) >= 29
    assert len(COMPLETE) >= 20
    assert len(LOSSLESS) >= 10


@pytest.mark.parametrize("name", PRE_NAMES)
def test_text_under_every_pre_tokenizer(name: str) -> None:
    both = with_pre(name)

    @budget()
    @given(texts(both.specials), SWITCHES)
    def check(text: str, switches: tuple[bool, bool]) -> None:
        assert both.words(text) == [word for word in both.slow.words(text) if word]
        ids = both.check(text, *switches)
        if ids is not None:
            both.check_text(ids)

    check()


@pytest.mark.parametrize("name", PRE_NAMES)
def test_bytes_under_every_pre_tokenizer(name: str) -> None:
    both = with_pre(name)

    @budget(0.3)
    @given(raw_bytes(both.specials), SWITCHES)
    def check(raw: bytes, switches: tuple[bool, bool]) -> None:
        ids = both.check(raw, *switches)
        if ids is not None:
            both.check_text(ids)

    check()


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_text_and_special_tokens(name: str) -> None:
    both = pair(name)

    @budget()
    @given(texts(both.specials), SWITCHES)
    def check(text: str, switches: tuple[bool, bool]) -> None:
        ids = both.check(text, *switches)
        raw = text.encode("utf-8", "surrogatepass")
        assert ids == both.check(raw, *switches), "str and its UTF-8 differ"
        if ids is not None:
            both.check_text(ids)

    check()


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_bytes_and_special_tokens(name: str) -> None:
    both = pair(name)

    @budget(0.5)
    @given(raw_bytes(both.specials), SWITCHES)
    def check(raw: bytes, switches: tuple[bool, bool]) -> None:
        both.check(raw, *switches)

    check()


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_text_of_any_ids(name: str) -> None:
    both = pair(name)
    special = [token.id for token in both.ir.added_tokens] or [0]
    bos, eos = (both.ir.specials.get(role) for role in ("bos", "eos"))
    ends = [token for token in (bos, eos) if token is not None] or [0]
    cleaned = (b" ", b"'", b" '", b"' ", b"s", b"re", b"t", b" s", b".", b"!", b" ?", b",")
    spaced = [i for i in range(both.fast.vocab_size) if both.slow.piece(i, True) in cleaned] or [0]
    token = st.one_of(st.integers(0, both.fast.vocab_size - 1), *map(st.sampled_from, (special, ends, spaced)))

    @budget()
    @given(st.one_of(st.lists(token, max_size=15), st.lists(st.sampled_from(spaced), max_size=15)))
    def check(ids: list[int]) -> None:
        both.check_text(ids)
        joined = b"".join(both.slow.piece(i, False) for i in ids)
        stream = both.fast.stream()
        assert "".join([*map(stream.push, ids), stream.flush()]) == joined.decode("utf-8", "replace")

    check()


@pytest.mark.parametrize("name", LOSSLESS)
def test_decoding_gives_the_text_back(name: str) -> None:
    both = pair(name)

    @budget()
    @given(texts(both.specials), st.booleans())
    def check(text: str, parse: bool) -> None:
        ids = both.fast.encode(text, False, parse)
        raw = text.encode("utf-8", "surrogatepass")
        assert both.fast.decode_bytes(ids, skip_special_tokens=False) == raw
        assert both.fast.decode(ids, skip_special_tokens=False) == raw.decode("utf-8", "replace")
        stream = both.fast.stream(skip_special_tokens=False)
        assert "".join([*map(stream.push, ids), stream.flush()]) == raw.decode("utf-8", "replace")

    check()


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_pieces_and_ids_are_inverse(name: str) -> None:
    both = pair(name)
    for token, text in enumerate(both.ir.vocab.pieces):
        assert text is not None
        assert both.fast.token_to_id(text) == token
        assert both.fast.id_to_token(token) == text.decode("utf-8", "replace")
        if b"\xef\xbf\xbd" not in both.fast.id_to_token(token).encode():
            assert both.fast.token_to_id(both.fast.id_to_token(token)) == token
        assert both.fast.id_to_bytes(token) == both.slow.piece(token, True)
        assert both.fast.id_to_piece(token, special=False) == both.slow.piece(token, False)
    assert both.fast.token_to_id("no piece is called this") is None


@pytest.mark.parametrize("token", [-1, 1 << 40])
def test_ids_out_of_range_are_refused_by_both(token: int) -> None:
    both = pair("demo")
    for tokenizer in (both.fast, both.slow):
        with pytest.raises(tokpack.EncodeError):
            tokenizer.detokenize([0, token])


def test_an_overlong_space_is_not_escaped() -> None:
    """llama.cpp escapes spaces in the bytes, before it decodes: C0 A0 stays a space, on which merging aborts."""
    both = pair("sarvam-moe")
    assert both.fast.encode(b"\xc0\xa0", False) == both.slow.encode(b"\xc0\xa0", False)
    with pytest.raises(tokpack.EncodeError):
        both.slow.encode(b"a\xc0\xa0b", False)
    with pytest.raises(tokpack.EncodeError):
        both.fast.encode(b"a\xc0\xa0b", False)


def test_special_tokens_that_are_not_text() -> None:
    """Token texts of a GGUF are bytes: they may begin or end inside a character."""
    base = pair("demo").ir
    contents = (b"\xe4\xb8", b"\xad", b"\xffx", b"a\xc3", b"\xef\xbf\xbd!", b"\xed\xa0\x80")
    size = len(base.vocab)
    vocab = Vocab(
        (*base.vocab.pieces, *contents),
        np.append(base.vocab.types, [3] * len(contents)).astype(np.uint8),
        np.append(base.vocab.attrs, [PieceAttr.CONTROL] * len(contents)).astype(np.uint16),
    )
    added = tuple(AddedToken(size + i, content) for i, content in enumerate(contents))
    for some in (*((token,) for token in added), added):  # each alone, and all together
        ir = replace(base, vocab=vocab, added_tokens=some)
        fast, slow = tokpack.Tokenizer(PackView(build_pack(ir), None)), ReferenceTokenizer(ir)
        for text in ("中", "a中b", "aé", "äö", "\ufffd!", "\ud800", "\xad", b"\xffx", b"\xe4\xb8\xad\xff", "a"):
            assert fast.encode(text) == slow.encode(text)
            assert [piece.id for piece in fast.pieces(text)] == slow.encode(text)
