"""MNN's matcher itself (``match_seq`` and ``try_branches`` in ``unicode.cpp``), with a memory and a limit.

What a branch matches from a place does not depend on how it came there, so each (branch, node, place) is worked out
once. The engine does it again and again; where that would take it hours, there is an error here.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.runtime.mnn.folded import GROUP_LIMIT, Branch, Chars, Group, Look

__all__ = ["Matcher", "check_depth"]

_STEPS = 1_000_000  # besides those that grow with the text
_STEPS_PER_CHAR = 32
_VARIABLE = 150  # nodes of a branch that recurse, nested ones included


def check_depth(branches: Sequence[Branch]) -> None:
    """Raise UnsupportedError for branches that would recurse too deep."""
    if any(_depth(branch) > _VARIABLE for branch in branches):
        raise UnsupportedError(f"a pattern has more than {_VARIABLE} variable parts in a row", code="mnn-pattern")


def _depth(branch: Branch) -> int:
    total = 0
    for node in branch:
        if isinstance(node, Chars):
            total += node.low != node.high
        else:
            total += 2 + max(map(_depth, node.branches))
    return total


class Matcher:
    """Matches of one folded text.

    Args:
        text: folded.
        branches: of the whole pattern.
    """

    def __init__(self, text: str, branches: Sequence[Branch]) -> None:
        self._text = text
        self._codes = text.encode("ascii")
        self._branches = branches
        self._left = _STEPS + _STEPS_PER_CHAR * len(text)
        self._known: dict[tuple[int, int, int], int] = {}

    def match(self, at: int) -> int:
        """End of the match at ``at``, or -1. What was remembered before is dropped: places only grow."""
        self._known.clear()
        return self._first(at, self._branches)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            what = "a pattern of this tokenizer goes over the text again and again: MNN would take very long, too"
            raise EncodeError(what, hint="encode shorter texts")

    def _first(self, at: int, branches: Sequence[Branch]) -> int:
        for branch in branches:
            end = self._sequence(at, branch, 0)
            if end >= 0:
                return end
        return -1

    def _sequence(self, at: int, nodes: Branch, index: int) -> int:
        """``match_seq``; nodes that match in one way only are passed without recursion."""
        start = (id(nodes), index, at)
        known = self._known.get(start)
        if known is None:
            known = self._known[start] = self._walk(at, nodes, index)
        return known

    def _walk(self, at: int, nodes: Branch, index: int) -> int:
        while index < len(nodes):
            node = nodes[index]
            self._spend(1)
            if isinstance(node, Look):
                if self._first(at, node.branches) >= 0:
                    return -1
                index += 1
                continue
            if isinstance(node, Group):
                return self._group(at, node, nodes, index)
            count = self._count(at, node)
            if node.low == node.high:
                if count < node.low:
                    return -1
                at += count
                index += 1
                continue
            return self._back(range(at + count, at + node.low - 1, -1), nodes, index)
        return at

    def _back(self, places: Sequence[int], nodes: Branch, index: int) -> int:
        for place in places:
            self._spend(1)
            end = self._sequence(place, nodes, index + 1)
            if end >= 0:
                return end
        return -1

    def _count(self, at: int, node: Chars) -> int:
        codes, mask = self._codes, node.mask
        stop = len(codes) if node.high < 0 else min(len(codes), at + node.high)
        place = at
        while place < stop and mask >> codes[place] & 1:
            place += 1
        self._spend(place - at)
        return place - at

    def _group(self, at: int, node: Group, nodes: Branch, index: int) -> int:
        places = [at]
        limit = GROUP_LIMIT if node.high < 0 else node.high
        while len(places) <= limit:
            self._spend(1)
            end = self._first(places[-1], node.branches)
            if end <= places[-1]:
                break
            places.append(end)
        return self._back(places[node.low :][::-1], nodes, index)
