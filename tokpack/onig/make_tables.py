"""Makes ``onig.npz`` from the installed ``tokenizers`` library: what its Oniguruma says, not what Unicode says.

    python -m tokpack.onig.make_tables

The names asked for are in ``property_names.txt``: those of Oniguruma's doc/UNICODE_PROPERTIES, its short names, and
the additions of Unicode 16; those that the engine refuses are left out. Nothing here runs when tokens are made.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 0x110000
SURROGATES = range(0xD800, 0xE000)
POSIX = [
    "alnum",
    "alpha",
    "ascii",
    "blank",
    "cntrl",
    "digit",
    "graph",
    "lower",
    "print",
    "punct",
    "space",
    "upper",
    "word",
    "xdigit",
]
# candidates of case folding: everything that any of these properties holds
CASED = [
    "cased",
    "lowercase",
    "uppercase",
    "lt",
    "changeswhencasefolded",
    "changeswhencasemapped",
    "changeswhenlowercased",
    "changeswhentitlecased",
    "changeswhenuppercased",
]

Flips = NDArray[np.uint32]


def _asked(code: int) -> bool:
    """No text holds surrogates; the planes 4 to 13, 15 and 16 are uniform but for their ends: samples are enough."""
    if code in SURROGATES:
        return False
    low = code & 0xFFFF
    return code < 0x40000 or code >> 16 == 14 or low < 0x100 or low >= 0xFF00 or low % 251 == 0


class Engine:
    """The real engine: which code points does a pattern for one character match."""

    def __init__(self) -> None:
        library: Any = import_module("tokenizers")
        self._split = library.pre_tokenizers.Split
        self._regex = library.Regex
        self.version = str(library.__version__)
        self._codes = np.array(list(filter(_asked, range(SIZE))), dtype=np.int64)
        self._text = "".join(map(chr, self._codes.tolist()))

    def accepts(self, pattern: str) -> bool:
        """The engine compiles it."""
        try:
            self._regex(pattern)
        except Exception:  # the library raises a bare Exception
            return False
        return True

    def gaps(self, pattern: str, text: str) -> list[tuple[int, int]]:
        """Where the pattern does not match."""
        split = self._split(self._regex(pattern), "removed")
        return [(first, last) for _, (first, last) in split.pre_tokenize_str(text)]

    def members(self, pattern: str) -> NDArray[np.bool_]:
        """The code points that the pattern matches, bool ``[0x110000]``."""
        found = np.ones(len(self._text), dtype=np.bool_)
        for first, last in self.gaps(f"(?:{pattern})+", self._text):
            found[first:last] = False
        # what is not asked goes with the code point before it
        return np.repeat(found, np.diff(np.append(self._codes, SIZE)))

    def whole(self, pattern: str, text: str) -> bool:
        """The pattern matches all of the text, as one match."""
        return self.gaps(f"\\A(?:{pattern})\\z", text) == []


def flips(table: NDArray[np.bool_]) -> Flips:
    """Where the table changes: start, exclusive end, start and so on."""
    padded = np.concatenate(([False], table, [False]))
    return np.flatnonzero(padded[1:] != padded[:-1]).astype(np.uint32)


def varint(values: Flips) -> bytes:
    """LEB128 of each value, one after the other."""
    out = bytearray()
    for value in values.tolist():
        rest = value
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def simple_folds(engine: Engine, candidates: list[int]) -> list[list[int]]:
    """Classes of single characters that match each other under ``(?i:…)``, each ascending."""
    text = "".join(f"{chr(c)}\0" for c in candidates)
    classes: dict[int, list[int]] = {}
    for code in candidates:
        missing = {p for first, last in engine.gaps(f"(?i:\\x{{{code:x}}})", text) for p in range(first, last)}
        same = [c for i, c in enumerate(candidates) if 2 * i not in missing]
        if code not in same:
            raise SystemExit(f"U+{code:04X} does not match itself")
        if len(same) > 1:
            classes[code] = same
    for code, same in classes.items():
        if any(classes.get(c) != same for c in same):
            raise SystemExit(f"U+{code:04X}: the classes are no partition")
    return [same for code, same in classes.items() if code == same[0]]


def multi_folds(engine: Engine, candidates: list[int]) -> list[list[int]]:
    """``[code point, its folding of two or three characters …]``; Python proposes, the engine disposes."""
    found = []
    for code in candidates:
        fold = chr(code).casefold()
        if len(fold) == 1:
            continue
        spelled = "".join(f"\\x{{{ord(c):x}}}" for c in fold)
        if not (engine.whole(f"(?i:\\x{{{code:x}}})", fold) and engine.whole(f"(?i:{spelled})", chr(code))):
            raise SystemExit(f"U+{code:04X} does not fold to {fold!r}")
        found.append([code, *map(ord, fold)])
    return found


def main() -> None:
    """Dump, check, write."""
    engine = Engine()
    asked = Path(__file__).with_name("property_names.txt").read_text(encoding="ascii").split()
    names = [name for name in asked if engine.accepts(f"\\p{{{name}}}")]
    names += [f"[{name}" for name in POSIX]
    tables: list[Flips] = []
    known: dict[bytes, int] = {}
    index = []
    by_name: dict[str, NDArray[np.bool_]] = {}
    for name in names:
        pattern = f"[[:{name[1:]}:]]" if name[0] == "[" else f"\\p{{{name}}}"
        table = engine.members(pattern)
        if name in CASED or name in ("word", "digit", "space", "xdigit"):
            by_name[name] = table
        points = flips(table)
        index.append(known.setdefault(points.tobytes(), len(tables)))
        if index[-1] == len(tables):
            tables.append(points)
    for pattern, name in (("\\w", "word"), ("\\d", "digit"), ("\\s", "space"), ("\\h", "xdigit")):
        assert np.array_equal(engine.members(pattern), by_name[name]), pattern
    cased = np.flatnonzero(np.logical_or.reduce([by_name[name] for name in CASED])).tolist()
    simple, multi = simple_folds(engine, cased), multi_folds(engine, cased)
    about = {"library": f"tokenizers {engine.version}", "engine": "Oniguruma 6.9", "unicode": "16.0", "names": names}
    deltas = [np.diff(points, prepend=np.uint32(0)).astype(np.uint32) for points in tables]
    np.savez_compressed(
        Path(__file__).with_name("onig.npz"),
        about=np.frombuffer(json.dumps(about, separators=(",", ":")).encode(), dtype=np.uint8),
        name_set=np.array(index, dtype=np.uint16),
        counts=np.array([len(d) for d in deltas], dtype=np.uint16),
        deltas=np.frombuffer(b"".join(varint(d) for d in deltas), dtype=np.uint8),
        fold_simple=np.array([c for same in simple for c in (*same, 0)], dtype=np.uint32),
        fold_multi=np.array([[*row, 0][:4] for row in multi], dtype=np.uint32),
    )
    sys.stdout.write(f"{len(names)} names, {len(tables)} sets, {len(simple)} fold classes, {len(multi)} long folds\n")
    sys.stdout.write(f"made with {about['library']}, Python's own tables {unicodedata.unidata_version}\n")


if __name__ == "__main__":
    main()
