"""Offsets: where a token lies in the text, when words were cut, escaped or mapped on the way."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["Span", "Spans", "character_spans", "in_characters"]

Span = tuple[int, int, int]  # id, start, end
Spans = list[Span]


def character_spans(word: str, ends: list[int], first: int, tokens: Iterable[tuple[int, int]]) -> Spans:
    """Spans in the source bytes of the tokens of a word.

    Args:
        word: the word as the model saw it.
        ends: source offset behind each character of the fragment.
        first: index of the word's first character in the fragment.
        tokens: (id, end in the UTF-8 bytes of ``word``).
    """
    sizes = [len(char.encode("utf-8", "surrogatepass")) for char in word]
    edges = [0]
    for size in sizes:
        edges.append(edges[-1] + size)
    spans: Spans = []
    begin = 0
    for token, end in tokens:
        begin = min(begin, end - 1)  # the second id of one byte lies where the first does
        from_char = bisect_right(edges, begin) - 1
        to_char = bisect_right(edges, end - 1)
        start = ends[first + from_char - 1] if first + from_char else 0
        # inside a character only if it was not changed on the way
        if sizes[from_char] == _width(ends, first + from_char):
            start += begin - edges[from_char]
        stop = ends[first + to_char - 1]
        if sizes[to_char - 1] == _width(ends, first + to_char - 1):
            stop -= edges[to_char] - end
        spans.append((token, start, stop))
        begin = end
    return spans


def _width(ends: list[int], index: int) -> int:
    return ends[index] - (ends[index - 1] if index else 0)


def in_characters(text: str, spans: Spans) -> Spans:
    """Byte spans of the UTF-8 form as character spans; a part of a character becomes the whole of it."""
    starts = [0]
    for char in text:
        starts.append(starts[-1] + len(char.encode("utf-8", "surrogatepass")))
    out = []
    for token, start, end in spans:
        first = bisect_right(starts, start) - 1
        out.append((token, first, bisect_right(starts, end - 1) if end > start else first))
    return out
