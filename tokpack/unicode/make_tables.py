"""Make ``llamacpp_15_1.npz`` from a dump of llama.cpp's compiled tables.

    python tokpack/unicode/make_tables.py DUMP.npz

DUMP.npz holds what ``src/unicode-data.cpp`` of ggml-org/llama.cpp commit 0c1e570 defines (Unicode 15.1): arrays
``ranges_flags`` (first code point, flags), ``lower`` and ``upper`` (code point, mapping), ``nfd`` (first, last,
mapping) and ``whitespace``. Only these are kept, in the smallest types; the flags of single code points follow from
the ranges. Category letters of Unicode 15.1 can be checked against PyPI's ``unicodedata2`` 15.1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

__all__ = ["main"]


def main(source: str) -> None:
    """Write the table file beside this script."""
    with np.load(source) as data:
        names = ("ranges_flags", "lower", "upper", "nfd", "whitespace")
        arrays = {name: data[name].astype(np.uint32) for name in names}
    np.savez_compressed(Path(__file__).with_name("llamacpp_15_1.npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
