"""Ids and text equal those recorded from the MNN engines 3.6.1 and head: from the file and from a converted pack."""

from __future__ import annotations

import io
import json
import lzma
import os
import random
from pathlib import Path

import numpy as np
import pytest

import tokpack
from tests.conftest import SHARED, SharedData
from tests.seeds import run_seed
from tokpack.findings import Severity

GOLDEN = SHARED / "golden/mnn"
NAMES = sorted(path.name.removesuffix(".npz.xz") for path in GOLDEN.glob("*.npz.xz"))
SAMPLE = 60  # texts of each file and engine in the quick suite; TOKPACK_GOLDEN=all runs all of them
QUICK = 3  # files in the quick suite
ALLOWED = {"gpt4o.mtok": ("mnn-id-range",)}  # written with ids outside its arrays; the engine survives it


def texts() -> list[str]:
    lines = (SHARED / "data/mnn_texts.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def load_golden(name: str, engine: str) -> tuple[list[list[int]], list[bytes]]:
    with np.load(io.BytesIO(lzma.decompress((GOLDEN / f"{name}.npz.xz").read_bytes()))) as data:
        ends = np.cumsum(data[f"lens_{engine}"].astype(np.int64))
        ids = [part.tolist() for part in np.split(data[f"ids_{engine}"], ends[:-1])]
        raw, decoded, at = data[f"dbytes_{engine}"].tobytes(), [], 0
        for size in data[f"dlens_{engine}"].tolist():
            decoded.append(raw[at : at + size])
            at += size
    return ids, decoded


def whole() -> bool:
    return os.environ.get("TOKPACK_GOLDEN") == "all"


def seeded() -> random.Random:
    seed = run_seed()
    print(f"golden sample with seed {seed}")
    return random.Random(seed)


def chosen_names() -> list[str]:
    return NAMES if whole() or not NAMES else sorted(seeded().sample(NAMES, QUICK))


@pytest.mark.skipif(not NAMES, reason="needs ../shared/golden/mnn, which is not part of the project")
def test_there_are_golden_files() -> None:
    assert len(NAMES) == 26


@pytest.mark.parametrize("engine", ["v361", "head"])
@pytest.mark.parametrize("name", chosen_names())
def test_tokenizer(name: str, engine: str, shared_data: SharedData, tmp_path: Path) -> None:
    source, allow = shared_data(f"data/mnn/{name}"), ALLOWED.get(name, ())
    ids, decoded = load_golden(name, engine)
    tokenizer = tokpack.load(source, engine=engine, allow=allow)
    target = tmp_path / f"{name}.tokpack"
    tokpack.convert(source, target, allow=allow, read_options={"engine": engine})
    # what runs from memory is the same pack, so all ids are those of the file, too
    assert target.read_bytes() == tokenizer.view.data
    packed = tokpack.load(target)
    assert packed.view.meta["rules"] == {"v361": "MNN 3.6.1", "head": "MNN head"}[engine]
    everything = texts()
    sample = range(len(everything)) if whole() else seeded().sample(range(len(everything)), SAMPLE)
    wrong = [
        (everything[i], packed.encode(everything[i]), ids[i]) for i in sample if packed.encode(everything[i]) != ids[i]
    ]
    assert not wrong, f"{name} {engine}: {len(wrong)} differences in ids, first: {wrong[0]}"
    unlike = [(ids[i], packed.decode_bytes(ids[i])) for i in sample if packed.decode_bytes(ids[i]) != decoded[i]]
    assert not unlike, f"{name} {engine}: {len(unlike)} differences in text, first: {unlike[0]}"


def test_a_file_that_makes_the_engine_write_beside_its_arrays(shared_data: SharedData) -> None:
    source = shared_data("data/mnn/gpt4o.mtok")
    with pytest.raises(tokpack.errors.RefusedError, match="beside its arrays") as caught:
        tokpack.load(source)
    assert caught.value.code == "mnn-id-range"
    assert caught.value.location.offset == 168266
    ir = tokpack.read(source)
    assert [f.code for f in ir.findings if f.severity is Severity.REFUSE] == ["mnn-id-range"]
