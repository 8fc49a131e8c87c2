"""Special tokens of a text in one pass, by llama.cpp's rule: the longest token takes all its places first.

llama.cpp searches the text once for each token, longest first, in what the tokens before have left. A place is so taken
by the first token, in that order, that fits between what is taken already; at one place that is the longest one that
fits. Where the longest tokens of all places lie apart, they are the answer. Where they overlap, the places of such a
cluster are visited in the order of the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from tokpack.records import dataclass

__all__ = ["Finder", "Special", "finder"]

_SPACE = frozenset(b" \t\n\v\f\r")  # isspace of the C locale
_PREFIX = 2  # bytes by which tokens are grouped
_LENGTHS = 64  # different lengths of tokens that begin alike: more are left to a pass per token

Taken = tuple[int, int, int, int, int]  # (first byte with spaces on the left, first, last + 1, with spaces, id)


@dataclass(frozen=True, slots=True)
class Special:
    """A token that is looked for.

    Attributes:
        id: its id.
        content: its bytes.
        lstrip, rstrip: whether it takes the spaces beside it.
        special: whether it stays text unless special tokens are parsed.
    """

    id: int
    content: bytes
    lstrip: bool
    rstrip: bool
    special: bool


def finder(tokens: Sequence[Special]) -> Finder | None:
    """For tokens in matching order; None if that order is not by length, or too many begin alike."""
    lengths: dict[bytes, list[int]] = {}
    last = len(tokens[0].content) if tokens else 0
    for token in tokens:
        size = len(token.content)
        if size > last:
            return None
        last = size
        known = lengths.setdefault(token.content[:_PREFIX], [])
        if not known or known[-1] != size:
            known.append(size)
            if len(known) > _LENGTHS:
                return None
    return Finder(tokens, lengths)


class Finder:
    """Finds all tokens of a text.

    Args:
        tokens: in matching order, which is by length, longest first.
        lengths: first bytes → the lengths of the tokens that begin so, descending.
    """

    def __init__(self, tokens: Sequence[Special], lengths: dict[bytes, list[int]]) -> None:
        self._tokens = tokens
        self._lengths = lengths
        self._ranks: dict[bytes, int] = {}
        for rank, token in enumerate(tokens):
            self._ranks.setdefault(token.content, rank)
        self._strips = any(token.lstrip or token.rstrip for token in tokens)
        seconds: dict[int, set[int]] = {}
        for prefix in lengths:
            if len(prefix) == _PREFIX:
                seconds.setdefault(prefix[0], set()).add(prefix[1])
        starts = [_one(first) + b"(?=" + _class(after) + b")" for first, after in sorted(seconds.items())]
        starts += [_one(prefix[0]) for prefix in lengths if len(prefix) < _PREFIX]
        self._start = re.compile(b"|".join(starts) or b"(?!)", re.DOTALL)

    def find(self, text: bytes) -> list[Taken]:
        """The tokens of a text, ascending."""
        places, ranks = self._places(text)
        if not places:
            return []
        if self._strips and any(self._tokens[rank].lstrip or self._tokens[rank].rstrip for rank in set(ranks)):
            return _Cluster(self, text, 0, len(text)).run(places, ranks)
        taken: list[Taken] = []
        first = end = 0
        for at, (place, rank) in enumerate(zip(places, ranks, strict=True)):
            if place >= end and at:
                self._cluster(text, places[first:at], ranks[first:at], end, taken)
                first = at
            end = max(end, place + len(self._tokens[rank].content))
        self._cluster(text, places[first:], ranks[first:], end, taken)
        return taken

    def _cluster(self, text: bytes, places: list[int], ranks: list[int], end: int, taken: list[Taken]) -> None:
        """Places that overlap with none of the others; they reach to ``end``."""
        if len(places) == 1:
            taken.append((places[0], places[0], end, end, self._tokens[ranks[0]].id))
        else:
            taken += _Cluster(self, text, places[0], end).run(places, ranks)

    def _places(self, text: bytes) -> tuple[list[int], list[int]]:
        """Where tokens begin, and the rank of the longest one there."""
        places: list[int] = []
        ranks: list[int] = []
        size = len(text)
        for found in self._start.finditer(text):
            place = found.start()
            rank = self.best(text, place, size)
            if rank >= 0:
                places.append(place)
                ranks.append(rank)
        return places, ranks

    def best(self, text: bytes, place: int, limit: int) -> int:
        """Rank of the longest token at ``place`` of at most so many bytes, or -1."""
        get = self._ranks.get
        prefix = text[place : place + _PREFIX]
        for size in self._lengths.get(prefix, ()):
            if size <= limit:
                rank = get(text[place : place + size])
                if rank is not None:
                    return rank
        return get(prefix[:1], -1) if limit else -1

    def token(self, rank: int) -> Special:
        """The token of a rank."""
        return self._tokens[rank]


class _Cluster:
    """A stretch of text in which tokens overlap or take spaces beside them."""

    def __init__(self, finder: Finder, text: bytes, start: int, end: int) -> None:
        self._finder = finder
        self._text = text
        self._start = start
        self._mask = bytearray(end - start)  # 1 where something is taken

    def run(self, places: Sequence[int], ranks: Sequence[int]) -> list[Taken]:
        """What is taken, ascending; all places where tokens begin are given, with the longest ones."""
        finder, mask, base = self._finder, self._mask, self._start
        queue = list(zip(ranks, places, strict=True))
        heapify(queue)
        taken: list[Taken] = []
        while queue:
            rank, place = heappop(queue)
            if mask[place - base]:
                continue
            token = finder.token(rank)
            end = place + len(token.content)
            if mask.find(1, place - base, end - base) >= 0:
                rank = finder.best(self._text, place, end - place - 1)
                if rank >= 0:
                    heappush(queue, (rank, place))
                continue
            mask[place - base : end - base] = b"\1" * (end - place)
            left = self._left(place) if token.lstrip else place
            right = self._right(end) if token.rstrip else end
            taken.append((left, place, end, right, token.id))
        taken.sort()
        return taken

    def _left(self, place: int) -> int:
        base = self._start
        while place > base and not self._mask[place - 1 - base] and self._text[place - 1] in _SPACE:
            place -= 1
            self._mask[place - base] = 1
        return place

    def _right(self, place: int) -> int:
        base, size = self._start, len(self._mask)
        while place - base < size and not self._mask[place - base] and self._text[place] in _SPACE:
            self._mask[place - base] = 1
            place += 1
        return place


def _one(byte: int) -> bytes:
    return b"\\x%02x" % byte


def _class(values: set[int]) -> bytes:
    return b"[" + b"".join(map(_one, sorted(values))) + b"]"
