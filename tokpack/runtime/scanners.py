r"""llama.cpp's hand-written splitters as regular expressions on class bytes, and its two afterthoughts as code.

Source: ``src/unicode.cpp``, ``unicode_regex_split_custom_*``. The text is one class byte per code point (see
:mod:`tokpack.unicode.llamacpp`): ASCII itself, 0x0B for other White_Space, 0xD1 numbers, 0xD2 letters, 0xD4 marks,
0xD6 Han letters and 0xD7 other code points of the Han blocks. Contractions fold case by the simple lower-case map,
under which no non-ASCII code point becomes one of the letters that matter, so ASCII alternatives say it all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["HAN_SCANNERS", "SCANNERS", "Bounds", "split_digits_by_three"]

Bounds = list[int]  # ends of the segments, ascending; a segment starts where the one before ends

_L, _N, _M = r"\xd2\xd6A-Za-z", r"\xd10-9", r"\xd4"
_CONTRACTION = "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
_TAIL = rf"| ?[^\s{_L}{_N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# every pattern matches at every position: none leaves gaps
SCANNERS: dict[str, str] = {
    "gpt2": rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{_L}]+| ?[{_N}]+| ?[^\s{_L}{_N}]+|\s+(?!\S)|\s+",
    "llama3": rf"{_CONTRACTION}|[^\r\n{_L}{_N}]?[{_L}]+|[{_N}]{{1,3}}{_TAIL}",
    "qwen2": rf"{_CONTRACTION}|[^\r\n{_L}{_N}]?[{_L}]+|[{_N}]{_TAIL}",
    "qwen35": (
        rf"{_CONTRACTION}|[^\r\n{_L}{_N}]?[{_L}{_M}]+|[{_N}]"
        rf"| ?[^\s{_L}{_M}{_N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "kimi_k2": (
        rf"[\xd6\xd7]+|[^\r\n{_L}{_N}]?[\xd2A-Za-z]+(?:{_CONTRACTION})?|[{_N}]{{1,3}}"
        rf"| ?[^\s{_L}{_N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "newlines": r"[^\n]+|\n+",
}
HAN_SCANNERS = frozenset({"kimi_k2"})  # need the class table with Han

_NUMBERS = re.compile(f"[{_N}]+", re.ASCII)


def split_digits_by_three(text: str, bounds: Bounds) -> Bounds:
    """``afmoe_digits``: runs of numbers in groups of three from the right.

    The text before a run goes with the run's first group, as in the original.
    """
    out: Bounds = []
    start = 0
    for end in bounds:
        for match in _NUMBERS.finditer(text, start, end):
            first, last = match.span()
            out.extend(range(first + ((last - first) % 3 or 3), last + 1, 3))
        if not out or out[-1] != end:
            out.append(end)
        start = end
    return out


ScannerFunction = Callable[[str, Bounds], Bounds]
FUNCTIONS: dict[str, ScannerFunction] = {"afmoe_digits": split_digits_by_three}
