"""SentencePiece models: the bulk path and short texts field by field give the ids of the plain way, and the library's.

The ids of ``encode_spans`` are those of the plain way: all of a text is normalized, then goes to the model.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, SharedData, read_texts
from tests.peers import peer
from tests.property.pairs import budget, outcome
from tests.property.strategies import raw_bytes, texts
from tests.runtime.bulk.forcing import force
from tests.runtime.sentencepiece.random_models import proto
from tokpack.formats.sentencepiece import read_bytes
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView

HERE = FIXTURES / "sentencepiece"
NAMES = sorted(path.stem for path in HERE.glob("*.model") if not path.stem.startswith("refused"))
LIMITS = st.tuples(st.integers(1, 64), st.sampled_from([0, 1 << 20]), st.sampled_from([1, 50, 1 << 19]))
WORDS = [
    *"aZ 1▁ ",
    "the",
    " the",
    "▁the",
    "\n",
    "\t",
    "  ",
    "   ",
    "a\n",
    " \n",
    "x)",
    "<s>",
    "é",
    "ﬁ",
    "½",
    "\u0301",
    "中",
    "\x01",
]
TEXTS = st.one_of(texts((b"<s>", b"<a>"), 30), st.lists(st.sampled_from(WORDS), max_size=30).map("".join))


def plain(tokenizer: tokpack.Tokenizer, text: str | bytes) -> list[int] | str:
    return outcome(lambda: [token for token, _, _ in tokenizer._pipeline.encode_spans(text, True, True)])


def check_paths(tokenizer: tokpack.Tokenizer, text: str | bytes, limits: tuple[int, int, int]) -> list[int] | str:
    expected = plain(tokenizer, text)
    force(tokenizer, *limits)
    for state in ("cold", "warm"):
        assert outcome(lambda: tokenizer.encode(text)) == expected, (text, limits, state)
        assert outcome(lambda: tokenizer.encode_array(text).tolist()) == expected, (text, limits, state)
    return expected


@cache
def fixture(name: str) -> tokpack.Tokenizer:
    return tokpack.load(HERE / f"{name}.model")


def live(path: Any) -> Any:
    library = peer("sentencepiece")
    return None if library is None else library.SentencePieceProcessor(model_file=str(path))


@pytest.mark.parametrize("name", NAMES)
def test_every_fixture(name: str) -> None:
    tokenizer, theirs = fixture(name), live(HERE / f"{name}.model")

    @budget(3)
    @given(st.one_of(TEXTS, raw_bytes()), LIMITS)
    def check(text: str | bytes, limits: tuple[int, int, int]) -> None:
        found = check_paths(tokenizer, text, limits)
        if theirs is not None and isinstance(found, list):
            assert found == theirs.encode(text), text

    check()


def test_most_merging_fixtures_have_a_bulk_path() -> None:
    assert [name for name in NAMES if force(fixture(name), 1)] >= ["bpe"]


@pytest.mark.parametrize(
    "text", ["", "\0", "\0\0a\0", "a\0 b", " ", "  ", " a ", "\ud800", "a \udfffb", "é\0é\xff ", b"\xff ", "▁", "▁ a"]
)
@pytest.mark.parametrize("name", NAMES)
def test_odd_texts(name: str, text: str | bytes) -> None:
    for repeat in (1, 40):
        check_paths(fixture(name), text * repeat, (3, 0, 1))


@pytest.mark.parametrize("name", NAMES)
def test_decoding_many_ids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, theirs = fixture(name), live(HERE / f"{name}.model")
    walked = tokenizer._pipeline.detokenizer._walked
    finished = tokenizer._pipeline.detokenizer.finished
    known = [tokenizer.encode(text) for text in read_texts(FIXTURES / "texts.jsonl") if isinstance(text, str)]
    some = st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30)
    byte = [token for token in range(tokenizer.vocab_size) if tokenizer.id_to_token(token).startswith("<0x")]
    bytes_of = st.lists(st.sampled_from([*(byte or [0]), *range(3)]), max_size=6)
    ids_of = st.one_of(
        some,
        st.sampled_from(known),
        st.tuples(bytes_of, some, bytes_of).map(lambda parts: [*parts[0], *parts[1], *parts[2]]),
    )

    @budget(3)
    @given(ids_of, st.booleans())
    def check(ids: list[int], special: bool) -> None:
        expected = finished(walked(ids, special))
        assert tokenizer.detokenize(ids, False, special) == expected, ids
        with monkeypatch.context() as patch:
            patch.setattr("tokpack.runtime.tokenizer._MANY", 1)
            assert tokenizer.detokenize(ids, False, special) == expected, ids
            assert tokenizer.detokenize(np.array(ids, dtype=np.int32), False, special) == expected, ids
        if theirs is not None and not special:
            assert expected == theirs.decode(ids, return_type=bytes), ids

    check()
    for bad in ([0, -1], [tokenizer.vocab_size], [0, 1 << 70], [0, 1.5]):
        with pytest.raises(tokpack.EncodeError):
            tokenizer.detokenize(bad)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["llama2", "mistral_v3", "amr_nmt", "t5_torchtune", "marian_nmt", "chatglm6b_ice_text"]
)
def test_real_models(name: str, shared_data: SharedData) -> None:
    library = pytest.importorskip("sentencepiece", "0.2", reason="the live comparison needs sentencepiece")
    path = shared_data(f"data/spm/{name}.model")
    theirs = library.SentencePieceProcessor(model_file=str(path))
    tokenizer = tokpack.load(path)

    @budget(6)
    @given(TEXTS, LIMITS)
    def check(text: str, limits: tuple[int, int, int]) -> None:
        found = check_paths(tokenizer, text, limits)
        assert isinstance(found, str) or found == theirs.encode(text), text

    check()


def test_sums_beyond_single_precision_are_quiet() -> None:
    """Scores near the largest float: their sums are infinite, in the library too, and numpy has nothing to say."""
    pieces = [("<unk>", 0.0, 2), ("▁", -3e38, 1), ("▁a", -3e38, 1), ("a", -3.0, 1), ("▁ab", -2e38, 1), ("b", -1.0, 1)]
    data = proto.Model(pieces, {"model_type": 1}, {}).to_bytes()
    tokenizer = tokpack.Tokenizer(PackView(build_pack(read_bytes(data))))
    text = "a ab b " * 200
    library = peer("sentencepiece")
    for limits in ((7, 0, 1), (64, 1 << 20, 1 << 19)):
        expected = check_paths(tokenizer, text, limits)
        if library is not None:
            assert library.SentencePieceProcessor(model_proto=data).encode(text) == expected
