"""Packs of large vocabularies stay small: two and a half times the body that they carry."""

from __future__ import annotations

from pathlib import Path

import pytest

import tokpack
from tests.conftest import SharedData
from tokpack.pack.view import open_pack

RATIO = 2.5


@pytest.mark.parametrize("name", ["qwen3", "llama3", "gptoss", "gemma3"])
def test_file_and_body(name: str, tmp_path: Path, shared_data: SharedData) -> None:
    path = tmp_path / f"{name}.mtok"
    tokpack.convert(shared_data(f"data/hf/{name}/tokenizer.json"), path)
    body = open_pack(str(path)).footer.body_length
    assert body > 4_000_000
    assert path.stat().st_size <= RATIO * body
