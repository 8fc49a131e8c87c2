"""Long texts through a charsmap: only where something may be replaced, the text is looked at character by character."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.split import CHUNK

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LongMap", "moving_characters"]

_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 16
# of the first byte of a character: its length, 0 for none, and its bits of the code point
_LENGTH = np.array([1] * 0x80 + [0] * 0x42 + [2] * 0x1E + [3] * 0x10 + [4] * 5 + [0] * 11, dtype=np.int64)
_FIRST = np.array([0, 0x7F, 0x1F, 0x0F, 0x07], dtype=np.int64)


def moving_characters(units: NDArray[np.uint32]) -> NDArray[np.bool_] | None:
    """Which characters are keys of a double array or stand behind the first one of a key: bool ``[0x110000]``.

    None if keys are not UTF-8. The array may share the ends of keys, so that there are many more keys than nodes.
    """
    moves = np.zeros(0x110000, dtype=np.bool_)
    if not len(units):
        return moves
    tree = _Tree(units)
    found = tree.characters(np.array([tree.base[0]]))
    if found is None:
        return None
    chars, nodes = found
    moves[chars[tree.ends.take(nodes)]] = True
    seen = np.zeros(len(units), dtype=np.bool_)
    while True:
        nodes = np.unique(nodes)
        nodes = nodes[~seen.take(nodes)]
        if not len(nodes):
            return moves
        seen[nodes] = True
        found = tree.characters(tree.base.take(nodes))
        if found is None:
            return None
        chars, nodes = found
        moves[chars] = True


class _Tree:
    """A double array, downwards.

    Attributes:
        base: of each unit, by which its children are found.
        ends: whether a key ends with the unit.
    """

    def __init__(self, units: NDArray[np.uint32]) -> None:
        wide = units.astype(np.int64)
        places = np.arange(len(units))
        self.base = places ^ (wide >> 10 << ((wide & 1 << 9) >> 6) & 0xFFFFFFFF)
        self.ends = wide >> 8 & 1 != 0
        label = wide & 0xFF
        inner = np.flatnonzero((wide >> 31 == 0) & (label != 0))
        parent = inner ^ label[inner]
        order = np.argsort(parent, kind="stable")
        self._parent, self._child, self._label = parent[order], inner[order], label[inner[order]]

    def characters(self, bases: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """(code points, units in which they end) of all that keys go on with; None for what is no character."""
        which, units, labels = self._children(bases)
        left = _LENGTH.take(labels)
        codes = labels & _FIRST.take(left)
        chars, nodes = [], []
        while True:
            if (left <= 0).any():
                return None
            done = left == 1
            chars.append(codes[done])
            nodes.append(units[done])
            units, codes, left = units[~done], codes[~done], left[~done] - 1
            if not len(units):
                found = np.concatenate(chars), np.concatenate(nodes)
                return None if (found[0] >= 0x110000).any() else found
            if self.ends.take(units).any():
                return None
            which, below, labels = self._children(self.base.take(units))
            if (labels & 0xC0 != 0x80).any():
                return None
            units, codes, left = below, codes.take(which) << 6 | labels & 0x3F, left.take(which)

    def _children(self, bases: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(which base, unit, its byte) of the units below."""
        low = np.searchsorted(self._parent, bases, side="left")
        counts = np.searchsorted(self._parent, bases, side="right") - low
        skip = np.cumsum(counts) - counts
        places = np.repeat(low - skip, counts) + np.arange(int(counts.sum()))
        return np.repeat(np.arange(len(bases)), counts), self._child.take(places), self._label.take(places)


class _UnsureError(Exception):
    """What a window becomes is no text."""


class _Windows(dict[str, str]):
    """Window → what it becomes; bounded."""

    def __init__(self, replace: Callable[[str], str | None]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, window: str) -> str:
        found = self._replace(window)
        if found is None:
            raise _UnsureError
        if len(window) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[window] = found
        return found


class LongMap:
    """A charsmap on long texts.

    A match of several characters goes on with characters that stand behind the first one in a key; one of a single
    character is a key. So nothing is replaced but in windows: runs of such characters, each with the character before
    it. A match begins where a window does, and none reaches over its end.

    Args:
        moves: of :func:`moving_characters`.
        replace: the scalar path.
    """

    def __init__(self, moves: NDArray[np.bool_], replace: Callable[[str], str | None]) -> None:
        self._moves = moves
        self._windows = _Windows(replace)

    def __call__(self, text: str) -> str | None:
        """The text with everything replaced; None if the scalar path does not give text either."""
        out: list[str] = []
        windows, last = self._windows, 0
        try:
            for start, end in zip(*self._places(text), strict=True):
                if last < start:
                    out.append(text[last:start])
                out.append(windows[text[start:end]])
                last = end
        except _UnsureError:
            return None
        if not last:
            return text
        out.append(text[last:])
        return "".join(out)

    def _places(self, text: str) -> tuple[list[int], list[int]]:
        """Where windows begin and end."""
        parts = []
        for at in range(0, len(text), CHUNK):
            points = np.frombuffer(text[at : at + CHUNK].encode("utf-32-le"), dtype="<u4")
            parts.append(self._moves.take(points))
        moves = np.concatenate(([False], *parts, [False]))
        edges = np.flatnonzero(moves[1:] != moves[:-1])
        starts, ends = edges[::2], edges[1::2]
        return np.maximum(starts - 1, 0).tolist(), ends.tolist()
