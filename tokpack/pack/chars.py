"""Character actions: what normalization and word splitting do to each code point, as one two-stage table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tokpack.unicode import llamacpp
from tokpack.unicode.llamacpp import CodepointFlag

__all__ = ["ALONE", "BREAK", "CODE_POINT", "DROP", "whitespace_table", "wpm_table"]

CODE_POINT = (1 << 21) - 1  # bits that turn a code point into the one that takes its place, by xor
BREAK = 1 << 21  # ends a word and vanishes
ALONE = 1 << 22  # is a word of its own
DROP = 1 << 23  # vanishes within a word

_SIZE = 0x110000
# ``is_chinese_char`` of llm_tokenizer_wpm_session, with its 2B920 where others have 2B820
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

Table = tuple[NDArray[np.uint16], NDArray[np.uint32]]


def _two_stage(table: NDArray[np.uint32]) -> Table:
    blocks, index = np.unique(table.reshape(-1, 256), axis=0, return_inverse=True)
    return index.astype(np.uint16).reshape(-1), blocks


def _simple_lower(table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    lower = np.arange(_SIZE, dtype=np.uint32)
    pairs = llamacpp.lower()
    lower[pairs[:, 0]] = pairs[:, 1]
    return lower[table]


@lru_cache(maxsize=4)
def wpm_table(*, strip_accents: bool, lowercase: bool) -> Table:
    """llama.cpp's WPM (``llm_tokenizer_wpm_session::preprocess``).

    First the first code point of the canonical decomposition (if accents are stripped), then by its category: white
    space ends a word; NUL, U+FFFD, controls and (if accents are stripped) marks vanish; punctuation, ASCII symbols and
    Chinese characters stand alone; the rest is lower-cased by the simple map.
    """
    table = llamacpp.nfd_first() if strip_accents else np.arange(_SIZE, dtype=np.uint32)
    bits = llamacpp.flags()[table]
    alone = (bits & CodepointFlag.PUNCTUATION) != 0
    alone |= (table < 0x7F) & ((bits & CodepointFlag.SYMBOL) != 0)
    for first, last in _CHINESE:
        alone |= (table >= first) & (table <= last)
    drop = (table == 0) | (table == 0xFFFD) | ((bits & CodepointFlag.CONTROL) != 0)
    if strip_accents:
        drop |= (bits & CodepointFlag.ACCENT_MARK) != 0
    space = np.isin(table, llamacpp.whitespace())
    result = _simple_lower(table) if lowercase else table.copy()
    result ^= np.arange(_SIZE, dtype=np.uint32)
    result[alone] |= ALONE
    result[drop] = DROP
    result[space] = BREAK
    return _two_stage(result)


@lru_cache(maxsize=2)
def whitespace_table(*, lowercase: bool) -> Table:
    """llama.cpp's model ``whitespace``: cut at White_Space, lower-case by the simple map if asked."""
    table = np.arange(_SIZE, dtype=np.uint32)
    result = table ^ (_simple_lower(table) if lowercase else table)
    result[llamacpp.whitespace()] = BREAK
    return _two_stage(result)
