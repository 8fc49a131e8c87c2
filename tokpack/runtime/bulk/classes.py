"""Character classes of the vectorised pre-tokenizers, asked from the compiled pattern that they have to equal.

A pattern runs on class characters (``class.*`` or ``onig.*`` of the pack), of which there are few. What each of them is
to the pattern shows in what the pattern matches on short probes, so that no other table is needed and a class that
answers in an unforeseen way is seen: it gets the code ODD, and texts that hold it go to the scalar splitter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BLANK",
    "BOTH",
    "HAN",
    "HAN_SIGN",
    "LINE",
    "LOWER",
    "MARK",
    "NUMBER",
    "ODD",
    "OTHER",
    "PUNCT",
    "REST",
    "SPACE",
    "UPPER",
    "CharCodes",
]

# letters come first: code <= BOTH is a letter. Patterns without cases call all of them LOWER
LOWER, UPPER, BOTH, NUMBER, OTHER, BLANK, SPACE, LINE, ODD, MARK = range(10)
# in the family deepseek LOWER are letters of ASCII, UPPER other letters and marks, PUNCT signs of ASCII, HAN and
# HAN_SIGN letters and signs that a step of its own cuts out, and REST what no part of the pattern matches alone
PUNCT, HAN, HAN_SIGN, REST = 10, 11, 12, 13

Probe = Callable[[str], int]  # end of the match at the start of a text, -1 for none


def _cl100k(end: Probe, char: str) -> int:
    if end("a" + char) == 2:
        return LOWER
    around = end(f"!{char}!")
    if around == 3:
        return OTHER
    if around == 2 and end(char + "a") == 1:
        return LINE
    return _blank_or_number(end, char)


def _blank_or_number(end: Probe, char: str) -> int:
    if end(char + "\n") == 2:
        return SPACE if end(char + "!") == 2 else BLANK
    alone = end(char + "a") == 1 and end(char + "!") == 1 and end("!" + char) == 1 and end(" " + char) == 1
    return NUMBER if alone and end("1" + char) == end("11") else ODD


def _gpt2(end: Probe, char: str) -> int:
    found = [code for code, lead in ((LOWER, "a"), (NUMBER, "1"), (OTHER, "!"), (BLANK, "\n")) if end(lead + char) == 2]
    if len(found) != 1:
        return ODD
    return SPACE if found == [BLANK] and end(char + "a") == 2 else found[0]


def _o200k(end: Probe, char: str) -> int:
    if end("!!" + char) == 3 and end("a" + char) == 2:
        return MARK
    if end("a" + char) == 2:
        return BOTH if end(f"A{char}Aa") == 4 else LOWER
    if end("A" + char) == 2:
        return UPPER
    return _cl100k(end, char)


def _deepseek(end: Probe, char: str) -> int:
    signs = end(f"!{char}!")
    if end("a" + char) == 2:
        return LOWER if end("!" + char) == 2 else UPPER
    if signs == 3:
        return PUNCT if end(char + "a") == 2 else OTHER
    if signs == 2 and end(char + "a") == 1 and end("a" + char) == 1:
        return LINE
    if end(char + "\n") == 2:
        return SPACE if end(char + "!") == 2 else BLANK
    return REST if end(char) == -1 and end(char + "a") == 2 and end(char + "!") == -1 else ODD


# by two steps before: what becomes of a character that one of them cuts out
_APART: tuple[dict[int, int], ...] = ({REST: NUMBER}, {LOWER: HAN, UPPER: HAN, PUNCT: HAN_SIGN, OTHER: HAN_SIGN})

_PROBES = {"gpt2": _gpt2, "cl100k": _cl100k, "o200k": _o200k, "deepseek": _deepseek}


class CharCodes:
    """Code points → codes.

    Args:
        index, blocks: a two-stage table of class characters; ASCII stands for itself.
        pattern: the compiled pattern, on class characters.
        family: what kind of pattern it is.
        alone: code points that a step before the pattern makes words of their own, or None.
        before: patterns of steps before, of numbers and of HAN.
        han: code points that are HAN whatever the patterns say, or None.

    Attributes:
        ascii: code of each byte below 128, for ``bytes.translate``.
        table: uint8 ``[0x110000]``.
        odd: whether any code is ODD.
        endings: code points that end a contraction of one letter, ascending.
    """

    def __init__(
        self,
        index: NDArray[np.uint16],
        blocks: NDArray[np.generic],
        pattern: re.Pattern[str],
        family: str,
        alone: NDArray[np.bool_] | None = None,
        before: Sequence[re.Pattern[str]] = (),
        han: NDArray[np.bool_] | None = None,
    ) -> None:
        def end(text: str) -> int:
            match = pattern.match(text)
            return -1 if match is None else match.end()

        rows = blocks.reshape(-1, 256)
        names = np.unique(rows).tolist()
        codes = np.full(int(rows.max()) + 1, ODD, dtype=np.uint8)
        endings = []
        for name in names:
            codes[name] = _PROBES[family](end, chr(name))
            for step, become in zip(before, _APART, strict=False):
                if step.match(chr(name)):
                    codes[name] = become.get(int(codes[name]), ODD)
                    break
            if codes[name] <= BOTH and _ends_contraction(end, chr(name), family):
                endings.append(name)
        self.table = codes[rows][index].reshape(-1)
        if alone is not None:
            self._stand_alone(alone)
        if han is not None:
            apart = np.full(REST + 1, ODD, dtype=np.uint8)
            apart[list(_APART[1])] = list(_APART[1].values())
            self.table[han] = apart[self.table[han]]
        self.ascii = self.table[:128].tobytes() + bytes(128)
        self.odd = bool((self.table == ODD).any())
        self.marks = bool((self.table == MARK).any())
        classes = rows[index].reshape(-1)
        self.endings = np.flatnonzero(np.isin(classes, endings)).astype(np.uint32)
        self._plain_endings = np.zeros(128, dtype=np.bool_)
        self._plain_endings[self.endings[self.endings < 128]] = True

    def _stand_alone(self, alone: NDArray[np.bool_]) -> None:
        """Numbers of the step before; what only the pattern calls a number is ODD."""
        table = self.table
        table[(table == NUMBER) & ~alone] = ODD
        table[alone & (table != NUMBER)] = NUMBER

    def ends_contraction(self, points: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Whether each of these is one of :attr:`endings`."""
        found = self._plain_endings.take(points, mode="clip")
        beyond = np.flatnonzero(points >= 128)
        found[beyond] = np.isin(points[beyond], self.endings)
        return found

    def of(self, text: str) -> tuple[NDArray[np.uint8], NDArray[np.unsignedinteger]]:
        """(codes, code points) of a text, ``[n]`` each."""
        if text.isascii():
            raw = text.encode("ascii")
            return np.frombuffer(raw.translate(self.ascii), dtype=np.uint8), np.frombuffer(raw, dtype=np.uint8)
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        return self.table.take(points), points


def _ends_contraction(end: Probe, char: str, family: str) -> bool:
    if family == "deepseek":
        return False
    if family == "o200k":
        return end(f"a'{char}") == 3 and end(f"a'{char}a") == 3
    return end(f"'{char}a") == 2 and end(f"'{char}") == 2
