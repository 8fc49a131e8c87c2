"""What pyproject.toml lists is what there is: what is forgotten there is missing from the wheel only."""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")


def _setuptools() -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = tables["tool"]["setuptools"]
    return found


def _packages() -> dict[str, Path]:
    """Package → folder of every folder with an ``__init__.py``."""
    found = {}
    for top, folder in (("tokpack", ROOT / "tokpack"), ("tokpack.formats", ROOT / "formats")):
        for init in folder.rglob("__init__.py"):
            inner = init.parent.relative_to(folder).parts
            found[".".join((top, *inner))] = init.parent
    return found


def test_every_package_is_listed() -> None:
    assert sorted(_setuptools()["packages"]) == sorted(_packages())


def test_every_data_file_is_listed() -> None:
    data = _setuptools()["package-data"]
    missing = []
    for package, folder in _packages().items():
        files = [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.suffix != ".py"]
        for path in files:
            owner = next(p for p in path.parents if (p / "__init__.py").exists())
            relative = path.relative_to(folder).as_posix()
            if owner == folder and not any(fnmatch(relative, pattern) for pattern in data.get(package, [])):
                missing.append(f"{package}: {relative}")
    # lists that scripts read and the program does not
    assert sorted(missing) == ["tokpack.onig: linear_patterns.json", "tokpack.onig: property_names.txt"]
