"""llama.cpp's Unicode 15.1 tables (``src/unicode-data.cpp``) and the one-byte classes that it derives from them."""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HAN",
    "HAN_OTHER",
    "LETTER",
    "MARK",
    "NUMBER",
    "OTHER",
    "PUNCTUATION",
    "SYMBOL",
    "CodepointFlag",
    "class_table",
    "flags",
    "lower",
    "nfd_first",
    "whitespace",
]

NAME = "llamacpp-15.1"
_SIZE = 0x110000
_BLOCK = 256

# one byte per non-ASCII code point (``src/unicode.cpp``, k_ucat_cpt); the two for Han are ours
OTHER, NUMBER, LETTER, PUNCTUATION, MARK, SYMBOL, HAN, HAN_OTHER = range(0xD0, 0xD8)
SPACE = 0x0B
# ``unicode_cpt_is_han``: fixed blocks, assigned or not
_HAN_BLOCKS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)


class CodepointFlag(IntFlag):
    """``unicode_cpt_flags``."""

    UNDEFINED = 0x01
    NUMBER = 0x02
    LETTER = 0x04
    SEPARATOR = 0x08
    ACCENT_MARK = 0x10
    PUNCTUATION = 0x20
    SYMBOL = 0x40
    CONTROL = 0x80


@lru_cache(maxsize=1)
def _data() -> dict[str, NDArray[np.uint32]]:
    with np.load(Path(__file__).with_name("llamacpp_15_1.npz")) as data:
        return {name: data[name] for name in data.files}


@lru_cache(maxsize=1)
def flags() -> NDArray[np.uint8]:
    """Category flags of each code point, uint8 ``[0x110000]``."""
    ranges = _data()["ranges_flags"]
    starts = ranges[:, 0].astype(np.int64)
    lengths = np.diff(np.append(starts, _SIZE))
    return np.repeat(ranges[:, 1].astype(np.uint8), lengths)


@lru_cache(maxsize=1)
def whitespace() -> NDArray[np.uint32]:
    """The code points with White_Space, ascending."""
    return _data()["whitespace"]


@lru_cache(maxsize=2)
def class_table(*, han: bool = False) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Class byte of each code point as a two-stage table.

    ASCII stands for itself, other White_Space is 0x0B, the rest one of the class bytes; with ``han`` the Han blocks
    have classes of their own (assigned letters, and the rest).

    Returns (index, blocks): uint16 ``[0x110000 / 256]`` and uint8 ``[n, 256]``; the class of code point c is
    ``blocks[index[c >> 8], c & 255]``.
    """
    table = np.full(_SIZE, OTHER, dtype=np.uint8)
    bits = flags()
    for flag, value in (
        (CodepointFlag.NUMBER, NUMBER),
        (CodepointFlag.LETTER, LETTER),
        (CodepointFlag.PUNCTUATION, PUNCTUATION),
        (CodepointFlag.ACCENT_MARK, MARK),
        (CodepointFlag.SYMBOL, SYMBOL),
    ):
        table[(bits & flag) != 0] = value
    if han:
        for first, last in _HAN_BLOCKS:
            block = table[first : last + 1]
            block[:] = np.where(block == LETTER, HAN, HAN_OTHER)
    table[whitespace()] = SPACE
    table[:128] = np.arange(128)
    blocks, index = np.unique(table.reshape(-1, _BLOCK), axis=0, return_inverse=True)
    return index.astype(np.uint16).reshape(-1), blocks


def lower() -> NDArray[np.uint32]:
    """Simple lower-case map, uint32 ``[n, 2]``: code point, mapping."""
    return _data()["lower"]


@lru_cache(maxsize=1)
def nfd_first() -> NDArray[np.uint32]:
    """First code point of the canonical decomposition of each code point, uint32 ``[0x110000]``.

    Only the first: that is what ``unicode_cpts_normalize_nfd`` does; a Hangul syllable becomes its leading jamo.
    """
    table = np.arange(_SIZE, dtype=np.uint32)
    for first, last, mapping in _data()["nfd"].tolist():
        table[first : last + 1] = mapping
    return table
