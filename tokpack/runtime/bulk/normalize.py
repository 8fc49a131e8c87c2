"""Unicode normalization of long texts: only where a character can change, or can change the one before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tokpack.runtime.hf.normalize_unicode import UnicodeNormalizer

__all__ = ["LongNormalizer"]

_ASCII = re.compile(r"[\x00-\x7f]")
_BLOCK = 1 << 16  # characters: what is made of a block stays in the second-level cache
_STABLE, _UNSTABLE = 1, 2  # 0: not asked yet


class LongNormalizer:
    """One of the four forms for texts of any length.

    A segment that is normalized on its own is a run of characters that are not stable, with one stable character before
    it at most (:mod:`tokpack.runtime.hf.normalize_unicode`). So runs are normalized with the character before them.

    Threads share the table of what characters are: each writes the same there.
    """

    def __init__(self, normalizer: UnicodeNormalizer) -> None:
        self._normalizer = normalizer
        self._kinds = np.zeros(0x110000, dtype=np.uint8)
        self._kinds[:128] = _STABLE

    def apply(self, text: str, block: int = _BLOCK) -> str:
        """``normalizer.apply(text)``; the same object when nothing changes."""
        if text.isascii():
            return text
        parts = list(self._blocks(text, block))
        return "".join(parts) if any(parts[1::2]) else text

    def _blocks(self, text: str, size: int) -> Iterator[str]:
        """The normalized text in pieces; every other one is what took the place of something."""
        at = 0
        while at < len(text):
            # an ASCII character touches nothing before it
            found = _ASCII.search(text, at + size)
            end = found.start() if found else len(text)
            block = text if end - at == len(text) else text[at:end]
            last = 0
            for start, stop, new in () if block.isascii() else self._edits(block):
                yield block[last:start]
                yield new
                last = stop
            yield block[last:]
            yield ""
            at = end

    def _edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, new text) of what changes; the new text is never empty."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        kinds = self._kinds.take(points)
        if not kinds.all():
            for code in np.unique(points[kinds == 0]).tolist():
                self._kinds[code] = _STABLE if self._normalizer.is_stable(chr(code)) else _UNSTABLE
            kinds = self._kinds.take(points)
        unstable = np.concatenate(([False], kinds == _UNSTABLE, [False]))
        edges = np.flatnonzero(unstable[1:] != unstable[:-1])
        starts, ends = edges[::2], edges[1::2]
        changes = self._changes(text, points, starts, ends)
        for start, end in zip(starts[changes].tolist(), ends[changes].tolist(), strict=True):
            start = max(start - 1, 0)
            segment = text[start:end]
            normalized = self._normalizer.apply(segment)
            if normalized != segment:
                yield start, end, normalized

    def _changes(
        self, text: str, points: NDArray[np.uint32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Of each run whether it may change: of short runs with the same text the normalizer is asked once."""
        out = np.ones(len(starts), dtype=np.bool_)
        sizes = ends - starts
        short = np.flatnonzero((sizes <= 2) & (starts > 0))
        if not len(short):
            return out
        at, stop = starts[short], ends[short]
        # three code points of 21 bits; NUL is stable, so that it ends a run
        keys = points[at - 1].astype(np.uint64) << np.uint64(42)
        keys |= points[at].astype(np.uint64) << np.uint64(21)
        keys |= np.where(stop - at == 2, points[stop - 1], 0).astype(np.uint64)
        _, first, same = np.unique(keys, return_index=True, return_inverse=True)
        segments = [text[a - 1 : b] for a, b in zip(at[first].tolist(), stop[first].tolist(), strict=True)]
        changed = np.array([self._normalizer.apply(segment) != segment for segment in segments], dtype=np.bool_)
        out[short] = changed[same]
        return out
