"""The three text lines that begin every MNN tokenizer file, and lines as libstdc++ reads them.

Rules: ``Tokenizer::createTokenizer`` and ``Tokenizer::load_special`` (``tokenizer.cpp`` of MNN tag 3.6.1).
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokpack.errors import FormatError, Location, UnsupportedError, UsageError
from tokpack.limits import DEFAULT, Limits, above

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ENGINES", "Header", "Lines", "check_engine", "read_header"]

ENGINES = {"v361": "MNN 3.6.1", "head": "MNN head"}  # option value → rules of the IR
_NUMBER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_INT_MAX = (1 << 31) - 1


def check_engine(engine: str) -> str:
    """The rules tag of an engine; UsageError for an unknown one."""
    if engine not in ENGINES:
        raise UsageError(f"unknown MNN engine {engine!r}", hint=f"known: {', '.join(ENGINES)}")
    return ENGINES[engine]


class Lines:
    """``std::getline`` on a file stream, with what it leaves behind at the end of the file.

    The first call behind a last line feed gives an empty line; later calls, and calls behind a last line that has no
    line feed, do not touch the caller's string.

    Attributes:
        pos: offset of the next line.
        size: bytes of the file.
        ended: the stream is at its end, or has failed.
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self._data = data
        self.size = len(data)
        self.pos = 0
        self.ended = False

    def next(self, before: bytes) -> bytes:
        """The next line, or ``before`` when the stream no longer reads."""
        if self.ended:
            return before
        start = self.pos
        end = self._data.find(b"\n", start)
        if end < 0:
            self.ended = True
            end = len(self._data)
            self.pos = end
        else:
            self.pos = end + 1
        return bytes(self._data[start:end])


@dataclass(frozen=True, slots=True)
class Header:
    """Type number, and the three lists of ids in file order; what is declared but missing is 0."""

    tokenizer_type: int
    special: tuple[int, ...]
    stop: tuple[int, ...]
    prefix: tuple[int, ...]


def _numbers(line: bytes, count: int) -> list[int]:
    """``>>`` into ``count`` ints; shorter when one does not parse. One out of range ends the list with its limit."""
    found: list[int] = []
    at = 0
    while len(found) < count:
        match = _NUMBER.match(line, at)
        if match is None:
            break
        digits = match[1]
        value = int(digits) if len(digits) < 12 else (-1 << 40 if digits[:1] == b"-" else 1 << 40)
        found.append(max(-_INT_MAX - 1, min(value, _INT_MAX)))
        if found[-1] != value:
            break
        at = match.end()
    return found


def read_header(lines: Lines, file: str | None, limits: Limits = DEFAULT) -> Header:
    """Read the header, and leave ``lines`` behind it.

    Raises:
        FormatError: not a MNN tokenizer, or a header that leaves the engine with numbers that nobody wrote.
        UnsupportedError: a type that no engine knows.
    """
    numbers = _numbers(lines.next(b""), 2)
    if len(numbers) < 2 or numbers[0] != 430:
        what = "it does not begin with 430 and a type: not a MNN tokenizer"
        raise FormatError(what, location=Location(file, "mnn.header", 0))
    if not 0 <= numbers[1] <= 4:
        what = f"tokenizer type {numbers[1]} is unknown to MNN, which knows 0 to 4"
        raise UnsupportedError(what, location=Location(file, "mnn.header", 0), code="mnn-type")
    at = lines.pos
    where = Location(file, "mnn.header", at)
    line = lines.next(b"")
    counts = _numbers(line, 3)
    if len(counts) < 3 or min(counts) < 0:
        raise FormatError("the second line is not three counts of ids", location=where)
    declared = sum(counts)
    at = lines.pos
    line = lines.next(line)
    if max(counts) > limits.pieces:
        raise above("pieces", f"{max(counts)} ids are", limits, where)
    if declared > len(line) // 2 + 65_536:
        raise FormatError(f"{declared} ids are declared, {len(line)} bytes hold them", location=where)
    ids = _numbers(line, declared)
    if lines.ended:
        what = "the file ends inside the header"
        raise FormatError(what, location=Location(file, "mnn.header", at))
    ids += [0] * (declared - len(ids))
    special, stop, _ = counts
    return Header(numbers[1], *_cut(ids, (special, special + stop)))


def _cut(ids: Sequence[int], at: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return tuple(ids[: at[0]]), tuple(ids[at[0] : at[1]]), tuple(ids[at[1] :])
