"""Tables in Markdown, and the line above them that says what they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

_PACKAGES = ("numpy", "tokenizers", "tiktoken", "sentencepiece", "xllamacpp", "MNN")
_PACKAGES += ("gigatoken", "fastokens", "tokie", "kitoken")


class Table:
    """Rows of a Markdown table whose columns are those that some row has a value for."""

    def __init__(self, title: str, first: Sequence[str]) -> None:
        self.title, self.columns = title, list(first)
        self.rows: list[dict[str, str]] = []

    def add(self, **values: str) -> None:
        """Append a row."""
        self.rows.append({key.replace("_", " "): value for key, value in values.items()})
        self.columns += [key for key in self.rows[-1] if key not in self.columns]

    def show(self) -> None:
        """Print it, without columns that no row has a value for."""
        columns = [column for column in self.columns if any(column in row for row in self.rows)]
        print(f"\n### {self.title}\n\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
        for row in self.rows:
            print("| " + " | ".join(row.get(column, "") for column in columns) + " |")


def against(value: float, mine: float, shown: str) -> str:
    """A peer's time with the ratio to ours."""
    ratio = value / mine
    return (
        f"{shown} ({ratio:,.0f}x)"
        if ratio >= 100
        else f"{shown} ({ratio:.1f}x)"
        if ratio >= 1
        else f"{shown} ({ratio:.2f}x)"
    )


def header(texts: str) -> str:
    """Machine, versions and texts, in one line."""
    versions = []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:  # noqa: PERF203
            versions.append(f"{package} not installed")
    models = Path("/proc/cpuinfo")
    lines = models.read_text(encoding="utf-8").splitlines() if models.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    machine = f"{(names or [platform.processor()])[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    return f"{machine}; Python {platform.python_version()}; {', '.join(versions)}; {texts}."
