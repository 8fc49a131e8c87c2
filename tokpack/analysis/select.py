"""Choosing pieces of a vocabulary; every function gives ids in ascending order, int64 ``[n]``."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from tokpack.analysis.scripts import script_named, scripts_of
from tokpack.analysis.summary import TYPES
from tokpack.analysis.vocabulary import Vocabulary
from tokpack.errors import UsageError
from tokpack.ir.vocab import PieceAttr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

__all__ = [
    "duplicates",
    "holding_bytes",
    "holding_text",
    "in_range",
    "in_script",
    "matching",
    "near_duplicates",
    "of_type",
    "reserved_runs",
    "same_text",
    "unused",
]

# names that vocabularies give to pieces that mean nothing yet
_RESERVED = re.compile(
    rb"(?i)[<\[]\|?(?:(?:unused|reserved|placeholder|dummy|special|extra)(?:[-_]?(?:special|token))*[-_ ]?[0-9]+"
    rb"|(?:unused|reserved|placeholder|dummy))\|?[>\]]"
)


def _ids(found: Iterable[int]) -> Ids:
    return np.fromiter(found, dtype=np.int64)


def _where(vocabulary: Vocabulary, wanted: Callable[[bytes], object]) -> Ids:
    holes = vocabulary.holes
    return _ids(token for token, raw in enumerate(vocabulary.bytes) if wanted(raw) and not holes[token])


def holding_text(vocabulary: Vocabulary, text: str) -> Ids:
    """Pieces that hold ``text`` in what they stand for (not in a byte-level spelling)."""
    needle = text.encode("utf-8", "surrogateescape")
    return _where(vocabulary, lambda raw: needle in raw)


def holding_bytes(vocabulary: Vocabulary, digits: str) -> Ids:
    """Pieces that hold these bytes, given in hexadecimal; UsageError for anything else."""
    try:
        needle = bytes.fromhex(digits.removeprefix("0x"))
    except ValueError as error:
        raise UsageError(f"{digits!r} is not a row of bytes in hexadecimal", hint="such as e282ac") from error
    return _where(vocabulary, lambda raw: needle in raw)


def matching(vocabulary: Vocabulary, pattern: str) -> Ids:
    """Pieces in whose text the regular expression ``pattern`` (Python's) is found; UsageError for a wrong one.

    Bytes that are not UTF-8 stand in that text as lone surrogates U+DC80 to U+DCFF.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"the regular expression {pattern!r} is wrong: {error}") from error
    return _where(vocabulary, lambda raw: compiled.search(raw.decode("utf-8", "surrogateescape")))


def of_type(vocabulary: Vocabulary, name: str) -> Ids:
    """Pieces of a type of the source (``normal``, ``control`` …), or ``hole``; UsageError for another name."""
    if name == "hole":
        return np.flatnonzero(vocabulary.holes)
    if name in TYPES:
        number = TYPES.index(name)
    elif name.isdecimal() and int(name) < 256:
        number = int(name)
    else:
        from difflib import get_close_matches

        close = get_close_matches(name, [*TYPES, "hole"], n=1)
        hint = f"did you mean {close[0]}?" if close else f"types: {', '.join(TYPES)}, hole"
        raise UsageError(f"unknown type {name!r}", hint=hint)
    return np.flatnonzero((vocabulary.types == number) & ~vocabulary.holes)


def in_range(vocabulary: Vocabulary, text: str) -> Ids:
    """Ids of ``FIRST-LAST`` (both included), ``FIRST-``, ``-LAST`` or ``ID``; UsageError for anything else."""
    match = re.fullmatch(r"([0-9]*)([-:]?)([0-9]*)", text.replace(",", "").strip())
    if match is None or not (match[1] or match[3]):
        raise UsageError(f"{text!r} is not a range of ids", hint="such as 100-199, or 100-")
    if not match[2]:
        first = last = int(match[1])
    else:
        first, last = int(match[1] or 0), int(match[3]) if match[3] else vocabulary.size - 1
    if first > last:
        raise UsageError(f"the range {text!r} ends before it begins")
    return np.arange(min(first, vocabulary.size), min(last + 1, vocabulary.size), dtype=np.int64)


def in_script(vocabulary: Vocabulary, name: str) -> Ids:
    """Pieces with a character of the Unicode script ``name``; UsageError for an unknown one."""
    script = script_named(name)
    return _where(vocabulary, lambda raw: script in scripts_of(raw.decode("utf-8", "ignore")))


def duplicates(vocabulary: Vocabulary) -> list[list[int]]:
    """Groups of ids whose pieces are spelled the same, in order of their first id."""
    texts = vocabulary.texts
    return same_text(range(vocabulary.size), lambda token: None if vocabulary.holes[token] else texts[token])


def same_text(tokens: Iterable[int], key: Callable[[int], object]) -> list[list[int]]:
    """Groups of two or more ids with the same ``key``; None is no key."""
    groups: dict[object, list[int]] = defaultdict(list)
    for token in tokens:
        value = key(token)
        if value is not None:
            groups[value].append(token)
    return [group for group in groups.values() if len(group) > 1]


def unused(vocabulary: Vocabulary) -> Ids:
    """Pieces that the source calls unused, or whose name says that they are reserved (``<unused7>``)."""
    marked = (vocabulary.types == TYPES.index("unused")) | ((vocabulary.attrs & PieceAttr.UNUSED) != 0)
    named = _ids(token for token, text in enumerate(vocabulary.texts) if _RESERVED.fullmatch(text))
    return np.union1d(np.flatnonzero(marked & ~vocabulary.holes), named)


def reserved_runs(vocabulary: Vocabulary) -> list[tuple[int, int, str]]:
    """(first id, last id, ``unused`` or ``hole``) of every run of ids that mean nothing."""
    kinds = np.zeros(vocabulary.size, dtype=np.uint8)
    kinds[unused(vocabulary)] = 1
    kinds[vocabulary.holes] = 2
    edges = np.flatnonzero(np.diff(kinds, prepend=0, append=0))
    starts = np.unique(np.append(edges, 0))
    found = []
    for start, end in zip(starts.tolist(), [*starts.tolist()[1:], vocabulary.size], strict=True):
        if start < end and kinds[start]:
            found.append((start, end - 1, "unused" if kinds[start] == 1 else "hole"))
    return found


def near_duplicates(vocabulary: Vocabulary) -> dict[str, list[list[int]]]:
    """Groups of ids of ordinary pieces that differ in one respect only.

    ``bytes``: they stand for the same bytes, spelled differently; ``normalization``: the same text after NFC, or after
    NFD; ``case``: the same text but for upper and lower case; ``space``: the same text but for one space in front.
    """
    special = (vocabulary.attrs & (PieceAttr.CONTROL | PieceAttr.UNKNOWN)) != 0
    ordinary = np.flatnonzero(~special & ~vocabulary.holes).tolist()
    raw = vocabulary.bytes
    texts: dict[int, str] = {}
    for token in ordinary:
        with suppress(UnicodeDecodeError):
            texts[token] = raw[token].decode("utf-8")
    wide = [token for token in texts if not raw[token].isascii()]
    return {
        "bytes": _differing(same_text(ordinary, lambda t: raw[t]), vocabulary.texts),
        "normalization": _differing(
            same_text(wide, lambda t: unicodedata.normalize("NFD", unicodedata.normalize("NFC", texts[t]))), raw
        ),
        "case": _differing(same_text(texts, lambda t: texts[t].casefold()), raw),
        "space": _differing(same_text(texts, lambda t: texts[t].removeprefix(" ")), raw),
    }


def _differing(groups: list[list[int]], texts: list[bytes]) -> list[list[int]]:
    """Without the groups whose members are all the same."""
    return [group for group in groups if len({texts[token] for token in group}) > 1]
