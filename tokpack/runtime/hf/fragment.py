"""A stretch of text on its way through the pipeline, and cutting it (``tokenizer/normalizer.rs``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokpack.records import dataclass
from tokpack.runtime.spans import Spans

__all__ = ["Fragment", "cut", "in_bytes", "stretch"]

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fragment:
    """Text, and where it comes from.

    Attributes:
        text: the text as it is now.
        origin: (start, end) in the input of each character, or None when nobody asks for offsets.
        first: whether it began at the first character of the input.
    """

    text: str
    origin: list[Range] | None = None
    first: bool = True

    def slice(self, start: int, end: int) -> Fragment:
        """A part of it."""
        origin = None if self.origin is None else self.origin[start:end]
        return Fragment(self.text[start:end], origin, self.first and start == 0)

    def edit(self, edits: Iterable[tuple[int, int, str]], *, to_last: bool = False) -> Fragment:
        """With (start, end, replacement) applied; ascending, without overlaps.

        A replacement comes from all that it replaces, or with ``to_last`` from the last character of that; an insertion
        from the character behind it.
        """
        parts: list[str] = []
        origin: list[Range] | None = None if self.origin is None else []
        last = 0
        for start, end, content in edits:
            parts += (self.text[last:start], content)
            if origin is not None:
                origin += self.origin_of(last, start)
                origin += [self._span(end - 1 if to_last and start < end else start, end)] * len(content)
            last = end
        parts.append(self.text[last:])
        if origin is not None:
            origin += self.origin_of(last, len(self.text))
        return Fragment("".join(parts), origin, self.first)

    def origin_of(self, start: int, end: int) -> list[Range]:
        """Origins of a range of characters."""
        return [] if self.origin is None else self.origin[start:end]

    def _span(self, start: int, end: int) -> Range:
        origin = self.origin or []
        if start < end:
            return origin[start][0], origin[end - 1][1]
        at = origin[start][0] if start < len(origin) else origin[-1][1] if origin else 0
        return at, at


def cut(matches: Sequence[Range], size: int, behavior: str, invert: bool) -> list[Range]:
    """Ranges that a split leaves of a text of ``size`` characters (``NormalizedString::split``).

    Args:
        matches: matches in order, without overlaps; empty ones are boundaries.
        size: length of the text.
        behavior: ``removed``, ``isolated``, ``merged-with-previous``, ``merged-with-next`` or ``contiguous``.
        invert: gaps count as matches and matches as gaps.
    """
    parts: list[tuple[int, int, bool]] = []
    last = 0
    for start, end in matches:
        if last < start:
            parts.append((last, start, invert))
        parts.append((start, end, not invert))
        last = end
    if last < size:
        parts.append((last, size, invert))
    ranges = _BEHAVIORS[behavior](parts)
    return [(start, end) for start, end in ranges if start < end]


Parts = list[tuple[int, int, bool]]


def _isolated(parts: Parts) -> list[Range]:
    return [(start, end) for start, end, _ in parts]


def _removed(parts: Parts) -> list[Range]:
    return [(start, end) for start, end, match in parts if not match]


def _contiguous(parts: Parts) -> list[Range]:
    out: list[Range] = []
    before: bool | None = None
    for start, end, match in parts:
        if match == before:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        before = match
    return out


def _with_previous(parts: Parts) -> list[Range]:
    out: list[Range] = []
    before = False
    for start, end, match in parts:
        if match and not before and out:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        before = match
    return out


def _with_next(parts: Parts) -> list[Range]:
    out: list[Range] = []
    after = False
    for start, end, match in reversed(parts):
        if match and not after and out:
            out[-1] = (start, out[-1][1])
        else:
            out.append((start, end))
        after = match
    out.reverse()
    return out


_BEHAVIORS = {
    "isolated": _isolated,
    "removed": _removed,
    "contiguous": _contiguous,
    "merged-with-previous": _with_previous,
    "merged-with-next": _with_next,
}


def stretch(places: Sequence[Range], start: int, end: int) -> Range:
    """Where a range of characters comes from, out of the origins of all."""
    if start >= end or not places:
        at = places[start][0] if start < len(places) else 0
        return at, at
    return places[start][0], max(places[end - 1][1], places[start][0])


def in_bytes(text: str, spans: Spans) -> Spans:
    """Spans in characters of a text as spans in bytes of its UTF-8."""
    offsets = [0]
    for char in text:
        offsets.append(offsets[-1] + len(char.encode("utf-8")))
    return [(token, offsets[start], offsets[end]) for token, start, end in spans]
