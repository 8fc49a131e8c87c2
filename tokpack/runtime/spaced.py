"""Short texts word by word: a space between two visible ASCII characters is a boundary in many patterns.

In the patterns that :mod:`tokpack.runtime.bulk.known` lists a space goes with what follows it or is a word of its own,
never with what is before it, and a word that ends in a visible character does not depend on what follows a space. So a
text is cut at such spaces, and each part is encoded once, whatever it holds. No numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain

__all__ = ["SpacedParts"]

_SURE = re.compile(r"(?<=[!-~]) (?=[!-~])")
_CACHED_PARTS = 1 << 16
_CACHED_LENGTH = 64  # characters; longer parts are rarely seen twice


class _UnsureError(Exception):
    """A space that is not between two visible characters."""


class _Known(dict[str, tuple[int, ...]]):
    """Text → its ids; bounded."""

    def __init__(self, encode: Callable[[str], Iterable[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, text: str) -> tuple[int, ...]:
        return self._remember(text, text)

    def _remember(self, key: str, text: str) -> tuple[int, ...]:
        ids = tuple(self._encode(text))
        if len(key) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_PARTS:
                self.clear()
            self[key] = ids
        return ids


class _First(_Known):
    """The same for what is in front of such a space."""

    def __missing__(self, part: str) -> tuple[int, ...]:
        if not part or not "!" <= part[-1] <= "~":
            raise _UnsureError
        return self._remember(part, part)


class _Later(_Known):
    """The same for what is between two such spaces, with the one in front of it."""

    def __missing__(self, part: str) -> tuple[int, ...]:
        if not part or not ("!" <= part[0] <= "~" and "!" <= part[-1] <= "~"):
            raise _UnsureError
        return self._remember(part, " " + part)


class SpacedParts:
    """Texts to ids, part by part.

    Args:
        encode: ids of a text, by a pattern that cuts at such spaces.
    """

    def __init__(self, encode: Callable[[str], Iterable[int]]) -> None:
        self._encode = encode
        self._first = _First(encode)
        self._later = _Later(encode)
        self._ends = _Known(encode)

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        first, *later = text.split(" ")
        try:
            ids = list(self._first[first])
            ids += chain.from_iterable(map(self._later.__getitem__, later))
        except _UnsureError:
            return self._careful(text)
        return ids

    def _careful(self, text: str) -> list[int]:
        first, *later = _SURE.split(text)
        if not later:
            return list(self._ends[text])
        ids = list(self._ends[first])
        last = later.pop()
        ids += chain.from_iterable(map(self._later.__getitem__, later))
        ids += self._ends[" " + last]  # its end is the end of the text, and may be anything
        return ids
