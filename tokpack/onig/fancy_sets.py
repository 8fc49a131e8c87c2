"""Named sets and case folding of the regular expressions of tiktoken (crates fancy-regex and regex-syntax).

The tables in ``fancy.npz`` were recorded from the engine itself by :mod:`tokpack.onig.make_fancy`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.onig.sets import CharSet, normal_name

__all__ = ["fold", "named", "property_named"]


@lru_cache(maxsize=1)
def _data() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).with_name("fancy.npz")) as data:
        return {name: data[name] for name in data.files}


@lru_cache(maxsize=1)
def _names() -> dict[str, int]:
    names: list[str] = json.loads(_data()["about"].tobytes())["names"]
    return dict(zip(names, _data()["name_set"].tolist(), strict=True))


@lru_cache(maxsize=1)
def _points() -> list[NDArray[np.int64]]:
    parts = np.split(_data()["deltas"].astype(np.int64), np.cumsum(_data()["counts"].astype(np.int64))[:-1])
    return [np.cumsum(part, dtype=np.int64) for part in parts]


@lru_cache(maxsize=64)
def named(name: str) -> CharSet | None:
    """A set by the name under which it is recorded; None for another name."""
    index = _names().get(name)
    return None if index is None else CharSet(_points()[index])


def property_named(name: str) -> CharSet | None:
    """The set of ``\\p{name}``; None for a name that is not recorded."""
    if not name.isascii() or "[" in name:
        return None
    return named(normal_name(name))


@lru_cache(maxsize=1)
def _classes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(code points that have others equal to them, the number of the class of each)."""
    flat = _data()["folds"].astype(np.int64)
    numbers = np.cumsum(flat == 0)
    return flat[flat != 0], numbers[flat != 0]


def fold(chars: CharSet) -> CharSet:
    """With every code point all that are equal to it under ``(?i)`` (simple case folding)."""
    codes, numbers = _classes()
    hit = np.zeros(int(numbers[-1]) + 1, dtype=np.bool_)
    hit[numbers[chars.has(codes)]] = True
    return chars | CharSet.of(codes[hit[numbers]].tolist())
