"""Ids and text equal those recorded from sentencepiece 0.2.3: from the model and from a converted pack."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES, SHARED, SharedData, read_texts
from tests.runtime.bulk.forcing import forced_at_random
from tests.seeds import run_seed

FOLDER = FIXTURES / "sentencepiece"
NAMES = sorted(path.stem for path in (FOLDER / "golden").glob("*.npz"))
LOADED = [name for name in NAMES if not name.startswith("refused-")]
REFUSED = [name for name in NAMES if name.startswith("refused-")]
GOLDEN = SHARED / "golden/hf"
REAL = sorted(path.name.removeprefix("spm_").removesuffix(".npz.xz") for path in GOLDEN.glob("spm_*.npz.xz"))
SAMPLE = 80  # texts of each real model in the quick suite; TOKPACK_GOLDEN=all runs all of them


@cache
def golden(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(FOLDER / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
    return meta, arrays


def parts(values: Any, lens: Any) -> list[list[Any]]:
    ends = [0, *np.cumsum(lens.astype(np.int64)).tolist()]
    return [values[start:end].tolist() for start, end in pairwise(ends)]


def test_there_are_fixtures() -> None:
    assert len(LOADED) >= 14
    assert len(REFUSED) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_golden_belongs_to_the_fixture(name: str) -> None:
    meta = golden(name)[0]
    assert meta["fixture_sha256"] == hashlib.sha256((FOLDER / f"{name}.model").read_bytes()).hexdigest()
    assert meta["texts_sha256"] == hashlib.sha256((FIXTURES / "texts.jsonl").read_bytes()).hexdigest()
    assert bool(meta["refused"]) == name.startswith("refused-")


@pytest.mark.parametrize("name", REFUSED)
def test_what_sentencepiece_refuses_is_refused(name: str) -> None:
    path = FOLDER / f"{name}.model"
    findings = [item for item in tokpack.read(path).findings if item.severity.value == "refuse"]
    assert len(findings) == 1, findings
    with pytest.raises(tokpack.RefusedError) as caught:
        tokpack.load(path)
    assert caught.value.code == findings[0].code


@pytest.mark.parametrize("name", LOADED)
def test_fixture(name: str, tmp_path: Path) -> None:
    path, target = FOLDER / f"{name}.model", tmp_path / f"{name}.tokpack"
    tokpack.convert(path, target)
    meta, arrays = golden(name)
    for tokenizer in (tokpack.load(path), tokpack.load(target)):
        assert tokenizer.vocab_size == meta["vocab_size"]
        roles = {role: -1 if (found := tokenizer.special_id(role)) is None else found for role in meta["roles"]}
        assert roles == meta["roles"]
        compare(tokenizer, arrays, read_texts(FIXTURES / "texts.jsonl")[:: meta["step"]])
        shown = parts(arrays["odd_bytes"], arrays["odd_sizes"])
        for ids, expected in zip(parts(arrays["odd_ids"], arrays["odd_lens"]), shown, strict=True):
            assert tokenizer.decode_bytes(ids) == bytes(expected), ids
            stream = tokenizer.stream()
            text = "".join(map(stream.push, ids)) + stream.flush()
            assert text == bytes(expected).decode("utf-8", "replace"), ids


def compare(tokenizer: tokpack.Tokenizer, arrays: dict[str, Any], texts: list[str | bytes]) -> None:
    ids, begins, ends = (parts(arrays[key], arrays["lens"]) for key in ("ids", "begins", "ends"))
    decoded = json.loads(arrays["decode"].tobytes())
    for i, text in enumerate(texts):
        raw = text.encode() if isinstance(text, str) else text
        assert tokenizer.encode(text) == ids[i], text
        assert tokenizer.encode(raw, False, False) == ids[i], text
        spans = [(piece.id, piece.start, piece.end) for piece in tokenizer.pieces(raw)]
        assert spans == list(zip(ids[i], begins[i], ends[i], strict=True)), text
        assert tokenizer.decode(ids[i]) == (text if decoded[i] == 0 else decoded[i]), text


def corpus() -> list[str]:
    names = ("corpus.jsonl", "corpus_hf.jsonl")
    lines = [line for name in names for line in (SHARED / "data" / name).read_text(encoding="utf-8").splitlines()]
    return [json.loads(line)["text"] for line in lines]


def chosen(count: int) -> list[int]:
    if os.environ.get("TOKPACK_GOLDEN") == "all":
        return list(range(count))
    seed = run_seed()
    print(f"golden sample with seed {seed}")
    return random.Random(seed).sample(range(count), SAMPLE)


@pytest.mark.skipif(not REAL, reason="needs ../shared/golden/hf, which is not part of the project")
def test_there_are_real_models() -> None:
    assert len(REAL) >= 15


@pytest.mark.parametrize("name", REAL)
def test_real_model(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    source, target = shared_data(f"data/spm/{name}"), tmp_path / f"{name}.tokpack"
    with np.load(io.BytesIO(lzma.decompress((GOLDEN / f"spm_{name}.npz.xz").read_bytes()))) as data:
        ids = parts(data["ids"], data["lens"])
        decoded = json.loads(data["decode"].tobytes())
    texts = corpus()
    assert len(texts) == len(ids) == len(decoded)
    tokenizer = tokpack.load(source)
    tokpack.convert(source, target)
    # a tokenizer that is not a pack runs from a pack in memory; if it is the same one, so are its ids
    assert target.read_bytes() == tokenizer.view.data
    converted = tokpack.load(target)
    limits = random.Random(run_seed())
    for which in (tokenizer, converted):
        forced_at_random(which, limits)
    for at, i in enumerate(chosen(len(texts))):
        running = converted if at % 10 == 0 else tokenizer
        assert running.encode(texts[i]) == ids[i], texts[i]
        assert running.encode_array(texts[i]).tolist() == ids[i], texts[i]
        assert running.decode(ids[i]) == (texts[i] if decoded[i] == 0 else decoded[i]), texts[i]
