"""Words as numbers: exact keys of 8, 16 or 32 bytes.

A word shorter than its key is filled up with bytes 0xFF, which no UTF-8 holds (surrogates encoded on their own
included), so that keys of different words differ whatever the words are; NUL bytes need no care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LIMITS", "NO_WORD", "PADDING", "Keys", "Overlap", "hashes", "padded", "slots"]

LIMITS = (8, 16, 32)  # bytes of a key
PADDING = 40  # bytes behind the text that a key may read

Keys = tuple["NDArray[np.uint64]", ...]

NO_WORD = np.uint64(0xFFFFFFFFFFFFFFFF)
# bits to set in an 8-byte word of which n bytes count
_FILL = np.array([0xFFFFFFFFFFFFFFFF << (8 * n) & 0xFFFFFFFFFFFFFFFF for n in range(8)] + [0], dtype=np.uint64)
# the same for a word of more than 8 bytes: its key is that of no word
_FILL_LONG = np.append(_FILL, NO_WORD)
_MIX = tuple(np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
_SHIFT = np.uint64(32)


def padded(raw: bytes) -> NDArray[np.uint8]:
    """The bytes of a text with room for :class:`Overlap` behind them: uint8 ``[n + PADDING]``."""
    return np.frombuffer(raw + bytes(PADDING), dtype=np.uint8)


class Overlap:
    """The 8 bytes at every place of a text.

    Args:
        buffer: uint8 ``[n + PADDING]``.
        room: of another text before: its place is used again, which is still in the cache.
    """

    def __init__(self, buffer: NDArray[np.uint8], room: Overlap | None = None) -> None:
        count = len(buffer) - 8
        self._whole: NDArray[np.uint64] = room._whole if room is not None else np.empty(0, dtype=np.uint64)
        if len(self._whole) < count:
            self._whole = np.empty(count, dtype=np.uint64)
        self._words = self._whole[:count]
        # copied once: a gather from places that are not aligned takes five times as long
        np.copyto(self._words, np.ndarray((count,), "<u8", buffer, strides=(1,)))

    def keys(self, starts: NDArray[np.int64], sizes: NDArray[np.int64], limit: int) -> Keys:
        """Keys of words of at most ``limit`` bytes: ``limit / 8`` arrays, uint64 ``[n]``.

        With a limit of 8, longer words have the key NO_WORD.
        """
        if limit == 8:
            key = self._words.take(starts)
            key |= _FILL_LONG.take(sizes, mode="clip")
            return (key,)
        parts = []
        for at in range(0, limit, 8):
            part = self._words.take(starts + at)
            part |= _FILL.take(sizes - at, mode="clip")
            parts.append(part)
        return tuple(parts)


def slots(key: Keys, bits: int) -> NDArray[np.int64]:
    """As :func:`hashes`, in less time and not as even."""
    mixed = key[0] * _MIX[0]
    for part, factor in zip(key[1:], _MIX[1:], strict=False):
        mixed ^= part
        mixed *= factor
    mixed >>= np.uint64(64 - bits)
    found: NDArray[np.int64] = mixed.view(np.int64)
    return found


def hashes(key: Keys, bits: int) -> NDArray[np.int64]:
    """Slot of each key in a table of ``2 ** bits`` slots, int64 ``[n]``."""
    mixed = key[0] * _MIX[0]
    for part, factor in zip(key[1:], _MIX[1:], strict=False):
        mixed ^= mixed >> _SHIFT
        mixed += part
        mixed *= factor
    mixed ^= mixed >> _SHIFT
    mixed *= _MIX[1]
    mixed >>= np.uint64(64 - bits)
    found: NDArray[np.int64] = mixed.view(np.int64)
    return found
