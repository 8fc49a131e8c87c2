"""What the library has no counterpart of: control pieces shown, single pieces, streams, sharing."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES, read_texts
from tests.runtime.sentencepiece.random_models import proto
from tokpack.errors import EncodeError, UnsupportedError

FOLDER = FIXTURES / "sentencepiece"
NAMES = sorted(path.stem for path in FOLDER.glob("*.model") if not path.stem.startswith("refused-"))


@pytest.fixture
def small(tmp_path: Path) -> tokpack.Tokenizer:
    pieces = [
        ("<unk>", 0.0, 2), ("<s>", 0.0, 3), *proto.byte_pieces(), ("▁a", -1.0, 1), ("▁", -1.0, 1), ("b▁b", -1.0, 1),
        ("▁u▁", 0.0, 4),
    ]  # fmt: skip
    path = tmp_path / "x.model"
    path.write_bytes(proto.Model(pieces, {"byte_fallback": True}).to_bytes())
    return tokpack.load(path)


def test_both_flags_of_encode_are_without_effect(small: tokpack.Tokenizer) -> None:
    expected = small.encode("<s> a")
    assert 1 not in expected
    for flags in ((False, False), (True, False), (False, True)):
        assert small.encode("<s> a", *flags) == expected


def test_control_pieces_are_shown_when_asked_for(small: tokpack.Tokenizer) -> None:
    ids = [1, 258, 1, 258, 0]
    assert small.decode(ids) == "a a ⁇ "
    assert small.decode(ids, skip_special_tokens=False) == "<s> a<s> a ⁇ "
    stream = small.stream(skip_special_tokens=False)
    assert [*map(stream.push, ids), stream.flush()] == ["<s>", " a", "<s>", " a", " ⁇ ", ""]


def test_single_pieces(small: tokpack.Tokenizer) -> None:
    pieces = [small.id_to_piece(token) for token in (0, 1, 2 + 0xE3, 258, 260, 261)]
    assert pieces == [" ⁇ ".encode(), b"<s>", b"\xe3", b" a", b"b b", b" u "]
    assert small.id_to_piece(1, special=False) == b""
    assert small.id_to_token(258) == "▁a"
    for token in (-1, 262):
        with pytest.raises(EncodeError, match=r"outside 0\.\.261"):
            small.id_to_piece(token)


def test_a_stream_holds_back_what_is_not_decided(small: tokpack.Tokenizer) -> None:
    stream = small.stream()
    byte = 2
    pushed = [stream.push(byte + value) for value in "é".encode() + b"\xe3\x81\xe3\x81\x82\xf0\x9f"]
    assert pushed == ["", "é", "", "", "\ufffd\ufffd", "", "あ", "", ""]
    assert stream.push(258) == "\ufffd\ufffd a"
    assert stream.push(byte + 0xC3) == ""
    assert stream.flush() == "\ufffd"
    assert stream.push(258) == "a"  # from the start again


def test_there_are_no_pairs(small: tokpack.Tokenizer) -> None:
    with pytest.raises(UnsupportedError, match="pairs"):
        small.encode_pair("a", "b")


@pytest.mark.parametrize("name", NAMES)
def test_tokenizers_are_shared_and_copied(name: str) -> None:
    tokenizer = tokpack.load(FOLDER / f"{name}.model")
    texts = read_texts(FIXTURES / "texts.jsonl")[::5]
    expected = [tokpack.load(FOLDER / f"{name}.model").encode(text) for text in texts[:1]]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: [tokenizer.encode(text) for text in texts], range(4)))
    assert all(result == results[0] for result in results)
    assert results[0][:1] == expected
    again = pickle.loads(pickle.dumps(tokenizer))
    assert [again.encode(text) for text in texts] == results[0]
