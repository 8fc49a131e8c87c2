"""What programs that use a rank file know besides it: patterns and special tokens, by name.

``encodings.json``: name → ``source`` (where the facts stand), ``ranks`` (number of ranks of the vocabulary), ``sha256``
of its file (null if not known), ``pattern``, ``special_tokens`` (text → id), ``numbered`` (runs of special tokens:
``format`` of ``number * step`` for ``count`` numbers from ``first``, ids from ``id``), ``roles`` and ``eog``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokpack.errors import UsageError

__all__ = ["Encoding", "encoding", "fitting", "names"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """One public encoding; see the module."""

    name: str
    source: str
    ranks: int
    sha256: str | None
    pattern: str
    special_tokens: Mapping[str, int]
    roles: Mapping[str, str]
    eog: tuple[str, ...]


@lru_cache(maxsize=1)
def _data() -> dict[str, dict[str, Any]]:
    data: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("encodings.json").read_text(encoding="utf-8"))
    return data


def names() -> list[str]:
    """All names."""
    return list(_data())


@lru_cache(maxsize=8)
def encoding(name: str) -> Encoding:
    """The encoding called ``name``; UsageError for another name."""
    facts = _data().get(name)
    if facts is None:
        raise UsageError(
            f"unknown encoding {name!r}", hint=f"known: {', '.join(names())}; or give a regular expression"
        )
    special = dict(facts["special_tokens"])
    for run in facts.get("numbered", ()):
        step = run.get("step")
        for i in range(run["count"]):
            number = run["first"] + i
            special[run["format"].format(number if step is None else number * step)] = run["id"] + i
    return Encoding(
        name,
        facts["source"],
        facts["ranks"],
        facts["sha256"],
        facts["pattern"],
        special,
        facts["roles"],
        tuple(facts["eog"]),
    )


def fitting(ranks: int, sha256: str) -> tuple[list[str], bool]:
    """(names whose vocabulary this is, whether the file's digest says so); by the number of ranks if none does."""
    same = [name for name, facts in _data().items() if facts["sha256"] == sha256]
    if same:
        return same, True
    return [name for name, facts in _data().items() if facts["ranks"] == ranks], False
