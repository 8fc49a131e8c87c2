"""The bulk path equals the reference runtime and the scalar path, at every size of chunk, cold and warm."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, read_texts
from tests.property.pairs import FIXTURE_NAMES, Pair, budget, outcome, pair
from tests.property.strategies import raw_bytes, texts
from tests.property.test_paths import PRE_NAMES, SWITCHES, with_pre
from tests.runtime.bulk.forcing import force

LIMITS = st.tuples(st.integers(1, 64), st.sampled_from([0, 1 << 20]), st.sampled_from([1, 50, 1 << 19]))


def check_bulk(both: Pair, text: str | bytes, switches: tuple[bool, bool], limits: tuple[int, int, int]) -> None:
    force(both.fast, *limits)
    slow = outcome(lambda: both.slow.encode(text, *switches))
    for _ in ("cold", "warm"):
        assert outcome(lambda: both.fast.encode_array(text, *switches).tolist()) == slow, (text, switches, limits)


@pytest.mark.parametrize("name", PRE_NAMES)
def test_every_pre_tokenizer(name: str) -> None:
    both = with_pre(name)

    @budget(0.15)
    @given(texts(both.specials), SWITCHES, LIMITS)
    def check(text: str, switches: tuple[bool, bool], limits: tuple[int, int, int]) -> None:
        check_bulk(both, text, switches, limits)

    check()


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_every_fixture(name: str) -> None:
    both = pair(name)

    @budget(0.4)
    @given(st.one_of(texts(both.specials, 40), raw_bytes(both.specials)), SWITCHES, LIMITS)
    def check(text: str | bytes, switches: tuple[bool, bool], limits: tuple[int, int, int]) -> None:
        check_bulk(both, text, switches, limits)

    check()


def test_most_fixtures_have_a_bulk_path() -> None:
    assert sum(force(pair(name).fast, 7) for name in FIXTURE_NAMES) >= 20


@pytest.mark.parametrize("name", ["demo", "gpt-4o", "sarvam-moe"])
def test_long_texts_of_many_kinds(name: str) -> None:
    """Texts of a length that goes the bulk way by itself: lists and arrays are equal, and those of the scalar path."""
    text = "".join(t for t in read_texts(FIXTURES / "texts.jsonl") if isinstance(t, str))
    text = (text * (1 + (1 << 16) // len(text)))[: 1 << 16]
    tokenizer = tokpack.load(FIXTURES / f"{name}.gguf")
    found = tokenizer.encode_array(text)
    assert found.dtype == np.int32
    assert tokenizer.encode(text) == found.tolist() == [piece.id for piece in tokenizer.pieces(text)]
    for chunk in (1, 1000, 1 << 20):
        force(tokenizer, chunk)
        assert np.array_equal(tokenizer.encode_array(text), found)


@pytest.mark.parametrize("text", ["", "\0", "\0\0a\0", "a\0", "\ud800", "a\udfffb", "\xff" * 9, "é\0é\xff"])
@pytest.mark.parametrize("name", ["demo", "gpt-4o", "gemma4"])
def test_odd_texts(name: str, text: str) -> None:
    if name not in FIXTURE_NAMES:
        pytest.skip(f"there is no fixture {name}")
    both = pair(name)
    for repeat in (1, 40):
        check_bulk(both, text * repeat, (False, True), (3, 0, 1))


def test_threads_share_nothing() -> None:
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    force(tokenizer, 40)
    batch = [text for text in read_texts(FIXTURES / "texts.jsonl") if isinstance(text, str)]
    expected = [tokenizer.encode(text) for text in batch]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda: [tokenizer.encode_array(text).tolist() for text in batch]) for _ in range(8)]
        assert all(job.result() == expected for job in jobs)


@pytest.mark.parametrize("name", ["demo", "sarvam-moe", "gpt-4o"])
def test_decoding_many_ids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = pair(name)
    monkeypatch.setattr("tokpack.runtime.tokenizer._MANY", 1)

    @budget(2)
    @given(st.lists(st.integers(0, both.fast.vocab_size - 1), max_size=30), SWITCHES)
    def check(ids: list[int], switches: tuple[bool, bool]) -> None:
        expected = both.slow.detokenize(ids, *switches)
        assert both.fast.detokenize(ids, *switches) == expected
        assert both.fast.detokenize(np.array(ids, dtype=np.int32), *switches) == expected

    check()
    for bad in ([0, -1], [both.fast.vocab_size], [0, 1 << 70]):
        with pytest.raises(tokpack.EncodeError):
            both.fast.detokenize(bad)


OTHERS = sorted(path.stem for path in FIXTURES.glob("*.gguf") if path.stem.startswith(("spm", "wpm", "modern-bert")))


@pytest.mark.parametrize("name", OTHERS)
def test_models_without_a_reference_here(name: str) -> None:
    """Score merge and WPM: as by the scalar path, which is compared with llama.cpp itself."""
    scalar, bulk = tokpack.load(FIXTURES / f"{name}.gguf"), tokpack.load(FIXTURES / f"{name}.gguf")
    if not force(bulk, 1):
        pytest.skip("its model has no bulk path")

    @budget(0.4)
    @given(st.one_of(texts((), 40), raw_bytes()), SWITCHES, LIMITS)
    def check(text: str | bytes, switches: tuple[bool, bool], limits: tuple[int, int, int]) -> None:
        force(bulk, *limits)
        expected = outcome(lambda: scalar.encode(text, *switches))
        for _ in ("cold", "warm"):
            assert outcome(lambda: bulk.encode_array(text, *switches).tolist()) == expected, (text, switches, limits)

    check()
