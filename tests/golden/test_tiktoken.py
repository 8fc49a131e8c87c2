"""Ids and text equal those recorded from tiktoken 0.14.0: from the rank file and from a converted pack."""

from __future__ import annotations

import io
import json
import lzma
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import SHARED, SharedData
from tests.golden.test_huggingface import chosen, corpus
from tests.runtime.bulk.forcing import forced_at_random
from tests.seeds import run_seed

GOLDEN = SHARED / "golden/hf"
# file → options of the reader; the recorded ids of tekken are plain ranks
OPTIONS: dict[str, dict[str, Any]] = {
    "cl100k_base.tiktoken": {"pattern": "cl100k_base"},
    "llama3.tiktoken": {"pattern": "llama3"},
    "o200k_base.tiktoken": {"pattern": "o200k_base"},
    "qwen.tiktoken": {"pattern": "qwen"},
    "r50k_base.tiktoken": {"pattern": "r50k_base"},
    "tekken_240911.json": {},
    "torchtune_small.tiktoken": {"pattern": "llama3", "special_tokens": {}},
    "whisper_gpt2.tiktoken": {"pattern": "whisper-gpt2"},
}
TEKKEN_SPECIAL = 1000
SMALL = ("torchtune_small.tiktoken", "r50k_base.tiktoken")
QUICK = (*SMALL, "cl100k_base.tiktoken", "tekken_240911.json")
ALL = os.environ.get("TOKPACK_GOLDEN") == "all"


def load_golden(name: str) -> tuple[list[list[int]], list[Any]]:
    path = GOLDEN / f"tik_{name}.npz.xz"
    if not path.exists():
        pytest.skip(f"needs ../shared/golden/hf/{path.name}, which is not part of the project")
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as data:
        ends = np.cumsum(data["lens"].astype(np.int64))
        first = TEKKEN_SPECIAL if name.startswith("tekken") else 0
        ids = [(part.astype(np.int64) + first).tolist() for part in np.split(data["ids"], ends[:-1])]
        return ids, json.loads(data["decode"].tobytes())


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OPTIONS])
def test_file(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    ids, decoded = load_golden(name)
    texts = corpus()
    assert len(texts) == len(ids) == len(decoded)
    source = shared_data(f"data/tiktoken/{name}")
    tokenizer = tokpack.load(source, **OPTIONS[name])
    target = tmp_path / "x.tokpack"
    if ALL or name in SMALL:
        tokpack.convert(source, target, read_options=OPTIONS[name])
        assert target.read_bytes() == tokenizer.view.data
    else:  # the same bytes, without reading the file once more
        target.write_bytes(tokenizer.view.data)
    seed = run_seed()
    print(f"limits of the bulk path with seed {seed}")
    for which in (tokenizer, tokpack.load(target)):
        wrong = []
        assert forced_at_random(which, Random(seed))
        for i in chosen(len(texts)):
            text = texts[i] if decoded[i] == 0 else decoded[i]
            if which.encode(texts[i], parse_special=False) != ids[i] or which.decode(ids[i], False) != text:
                wrong.append((texts[i], which.encode(texts[i], parse_special=False), ids[i]))
            if which.encode_array(texts[i], parse_special=False).tolist() != ids[i]:
                wrong.append((texts[i], which.encode_array(texts[i], parse_special=False).tolist(), ids[i]))
        assert not wrong, f"{name}: {len(wrong)} differences, first: {wrong[0]}"
