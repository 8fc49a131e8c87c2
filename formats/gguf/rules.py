"""llama.cpp's rules as data: ``pre_types.json`` and ``rules.json`` name the commit that they were taken from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokpack.ir.steps import Dialect, ScannerSplit, Split

__all__ = ["PreType", "close_names", "pre_names", "pre_type", "rules"]

_ENGINES = {"collapsed": Dialect.STD_COLLAPSED, "wregex": Dialect.STD_WREGEX}


@dataclass(frozen=True, slots=True)
class PreType:
    """What a value of ``tokenizer.ggml.pre`` stands for.

    Attributes:
        name: the value; type_name: llama.cpp's enum name without prefix.
        byte_encode: words are spelled in GPT-2's characters before merging.
        no_bos_default: the BOS id of byte-level models is not defaulted.
        force_add_bos: BOS is added whatever the file says.
        lowercase: default of ``normalizer.lowercase`` for the model ``whitespace``.
        steps: the splits, in order.
    """

    name: str
    type_name: str
    byte_encode: bool
    clean_spaces: bool
    ignore_merges: bool
    escape_spaces: bool
    add_bos: bool
    add_sep: bool
    no_bos_default: bool
    force_add_bos: bool
    lowercase: bool
    steps: tuple[Split | ScannerSplit, ...]


@lru_cache(maxsize=1)
def rules() -> dict[str, Any]:
    """Texts with a role, by role, and the version tag."""
    return _load("rules.json")


@lru_cache(maxsize=1)
def _pre_types() -> dict[str, Any]:
    return _load("pre_types.json")


def _load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return data


def pre_names() -> tuple[str, ...]:
    """All values of ``tokenizer.ggml.pre`` that llama.cpp accepts."""
    return tuple(_pre_types()["names"])


def close_names(name: str) -> list[str]:
    """Up to three known values that look like ``name``."""
    return get_close_matches(name, pre_names(), n=3, cutoff=0.5)


def pre_type(name: str) -> PreType | None:
    """The pre-tokenizer called ``name``, or None when llama.cpp does not know it."""
    flags = _pre_types()["names"].get(name)
    if flags is None:
        return None
    kind = _pre_types()["types"][flags["type"]]
    return PreType(
        name=name,
        type_name=flags["type"],
        byte_encode=kind["byte_encode"],
        clean_spaces=flags.get("clean_spaces", False),
        ignore_merges=flags.get("ignore_merges", False),
        escape_spaces=flags.get("escape_whitespaces", False),
        add_bos=flags.get("add_bos", False),
        add_sep=flags.get("add_sep", False),
        no_bos_default=flags.get("no_bos_default", False),
        force_add_bos=flags.get("force_add_bos", False),
        lowercase=flags.get("lowercase", True),
        steps=tuple(_step(engine, pattern) for engine, pattern in kind["splits"]),
    )


def _step(engine: str, pattern: str) -> Split | ScannerSplit:
    if engine.startswith("custom:"):
        return ScannerSplit(engine.removeprefix("custom:"), pattern)
    return Split(pattern, _ENGINES[engine])
