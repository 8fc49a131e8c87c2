"""Make ``hf_sets.npz``: character sets and scripts of the ``tokenizers`` library 0.23.3, asked of the library itself.

    python tokpack/unicode/make_hf_sets.py          needs the packages tokenizers and regex

Each set is asked one code point at a time through a pre-tokenizer that shows it; ``regex`` only guesses the script that
the library then confirms. The result is a mask per code point (see :mod:`tokpack.runtime.hf.sets`) and a script number,
both as runs: first code point, value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["main"]

_SIZE = 0x110000


def _code_points() -> list[int]:
    return [c for c in range(_SIZE) if not 0xD800 <= c <= 0xDFFF]


def _masks() -> NDArray[np.uint8]:
    from tokenizers import pre_tokenizers

    masks = np.zeros(_SIZE, dtype=np.uint8)

    def words(step: object) -> Callable[[str], int]:
        return lambda text: len(step.pre_tokenize_str(text))  # type: ignore[attr-defined]

    whitespace, space = words(pre_tokenizers.Whitespace()), words(pre_tokenizers.WhitespaceSplit())
    digits, punctuation = words(pre_tokenizers.Digits(individual_digits=True)), words(pre_tokenizers.Punctuation())
    for c in _code_points():
        char = chr(c)
        pair = char + "\u0001"  # U+0001 is none of the four
        masks[c] = (
            (1 if whitespace("a" + char) == 1 and whitespace("!" + char) == 2 else 0)
            | (2 if space(char) == 0 else 0)
            | (4 if digits(pair) == 2 else 0)
            | (8 if punctuation(pair) == 2 else 0)
        )
    return masks


def _scripts() -> NDArray[np.uint8]:
    import regex
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    names: dict[str, int] = {}
    samples: list[str] = []  # a character of script number i + 1

    def joined(sample: str, char: str) -> bool:
        return len(split(sample + char)) == 1

    scripts = np.zeros(_SIZE, dtype=np.uint8)
    guess = {chr(c): _script_name(regex, chr(c)) for c in _code_points()}
    for c in _code_points():
        char = chr(c)
        if joined("a", char) and joined("\u0430", char):
            continue  # any: joins Latin and Cyrillic
        number = names.get(guess[char])
        if number is None or not joined(samples[number - 1], char):
            number = next((i + 1 for i, sample in enumerate(samples) if joined(sample, char)), None)
        if number is None:
            samples.append(char)
            number = len(samples)
        names.setdefault(guess[char], number)
        scripts[c] = number
    return scripts


def _script_name(regex: object, char: str) -> str:
    for name in _NAMES:
        if regex.match(rf"\p{{Script={name}}}", char):  # type: ignore[attr-defined]
            return name
    return "other"


_NAMES = (
    *("Han", "Hangul", "Common", "Yi", "Egyptian_Hieroglyphs", "Tangut", "Cuneiform", "Latin", "Arabic", "Cyrillic"),
    *("Inherited", "Greek", "Canadian_Aboriginal", "Ethiopic", "Hiragana", "Katakana"),
)


def _runs(values: NDArray[np.uint8]) -> NDArray[np.uint32]:
    starts = np.flatnonzero(np.diff(values, prepend=values[:1] ^ 1))
    return np.stack([starts, values[starts]], axis=1).astype(np.uint32)


def main() -> None:
    """Write the table beside this script."""
    from tokenizers import __version__

    if __version__ != "0.23.3":
        sys.exit(f"tokenizers {__version__} is installed; the tables are those of 0.23.3")
    target = Path(__file__).with_name("hf_sets.npz")
    np.savez_compressed(target, masks=_runs(_masks()), scripts=_runs(_scripts()))


if __name__ == "__main__":
    main()
