"""The MNN engine as a fixture, and tokenizers small enough to write by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "oracles" / "mnn_engine.py"

Ask = Callable[[bytes, str, Iterable[object]], list[object]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """``ask(file, "encode" | "decode", items)``: the engine's answers; a crash of the engine is a failure."""
    if find_spec("MNN") is None:
        pytest.skip("needs the MNN engine (PyPI package MNN)")

    def run(data: bytes, mode: str, items: Iterable[object]) -> list[object]:
        path = tmp_path / "tokenizer.mtok"
        path.write_bytes(data)
        lines = "".join(json.dumps(item) + "\n" for item in items)
        command = [sys.executable, str(ENGINE), str(path), mode]
        done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, f"the engine ended with {done.returncode}: {done.stderr[-2000:]!r}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run
