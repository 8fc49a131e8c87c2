"""Bodies that tokpack writes, read again: our reading of them gives the ids of the real engine."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES, read_texts
from tests.seeds import run_seed
from tokpack.errors import EncodeError, RefusedError
from tokpack.formats.mnn import write_body

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

NAMES = sorted(
    str(path.relative_to(FIXTURES))
    for path in (*FIXTURES.glob("*.gguf"), *FIXTURES.glob("hf/*.json"), *FIXTURES.glob("hf/*/tokenizer.json"))
    if not path.name.startswith("refused-")
)
SAMPLE = 6  # files, drawn anew on each run; TOKPACK_GOLDEN=all takes all of them


ALL = os.environ.get("TOKPACK_GOLDEN") == "all"


# numbers, not names: all workers of a parallel run have to collect the same tests
@pytest.mark.parametrize("number", range(len(NAMES) if ALL else SAMPLE))
def test_our_bodies_read_as_the_engine_reads_them(number: int, ask: Ask, tmp_path: Path) -> None:
    seed = number if ALL else run_seed()
    name = NAMES[number] if ALL else random.Random(seed).choice(NAMES)
    print(f"{name} (seed {seed})")
    try:
        data, _ = write_body(tokpack.read(str(FIXTURES / name)))
    except RefusedError as error:
        pytest.skip(f"there is no body: {error}")
    path = tmp_path / "body.mtok"
    path.write_bytes(data)
    tokenizer = tokpack.load(str(path))
    assert tokenizer.reference == "mnn"
    texts = [text for text in read_texts(FIXTURES / "texts.jsonl") if isinstance(text, str) and "\0" not in text]
    wrong = []
    for text, expected in zip(texts, ask(data, "encode", texts), strict=True):
        try:
            ids = tokenizer.encode(text)
        except EncodeError as error:
            if -1 in expected:
                continue  # no id at all: refused by name
            wrong.append((text, str(error), expected))
            continue
        if ids != expected:
            wrong.append((text, ids, expected))
    assert not wrong, f"{len(wrong)} of {len(texts)} texts, first: {json.dumps(wrong[0])}"
