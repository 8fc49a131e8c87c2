"""One tokenizer in batches, threads, processes and pickles gives the same ids; nothing it did before matters."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, read_texts
from tests.property.pairs import budget, pair
from tests.property.strategies import raw_bytes, texts

NAMES = ("demo", "gpt-4o", "jina-v2-code", "sarvam-moe")
TEXTS = read_texts(FIXTURES / "texts.jsonl")[::3]
SWITCHES = [(add, parse) for add in (False, True) for parse in (False, True)]


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_equals_its_texts_one_by_one(name: str) -> None:
    both = pair(name)
    batches = st.lists(texts(both.specials, 5), max_size=5)

    @budget()
    @given(batches, st.sampled_from(SWITCHES))
    def check(batch: list[str], switches: tuple[bool, bool]) -> None:
        assert both.fast.encode_batch(batch, *switches) == [both.slow.encode(text, *switches) for text in batch]
        for text in batch:
            assert both.fast.encode_array(text, *switches).tolist() == both.slow.encode(text, *switches)

    check()


@pytest.mark.parametrize("packed", [False, True], ids=["in memory", "mapped"])
def test_processes(packed: bool, tmp_path: Path) -> None:
    source = FIXTURES / "demo.gguf"
    tokenizer = tokpack.load(_packed(source, tmp_path) if packed else source)
    single = [tokenizer.encode(text, False, False) for text in TEXTS]
    assert tokenizer.encode_batch(TEXTS, False, False, workers=2) == single
    assert tokenizer.encode_batch(iter(TEXTS), False, False, workers=1) == single
    assert tokenizer.encode_batch(TEXTS[:1], False, False, workers=2) == single[:1]


@pytest.mark.parametrize("packed", [False, True], ids=["in memory", "mapped"])
def test_pickles(packed: bool, tmp_path: Path) -> None:
    source = FIXTURES / "gpt-4o.gguf"
    tokenizer = tokpack.load(_packed(source, tmp_path) if packed else source)
    before = pickle.loads(pickle.dumps(tokenizer))
    ids = [tokenizer.encode(text) for text in TEXTS]
    after = pickle.loads(pickle.dumps(tokenizer))  # with everything made that is made on first use
    for copy in (before, after):
        assert isinstance(copy, tokpack.Tokenizer)
        assert copy.vocab_size == tokenizer.vocab_size
        assert [copy.encode(text) for text in TEXTS] == ids


def _packed(source: Path, folder: Path) -> Path:
    target = folder / f"{source.stem}.tokpack"
    tokpack.convert(source, target)
    return target


@pytest.mark.parametrize("name", NAMES)
def test_threads(name: str) -> None:
    """A fresh tokenizer, so that its stages are first made by several threads at once."""
    slow = pair(name).slow
    fresh = tokpack.load(FIXTURES / f"{name}.gguf")
    expected = [slow.encode(text) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda: [fresh.encode(text) for text in TEXTS]) for _ in range(4)]
        assert all(job.result() == expected for job in jobs)


@pytest.mark.parametrize("name", NAMES)
def test_a_used_tokenizer_is_as_a_new_one(name: str) -> None:
    both = pair(name)

    @budget(0.3)
    @given(raw_bytes(both.specials), texts(both.specials))
    def check(first: bytes, second: str) -> None:
        fresh = tokpack.load(FIXTURES / f"{name}.gguf")
        for text in (first, second):
            assert both.check(text, True, True) is None or fresh.encode(text) == both.slow.encode(text)

    check()
