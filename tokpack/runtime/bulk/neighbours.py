"""What a character means after the one before it: one byte of flags for each pair of character codes.

A family of patterns is a table of these pairs. Where a word begins follows from the flags of a character and its
neighbours; what depends on more is put right by :mod:`tokpack.runtime.bulk.split` where a flag says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.classes import (
    BLANK,
    BOTH,
    HAN,
    HAN_SIGN,
    LINE,
    LOWER,
    NUMBER,
    OTHER,
    PUNCT,
    REST,
    SPACE,
    UPPER,
)
from tokpack.runtime.bulk.known import Rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EITHER", "LINE_AFTER_BLANK", "NUMBERS", "begins_of", "flags_of", "pair_table"]

START = 1  # a word begins
EITHER = 2  # upper case after a letter of either case; in the family deepseek another letter after one of ASCII
AFTER_SIGN, SIGNS = 4, 8  # a word begins at a letter after a sign, if this does not begin its own word
AFTER_BLANK, BLANKS = 16, 32  # a word begins at a blank after a blank, if something else comes next; at REST, too
LINE_AFTER_BLANK = 64
NUMBERS = 128  # a number after a number
_FIRST = 15  # code before the text
_WHITE, _LETTERS = (BLANK, SPACE), (LOWER, UPPER, BOTH)


def pair_table(rules: Rules) -> bytes:
    """Flags of ``code before << 4 | code``, for ``bytes.translate``."""
    flags = {"gpt2": _gpt2, "deepseek": _deepseek}.get(rules.family, _cl100k)
    table = bytearray(256)
    for code in range(16):
        table[_FIRST << 4 | code] = START
        for before in range(_FIRST):
            table[before << 4 | code] = flags(before, code, rules)
    return bytes(table)


def _gpt2(before: int, code: int, rules: Rules) -> int:
    """``?L+ | ?N+ | ?O+ | \\s+(?!\\S) | \\s+``; letters have one code, white space has two."""
    white, white_before = code in _WHITE, before in _WHITE
    number, number_before = code == NUMBER, before == NUMBER
    if rules.alone and (number or number_before):
        return START
    if white:
        return BLANKS if white_before else START
    # a space goes with what follows; the last of a run of white space is cut off
    return (AFTER_BLANK if white_before else 0) | (START if code != before and before != SPACE else 0)


def _cl100k(before: int, code: int, rules: Rules) -> int:
    """``X?L+ | N{1,3} | ?O+NL* | \\s*NL+ | \\s+(?!\\S) | \\s+`` without contractions; X is no line end."""
    blank, blank_before = code in _WHITE, before in _WHITE
    flags = 0
    if blank:
        flags |= BLANKS if blank_before else START
    elif code == LINE:
        flags |= START if before in (*_LETTERS, NUMBER) else LINE_AFTER_BLANK if blank_before else 0
    else:
        flags |= AFTER_BLANK if blank_before else 0
    if code in _LETTERS:
        flags |= START if before in (NUMBER, LINE) or (before == LOWER and code == UPPER) else 0
        flags |= AFTER_SIGN if before == OTHER else EITHER if (before, code) == (BOTH, UPPER) else 0
    elif code == NUMBER:
        flags |= START if rules.digits == 1 or before != NUMBER else 0
        flags |= NUMBERS if before == NUMBER else 0
    elif code == OTHER:
        flags |= SIGNS if before in (OTHER, SPACE) else START
    return flags


def _deepseek(before: int, code: int, rules: Rules) -> int:
    """``N{1,3}``, then ``HAN+``, then ``PA+ | X?L+ | ?S+NL* | \\s*NL+ | \\s+(?!\\S) | \\s+``, one after the other.

    P are signs of ASCII, A its letters, X is neither a letter nor a sign nor a line end. What matches nothing is cut
    out as it stands, but the last of it, before a letter, is X.
    """
    if code == NUMBER:
        return NUMBERS if before == NUMBER else START
    if before in (NUMBER, HAN, HAN_SIGN) or code in (HAN, HAN_SIGN):
        return 0 if before == code else START
    blank_before = before in _WHITE
    if code in _WHITE:
        return BLANKS if blank_before else START
    if code == LINE:
        return START if before in (*_LETTERS, REST) else LINE_AFTER_BLANK if blank_before else 0
    flags = AFTER_BLANK if blank_before else 0
    if code == REST:
        return flags | (BLANKS if before == REST else START)
    if code in _LETTERS:
        if before == REST:
            return AFTER_BLANK
        if before == PUNCT:
            return AFTER_SIGN if code == LOWER else START
        return flags | (START if before in (LINE, OTHER) else EITHER if (before, code) == (LOWER, UPPER) else 0)
    return flags | (SIGNS if before in (OTHER, PUNCT, SPACE) else START)


def flags_of(codes: NDArray[np.uint8], table: bytes) -> NDArray[np.uint8]:
    """Flags of each character, ``[n]``."""
    pairs = bytearray(len(codes))
    view = np.frombuffer(pairs, dtype=np.uint8)
    np.left_shift(codes[:-1], 4, out=view[1:])
    view[0] = _FIRST << 4
    view |= codes
    return np.frombuffer(pairs.translate(table), dtype=np.uint8)


def begins_of(flags: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether a word begins at each character, but for what depends on more than its neighbours."""
    both = flags[:-1] >> 1
    both &= flags[1:]  # AFTER_SIGN behind SIGNS, AFTER_BLANK behind BLANKS
    found = flags & START
    found[1:] |= both & AFTER_SIGN
    both &= AFTER_BLANK
    found[:-1] |= both
    begins: NDArray[np.bool_] = found != 0
    return begins
