"""Words as numbers: exact keys of 8, 16 or 32 bytes.

A word shorter than its key is filled up with bytes 0xFF, which no UTF-8 holds (surrogates encoded on their own
included), so that keys of different words differ whatever the words are; NUL bytes need no care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIMITS", "PADDING", "Overlap", "hashes", "padded"]

LIMITS = (8, 16, 32)  # bytes of a key
PADDING = 40  # bytes behind the text that a key may read

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
# bits to set in an 8-byte word of which n bytes count
_FILL = np.array([0xFFFFFFFFFFFFFFFF << (8 * n) & 0xFFFFFFFFFFFFFFFF for n in range(8)] + [0], dtype=np.uint64)
_MIX = tuple(np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
_SHIFT = np.uint64(32)


def padded(raw: bytes) -> NDArray[np.uint8]:
    """The bytes of a text with room for :class:`Overlap` behind them: uint8 ``[n + PADDING]``."""
    return np.frombuffer(raw + bytes(PADDING), dtype=np.uint8)


class Overlap:
    """The 8 bytes at every place of a text.

    Args:
        buffer: uint8 ``[n + PADDING]``.
    """

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        count = len(buffer) - 8
        # copied once: a gather from places that are not aligned takes five times as long
        self._words = np.ascontiguousarray(np.ndarray((count,), "<u8", buffer, strides=(1,)))

    def keys(self, starts: NDArray[np.int64], sizes: NDArray[np.int64], limit: int) -> tuple[NDArray[np.uint64], ...]:
        """Keys of words of at most ``limit`` bytes: ``limit / 8`` arrays, uint64 ``[n]``."""
        if limit == 8:
            return (self._words.take(starts) | _FILL.take(sizes),)
        parts = []
        for at in range(0, limit, 8):
            fill = _FILL.take(np.clip(sizes - at, 0, 8))
            parts.append(self._words.take(starts + at) | fill)
        return tuple(parts)


def hashes(key: tuple[NDArray[np.uint64], ...], bits: int) -> NDArray[np.int64]:
    """Slot of each key in a table of ``2 ** bits`` slots, int64 ``[n]``."""
    mixed = key[0] * _MIX[0]
    for part, factor in zip(key[1:], _MIX[1:], strict=False):
        mixed ^= mixed >> _SHIFT
        mixed += part
        mixed *= factor
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX[1]
    mixed >>= np.uint64(64 - bits)
    slots: NDArray[np.int64] = mixed.view(np.int64)
    return slots
