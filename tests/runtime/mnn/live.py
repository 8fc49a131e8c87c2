"""Asking the real MNN engine inside property tests; each file has a process of its own, as it can crash."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "oracles" / "mnn_engine.py"
CRASHED = "crashed"

needs_engine = pytest.mark.skipif(find_spec("MNN") is None, reason="needs the MNN engine (PyPI package MNN)")


def ask(data: bytes, mode: str, items: list[Any], seconds: int = 60) -> list[Any] | str:
    """The engine's answers, or CRASHED."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.mtok"
        path.write_bytes(data)
        lines = "".join(json.dumps(item) + "\n" for item in items).encode()
        command = [sys.executable, str(ENGINE), str(path), mode]
        done = subprocess.run(command, input=lines, capture_output=True, timeout=seconds, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else CRASHED
