"""The stages of an explanation lead to the ids of ``encode``, for a sample of every fixture and of the shared data.

``explain`` raises when they do not; here it is asked on the corpora, from the file and from a pack.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, SharedData, read_texts
from tests.property.strategies import raw_bytes, texts
from tests.seeds import run_seed
from tokpack.analysis.explanation import Choice, Explanation, Match, Merge, as_document, explain

PATTERNS = ("*.gguf", "hf/*.json", "sentencepiece/*.model", "tiktoken/*.tiktoken", "tiktoken/tekken*.json")
PATTERNS += ("mnn/*.mtok", "mnn/*.txt")
FILES = sorted(
    path.relative_to(FIXTURES).as_posix()
    for pattern in PATTERNS
    for path in FIXTURES.glob(pattern)
    if not path.name.startswith(("refused-", "no-vocab", "none."))
)
RANK_FILE = {"format": "tiktoken", "pattern": r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"}
ALL = os.environ.get("TOKPACK_EXPLAINED") == "all"  # every text of every fixture: half an hour
SAMPLE = 2 if ALL else int(os.environ.get("TOKPACK_EXPLAINED", "2"))
MODES = ((True, True), (True, False), (False, True), (False, False))


def sampled(items: list[Any], count: int) -> list[Any]:
    if ALL:
        return items
    seed = run_seed()
    print(f"sample with seed {seed}")
    return random.Random(seed).sample(items, min(count, len(items)))


@cache
def corpus() -> list[str | bytes]:
    return read_texts(FIXTURES / "texts.jsonl") + read_texts(FIXTURES / "hf/texts.jsonl")


def loaded(name: str) -> tokpack.Tokenizer:
    """A fixture; skips what its reference refuses, which other tests are about."""
    try:
        return tokpack.load(FIXTURES / name, **options_of(name))
    except tokpack.RefusedError as error:
        pytest.skip(str(error))


def options_of(name: str) -> dict[str, Any]:
    return RANK_FILE if name.endswith(".tiktoken") else {}


def check(tokenizer: tokpack.Tokenizer, text: str | bytes, add: bool, parse: bool) -> Explanation | None:
    """The explanation; None for a text on which the reference aborts, on which explaining has to fail alike."""
    expected: list[int] | str
    try:
        expected = tokenizer.encode(text, add, parse)
    except tokpack.EncodeError as error:
        expected = str(error)
    if isinstance(expected, str):
        with pytest.raises(tokpack.EncodeError, match=re.escape(expected)):
            explain(tokenizer, text, add, parse)
        return None
    found = explain(tokenizer, text, add, parse)
    assert found.ids == found.traced_ids() == expected
    consistent(found)
    json.dumps(as_document(found), allow_nan=False)
    return found


def consistent(found: Explanation) -> None:
    """What the stages say of themselves fits together."""
    assert b"".join(part.text for part in found.parts) == found.text or found.notes or found.reference == "huggingface"
    for part in found.parts:
        for inner in (part, *part.parts):
            for word in inner.words:
                merges = [action for action in word.actions if isinstance(action, Merge)]
                assert all(merge.start < merge.end <= len(word.text) for merge in merges)
                for action in word.actions:
                    if isinstance(action, (Choice, Match)):
                        assert action.text == word.text[action.start : action.end]
                    if isinstance(action, Choice) and action.rival is not None:
                        assert action.rival[2] <= action.total


@pytest.mark.parametrize("name", FILES)
def test_stages_lead_to_the_ids(name: str, tmp_path: Path) -> None:
    tokenizer = loaded(name)
    for number, text in enumerate(sampled(corpus(), SAMPLE)):
        for add, parse in MODES[number % 2 :: 2]:
            check(tokenizer, text, add, parse)


@pytest.mark.parametrize("name", FILES[::9])
def test_packs_are_explained_alike(name: str, tmp_path: Path) -> None:
    tokenizer = loaded(name)
    target = tmp_path / "out.tokpack"
    tokpack.write(tokpack.read(FIXTURES / name, **options_of(name)), target)
    packed = tokpack.load(target)
    for text in sampled(corpus(), SAMPLE):
        one, other = check(tokenizer, text, True, True), check(packed, text, True, True)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert as_document(one) | {"file": None} == as_document(other) | {"file": None}


TOKENIZERS = {
    name: tokpack.load(FIXTURES / name) for name in ("demo.gguf", "spm.gguf", "ugm.gguf", "hf/added-lower.json")
}


@settings(deadline=None, max_examples=int(os.environ.get("TOKPACK_EXAMPLES", "40")))
@given(name=st.sampled_from(sorted(TOKENIZERS)), text=texts([b"<|im_end|>", b"<S>", b"caf\xc3\xa9"]) | raw_bytes())
def test_any_text(name: str, text: str | bytes) -> None:
    for add, parse in MODES:
        check(TOKENIZERS[name], text, add, parse)


SHARED: dict[str, dict[str, Any]] = {
    "data/gguf/ggml-vocab-qwen2.gguf": {},
    "data/gguf/ggml-vocab-llama-spm.gguf": {},
    "data/gguf/ggml-vocab-bert-bge.gguf": {},
    "data/spm/t5_torchtune.model": {},
    "data/spm/llama2.model": {},
    "data/spm/keras_albert.model": {},
    "data/tiktoken/r50k_base.tiktoken": {"pattern": "r50k_base"},
    "data/tiktoken/cl100k_base.tiktoken": {"pattern": "cl100k_base"},
    "data/tiktoken/tekken_240911.json": {},
    "data/hf/albert/tokenizer.json": {},
    "data/hf/bge_small_en/tokenizer.json": {},
    "data/mnn/qwen3.mtok": {},
    "data/mnn/t5_spm.txt": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHARED))
def test_real_vocabularies(name: str, shared_data: SharedData) -> None:
    try:
        tokenizer = tokpack.load(shared_data(name), **SHARED[name])
    except tokpack.UnsupportedError as error:
        pytest.skip(str(error))
    lines = shared_data("data/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    raw = read_texts(shared_data("data/corpus_bytes.jsonl"))
    for text in [*(json.loads(line)["text"] for line in sampled(lines, 40)), *sampled(raw, 10)]:
        check(tokenizer, text, True, True)
        check(tokenizer, text, False, False)
