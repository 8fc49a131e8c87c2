"""Text of words that hardly ever come again, through the bulk path: the memory that is in use, tenth by tenth.

    python tests/bench/flat_memory.py SOURCE [MEGABYTES] [--pattern NAME|REGEX]

Caches that grew without bound would show. The scalar path has a test of its own (tests/property/test_threads.py).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this checkout, installed or not
import tokpack

LETTERS = (
    "abcdefghijklmnopqrstuvwxyzабвгдежзийклмнопрстуфхцчшщαβγδεζηθικλμνξοπρστυφχψω"
    "一二三四五六七八九十百千万가나다라마바사"
)
WORDS = 200_000  # of one text


def unique(rng: np.random.Generator) -> str:
    """Words of 4 to 11 letters of any of the alphabets."""
    letters = np.array(list(LETTERS), dtype="U1")
    sizes = rng.integers(4, 12, WORDS)
    places = np.ones(int(sizes.sum()) + WORDS, dtype=np.bool_)
    places[np.cumsum(sizes + 1) - 1] = False
    text = np.full(len(places), " ", dtype="U1")
    text[places] = letters[rng.integers(0, len(letters), int(sizes.sum()))]
    return text.tobytes().decode("utf-32-le" if sys.byteorder == "little" else "utf-32-be")


def resident() -> float:
    """MB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("megabytes", nargs="?", type=int, default=1000)
    parser.add_argument("--pattern")
    arguments = parser.parse_args()
    options = {"pattern": arguments.pattern, "special_tokens": "none"} if arguments.pattern else {}
    tokenizer = tokpack.load(arguments.source, **options)
    rng = np.random.default_rng(5)
    done = peak = 0.0
    tenth, start = 1, time.process_time()
    while done < arguments.megabytes:
        text = unique(rng)
        tokenizer.decode_bytes(tokenizer.encode_array(text, False))
        peak = max(peak, resident())
        done += len(text.encode()) / 1e6
        if done >= tenth * arguments.megabytes / 10:
            print(f"{done:.0f} MB: {peak:.0f} MB in use, {time.process_time() - start:.0f} s", flush=True)
            tenth, peak = tenth + 1, 0.0


if __name__ == "__main__":
    main()
