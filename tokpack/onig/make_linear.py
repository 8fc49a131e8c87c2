"""Make ``../runtime/linear.bin``: which translated patterns take time that grows with the text, no faster.

    python -m tokpack.onig.make_linear [--check]

The patterns are those of published tokenizers (``linear_patterns.json``). Each is measured on runs of one character and
of two: 100,000 characters may take 10 microseconds each, where a square would take many times that. The file holds
the BLAKE2b-128 of each translated pattern, in ascending order. Patterns that are not in it run with a time limit
(:mod:`tokpack.runtime.limited`).
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from hashlib import blake2b
from pathlib import Path

from tokpack.onig import FLAGS, Translated, translate
from tokpack.onig.fancy import translate_fancy

_SOURCE = Path(__file__).with_name("linear_patterns.json")
_TARGET = Path(__file__).parents[1] / "runtime" / "linear.bin"
_LENGTH, _LIMIT = 100_000, 10e-6
_ALPHABET = "aA1 \n!'/<\u00e9\u4e2d\u0301\u00a0\u01c5\U0001f642"


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in pattern.finditer(text):
            pass
        best = min(best, time.perf_counter() - start)
    return best


def _measure(translated: Translated) -> None:
    classes = translated.blocks[translated.index].reshape(-1)
    units = [*_ALPHABET, *map("".join, itertools.product(_ALPHABET[:8], repeat=2))]
    for compiled in translated.compile():
        for unit in units:
            mapped = "".join(chr(classes[ord(char)]) for char in unit)
            each = _seconds(compiled, mapped * (_LENGTH // len(mapped))) / _LENGTH
            if each > _LIMIT:
                sys.exit(f"{compiled.pattern[:80]!r} takes {each * 1e6:.0f} us per character on {unit!r}")


def build(measure: bool) -> bytes:
    """The content of the file."""
    digests = set()
    for entry in json.loads(_SOURCE.read_text("ascii"))["sets"]:
        translated = (translate_fancy if entry["dialect"] == "pcre" else translate)(entry["patterns"])
        if measure:
            _measure(translated)
        digests |= {blake2b(pattern.encode(), digest_size=16).digest() for pattern in translated.patterns}
    return b"".join(sorted(digests))


def main() -> None:
    """Write the file, or compare it."""
    check = "--check" in sys.argv
    content = build(measure=not check)
    if check:
        sys.exit(0 if _TARGET.read_bytes() == content else f"{_TARGET.name} is out of date")
    _TARGET.write_bytes(content)


assert FLAGS == re.ASCII | re.DOTALL

if __name__ == "__main__":
    main()
