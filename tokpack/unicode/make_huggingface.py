"""Make ``huggingface_tables.npz``, what the normalizers of the ``tokenizers`` library 0.23.3 know about characters.

    python tokpack/unicode/make_huggingface.py FOLDER

FOLDER holds answers of the library for each single code point, which fix the Unicode version of each table:

* ``maps.json.xz``: for ``nfc``, ``nfd``, ``nfkc``, ``nfkd`` (Unicode 9.0, crate unicode-normalization-alignments
  0.1.12), ``lower`` (17.0, Rust's ``char::to_lowercase``), ``stripaccents`` (9.0, marks), ``bert_clean`` and
  ``bert_accents`` (8.0, crate unicode_categories 0.1.1) the code points (hexadecimal) that change, and into what;
* ``u9_positive.json``: ranges of code points that have a decomposition or a combining class in the library.

PyPI's ``regex`` (2026.11.19, Unicode 18.0) gives what single code points do not show: Canonical_Combining_Class of the
code points in ``u9_positive.json`` (a class never changes once it is assigned) and, for Precompiled (crate
unicode-segmentation 1.13.3) Grapheme_Cluster_Break, Indic_Conjunct_Break and Extended_Pictographic; what has changed
in them since 17.0 is taken back.
Pairs that compose follow from ``nfc`` and ``nfd``: a code point that NFC keeps and NFD splits is the composition of
its last character with the composition of those before it.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["main"]

_SIZE = 0x110000
_HANGUL = range(0xAC00, 0xAC00 + 11172)
_EVERY = "".join(chr(code) for code in range(_SIZE) if not 0xD800 <= code < 0xE000)
# letters of :mod:`tokpack.runtime.hf.graphemes`, as far as one property decides; later ones win
_BREAKS = (
    ("o", r"\p{Any}"),
    ("X", r"\p{Extended_Pictographic}"),
    ("K", r"\p{InCB=Consonant}"),
    *(("r", r"\r"), ("n", r"\n"), ("C", r"\p{GCB=Control}"), ("E", r"\p{GCB=Extend}"), ("Z", r"\p{GCB=ZWJ}")),
    *(("R", r"\p{GCB=Regional_Indicator}"), ("P", r"\p{GCB=Prepend}"), ("S", r"\p{GCB=SpacingMark}")),
    *(("L", r"\p{GCB=L}"), ("V", r"\p{GCB=V}"), ("T", r"\p{GCB=T}"), ("A", r"\p{GCB=LV}"), ("B", r"\p{GCB=LVT}")),
    ("N", r"[\p{GCB=Extend}&&\p{InCB=None}]"),
    ("I", r"[\p{GCB=Extend}&&\p{InCB=Linker}]"),
)

# what Unicode 18.0 changed, told from 17.0 by asking the library about each code point in each context that shows it
_SINCE_17 = {
    "o": (
        *((0x5C8, 0x5C9), (0xB53, 0xB54), (0x1ADE, 0x1ADF), (0x1AEC, 0x1AF0), (0x10ECB, 0x10ECF), (0x10EF0, 0x10EF9)),
        *((0x11B0A, 0x11B0A), (0x11DF0, 0x11DF1), (0x1D127, 0x1D128), (0x1D250, 0x1D252), (0x1D25B, 0x1D25C)),
        *((0x1D25F, 0x1D25F), (0x1D280, 0x1D281)),
    ),
    "X": ((0x1F1AE, 0x1F1AE), (0x1F7DA, 0x1F7DB), (0x1F7F1, 0x1F7FF)),
}
# the classes in use, PropertyValueAliases.txt of Unicode
_CLASSES = (1, *range(7, 37), 84, 91, 103, 107, 118, 122, 129, 130, 132, 202, *range(214, 235, 2), 233, 240)

Texts = dict[int, str]
Array = NDArray[np.uint32]


def _find(pattern: str) -> list[int]:
    import regex  # type: ignore[import-untyped,unused-ignore]

    return [ord(char) for char in regex.findall(pattern, _EVERY, flags=regex.VERSION1)]


def _runs(table: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The distances between the starts of runs of equal values, and their values."""
    starts = np.flatnonzero(np.diff(table.astype(np.int16), prepend=-1))
    return {"step": np.diff(starts, prepend=0).astype(np.uint32), "value": table[starts]}


def _set(codes: Iterable[int]) -> dict[str, NDArray[Any]]:
    table = np.zeros(_SIZE, dtype=np.uint8)
    table[sorted(codes)] = 1
    return _runs(table)


def _texts(texts: Mapping[int, str]) -> dict[str, NDArray[Any]]:
    """Distances between keys, number of characters, and the characters as distances from the key (modulo 2^32)."""
    keys = sorted(texts)
    chars = [(ord(char) - key) % 2**32 for key in keys for char in texts[key]]
    return {
        "step": np.diff(np.array(keys, dtype=np.uint32), prepend=np.uint32(0)),
        "length": np.array([len(texts[key]) for key in keys], dtype=np.uint8),
        "char": np.array(chars, dtype=np.uint32),
    }


def _composition(canonical: Texts, nfc: Texts) -> Array:
    """(first, second, composition), ascending by composition; without Hangul, which is arithmetic."""
    kept = {text: code for code, text in canonical.items() if code not in nfc and len(text) > 1}
    pairs = []
    for text, code in kept.items():
        head = text[:-1]
        first = ord(head) if len(head) == 1 else kept[head]
        pairs.append((code, first, ord(text[-1])))
    return np.array([(first, second, code) for code, first, second in sorted(pairs)], dtype=np.uint32)


def _combining(positive: Iterable[tuple[int, int]]) -> NDArray[np.uint8]:
    table = np.zeros(_SIZE, dtype=np.uint8)
    for value in _CLASSES:
        table[_find(rf"\p{{ccc={value}}}")] = value
    known = np.zeros(_SIZE, dtype=bool)
    for first, last in positive:
        known[first : last + 1] = True
    return np.where(known, table, 0).astype(np.uint8)


def _graphemes() -> NDArray[np.uint8]:
    table = np.full(_SIZE, ord("C"), dtype=np.uint8)
    for letter, pattern in _BREAKS:
        table[_find(pattern)] = ord(letter)
    for letter, ranges in _SINCE_17.items():
        for first, last in ranges:
            table[first : last + 1] = ord(letter)
    return table


def _read(folder: Path) -> tuple[dict[str, Texts], list[tuple[int, int]]]:
    with lzma.open(folder / "maps.json.xz") as file:
        maps = {name: {int(key, 16): text for key, text in part.items()} for name, part in json.load(file).items()}
    ranges = json.loads((folder / "u9_positive.json").read_text(encoding="utf-8"))
    return maps, [(int(first, 16), int(last, 16)) for first, last in ranges]


def main(folder: str) -> None:
    """Write the table file beside this script."""
    maps, positive = _read(Path(folder))
    canonical = {code: text for code, text in maps["nfd"].items() if code not in _HANGUL}
    compatible = {code: text for code, text in maps["nfkd"].items() if code not in _HANGUL}
    tables = {
        "canonical": _texts(canonical),
        "compatible": _texts({code: text for code, text in compatible.items() if canonical.get(code) != text}),
        "lowercase": _texts(maps["lower"]),
        "mark": _set(maps["stripaccents"]),
        "control": _set(code for code, text in maps["bert_clean"].items() if not text),
        "nonspacing": _set(code for code, text in maps["bert_accents"].items() if not text and code not in canonical),
        "combining": _runs(_combining(positive)),
        "grapheme": _runs(_graphemes()),
        "compose": {"pairs": _composition(canonical, maps["nfc"])},
    }
    arrays: dict[str, Any] = {
        f"{name}_{part}": array for name, table in tables.items() for part, array in table.items()
    }
    np.savez_compressed(Path(__file__).with_name("huggingface_tables.npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
