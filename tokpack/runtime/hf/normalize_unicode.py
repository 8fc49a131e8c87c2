"""NFC, NFD, NFKC and NFKD of Unicode 9.0 (UAX #15), as the crate unicode-normalization-alignments has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_tables import Numbers, Texts, Translation, array, damaged

__all__ = ["FORMS", "Decomposition", "UnicodeNormalizer"]

FORMS = ("NFC", "NFD", "NFKC", "NFKD")

# Hangul syllables, The Unicode Standard 3.12
_S, _L, _V, _T = 0xAC00, 0x1100, 0x1161, 0x11A7
_L_COUNT, _V_COUNT, _T_COUNT = 19, 21, 28
_S_COUNT = _L_COUNT * _V_COUNT * _T_COUNT

# p: stays as it is and touches nothing before it; b: changes, touches nothing before it; c: the others
_SEGMENT = re.compile("bc*|p?c+")
_CACHED = 16  # segments up to so many characters are remembered
_CACHE_SIZE = 1 << 15


class Decomposition:
    """Full decomposition and combining classes, remembered by character."""

    def __init__(self, view: PackView, *, compatible: bool) -> None:
        self._texts = Texts(view, "compatible" if compatible else "canonical")
        self._combining = Numbers(view, "combining")
        self._classes: dict[str, int] = {}

    def of(self, char: str) -> str:
        """The decomposition of one character; not remembered."""
        index = ord(char) - _S
        if not 0 <= index < _S_COUNT:
            return self._texts.text(char)
        syllable, tail = divmod(index, _T_COUNT)
        lead, vowel = divmod(syllable, _V_COUNT)
        return chr(_L + lead) + chr(_V + vowel) + (chr(_T + tail) if tail else "")

    def combining(self, char: str) -> int:
        """Canonical_Combining_Class."""
        value = self._classes.get(char)
        if value is None:
            value = self._classes[char] = self._combining.number(char)
        return value

    def ordered(self, text: Iterable[str]) -> list[str]:
        """The decomposition of a text in canonical order: runs of marks are sorted by class, equal classes stay."""
        chars = [part for char in text for part in self.of(char)]
        run = 0  # where the run of marks at hand begins
        for at, char in enumerate(chars):
            if not self.combining(char):
                if at - run > 1:
                    chars[run:at] = sorted(chars[run:at], key=self.combining)
                run = at + 1
        chars[run:] = sorted(chars[run:], key=self.combining)
        return chars


class UnicodeNormalizer:
    """One of the four forms; segments that can change are normalized each on its own and remembered."""

    def __init__(self, view: PackView, form: str) -> None:
        self._view = view
        self._compose = form.endswith("C")
        self._decomposition = Decomposition(view, compatible="K" in form)
        self._classes = Translation(self._class)
        self._stable: set[str] = set()  # characters of texts without any segment
        self._cache: dict[str, str] = {}

    def apply(self, text: str) -> str:
        """The text in this form."""
        if text.isascii() or self._stable.issuperset(text):
            return text
        classes = text.translate(self._classes)
        parts: list[str] = []
        last = 0
        for found in _SEGMENT.finditer(classes):
            start, end = found.span()
            segment = text[start:end]
            normalized = self._segment(segment)
            if normalized != segment:
                parts += (text[last:start], normalized)
                last = end
        if not parts:
            if "b" not in classes and "c" not in classes:
                self._stable.update(text)
            return text
        parts.append(text[last:])
        return "".join(parts)

    def is_stable(self, char: str) -> bool:
        """Whether the character stays as it is and touches nothing before it."""
        return char.translate(self._classes) == "p"

    def edits(self, text: str) -> list[tuple[int, int, str]]:
        """One edit for each segment that changes: a character and the marks that it takes in."""
        edits = []
        for found in _SEGMENT.finditer(text.translate(self._classes)):
            start, end = found.span()
            normalized = self._segment(text[start:end])
            if normalized != text[start:end]:
                edits.append((start, end, normalized))
        return edits

    def _class(self, char: str) -> str:
        first = self._decomposition.of(char)[:1]
        if first and (self._decomposition.combining(first) or first in self._seconds):
            return "c"
        return "p" if self._normalize(char) == char else "b"

    def _segment(self, segment: str) -> str:
        normalized = self._cache.get(segment)
        if normalized is None:
            normalized = self._normalize(segment)
            if len(segment) <= _CACHED:
                if len(self._cache) >= _CACHE_SIZE:
                    self._cache.clear()
                self._cache[segment] = normalized
        return normalized

    def _normalize(self, segment: str) -> str:
        chars = self._decomposition.ordered(segment)
        return "".join(self._composed(chars) if self._compose else chars)

    @cached_property
    def _pairs(self) -> dict[int, str]:
        """First << 32 | second → composition, without Hangul."""
        if not self._compose:
            return {}
        keys, values = array(self._view, "hf.compose.key", "Q", 8), array(self._view, "hf.compose.value", "I", 4)
        if len(keys) != len(values) or any(value > 0x10FFFF for value in values):
            raise damaged(self._view, "hf.compose.value", "compositions are missing or are no code points")
        return {key: chr(value) for key, value in zip(keys, values, strict=True)}

    @cached_property
    def _seconds(self) -> frozenset[str]:
        """What can compose with a character before it."""
        if not self._compose:
            return frozenset()
        jamo = (*range(_V, _V + _V_COUNT), *range(_T + 1, _T + _T_COUNT))
        return frozenset(map(chr, (*jamo, *(min(key & 0xFFFFFFFF, 0x10FFFF) for key in self._pairs))))

    def _composed(self, chars: list[str]) -> list[str]:
        """Canonical composition (UAX #15, D117): with the last starter, unless a mark in between blocks."""
        out: list[str] = []
        starter, last = -1, -1  # index of the starter; the class behind it, -1 for nothing
        for char in chars:
            value = self._decomposition.combining(char)
            if starter >= 0 and last < value:
                composition = self._pair(out[starter], char)
                if composition:
                    out[starter] = composition
                    continue
            if value:
                last = value
            else:
                starter, last = len(out), -1
            out.append(char)
        return out

    def _pair(self, first: str, second: str) -> str | None:
        a, b = ord(first), ord(second)
        if 0 <= a - _L < _L_COUNT and 0 <= b - _V < _V_COUNT:
            return chr(_S + ((a - _L) * _V_COUNT + b - _V) * _T_COUNT)
        if 0 <= a - _S < _S_COUNT and (a - _S) % _T_COUNT == 0 and 0 < b - _T < _T_COUNT:
            return chr(a + b - _T)
        return self._pairs.get(a << 32 | b)
