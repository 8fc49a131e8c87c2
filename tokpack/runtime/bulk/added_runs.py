"""Added tokens that are runs of one character, such as line feeds: found by arrays, since every line has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.segments import Given
from tokpack.runtime.hf.added import AddedMatcher, AddedToken

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AddedRuns"]


class AddedRuns:
    """The tokens of a pass of which none looks at what is beside it; made by :meth:`of`.

    Args:
        families: (character, ids of 0, 1, 2 … of it; -1 for those below the shortest).
        others: the rest.
    """

    def __init__(self, families: Sequence[tuple[str, NDArray[np.int32]]], others: AddedMatcher) -> None:
        self._families = families
        self._others = others

    @classmethod
    def of(cls, tokens: Sequence[AddedToken]) -> AddedRuns | None:
        """What finds these tokens; None if there are no runs, or places where two of them could compete."""
        unique = {token.pattern: token for token in tokens if token.pattern}
        if any(token.lstrip or token.rstrip or token.single_word for token in unique.values()):
            return None
        runs: dict[str, dict[int, int]] = {}
        others: list[AddedToken] = []
        for pattern, token in unique.items():
            if pattern == pattern[0] * len(pattern) and not token.special:
                runs.setdefault(pattern[0], {})[len(pattern)] = token.id
            else:
                others.append(token)
        families = []
        taken = {char for token in others for char in token.pattern}
        for char, ids in runs.items():
            low, high = min(ids), max(ids)
            if char in taken or len(ids) != high - low + 1:
                return None
            table = np.full(high + 1, -1, dtype=np.int32)
            table[list(ids)] = list(ids.values())
            families.append((char, table))
        return cls(families, AddedMatcher(others, _no, _no)) if families else None

    def find(self, text: str, skip_special: bool) -> Given:
        """The tokens of a text, leftmost and longest."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        parts = [Given.of(self._others.spans(text, skip_special))]
        parts += [_runs(points == np.uint32(ord(char)), ids) for char, ids in self._families]
        starts = np.concatenate([part.starts for part in parts])
        order = np.argsort(starts, kind="stable")
        ends = np.concatenate([part.ends for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        return Given(starts.take(order), ends.take(order), ids.take(order))


def _no(_: str) -> bool:
    return False


def _runs(equal: NDArray[np.bool_], ids: NDArray[np.int32]) -> Given:
    """Each run in tokens of the largest size, and one of what is left if there is one."""
    padded = np.concatenate(([False], equal, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    starts, sizes = edges[::2], edges[1::2] - edges[::2]
    largest = len(ids) - 1
    if len(sizes) and int(sizes.max()) > largest:
        counts = -(-sizes // largest)
        skip = np.cumsum(counts) - counts
        shift = (np.arange(int(counts.sum())) - np.repeat(skip, counts)) * largest
        starts, sizes = np.repeat(starts, counts) + shift, np.minimum(np.repeat(sizes, counts) - shift, largest)
    found = ids.take(sizes)
    some = np.flatnonzero(found >= 0)
    return Given(starts.take(some), (starts + sizes).take(some), found.take(some))
