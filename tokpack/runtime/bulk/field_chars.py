"""What becomes of single characters: where fields begin and end, and what the normalizers make of each.

A character is *free* if the normalizers make the same of it whatever is beside it. Fields of free characters are
normalized by tables; a character is asked for when it is first met.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALONE", "CAREFUL", "GAP", "INSIDE", "NEW", "START", "FieldChars"]

# part of a field; a field of its own; between fields; no boundary beside it; a run of it, or each, begins a field
INSIDE, ALONE, GAP, CAREFUL, START, EACH = range(6)
NEW = 255  # not met yet
_MANY = 32  # characters for which arrays pay off
_BOUND = 255  # code points that a character may become


class FieldChars:
    """Tables by code point.

    Args:
        ask: (code, text of a free character) of a character; None in place of the text of one that is not free.
        plain: codes of characters that become themselves, NEW for those that are to be asked for; None for no such.

    Attributes:
        codes: INSIDE, ALONE, GAP, CAREFUL, START or EACH; other values for what was not met, uint8 ``[0x110000]``.
    """

    def __init__(
        self,
        ask: Callable[[str], tuple[int, str | None]],
        plain: Callable[[NDArray[np.uint32]], NDArray[np.uint8]] | None = None,
    ) -> None:
        self._ask = ask
        self._plain = plain
        self._lock = threading.Lock()
        self.codes = np.full(0x110000, NEW, dtype=np.uint8)
        self._begins = np.zeros(0x110000, dtype=np.int32)
        self._sizes = np.zeros(0x110000, dtype=np.uint8)
        self._pool = np.zeros(0, dtype=np.int32)

    def codes_of(self, points: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The codes of a text."""
        codes = self.codes.take(points)
        new = np.flatnonzero(codes == NEW)
        if len(new):
            self._learn(points.take(new))
            codes[new] = self.codes.take(points.take(new))
        return codes

    def _learn(self, points: NDArray[np.uint32]) -> None:
        # threads that read meanwhile see a character as new, or all that there is about it: its code comes last
        with self._lock:
            unknown = np.unique(points)
            unknown = unknown[self.codes.take(unknown) == NEW]
            if self._plain is not None and len(unknown) >= _MANY:
                unknown = self._learn_plain(unknown, self._plain(unknown))
            new = unknown.tolist()
            asked = [self._ask(chr(code)) for code in new]
            texts = [text if text is not None and len(text) <= _BOUND else None for _, text in asked]
            joined = "".join(text for text in texts if text is not None)
            begin = len(self._pool)
            points_of = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<i4")
            self._pool = np.append(self._pool, points_of)
            for code, text in zip(new, texts, strict=True):
                self._begins[code] = -1 if text is None else begin
                self._sizes[code] = 0 if text is None else len(text)
                begin += len(text or "")
            self.codes[new] = [code for code, _ in asked]

    def _learn_plain(self, points: NDArray[np.uint32], codes: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Those that are left to be asked for."""
        plain = codes != NEW
        known = points[plain]
        begin = len(self._pool)
        self._pool = np.append(self._pool, known.astype(np.int32))
        self._begins[known] = np.arange(begin, begin + len(known))
        self._sizes[known] = 1
        self.codes[known] = codes[plain]
        rest: NDArray[np.uint32] = points[~plain]
        return rest

    def normalized(
        self, points: NDArray[np.uint32], sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
        """(code points of fields laid end to end, how many each has, whether all its characters are free).

        A field that has others has something that means nothing. START and EACH are left out at the beginning of a
        field, and are not free elsewhere; ALONE is free as the only character of a field.
        """
        codes = self.codes_of(points)
        begins = self._begins.take(points)
        pool = self._pool
        counts = self._sizes.take(points).astype(np.int64)
        bad = begins < 0
        alone = codes == ALONE
        if alone.any():
            bad |= alone & (np.repeat(sizes, sizes) > 1)
        starting = codes >= START
        places = np.cumsum(sizes) - sizes
        if starting.any():
            before = np.maximum.accumulate(np.where(starting, -1, np.arange(len(points))))
            leading = starting & (before < np.repeat(places, sizes))
            bad = (bad | starting) & ~leading
            counts[starting] = 0
        free = np.ones(len(sizes), dtype=np.bool_)
        wrong = np.flatnonzero(bad)
        free[np.searchsorted(places, wrong, side="right") - 1] = False
        if len(counts) and int(counts.min()) == 1 == int(counts.max()):
            return pool.take(begins), sizes, free
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        out = pool.take(np.repeat(np.maximum(begins, 0) - (ends - counts), counts) + np.arange(total))
        edges = np.concatenate(([0], ends)).take(np.append(places, len(points)))
        return out, np.diff(edges), free
