"""Ids and text equal those recorded from the tokenizers library 0.23.3: from the JSON and from a converted pack."""

from __future__ import annotations

import io
import json
import lzma
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import SHARED, SharedData
from tests.runtime.bulk.forcing import forced_at_random
from tests.seeds import run_seed

GOLDEN = SHARED / "golden/hf"
NAMES = sorted(
    name
    for name in (path.name.removesuffix(".npz.xz") for path in GOLDEN.glob("*.npz.xz"))
    if not name.startswith(("spm_", "tik_"))
)
CORPUS_HF = 2818  # where the texts of corpus_hf.jsonl begin
SAMPLE = 120  # texts of each tokenizer in the quick suite; TOKPACK_GOLDEN=all runs all of them


@dataclass
class Golden:
    ids: list[list[int]]
    prefix: list[int]
    suffix: list[int]
    decode_skip: list[Any]
    decode_noskip: list[Any]
    failed: set[int]


def corpus() -> list[str]:
    lines = [
        line
        for name in ("corpus.jsonl", "corpus_hf.jsonl")
        for line in (SHARED / "data" / name).read_text(encoding="utf-8").splitlines()
    ]
    return [json.loads(line)["text"] for line in lines]


def load_golden(name: str) -> Golden:
    raw = lzma.decompress((GOLDEN / f"{name}.npz.xz").read_bytes())
    with np.load(io.BytesIO(raw)) as data:
        ends = np.cumsum(data["lens"].astype(np.int64))
        return Golden(
            [part.tolist() for part in np.split(data["ids"], ends[:-1])],
            data["prefix"].tolist(),
            data["suffix"].tolist(),
            json.loads(data["decode_skip"].tobytes()),
            json.loads(data["decode_noskip"].tobytes()),
            {index for index, _ in json.loads(data["errors"].tobytes())},
        )


def chosen(count: int) -> list[int]:
    if os.environ.get("TOKPACK_GOLDEN") == "all":
        return list(range(count))
    seed = run_seed()
    print(f"golden sample with seed {seed}")
    return random.Random(seed).sample(range(count), SAMPLE)


def compare(tokenizer: tokpack.Tokenizer, golden: Golden, texts: list[str], label: str) -> None:
    wrong: list[Any] = []
    for i in chosen(len(texts)) if len(texts) > SAMPLE else range(len(texts)):
        if i in golden.failed:
            continue
        text, ids = texts[i], golden.ids[i]
        full = [*golden.prefix, *ids, *golden.suffix]
        if tokenizer.encode(text, False) != ids:
            wrong.append((text, "ids", tokenizer.encode(text, False), ids))
        if tokenizer.encode(text) != full:
            wrong.append((text, "special ids", tokenizer.encode(text), full))
        skip, noskip = golden.decode_skip[i], golden.decode_noskip[i]
        skip = text if skip == 0 else skip
        noskip = skip if noskip == 0 else noskip
        for expected, flag in ((skip, True), (noskip, False)):
            if expected is not None and tokenizer.decode(full, flag) != expected:
                wrong.append((text, f"decode {flag}", tokenizer.decode(full, flag), expected))
    assert not wrong, f"{label}: {len(wrong)} differences, first: {wrong[0]}"


@pytest.mark.skipif(not NAMES, reason="needs ../shared/golden/hf, which is not part of the project")
def test_there_are_golden_files() -> None:
    assert len(NAMES) >= 100


@pytest.mark.parametrize("name", NAMES)
def test_tokenizer(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    source = shared_data(f"data/hf/{name}/tokenizer.json")
    golden, texts = load_golden(name), corpus()
    tokenizer = tokpack.load(source)
    compare(tokenizer, golden, texts, name)
    target = tmp_path / f"{name}.tokpack"
    tokpack.convert(source, target)
    # a tokenizer that is not a pack runs from a pack in memory; if it is the same one, so are its ids
    assert target.read_bytes() == tokenizer.view.data
    compare(tokpack.load(target), golden, texts[:100], target.name)


@pytest.mark.parametrize("name", NAMES)
def test_bulk(name: str, shared_data: SharedData) -> None:
    """The same ids by the bulk path, at chunks of any size."""
    golden, texts = load_golden(name), corpus()
    tokenizer = tokpack.load(shared_data(f"data/hf/{name}/tokenizer.json"))
    seed = run_seed()
    print(f"bulk limits with seed {seed}")
    limits, wrong = random.Random(seed), []
    usable = [index for index in chosen(len(texts)) if index not in golden.failed]
    if os.environ.get("TOKPACK_BULK") != "all":  # all of them take another ten minutes
        usable = limits.sample(usable, min(300, len(usable)))
    for at, i in enumerate(usable):
        if at % 20 == 0 and not forced_at_random(tokenizer, limits):
            pytest.skip("its model has no bulk path")
        if tokenizer.encode_array(texts[i], add_special_tokens=False).tolist() != golden.ids[i]:
            wrong.append(texts[i])
    assert not wrong, f"{name}: {len(wrong)} differences, first: {wrong[0]!r}"


def recorded(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(lzma.decompress((GOLDEN / f"{name}.json.xz").read_bytes()))
    return data


@pytest.mark.skipif(not NAMES, reason="needs ../shared/golden/hf, which is not part of the project")
def test_pairs(shared_data: SharedData) -> None:
    """Ids and type ids of two texts."""
    data = recorded("pairs")
    for name, expected in data["enc"].items():
        if not (SHARED / "data/hf" / name).is_dir():
            continue  # recorded from a tokenizer that may not be passed on
        tokenizer = tokpack.load(shared_data(f"data/hf/{name}/tokenizer.json"))
        for (first, second), (ids, types) in zip(data["pairs"], expected, strict=True):
            assert tokenizer.encode_pair(first, second) == (ids, types), (name, first, second)


@pytest.mark.skipif(not NAMES, reason="needs ../shared/golden/hf, which is not part of the project")
def test_truncation_and_padding_of_the_file(shared_data: SharedData) -> None:
    texts = corpus()[CORPUS_HF:]  # recorded for these alone
    for name, entries in recorded("asis_trunc_pad").items():
        if not (SHARED / "data/hf" / name).is_dir():
            continue
        tokenizer = tokpack.load(shared_data(f"data/hf/{name}/tokenizer.json"))
        assert len(entries) > 50
        for index, full, plain in entries:
            assert tokenizer.encode(texts[index], truncation=True, padding=True) == full, (name, index)
            assert tokenizer.encode(texts[index], False, truncation=True, padding=True) == plain, (name, index)
