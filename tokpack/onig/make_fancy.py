"""Makes ``fancy.npz`` from the installed ``tiktoken``: what its regular expressions say, not what Unicode says.

    python -m tokpack.onig.make_fancy

tiktoken encodes what its pattern matches and drops the rest, so an encoding of single bytes shows the characters that a
pattern for one character matches. The names asked for are those of ``property_names.txt`` and a few of the crate
regex-syntax; those that it refuses are left out. Nothing here runs when tokens are made.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.onig.make_tables import POSIX, SIZE, SURROGATES, flips

_MORE = ("letter", "l", "lc", "casedletter", "assigned", "any", "ascii")
_ESCAPES = {"\\w": "[word", "\\d": "[decimal", "\\s": "[white", "\\h": "[hex"}
_CASED = ("cased", "changeswhencasefolded", "changeswhencasemapped")


class Engine:
    """The real engine: which code points does a pattern for one character match."""

    def __init__(self) -> None:
        self._encoding: Any = import_module("tiktoken").Encoding
        self._ranks = {bytes([byte]): byte for byte in range(256)}
        self.text = "".join(chr(c) for c in range(SIZE) if c not in SURROGATES)

    def _make(self, pattern: str) -> Any:
        return self._encoding("probe", pat_str=pattern, mergeable_ranks=self._ranks, special_tokens={})

    def accepts(self, pattern: str) -> bool:
        """The engine compiles it."""
        try:
            self._make(pattern)
        except ValueError:
            return False
        return True

    def matched(self, pattern: str, text: str) -> str:
        """The parts of the text that match."""
        return bytes(self._make(pattern).encode_ordinary(text)).decode("utf-8")

    def members(self, pattern: str) -> NDArray[np.bool_]:
        """The code points that the pattern matches, bool ``[0x110000]``; surrogates go with what stands before them."""
        table = np.zeros(SIZE, dtype=np.bool_)
        table[np.array(list(map(ord, self.matched(pattern, self.text))), dtype=np.int64)] = True
        table[SURROGATES.start : SURROGATES.stop] = table[SURROGATES.start - 1]
        return table


def folds(engine: Engine, candidates: list[int]) -> list[list[int]]:
    """Classes of characters that match each other under ``(?i:…)``, each ascending."""
    text = "".join(map(chr, candidates))
    classes: dict[int, list[int]] = {}
    for code in candidates:
        same = list(map(ord, engine.matched(f"(?i:\\x{{{code:x}}})", text)))
        if code not in same:
            raise SystemExit(f"U+{code:04X} does not match itself")
        if len(same) > 1:
            classes[code] = same
    for code, same in classes.items():
        if any(classes.get(c) != same for c in same):
            raise SystemExit(f"U+{code:04X}: the classes are no partition")
    return [same for code, same in classes.items() if code == same[0]]


def main() -> None:
    """Dump, check, write."""
    engine = Engine()
    asked = Path(__file__).with_name("property_names.txt").read_text(encoding="ascii").split()
    asked = sorted({*asked, *_MORE})
    patterns = {name: f"\\p{{{name}}}" for name in asked if engine.accepts(f"\\p{{{name}}}")}
    patterns |= {f"[{name}": f"[[:{name}:]]" for name in POSIX}
    patterns |= {name: pattern for pattern, name in _ESCAPES.items()}
    points: list[NDArray[np.uint32]] = []
    known: dict[bytes, int] = {}
    index = []
    cased = np.zeros(SIZE, dtype=np.bool_)
    for name, pattern in patterns.items():
        table = engine.members(pattern)
        if name in _CASED:
            cased |= table
        found = flips(table)
        index.append(known.setdefault(found.tobytes(), len(points)))
        if index[-1] == len(points):
            points.append(found)
    classes = folds(engine, np.flatnonzero(cased).tolist())
    about = {"library": f"tiktoken {version('tiktoken')}", "engine": "fancy-regex 0.19.0, regex-syntax 0.8.11"}
    np.savez_compressed(
        Path(__file__).with_name("fancy.npz"),
        about=np.frombuffer(json.dumps({**about, "names": list(patterns)}).encode(), dtype=np.uint8),
        name_set=np.array(index, dtype=np.uint16),
        counts=np.array([len(found) for found in points], dtype=np.uint16),
        deltas=np.concatenate([np.diff(found, prepend=np.uint32(0)) for found in points]).astype(np.uint32),
        folds=np.array([code for same in classes for code in (*same, 0)], dtype=np.uint32),
    )
    sys.stdout.write(f"{len(patterns)} names, {len(points)} sets, {len(classes)} classes of case folding\n")


if __name__ == "__main__":
    main()
