"""serialize(): exact bytes, and each limit of the format."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tokpack.errors import LossError
from tokpack.formats.mnn import parts
from tokpack.formats.mnn.body import MtokBody, serialize


def _bpe(pieces: tuple[bytes, ...] = (b"b", b"a", b"ab"), merges: Any = ((1, 0, 7),), **rest: Any) -> parts.Bpe:
    return parts.Bpe(pieces, np.array(merges, dtype=np.uint32).reshape(-1, 3), **rest)


def _body(**changes: Any) -> MtokBody:
    return dataclasses.replace(MtokBody(_bpe()), **changes)


def test_exact_bytes_of_a_small_body() -> None:
    body = MtokBody(
        model=_bpe((b"b", b"a", b"ab", b"<s>", "é".encode()), ((1, 0, 7),)),
        special=(3,),
        stop=(3, 0),
        prefix=(3,),
        pre_tokenizer=(parts.Split(" ?a+"), parts.ByteLevel()),
        added_tokens=(parts.AddedToken(4, "é".encode(), special=False, lstrip=True, rstrip=False),),
        chat_template=b"{{x}}",
        eos=b"<s>",
        clean_up_spaces=True,
        bos=b"a",
    )
    assert serialize(body) == b"".join(
        (
            b"430 4\n1 2 1\n3 3 0 3\n",
            b"\x00",  # no normalizer
            b"\x06\x02\x00\x00\x00",  # a Sequence of two
            b"\x04\x04\x00 ?a+\x00\x00",  # Split, isolated
            b"\x01\x00",  # ByteLevel without its regex
            b"\x00\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00",  # BPE, 5 pieces, two flags, 1 merge
            b"\x03\x00<s>\x03\x00\x00\x00",  # pieces in byte order, each with its id
            b"\x01\x00a\x01\x00\x00\x00",
            b"\x02\x00ab\x02\x00\x00\x00",
            b"\x01\x00b\x00\x00\x00\x00",
            b"\x02\x00\xc3\xa9\x04\x00\x00\x00",
            b"\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00",  # merge: a, b, rank
            b"\x00",  # ByteLevel decoder
            b"\x01\x00\x00\x00\x04\x00\x00\x00\x00\x01\x00\x02\x00\xc3\xa9",  # added token with lstrip
            b"\x05\x00\x00\x00{{x}}",
            b"\x03\x00<s>",
            b"\x01",
            b"\x01\x00a",
            b"\x00\x00",  # no post-processing
        )
    )


def test_an_empty_body_has_all_five_tail_sections() -> None:
    data = serialize(MtokBody(_bpe((), ())))
    assert data == b"430 4\n0 0 0\n\n" + bytes(2) + bytes(11) + b"\0" + bytes(4) + bytes(4 + 2 + 1 + 2 + 2)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (parts.Prepend("_"), b"\x02\x01\x00_"),
        (parts.Replace(" ", "▁"), b"\x03\x01\x00 \x03\x00\xe2\x96\x81"),
        (parts.BertNormalizer(True, False, False, True), b"\x05\x01\x00\x00\x01"),
        (
            parts.TableNormalizer(
                ((65, "b"), (1, "")),
            ),
            b"\x06\x02\0\0\0\x01\0\0\0\0\0\x41\0\0\0\x01\0b",
        ),
        (parts.BertNormalizer(False, False, True, False, ((65, "b"),)), b"\x07\0\0\1\0\1\0\0\0\x41\0\0\0\x01\0b"),
        (parts.Strip(True, False), b"\x08\x01\x00"),
    ],
)
def test_normalizers(step: parts.Normalizer, expected: bytes) -> None:
    assert serialize(_body(normalizer=(step,))).startswith(b"430 4\n0 0 0\n\n" + expected + b"\0")


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (parts.ByteLevel(True), b"\x01\x01"),
        (parts.Digits(True), b"\x02\x01"),
        (parts.Metaspace("▁", True), b"\x03\x03\x00\xe2\x96\x81\x01"),
        (parts.Split("a", True, "removed"), b"\x04\x01\x00a\x01\x01"),
        (parts.Split("a", False, "merged-with-previous"), b"\x04\x01\x00a\x00\x02"),
        (parts.BertPreTokenizer(), b"\x05"),
    ],
)
def test_pre_tokenizers(step: parts.PreTokenizer, expected: bytes) -> None:
    assert serialize(_body(pre_tokenizer=(step,))).startswith(b"430 4\n0 0 0\n\n\0" + expected + b"\0\x03")


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (parts.ByteLevelDecoder(), b"\x00"),
        (parts.ByteFallbackDecoder(), b"\x01"),
        (parts.MetaspaceDecoder("_", False), b"\x02\x01\x00_\x00"),
        (parts.WordPieceDecoder("##", True), b"\x03\x02\x00##\x01"),
        (parts.FuseDecoder(), b"\x04"),
        (parts.ReplaceDecoder("_", " "), b"\x05\x01\x00_\x01\x00 "),
        (parts.StripDecoder(" ", 1, 0), b"\x06\x01\x00 \x01\0\0\0\0\0\0\0"),
    ],
)
def test_decoders(step: parts.Decoder, expected: bytes) -> None:
    tail = bytes(4) + bytes(11)
    assert serialize(_body(decoder=(step,))).endswith(b"\x07\0\0\0" + expected + tail)
    assert serialize(_body(decoder=(step, step))).endswith(b"\x07\x02\0\0\0" + 2 * expected + tail)


def test_other_models() -> None:
    piece = parts.WordPiece((b"x", b"[U]"), b"[U]", b"##", 100)
    assert b"\x01\x02\0\0\0\x03\0[U]\x02\0##\x64\0\0\0\x03\0[U]\x01\0\0\0\x01\0x\0\0\0\0" in serialize(MtokBody(piece))
    unigram = parts.Unigram((b"x", b"u"), (-0.5, 0.0), 1, True)
    record = b"\x02\x02\0\0\0\x01\0\0\0\x01\x01\0u\x01\0\0\0" + bytes(8) + b"\x01\0x\0\0\0\0\0\0\0\0\0\0\xe0\xbf"
    assert record in serialize(MtokBody(unigram))


def test_merges_are_sorted_by_left_then_right_id() -> None:
    model = _bpe((b"b", b"a", b"ab", b"aba", b"ba"), ((2, 1, 2), (0, 1, 0), (1, 0, 1)))
    data = serialize(MtokBody(model))
    keys = [(0, 1, 0), (1, 0, 1), (2, 1, 2)]
    assert b"".join(np.array(keys, dtype="<u4")) in data


def test_the_order_of_equal_things_does_not_matter() -> None:
    merges = ((1, 0, 7), (0, 1, 8))
    pieces = (b"b", b"a", b"ab", b"ba")
    assert serialize(MtokBody(_bpe(pieces, merges))) == serialize(MtokBody(_bpe(pieces, merges[::-1])))


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ((None,), b"\x01\0\0"),
        ((None, 5), b"\x02\0\0\x01\x05\0\0\0"),
        # one sequence and three ids take four bytes per entry, like an older layout: one byte more tells them apart
        ((1, 2, None, 3), b"\x04\0\x01\x01\0\0\0\x01\x02\0\0\0\0\x01\x03\0\0\0\0"),
    ],
)
def test_post_processing_program(ops: tuple[int | None, ...], expected: bytes) -> None:
    assert serialize(_body(post_ops=ops)).endswith(b"\0\0" + expected)


NUL = b"a\0"
LONG = "x" * 65_536

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("piece too long", {"model": _bpe((b"x" * 65_536,), ())}, "mtok-long-text"),
    ("NUL in a piece", {"model": _bpe((NUL,), ())}, "mtok-nul"),
    ("equal pieces", {"model": _bpe((b"a", b"b", b"a"), ())}, "mtok-duplicate-piece"),
    ("merge part outside", {"model": _bpe(merges=((1, 3, 0),))}, "mtok-id-range"),
    ("merge result absent", {"model": _bpe(merges=((0, 1, 0),))}, "mtok-merge-result"),
    ("merge twice", {"model": _bpe(merges=((1, 0, 0), (1, 0, 1)))}, "mtok-duplicate-merge"),
    ("rank never applied", {"model": _bpe(merges=((1, 0, 10**9),))}, "mtok-rank"),
    ("special id", {"special": (-1,)}, "mtok-id-range"),
    ("stop id", {"stop": (1 << 31,)}, "mtok-id-range"),
    ("added id", {"added_tokens": (parts.AddedToken(-5, b"x"),)}, "mtok-id-range"),
    ("post op id", {"post_ops": (-1,)}, "mtok-id-range"),
    ("too many post ops", {"post_ops": (None,) * 65_536}, "mtok-long-text"),
    ("added token empty", {"added_tokens": (parts.AddedToken(1, b""),)}, "mtok-empty-added-token"),
    ("added token NUL", {"added_tokens": (parts.AddedToken(1, NUL),)}, "mtok-nul"),
    (
        "added token twice",
        {"added_tokens": (parts.AddedToken(1, b"x"), parts.AddedToken(2, b"x"))},
        "mtok-duplicate-added-token",
    ),
    ("eos too long", {"eos": LONG.encode()}, "mtok-long-text"),
    ("bos NUL", {"bos": NUL}, "mtok-nul"),
    ("pattern too long", {"pre_tokenizer": (parts.Split(LONG),)}, "mtok-long-text"),
    ("pattern empty", {"pre_tokenizer": (parts.Split(""),)}, "mtok-empty-pattern"),
    ("behaviour without a code", {"pre_tokenizer": (parts.Split("a", behavior="merged-with-next"),)}, "mtok-behavior"),
    ("normalizer pattern empty", {"normalizer": (parts.Replace("", "x"),)}, "mtok-empty-pattern"),
    ("decoder pattern empty", {"decoder": (parts.ReplaceDecoder("", ""),)}, "mtok-empty-pattern"),
    ("no decoder", {"decoder": ()}, "mtok-no-decoder"),
    ("table twice", {"normalizer": (parts.TableNormalizer(((1, "a"), (1, "b"))),)}, "mtok-table"),
    ("table unread", {"normalizer": (parts.BertNormalizer(True, True, False, True, ((1, "a"),)),)}, "mtok-table"),
    ("unk outside", {"model": parts.Unigram((b"a",), (0.0,), 1, False)}, "mtok-id-range"),
    ("scores missing", {"model": parts.Unigram((b"a",), (), 0, False)}, "mtok-sizes"),
]


@pytest.mark.parametrize(("changes", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(LossError) as caught:
        serialize(_body(**changes))
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_longest_text_is_accepted() -> None:
    piece = b"x" * 65_535
    assert b"\xff\xff" + piece in serialize(MtokBody(_bpe((piece,), ())))
