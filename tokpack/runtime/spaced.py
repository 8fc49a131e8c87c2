"""Short texts part by part: a space between two plain characters is a boundary for many models.

A part is what lies between two such spaces. Whoever makes :class:`SpacedParts` has to show that the ids of a text are
those of its parts, one after the other: for patterns in which a space goes with what follows it or is a word of its
own, for models whose words spaces separate, and for models that merge a whole text if no symbol holds a character and
the space behind it. Each part is encoded once, whatever it holds. No numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain

__all__ = ["PLAIN", "NotPlainError", "RefusedPartError", "SpacedParts", "Words", "crosses", "is_plain"]

# Visible ASCII, and letters outside it that neither combine nor are spaces, marks or numbers to any of the references:
# Latin, Greek, Cyrillic, kana, Han, Hangul syllables.
PLAIN = (
    "!-~\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0391-\u03a1\u03a3-\u03ce\u0410-\u044f"
    "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
)
_RANGES = tuple(zip(PLAIN[::3], PLAIN[2::3], strict=True))
_WHITE = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
_CACHED = 1 << 16
_CACHED_LENGTH = 64  # characters; longer parts are rarely seen twice


def is_plain(text: str) -> bool:
    """Whether a text begins with a plain character."""
    char = text[:1]
    return char >= "!" if char <= "~" else any(first <= char <= last for first, last in _RANGES)


# made when they are used: compiling these sets takes longer than opening a pack
@cache
def _sure() -> re.Pattern[str]:
    return re.compile(f"(?<=[{PLAIN}]) (?=[{PLAIN}])")


@cache
def _inside() -> re.Pattern[str]:
    return re.compile(f"(?:^|(?<=[{PLAIN}])) (?:$|(?=[{PLAIN}]))")


def crosses(literal: str) -> bool:
    """Whether a text that is looked for could hold a space that is cut at."""
    return " " in literal and _inside().search(literal) is not None


Encode = Callable[[str], Iterable[int]]


class NotPlainError(Exception):
    """A part that has to be seen together with what is beside it."""


class RefusedPartError(Exception):
    """A part that may hold a special token."""


class Words(dict[str, tuple[int, ...]]):
    """Text → its ids, filled by ``encode``; bounded."""

    def __init__(self, encode: Encode) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, text: str) -> tuple[int, ...]:
        ids = tuple(self._encode(text))
        if len(text) <= _CACHED_LENGTH:
            if len(self) >= _CACHED:
                self.clear()
            self[text] = ids
        return ids


class _Parts(Words):
    """Parts of one kind → ids.

    Args:
        owner: knows what is refused.
        encode: ids of a part.
        left, right: whether a space that is cut at lies there.
    """

    def __init__(self, owner: SpacedParts, encode: Encode, *, left: bool, right: bool) -> None:
        super().__init__(encode)
        self._owner = owner
        self._left = left
        self._right = right

    def __missing__(self, text: str) -> tuple[int, ...]:
        if self._left and not is_plain(text):
            raise NotPlainError
        if self._right and not (is_plain(text[-1:]) and not self._owner.joins(text[-1])):
            raise NotPlainError
        if self._owner.refuses(text):
            raise RefusedPartError
        return super().__missing__(text)


def _never(text: str) -> bool:
    return False


class SpacedParts:
    """Texts to ids, part by part.

    Args:
        first: ids of what is before the first such space; of the whole text if there is none.
        later: ids of what follows such a space, given without that space.
        refuses: whether a part may hold a special token.
        joins: whether a space behind this character is no boundary.
        gaps: characters of which every run between plain characters is as good as a space.

    Attributes:
        refuses, joins: as given.
    """

    def __init__(
        self,
        first: Encode,
        later: Encode,
        refuses: Callable[[str], bool] = _never,
        joins: Callable[[str], bool] = _never,
        gaps: str = "",
    ) -> None:
        self.refuses = refuses
        self.joins = joins
        # str.split takes more than these for white space
        others = "".join(char for char in _WHITE if char not in gaps)
        self._other_gap = re.compile(f"[{re.escape(others)}]").search if gaps else None
        self._whole = _Parts(self, first, left=False, right=False)
        self._first = _Parts(self, first, left=False, right=True)
        self._later = _Parts(self, later, left=True, right=True).__getitem__
        self._last = _Parts(self, later, left=True, right=False)

    def encode(self, text: str) -> list[int] | None:
        """Ids of a text; None if it has to go the long way, as it may hold a special token."""
        try:
            if "  " not in text:
                parts = text.split(" ")
                ids = [*self._first[parts[0]]]
                del parts[0]
                ids += chain.from_iterable(map(self._later, parts))
                return ids
        except NotPlainError:
            pass
        except RefusedPartError:
            return None
        try:
            if self._other_gap is not None and self._other_gap(text) is None:
                try:
                    return [*chain.from_iterable(map(self._later, text.split()))]
                except NotPlainError:
                    pass
            return self._careful(text)
        except (NotPlainError, RefusedPartError):
            return None

    def _careful(self, text: str) -> list[int]:
        """The same, looking at each space first."""
        first, *later = self._cut(text)
        if not later:
            return list(self._whole[first])
        last = later.pop()
        return [*self._first[first], *chain.from_iterable(map(self._later, later)), *self._last[last]]

    def _cut(self, text: str) -> list[str]:
        parts = _sure().split(text)
        if self.joins is _never or not any(self.joins(part[-1]) for part in parts[:-1]):
            return parts
        out, waiting = [], ""
        for part in parts[:-1]:
            waiting += part
            if self.joins(part[-1]):
                waiting += " "
            else:
                out.append(waiting)
                waiting = ""
        out.append(waiting + parts[-1])
        return out
