"""The two sides of the comparison: the library, and the translated pattern run by ``re``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tokpack.onig import FLAGS, Translated, translate

Spans = list[tuple[int, int]]


def mapped(made: Translated, text: str) -> str:
    """The text as class characters."""
    return "".join(chr(made.blocks[made.index[ord(c) >> 8], ord(c) & 255]) for c in text)


def matches(compiled: re.Pattern[str], text: str) -> Spans:
    """All matches as the reference finds them: an empty match right at the end of the last one is dropped."""
    found: Spans = []
    place, last = 0, -1
    while place <= len(text):
        match = compiled.search(text, place)
        if match is None:
            break
        start, end = match.span()
        if start == end == last:
            place += 1
            continue
        found.append((start, end))
        place = last = end
    return found


def isolated(found: Spans, length: int) -> Spans:
    """Matches and gaps in order, without the empty ones: the pieces of a Split with behavior Isolated."""
    edges = sorted({0, length, *(edge for span in found for edge in span)})
    return list(pairwise(edges))


def ours(made: Translated, number: int, text: str) -> Spans:
    """The pieces by the translated pattern."""
    return isolated(matches(re.compile(made.patterns[number], FLAGS), mapped(made, text)), len(text))


def ours_alone(pattern: str, text: str) -> Spans:
    """The pieces by one pattern that is translated on its own."""
    return ours(translate([pattern]), 0, text)


class Library:
    """The pieces by the library."""

    def __init__(self, tokenizers: Any) -> None:
        self._regex = tokenizers.Regex
        self._split = tokenizers.pre_tokenizers.Split

    def compile(self, pattern: str) -> Any:
        """A Split, or None if the library refuses the pattern."""
        try:
            return self._split(self._regex(pattern), "isolated")
        except Exception:
            return None

    @staticmethod
    def pieces(split: Any, text: str) -> Spans | None:
        """Offsets in characters; None if the library gives up after its limit of backtracking steps."""
        try:
            return [span for _, span in split.pre_tokenize_str(text)]
        except BaseException as error:  # its panics are no Exception
            if type(error).__name__ != "PanicException":
                raise
            return None
