"""Bytes of many ids: the bytes of each id that was ever met, laid end to end, and one gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ByteGather", "as_ids"]

_BLOCK = 1 << 13  # ids whose bytes are gathered at a time, so that the places stay in the cache
_BYTES = 1 << 22  # bytes that are gathered at a time: each has a place of 8 bytes, and pieces may be long


def as_ids(ids: Any) -> NDArray[np.int64] | None:
    """Ids as an array; None if they are not plain integers, for which there is the scalar path."""
    try:
        array = np.asarray(ids)
    except (OverflowError, ValueError):
        return None
    return array.astype(np.int64, copy=False) if array.ndim == 1 and array.dtype.kind == "i" else None


class _Known:
    """Bytes of some ids; never changed once it is made."""

    def __init__(self, begins: NDArray[np.int64], sizes: NDArray[np.int32], blob: NDArray[np.uint8]) -> None:
        self.begins = begins
        self.sizes = sizes  # -1: not met
        self.blob = blob


class ByteGather:
    """Ids to bytes.

    Args:
        piece: bytes of an id.
        size: number of ids.
    """

    def __init__(self, piece: Callable[[int], bytes], size: int) -> None:
        self._piece = piece
        self._size = size
        self._known = _Known(
            np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int32), np.zeros(0, dtype=np.uint8)
        )

    def join(self, ids: NDArray[np.int64]) -> bytes | None:
        """The bytes of all ids end to end; None if some are out of range."""
        if not len(ids):
            return b""
        if int(ids.min()) < 0 or int(ids.max()) >= self._size:
            return None
        known = self._known
        out = []
        for at in range(0, len(ids), _BLOCK):
            some = ids[at : at + _BLOCK]
            sizes = known.sizes.take(some)
            if int(sizes.min()) < 0:
                new = ids[at:][known.sizes.take(ids[at:]) < 0]
                known = self._known = self._more(known, np.unique(new).tolist())  # of two threads the last one's stays
                sizes = known.sizes.take(some)
            out.append(_gather(known, some, sizes))
        return b"".join(out)

    def _more(self, known: _Known, new: Sequence[int]) -> _Known:
        pieces = [self._piece(token) for token in new]
        sizes, begins = known.sizes.copy(), known.begins.copy()
        lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        sizes[new] = lengths
        begins[new] = len(known.blob) + np.cumsum(lengths) - lengths
        return _Known(begins, sizes, np.append(known.blob, np.frombuffer(b"".join(pieces), dtype=np.uint8)))


def _gather(known: _Known, ids: NDArray[np.int64], sizes: NDArray[np.int32]) -> bytes:
    if not int(sizes.min()):
        some = sizes > 0
        ids, sizes = ids[some], sizes[some]
        if not len(ids):
            return b""
    ends = np.cumsum(sizes, dtype=np.int64)
    begins = known.begins.take(ids)
    if ends[-1] > _BYTES:
        if len(ids) == 1:
            begin = int(begins[0])
            return known.blob[begin : begin + int(sizes[0])].tobytes()
        half = len(ids) // 2
        return _gather(known, ids[:half], sizes[:half]) + _gather(known, ids[half:], sizes[half:])
    # a byte's place is the one behind the byte before it, but where an id begins
    places = np.ones(int(ends[-1]), dtype=np.int64)
    places[0] = begins[0]
    jumps = begins[1:] - begins[:-1]
    jumps -= sizes[:-1] - 1
    places[ends[:-1]] = jumps
    np.cumsum(places, out=places)
    return known.blob.take(places).tobytes()
