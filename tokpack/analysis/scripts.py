"""The scripts of a text: the Unicode property Script, from a table of our own (``scripts.npz``, Unicode 17)."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokpack.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["script_named", "script_names", "scripts_of"]

_SIZE = 0x110000
_NEUTRAL = ("Common", "Inherited", "Unknown")


@lru_cache(maxsize=1)
def _table() -> tuple[list[str], NDArray[np.uint8]]:
    with np.load(Path(__file__).with_name("scripts.npz")) as data:
        names, runs = data["names"].tolist(), data["runs"]
    starts = runs[:, 0].astype(np.int64)
    return names, np.repeat(runs[:, 1].astype(np.uint8), np.diff(np.append(starts, _SIZE)))


def script_names() -> list[str]:
    """Every script name, as Unicode spells it (``Han``, ``Old_Turkic``)."""
    return list(_table()[0])


def script_named(name: str) -> str:
    """The script called ``name``, whatever case and underscores; UsageError for another name."""
    known = {_loose(script): script for script in _table()[0]}
    found = known.get(_loose(name))
    if found is None:
        close = get_close_matches(_loose(name), known, n=1, cutoff=0.5)
        hint = f"did you mean {known[close[0]]}?" if close else "names are those of Unicode: Latin, Han, Cyrillic …"
        raise UsageError(f"unknown script {name!r}", hint=hint)
    return found


def _loose(name: str) -> str:
    return name.lower().replace("_", "").replace(" ", "").replace("-", "")


def scripts_of(text: str) -> tuple[str, ...]:
    """The scripts of the characters of ``text``, in alphabetical order.

    ``Common``, ``Inherited`` and ``Unknown`` characters count only if there are no others.
    """
    if text.isascii():
        if any(map(str.isalpha, text)):
            return ("Latin",)
        return ("Common",) if text else ()
    names, table = _table()
    found = {names[table[ord(char)]] for char in set(text)}
    return tuple(sorted(found.difference(_NEUTRAL) or found))
