"""Characters that no step of a normalizer touches, found for many at a time: most of those of large scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.errors import EncodeError
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.hf_chars import COLLAPSE
from tokpack.runtime.hf.normalizers import Normalizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHINESE", "untouched"]

CHINESE = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))  # the largest blocks of what BertNormalizer puts between spaces
_APART = np.frombuffer(b"oXKCAB", dtype=np.uint8)  # of runtime/hf/graphemes.py: those that join only with others
_FIRST, _LAST = 0x3000, 0xD7FF  # of the scripts that are large enough
_JAMO = (0x1100, 0x11FF)
_HANGUL = (0xAC00, 0xD7A3)
_BETWEEN = "\u2e40"


def untouched(
    view: PackView, normalizers: Sequence[Normalizer], plain: Sequence[Any], points: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Whether each character stays as it is whatever is beside it; False also where that is not known.

    Those of CHINESE count as untouched by BertNormalizer.
    """
    found: NDArray[np.bool_] = (points > _FIRST) & (points <= _LAST)  # the first one is a space
    for step, what in zip(normalizers, plain, strict=True):
        tables = _tables(what)
        if tables is None:
            return np.zeros(len(points), dtype=np.bool_)
        for name in tables:
            found &= _numbers(view, name, points) == 0
        if "combining" in tables:
            found &= ~_inside(points, (_HANGUL, _JAMO))
        if what["kind"] == "precompiled":
            apart = np.isin(_numbers(view, "grapheme", np.append(points, ord(_BETWEEN))), _APART)
            found &= apart[:-1] & apart[-1]
            found[found] = _stay(step, points[found])
    return found


def _tables(plain: Any) -> list[str] | None:
    """The tables in which a character has no entry that a step leaves alone; None for a step that is not known here."""
    kind = plain["kind"]
    if kind == "bert-normalizer":
        accents = plain["lowercase"] if plain["strip_accents"] is None else plain["strip_accents"]
        names = ["canonical", "combining", "nonspacing"] if accents else []
        return names + ["control"] * bool(plain["clean_text"]) + ["lowercase"] * bool(plain["lowercase"])
    if kind == "unicode-normalization" and plain["form"].endswith("D"):
        return ["compatible" if "K" in plain["form"] else "canonical", "combining"]
    if kind == "replace":
        # of quotes and the like, or of runs of spaces: all of them below _FIRST
        literal = plain["dialect"] == "literal" and all(ord(char) < _FIRST for char in plain["pattern"])
        return [] if literal or plain["pattern"] == COLLAPSE else None
    return {"strip": [], "lowercase": ["lowercase"], "strip-accents": ["mark"], "precompiled": []}.get(kind)


def _numbers(view: PackView, name: str, points: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The numbers of ``hf.NAME``; 1 throughout if there is no such table."""
    starts = np.frombuffer(view.raw(f"hf.{name}.start"), dtype="<u4")
    values = np.frombuffer(view.raw(f"hf.{name}.value"), dtype="<u4")
    if not len(starts) or len(starts) != len(values):
        return np.ones(len(points), dtype=np.uint32)
    return values.take(np.maximum(np.searchsorted(starts, points, side="right") - 1, 0))


def _inside(points: NDArray[np.uint32], ranges: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    found = np.zeros(len(points), dtype=np.bool_)
    for first, last in ranges:
        found |= (points >= first) & (points <= last)
    return found


def _stay(step: Normalizer, points: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a step that goes character by character leaves each of these as it is."""
    texts = [chr(point) for point in points.tolist()]
    between = _BETWEEN
    try:
        results = step.apply(between.join(texts)).split(between)
        apart = step.apply(between) == between
    except EncodeError:
        apart, results = False, []
    if not apart or len(results) != len(texts):  # then some hold what is between
        return np.zeros(len(texts), dtype=np.bool_)
    same = map(str.__eq__, texts, results)
    return np.fromiter(same, dtype=np.bool_, count=len(texts))
