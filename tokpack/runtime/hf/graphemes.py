"""Extended grapheme clusters (UAX #29 of Unicode 17.0) as the crate unicode-segmentation 1.13.3 finds them.

Letters of the table ``hf.grapheme``: r CR, n LF, C Control, E Extend, N Extend with Indic_Conjunct_Break=None,
I Extend with InCB=Linker, Z ZWJ, S SpacingMark, P Prepend, R Regional_Indicator, L V T A B Hangul (L, V, T, LV, LVT),
X Extended_Pictographic, K InCB=Consonant, o the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_tables import Numbers, Translation

__all__ = ["Graphemes"]

_LETTERS = "rnCENIZSPRLVTABXKo"
# Clusters of two characters or more, by the regular expression of UAX #29, table 1c. It may be searched for: where it
# does not match, the next character is a cluster of its own. What starts alike is told apart without going back, so
# that the work is linear.
_CLUSTER = re.compile(
    r"rn"  # GB3
    r"|(?=[^rnC][ENIZS]|P[^rnC]|RR|L[LVAB]|[VA][VT]|[TB]T)"  # two that stay together
    r"P*"  # GB9b
    r"(?:L*(?:V+|AV*|B)T*|L+|T+"  # GB6, GB7, GB8
    r"|RR"  # GB12, GB13
    r"|X(?:[ENI]*ZX)*"  # GB11
    r"|K(?:[EZ]*I[EIZ]*K)*"  # GB9c
    r"|[^rnC])"
    r"[ENIZS]*"  # GB9, GB9a
)


class Graphemes:
    """Finds the clusters of more than one character."""

    def __init__(self, view: PackView) -> None:
        self._table = Numbers(view, "grapheme")
        self._letters = Translation(self._letter)
        self._plain: set[str] = set()  # characters of texts without any such cluster that join nothing

    def clusters(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of each cluster of two characters or more, ascending."""
        if text.isascii():
            if "\r\n" not in text:
                return
        elif self._plain.issuperset(text):
            return
        letters = text.translate(self._letters)
        if not letters.strip("oXKCABn"):  # nothing that takes a neighbour in
            self._plain.update(text)
            return
        for found in _CLUSTER.finditer(letters):
            yield found.span()

    def _letter(self, char: str) -> str:
        letter = chr(self._table.number(char) & 0xFF)
        return letter if letter in _LETTERS else "o"
