"""Where words begin, for the families of patterns that most byte-level vocabularies have, as operations on arrays.

Each family is written down as what a character means after the one before it; what depends on more than the neighbours
is rare and put right afterwards at the few places concerned: blanks before a line end, long numbers, contractions,
cases. ``tests/property/test_bulk_split.py`` compares with the patterns themselves.

A text is cut at sure boundaries into chunks that fit the cache; see :func:`chunks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tokpack.runtime.bulk.classes import (
    BLANK,
    BOTH,
    LINE,
    LOWER,
    MARK,
    NUMBER,
    ODD,
    OTHER,
    PUNCT,
    SPACE,
    UPPER,
    CharCodes,
)
from tokpack.runtime.bulk.known import Rules
from tokpack.runtime.bulk.neighbours import EITHER, LINE_AFTER_BLANK, NUMBERS, begins_of, flags_of, pair_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Codes = NDArray[np.uint8]
    Points = NDArray[np.unsignedinteger]
    Places = NDArray[np.int64]

__all__ = ["CHUNK", "WordStarts", "chunks"]

CHUNK = 1 << 17  # characters
# a space between two letters, or a letter before a full stop or comma: a boundary in every family, whatever is around
_SURE = re.compile(r"(?<=[A-Za-z]) (?=[A-Za-z])|(?<=[A-Za-z一-龥])[,.;。，、](?!')")
_APOSTROPHE, _SLASH = 0x27, 0x2F
_FEW = 200  # line ends behind blanks up to which each is looked at on its own
_LINE, _BLANKS = bytes([LINE]), bytes([BLANK, SPACE])


def chunks(text: str, size: int = CHUNK) -> Iterator[str]:
    """Parts of ``text`` that are cut into words each on its own, most of them of ``size`` characters or little more."""
    at, end = 0, len(text)
    while end - at > size + (size >> 1):
        found = _SURE.search(text, at + size)
        if found is None:
            break
        yield text[at : found.start()]
        at = found.start()
    if at < end:
        yield text[at:] if at else text


class WordStarts:
    """The splitter of a pack.

    Args:
        rules: the family and its options.
        codes: the classes.
    """

    def __init__(self, rules: Rules, codes: CharCodes) -> None:
        self._rules = rules
        self._codes = codes
        self._pairs = pair_table(rules)

    def starts(self, text: str, *, last: bool = True) -> Places | None:
        """As :meth:`begins`, the places."""
        found = self.begins(text, last=last)
        return None if found is None else np.flatnonzero(found[0])

    def begins(self, text: str, *, last: bool = True) -> tuple[Bools, Points] | None:
        """(whether a word begins at each character, code points); None if the scalar splitter has to be asked.

        Args:
            text: a chunk, not empty, as :func:`chunks` gives it.
            last: whether it ends the whole text.
        """
        codes, points = self._codes.of(text)
        if self._codes.odd and (codes == ODD).any():
            return None
        begins = _FAMILIES[self._rules.family](codes, points, self._rules, self._codes, self._pairs)
        if begins is None:
            return None
        if self._rules.last_run and last:
            _one_last_run(begins, codes)
        return begins, points


def _gpt2(codes: Codes, points: Points, rules: Rules, table: CharCodes, pairs: bytes) -> Bools:
    begins = begins_of(flags_of(codes, pairs))
    _contractions_gpt2(begins, codes, points)
    return begins


def _contractions_gpt2(begins: Bools, codes: Codes, points: Points) -> None:
    found = points == _APOSTROPHE
    found &= begins
    at = np.flatnonzero(found[:-1] & (codes[1:] == LOWER))
    if not len(at):
        return
    first, second = points[at + 1], points[np.minimum(at + 2, len(points) - 1)]
    size = np.where(_among(first, b"stmd"), 2, 0)
    size[_pair(first, second) & (at + 2 < len(points))] = 3
    at, size = at[size > 0], size[size > 0]
    begins[at + 1] = False
    begins[(at + 2)[size == 3]] = False
    _set(begins, at + size)


def _cl100k(codes: Codes, points: Points, rules: Rules, table: CharCodes, pairs: bytes) -> Bools:
    begins, _ = _common(codes, rules, pairs)
    found = points == _APOSTROPHE
    found &= begins
    at = np.flatnonzero(found[:-1] & (codes[1:] <= BOTH))
    if len(at):
        ends = at + _contraction_size(points, at, table)
        _set(begins, ends[ends > at])
    return begins


def _common(codes: Codes, rules: Rules, pairs: bytes) -> tuple[Bools, Codes]:
    """(where words begin, flags), without contractions and letters of either case."""
    flags = flags_of(codes, pairs)
    begins = begins_of(flags)
    ends = np.flatnonzero(flags & LINE_AFTER_BLANK)
    if len(ends):
        _blanks_before_lines(begins, codes, ends)
    if rules.digits > 1:
        _long_numbers(begins, flags >= NUMBERS, rules.digits)
    return begins, flags


def _blanks_before_lines(begins: Bools, codes: Codes, ends: Places) -> None:
    """``\\s*[\\r\\n]+`` reaches to the last line end of a run; only line ends right behind signs belong to these."""
    if len(ends) <= _FEW:
        _few_blanks_before_lines(begins, codes.tobytes(), ends.tolist())
        return
    blank = (codes == BLANK) | (codes == SPACE)
    first = np.flatnonzero(blank[1:] & ~blank[:-1]) + 1  # where blanks begin; those at 0 begin the text
    if not len(first):
        return
    which = np.searchsorted(first, ends, side="right") - 1
    starts = first[which[which >= 0]]
    starts = starts[codes[starts - 1] == LINE]
    if len(starts):
        line = codes == LINE
        lines = np.flatnonzero(line & ~np.concatenate(([False], line[:-1])))
        start = lines[np.searchsorted(lines, starts - 1, side="right") - 1]
        after_sign = (start > 0) & ((codes[start - 1] == OTHER) | (codes[start - 1] == PUNCT))
        begins[starts[~after_sign]] = False


def _few_blanks_before_lines(begins: Bools, codes: bytes, ends: list[int]) -> None:
    for end in ends:
        line = codes.rfind(_LINE, 0, end)
        if line < 0 or codes[line + 1 : end].strip(_BLANKS):
            continue
        start = line
        while start > 0 and codes[start - 1] == LINE:
            start -= 1
        if start == 0 or codes[start - 1] not in (OTHER, PUNCT):
            begins[line + 1] = False


def _long_numbers(begins: Bools, numbers: Bools, digits: int) -> None:
    """Words of numbers have so many at most; ``numbers`` says which come after a number."""
    more = numbers[digits:].copy()  # numbers with `digits` numbers before them
    for back in range(1, digits):
        more &= numbers[digits - back : len(numbers) - back]
    at = np.flatnonzero(more) + digits
    if len(at):
        new = np.flatnonzero(np.concatenate(([True], at[1:] != at[:-1] + 1)))
        start = np.repeat(at[new] - digits, np.diff(np.append(new, len(at))))
        begins[at[(at - start) % digits == 0]] = True


def _o200k(codes: Codes, points: Points, rules: Rules, table: CharCodes, pairs: bytes) -> Bools | None:
    if table.marks and (codes == MARK).any():
        if ((points[1:] == _SLASH) & (codes[:-1] == LINE)).any():
            return None  # whether marks behind such a slash are letters depends on what is far to the left
        codes = _place_marks(codes)
    begins, flags = _common(codes, rules, pairs)
    at = np.flatnonzero(flags & EITHER)
    unsure = bool(len(at))
    if unsure:
        _cases(begins, codes, at)
    _tails(begins, codes, points)
    if not rules.suffixes:
        return begins
    ends = _suffixes(begins, codes, points, table)
    ends = ends[ends < len(codes)]
    if unsure and (codes[ends] == BOTH).any():
        return None  # a word begins behind the contraction, which _cases did not know
    return begins


def _deepseek(codes: Codes, points: Points, rules: Rules, table: CharCodes, pairs: bytes) -> Bools:
    begins, flags = _common(codes, rules, pairs)
    at = np.flatnonzero(flags & EITHER)
    if len(at):
        # letters of ASCII behind a sign of ASCII are a word without those that follow
        ascii_letter = codes == LOWER
        first = np.flatnonzero(ascii_letter & ~np.concatenate(([False], ascii_letter[:-1])))
        start = first[np.searchsorted(first, at, side="left") - 1]
        signed = (start > 0) & (codes[np.maximum(start - 1, 0)] == PUNCT) & ~begins[start]
        begins[at[signed]] = True
    return begins


def _place_marks(codes: Codes) -> Codes:
    """Marks are letters, but signs where they follow signs that do not begin their word."""
    mark = codes == MARK
    first = np.flatnonzero(mark & ~np.concatenate(([False], mark[:-1])))
    sizes = np.flatnonzero(mark & ~np.concatenate((mark[1:], [False]))) + 1 - first
    one, two = codes[np.maximum(first - 1, 0)], codes[np.maximum(first - 2, 0)]
    after_sign = (first >= 2) & (one == OTHER)
    signs = after_sign & ((two == OTHER) | (two == SPACE))
    for run in np.flatnonzero(after_sign & (two == MARK)).tolist():
        signs[run] = signs[run - 1]  # marks, one sign, marks: the sign goes on a word if the marks before it do
    out: Codes = codes.copy()
    out[mark] = np.repeat(np.where(signs, OTHER, BOTH).astype(np.uint8), sizes)
    return out


def _cases(begins: Bools, codes: Codes, at: Places) -> None:
    """``[U]*[W]+ | [U]+[W]*``: W are lower, U are upper, BOTH are either; ``at`` is where UPPER comes after BOTH."""
    upper = codes == UPPER
    both = codes == BOTH
    # runs of BOTH that end at these places
    first = np.flatnonzero(both & ~np.concatenate(([False], both[:-1])))
    start = first[np.searchsorted(first, at, side="left") - 1]
    after_lower = (start > 0) & (codes[np.maximum(start - 1, 0)] == LOWER)
    begins[at[after_lower]] = True
    at = at[~after_lower]
    if not len(at):
        return
    # the others end a word only if no lower letter follows the letters that are upper or both
    ends = np.flatnonzero(~(upper | both))
    which = np.searchsorted(ends, at)
    stop = np.append(ends, len(codes))[which]
    goes_on = (stop < len(codes)) & (codes[np.minimum(stop, len(codes) - 1)] == LOWER)
    at, stop = at[~goes_on], stop[~goes_on]
    if len(at):
        # before the end of those letters the word goes on to the last that can be lower
        last = np.append(stop[1:] != stop[:-1], True) & (codes[stop - 1] == UPPER)
        begins[at[last]] = True


def _tails(begins: Bools, codes: Codes, points: Points) -> None:
    r"""``O+[\r\n/]*``: slashes behind line ends that belong to signs."""
    slashes = np.flatnonzero((points[1:] == _SLASH) & (codes[:-1] == LINE)) + 1
    if not len(slashes):
        return
    line = codes == LINE
    done, size = 0, len(codes)
    for slash in slashes.tolist():
        if slash < done:
            continue
        start = slash - 1
        while start > 0 and line[start - 1]:
            start -= 1
        if start == 0 or codes[start - 1] != OTHER:
            continue
        at = slash
        while at < size and (line[at] or points[at] == _SLASH):
            begins[at] = False
            at += 1
        if at < size:
            begins[at] = True
            if codes[at] == OTHER and at + 1 < size and codes[at + 1] <= BOTH:
                begins[at + 1] = False  # a sign that begins its word
        done = at


def _suffixes(begins: Bools, codes: Codes, points: Points, table: CharCodes) -> Places:
    """A contraction behind letters goes with them, one for each word. Returns where they end."""
    found = points == _APOSTROPHE
    letter = codes <= BOTH
    found[1:] &= letter[:-1]
    at = np.flatnonzero(found[1:-1] & letter[2:]) + 1
    if not len(at):
        return at
    size = _contraction_size(points, at, table)
    at, size = at[size > 0], size[size > 0]
    close = np.flatnonzero(at[1:] - at[:-1] <= 3)
    if len(close):
        at, size = _every_other(at, size)
    begins[at] = False
    begins[at + 1] = False
    begins[(at + 2)[size == 3]] = False
    _set(begins, at + size)
    return at + size


def _every_other(at: Places, size: Places) -> tuple[Places, Places]:
    """Without contractions right behind another one: those begin words."""
    kept, last = [], -1
    for index, (start, length) in enumerate(zip(at.tolist(), size.tolist(), strict=True)):
        if start != last:
            kept.append(index)
            last = start + length
    return at[kept], size[kept]


def _contraction_size(points: Points, at: Places, table: CharCodes) -> Places:
    """Characters of the contraction at each apostrophe that has a character behind it, 0 for none; in any case."""
    first, second = points[at + 1], points[np.minimum(at + 2, len(points) - 1)]
    size = np.where(table.ends_contraction(first), 2, 0)
    two = _pair(first | 0x20, second | 0x20) & (at + 2 < len(points)) & (first < 128) & (second < 128)
    size[two] = 3
    return size


def _pair(first: NDArray[np.integer], second: NDArray[np.integer]) -> Bools:
    """ll, ve, re."""
    found: Bools = ((first == 0x6C) & (second == 0x6C)) | (((first == 0x76) | (first == 0x72)) & (second == 0x65))
    return found


def _among(points: Points, chars: bytes) -> Bools:
    found: Bools = points == chars[0]
    for char in chars[1:]:
        found |= points == char
    return found


def _set(begins: Bools, at: Places) -> None:
    begins[at[at < len(begins)]] = True


def _one_last_run(begins: Bools, codes: Codes) -> None:
    """White space at the end is one word, but for line ends that belong to signs."""
    white = (codes == BLANK) | (codes == SPACE) | (codes == LINE)
    solid = np.flatnonzero(~white)
    at = int(solid[-1]) + 1 if len(solid) else 0
    if at and codes[at - 1] == OTHER:
        while at < len(codes) and codes[at] == LINE:
            at += 1
    begins[at + 1 :] = False


_FAMILIES: dict[str, Callable[[Codes, Points, Rules, CharCodes, bytes], Bools | None]] = {
    "gpt2": _gpt2,
    "cl100k": _cl100k,
    "o200k": _o200k,
    "deepseek": _deepseek,
}
assert LOWER < UPPER < BOTH < NUMBER  # a code up to BOTH is taken for a letter
