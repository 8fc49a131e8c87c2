"""Sets of code points, and the tables of Oniguruma's named sets and of its case folding.

The tables in ``onig.npz`` were recorded from the engine itself by :mod:`tokpack.onig.make_tables`; surrogates, which no
text of the reference library holds, may be in a set or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIZE", "CharSet", "Folds", "folds", "named", "normal_name"]

SIZE = 0x110000

Points = NDArray[np.int64]


class CharSet:
    """A set of code points as the sorted list of the places where membership changes."""

    __slots__ = ("points",)

    def __init__(self, points: Points) -> None:
        self.points = points

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int]]) -> CharSet:
        """The union of ranges ``(first, last)``, both inclusive."""
        edges: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if edges and first <= edges[-1][1]:
                edges[-1] = (edges[-1][0], max(edges[-1][1], last + 1))
            else:
                edges.append((first, last + 1))
        return cls(np.array([p for edge in edges for p in edge], dtype=np.int64))

    @classmethod
    def of(cls, codes: Iterable[int]) -> CharSet:
        """The set of these code points."""
        return cls.of_ranges((c, c) for c in codes)

    def key(self) -> bytes:
        """Equal for equal sets."""
        return self.points.tobytes()

    def has(self, codes: Points) -> NDArray[np.bool_]:
        """Membership of each code point."""
        return (np.searchsorted(self.points, codes, side="right") & 1).astype(np.bool_)

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges ``(first, last)``, both inclusive."""
        flat = self.points.tolist()
        return [(first, end - 1) for first, end in zip(flat[::2], flat[1::2], strict=True)]

    def _combine(
        self, other: CharSet, rule: Callable[[NDArray[np.bool_], NDArray[np.bool_]], NDArray[np.bool_]]
    ) -> CharSet:
        points = np.unique(np.concatenate((self.points, other.points)))
        state = rule(self.has(points), other.has(points))
        return CharSet(points[state != np.concatenate(([False], state[:-1]))])

    def __or__(self, other: CharSet) -> CharSet:
        return self._combine(other, np.logical_or)

    def __and__(self, other: CharSet) -> CharSet:
        return self._combine(other, np.logical_and)

    def __sub__(self, other: CharSet) -> CharSet:
        return self & ~other

    def __invert__(self) -> CharSet:
        edges = np.array([0, SIZE], dtype=np.int64)
        return CharSet(np.setxor1d(self.points, edges, assume_unique=True))

    def __bool__(self) -> bool:
        return self.points.size > 0

    def issubset(self, other: CharSet) -> bool:
        """Every member is in the other set."""
        return not self - other


@lru_cache(maxsize=1)
def _data() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).with_name("onig.npz")) as data:
        return {name: data[name] for name in data.files}


@lru_cache(maxsize=1)
def _names() -> dict[str, int]:
    names: list[str] = json.loads(_data()["about"].tobytes())["names"]
    return dict(zip(names, _data()["name_set"].tolist(), strict=True))


@lru_cache(maxsize=1)
def _points() -> tuple[Points, ...]:
    """The points of every set: LEB128 of the distances."""
    raw = _data()["deltas"]
    last = raw < 0x80
    ends = np.flatnonzero(last)
    first = np.concatenate(([0], ends[:-1] + 1))
    place = np.arange(raw.size) - np.repeat(first, ends - first + 1)
    values = np.add.reduceat((raw & 0x7F).astype(np.int64) << (7 * place), first)
    bounds = np.cumsum(_data()["counts"].astype(np.int64))[:-1]
    return tuple(np.cumsum(part, dtype=np.int64) for part in np.split(values, bounds))


def normal_name(name: str) -> str:
    """As Oniguruma compares property names (src/unicode.c): without spaces, ``-``, ``_``, ignoring ASCII case."""
    return name.translate({0x20: None, 0x2D: None, 0x5F: None}).lower()


@lru_cache(maxsize=64)
def named(name: str) -> CharSet | None:
    """The set of a property or POSIX bracket by its normal name; None if the engine has no such name."""
    index = _names().get(name)
    return None if index is None else CharSet(_points()[index])


@dataclass(frozen=True, slots=True)
class Folds:
    """What ``(?i:…)`` takes as equal.

    Attributes:
        same: code point → all code points that match it as one character, itself included, ascending.
        long: code points that fold to two or three characters → that folding.
        short: foldings of two or three characters, each as its representative → the code points that fold to it.
        codes: all code points that have others equal to them.
        groups: the number of the class of each.
    """

    same: dict[int, tuple[int, ...]]
    long: dict[int, tuple[int, ...]]
    short: dict[tuple[int, ...], tuple[int, ...]]
    codes: Points
    groups: Points

    def representative(self, code: int) -> int:
        """One code point for each class of those that fold to one character."""
        return code if code in self.long else self.same.get(code, (code,))[0]

    def close(self, chars: CharSet) -> CharSet:
        """With every code point all that are equal to it (src/regparse.c, i_apply_case_fold)."""
        hit = np.zeros(int(self.groups[-1]) + 1, dtype=np.bool_)
        hit[self.groups[chars.has(self.codes)]] = True
        return chars | CharSet.of(self.codes[hit[self.groups]].tolist())


@lru_cache(maxsize=1)
def folds() -> Folds:
    """The case folding of the engine."""
    same: dict[int, tuple[int, ...]] = {}
    codes: list[tuple[int, int]] = []
    start = 0
    flat = _data()["fold_simple"].tolist()
    for i, code in enumerate(flat):
        if code == 0:
            members = tuple(flat[start:i])
            codes += [(c, len(same)) for c in members]
            same.update(dict.fromkeys(members, members))
            start = i + 1
    long = {row[0]: tuple(c for c in row[1:] if c) for row in _data()["fold_multi"].tolist()}
    short: dict[tuple[int, ...], tuple[int, ...]] = {}
    for code, fold in long.items():
        key = tuple(same.get(c, (c,))[0] for c in fold)
        short[key] = (*short.get(key, ()), code)
    columns = np.array(codes, dtype=np.int64)
    return Folds(same, long, short, columns[:, 0], columns[:, 1])
