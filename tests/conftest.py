"""Paths and data that tests share; data beside the project is optional."""

from __future__ import annotations

import json
import lzma
import os
import random
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import passed

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
FIXTURES = ROOT / "fixtures"

SharedData = Callable[[str], Path]

# one seed for all workers of a run, which must collect the same tests; each prints what it draws with it
os.environ.setdefault("TOKPACK_SEED", str(random.SystemRandom().randrange(1 << 32)))


def pytest_addoption(parser: pytest.Parser) -> None:
    passed.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    passed.register(config)


def pytest_report_header() -> str:
    return f"TOKPACK_SEED={os.environ['TOKPACK_SEED']}"


@pytest.fixture(scope="session")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> SharedData:
    """``shared_data("data/gguf/NAME.gguf")`` gives a path, unpacked if need be; skips when there is no such data."""
    folder = tmp_path_factory.mktemp("shared")

    def find(relative: str) -> Path:
        plain = SHARED / relative
        if plain.exists():
            return plain
        packed = SHARED / (relative + ".xz")
        if not packed.exists():
            pytest.skip(f"needs ../shared/{relative}, which is not part of the project")
        target = folder / relative
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lzma.decompress(packed.read_bytes()))
        return target

    return find


def read_texts(path: Path) -> list[str | bytes]:
    """Lines {"text": str} or {"b64": …} of a texts file."""
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [b64decode(item["b64"]) if "b64" in item else item["text"] for item in items]
