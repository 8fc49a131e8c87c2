"""Random models and texts against the live library: it loads what we load, and says the same."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import FIXTURES, SHARED, SharedData
from tests.runtime.bulk.forcing import forced_at_random
from tests.runtime.sentencepiece.random_models import make_charsmap, proto, random_model, texts_for
from tests.seeds import run_seed
from tokpack.errors import EncodeError
from tokpack.formats.sentencepiece import read_bytes
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.sentencepiece.unigram import UnigramModel
from tokpack.runtime.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece", "0.2")
if sentencepiece.__version__ != "0.2.3":
    pytest.skip(f"sentencepiece {sentencepiece.__version__} is not the version of the rules", allow_module_level=True)
sentencepiece.SetMinLogLevel(5)

MODELS = int(os.environ.get("TOKPACK_EXAMPLES", "250"))
FOLDER = FIXTURES / "sentencepiece"
NAMES = sorted(path.stem for path in FOLDER.glob("*.model") if not path.stem.startswith("refused-"))


def live(data: bytes) -> tuple[Any, str | None]:
    """(processor, None), or (None, why it was refused)."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(data)
    except (RuntimeError, UnicodeDecodeError) as error:  # of a message about a text that is no UTF-8
        return None, str(error)
    return processor, None


def refusals(data: bytes) -> list[str]:
    return [finding.code for finding in read_bytes(data).findings if finding.severity.value == "refuse"]


def ours(data: bytes) -> Tokenizer:
    return Tokenizer(PackView(build_pack(read_bytes(data))))


def check_text(processor: Any, tokenizer: Tokenizer, text: str | bytes) -> list[int]:
    """Ids, offsets and the way back of one text; returns the ids."""
    ids: list[int] = processor.encode(text)
    for _ in ("cold", "warm"):
        assert tokenizer.encode(text) == ids, text
        assert tokenizer.encode_array(text).tolist() == ids, text
    raw = text.encode() if isinstance(text, str) else text
    mapping = processor.encode(raw, return_type="offset_mapping")
    pieces = tokenizer.pieces(raw)
    assert [piece.id for piece in pieces] == ids
    assert [(piece.start, piece.end) for piece in pieces] == mapping["offsets"], text
    check_decode(processor, tokenizer, ids)
    return ids


def check_decode(processor: Any, tokenizer: Tokenizer, ids: list[int]) -> None:
    expected = processor.decode(ids, return_type=bytes)
    assert tokenizer.decode_bytes(ids) == expected, ids
    as_array = tokenizer._pipeline.detokenizer.detokenize_array(np.array(ids, dtype=np.int64), False, False)
    assert as_array in (None, expected), ids
    stream = tokenizer.stream()
    assert "".join(map(stream.push, ids)) + stream.flush() == expected.decode("utf-8", "replace"), ids


def test_random_models() -> None:
    seed = run_seed()
    print(f"seed {seed}")
    loaded = 0
    for number in range(MODELS):
        rng = random.Random(f"{seed}-{number}")
        model = random_model(rng)
        data = model.to_bytes()
        processor, why = live(data)
        assert bool(refusals(data)) == (why is not None), (number, why)
        if why is not None:
            continue
        loaded += 1
        tokenizer = ours(data)
        forced_at_random(tokenizer, rng)
        for role in ("bos", "eos", "pad", "unk"):
            found = tokenizer.special_id(role)
            assert getattr(processor, f"{role}_id")() == (-1 if found is None else found), (number, role)
        for index, (piece, _, _) in enumerate(model.pieces):
            raw = piece if isinstance(piece, bytes) else piece.encode()
            if raw != b"\0":  # it is in no map of the library
                assert tokenizer.token_to_id(raw) == processor.piece_to_id(raw), (number, raw)
            assert tokenizer.is_special(index) == processor.is_control(index) | processor.is_unknown(index)
        for text in texts_for(rng, model, 8):
            check_text(processor, tokenizer, text)
            some = [rng.randrange(processor.vocab_size()) for _ in range(rng.randint(1, 8))]
            check_decode(processor, tokenizer, some)
    assert loaded > MODELS * 0.9


@pytest.mark.parametrize("name", NAMES)
def test_offsets_in_characters(name: str) -> None:
    data = (FOLDER / f"{name}.model").read_bytes()
    processor, _ = live(data)
    tokenizer = ours(data)
    for text in ("", "Hello  the world", "é日本 \U0001f600ﬁ\u3000ab\u0301", "▁▁ [INST]ings", "\n\t\0 ab…x"):
        mapping = processor.encode(text.encode(), return_type="offset_mapping")
        try:
            mapping = processor.encode(text, return_type="offset_mapping")
        except UnicodeDecodeError:  # of the pieces, which are not asked for here
            continue
        pieces = tokenizer.pieces(text)
        assert [(piece.start, piece.end) for piece in pieces] == mapping["offsets"], text


PROCESSORS = {name: live((FOLDER / f"{name}.model").read_bytes())[0] for name in NAMES}
TOKENIZERS = {name: ours((FOLDER / f"{name}.model").read_bytes()) for name in NAMES}
WORDS = st.sampled_from(
    ["the ", " and", "▁", "  ", "\t", "\n", "[INST]", "<sep>", "ings", "▁an", "ndo", "ﬁ", "ab…", "<a b>", "e\u0301",
     "\u3000", "日本", "<unk>", "<s>", "½", "\0", "\u200b", "가각", "\U0001f468\u200d\U0001f469", "ｆ", "123", "é"]
)  # fmt: skip
TEXT = st.lists(st.one_of(WORDS, st.text(st.characters(exclude_categories=["Cs"]), max_size=6)), max_size=12)


@settings(max_examples=MODELS // 3, deadline=None)
@given(st.sampled_from(NAMES), TEXT.map("".join))
def test_texts(name: str, text: str) -> None:
    check_text(PROCESSORS[name], TOKENIZERS[name], text)


@settings(max_examples=MODELS // 3, deadline=None)
@given(
    st.sampled_from(NAMES), st.lists(st.one_of(TEXT.map("".join).map(str.encode), st.binary(max_size=5)), max_size=6)
)
def test_bytes(name: str, parts: list[bytes]) -> None:
    check_text(PROCESSORS[name], TOKENIZERS[name], b"".join(parts))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_library_does_not_take(name: str) -> None:
    processor, tokenizer = PROCESSORS[name], TOKENIZERS[name]
    with pytest.raises(RuntimeError):
        processor.encode("a\ud800")
    with pytest.raises(EncodeError, match="surrogate"):
        tokenizer.encode("a\ud800")
    with pytest.raises(EncodeError, match="surrogate"):
        tokenizer.pieces("a\ud800")
    for token in (-1, processor.vocab_size()):
        with pytest.raises(IndexError):
            processor.decode([token])
        with pytest.raises(EncodeError, match="outside"):
            tokenizer.decode([token])


REAL = sorted(path.name.removesuffix(".xz") for path in (SHARED / "data/spm").glob("*.model*"))
RECORDED = {path.name.removeprefix("spm_").removesuffix(".npz.xz") for path in (SHARED / "golden/hf").glob("spm_*")}


@pytest.mark.parametrize("name", [name for name in REAL if name not in RECORDED])
def test_real_models_without_recorded_ids(name: str, shared_data: SharedData) -> None:
    data = shared_data(f"data/spm/{name}").read_bytes()
    processor, why = live(data)
    assert why is None
    tokenizer = ours(data)
    lines = (SHARED / "data/corpus_hf.jsonl").read_text(encoding="utf-8").splitlines()
    for line in random.Random(name).sample(lines, 60):
        check_text(processor, tokenizer, json.loads(line)["text"])


def test_long_texts_reset_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unigram counts from zero again at 100,000."""
    resets: list[int] = []
    original = UnigramModel._reset

    def reset(best: Any, origin: Any, at: int, frontier: int) -> None:
        resets.append(at)
        original(best, origin, at, frontier)

    monkeypatch.setattr(UnigramModel, "_reset", staticmethod(reset))
    rng = random.Random(7)
    for name in ("unigram", "suffix", "rules"):
        text = "".join(rng.choice(["the ", "and", "q", "zx", "日", " ", "ing", "鿿", "鿿"]) for _ in range(30_000))
        assert TOKENIZERS[name].encode(text) == PROCESSORS[name].encode(text), name
    assert resets


def check_model(model: Any, *texts: str) -> list[list[int]]:
    data = model.to_bytes()
    processor, why = live(data)
    assert why is None
    tokenizer = ours(data)
    return [check_text(processor, tokenizer, text) for text in texts]


BASE = [("<unk>", 0.0, proto.UNKNOWN), ("▁", -1.0, proto.NORMAL)]


def test_unused_pieces_deeper_than_the_library_follows() -> None:
    """kMaxBpeResegmentDepth: what is left at a depth of 101 stays, an unused piece or not."""
    chain = [("a" * size, float(size), proto.UNUSED) for size in range(2, 140)]
    texts = ["a" * size for size in (1, 2, 99, 101, 102, 103, 110, 139, 300)]
    for letter in (proto.NORMAL, proto.UNUSED):
        check_model(proto.Model([*BASE, *chain, ("a", 0.0, letter)], {"model_type": proto.BPE}), *texts)
    # a control piece comes out, too, at which the library has ids, but fails to give offsets
    data = proto.Model([*BASE, *chain, ("a", 0.0, proto.CONTROL)], {"model_type": proto.BPE}).to_bytes()
    processor, tokenizer = live(data)[0], ours(data)
    assert [tokenizer.encode(text) for text in texts] == [processor.encode(text) for text in texts]


def test_more_matches_than_the_library_looks_at() -> None:
    """kResultSize of user-defined pieces is 64, kMaxTrieResultsSize of the charsmap 32."""
    user = [("b" * size, 0.0, proto.USER_DEFINED) for size in range(1, 80)]
    rules = make_charsmap({b"c" * size: b"d%d" % size for size in range(1, 50)})
    letters = [(letter, -2.0, proto.NORMAL) for letter in "d0123456789"]
    for kind in (proto.UNIGRAM, proto.BPE, proto.CHAR):
        model = proto.Model([*BASE, *user, *letters], {"model_type": kind}, {"precompiled_charsmap": rules})
        check_model(model, "b" * 63, "b" * 64, "b" * 65, "b" * 200, "c" * 31, "c" * 33, "c" * 45, "xccc" + "c" * 100)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e5, 3e37, 3.4e38])
def test_scores_of_any_size(scale: float) -> None:
    rng = random.Random(int(scale) % 1000)
    texts = {"".join(rng.choice("ab▁") for _ in range(rng.randint(1, 4))) for _ in range(40)} - {"▁"}
    pieces = [(text, rng.uniform(-scale, scale), proto.NORMAL) for text in sorted(texts)]
    samples = ["".join(rng.choice("ab c") for _ in range(60)) for _ in range(20)]
    for kind in (proto.UNIGRAM, proto.BPE):
        check_model(proto.Model([*BASE, *pieces], {"model_type": kind}), *samples)


def test_scores_that_are_no_numbers_have_a_place_in_bpe() -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, -1.0]
    pieces = [
        (text, score, proto.NORMAL) for text, score in zip(["ab", "bc", "cd", "bcd", "de", "abc"], odd, strict=True)
    ]
    check_model(proto.Model([*BASE, *pieces], {"model_type": proto.BPE}), "abcde", "bcde", "abcd", "cde abc")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", ["a", " ", "日", "the", "▁", "\n", "z", "é\u0301"])
def test_long_runs(name: str, unit: str) -> None:
    text = unit * (8_000 // len(unit))
    assert TOKENIZERS[name].encode(text) == PROCESSORS[name].encode(text)
