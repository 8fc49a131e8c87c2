"""Bracket classes: ``[…]`` with ranges, nested classes, ``&&``, POSIX brackets (Oniguruma, regparse.c, prs_cc).

In brackets ``\\w`` lacks B2 B3 B9 BC BD BE, which it has outside, where a table of Latin-1 decides below 100; and
``[:punct:]`` holds the symbols, ``\\p{Punct}`` does not (both observed).
"""

from __future__ import annotations

from tokpack.onig.cursor import NAMED_ESCAPES, Cursor
from tokpack.onig.sets import CharSet, named

__all__ = ["parse_class"]

_MAX_DEPTH = 60
_EMPTY = CharSet.of(())


class _Class:
    """One level of brackets while it is read; ``pending`` is the last single character, which may start a range."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.sets = _EMPTY
        self.meet: CharSet | None = None
        self.pending: int | None = None
        self.state = "start"  # start, value, complete: CS_START, CS_VALUE, CS_COMPLETE

    def flush(self) -> None:
        if self.pending is not None:
            self.ranges.append((self.pending, self.pending))
            self.pending = None

    def value(self, code: int) -> None:
        self.flush()
        self.pending = code
        self.state = "value"

    def add(self, chars: CharSet, state: str) -> None:
        self.flush()
        self.sets = self.sets | chars
        self.state = state

    def total(self) -> CharSet:
        """All that stands since the last ``&&``, met with what stood before."""
        self.flush()
        here = self.sets | CharSet.of_ranges(self.ranges)
        return here if self.meet is None else self.meet & here

    def start_meet(self) -> None:
        self.meet = self.total()
        self.ranges, self.sets, self.state = [], _EMPTY, "start"


def parse_class(cursor: Cursor, depth: int = 0) -> tuple[CharSet, bool]:
    """The class after its ``[``: the set without the leading ``^``, and whether there is one.

    They are apart because ``(?i)`` folds the set before it is complemented.
    """
    start = cursor.pos - 1
    if depth > _MAX_DEPTH:
        raise cursor.unsupported("deeply nested brackets", f"more than {_MAX_DEPTH} levels", start)
    negate = cursor.take("^")
    level = _Class()
    if cursor.peek("]"):
        if "]" not in cursor.pattern[cursor.pos + 1 :]:
            raise cursor.refused("empty char-class", start)
        cursor.pos += 1
        level.value(ord("]"))
    while True:
        if cursor.done():
            raise cursor.refused("premature end of char-class", start)
        if cursor.take("]"):
            return level.total(), negate
        if cursor.take("&&"):
            level.start_meet()
        elif cursor.take("["):
            _open_bracket(cursor, level, depth)
        elif cursor.take("-"):
            _hyphen(cursor, level)
        else:
            item = _item(cursor)
            if isinstance(item, int):
                level.value(item)
            else:
                level.add(item, "value")


def _open_bracket(cursor: Cursor, level: _Class, depth: int) -> None:
    posix = _posix(cursor)
    if posix is not None:
        level.add(posix, "value")
        return
    chars, negate = parse_class(cursor, depth + 1)
    level.add(~chars if negate else chars, "complete")


def _posix(cursor: Cursor) -> CharSet | None:
    """``[:name:]`` after its ``[``; None if this is a class (is_posix_bracket_start: letters up to ``:]``)."""
    if not cursor.peek(":"):
        return None
    end = cursor.pattern.find(":", cursor.pos + 1)
    body = cursor.pattern[cursor.pos + 1 : end]
    name = body.removeprefix("^")
    if end < 0 or not body or not cursor.pattern.startswith("]", end + 1):
        return None
    if not name.isascii():
        raise cursor.unsupported("[:…:] with other than ASCII letters", "not verified", cursor.pos - 1)
    if name and not name.isalpha():
        return None
    chars = named(f"[{name}")
    if chars is None:
        raise cursor.refused("invalid POSIX bracket type", cursor.pos - 1)
    cursor.pos = end + 2
    return chars if body == name else ~chars


def _hyphen(cursor: Cursor, level: _Class) -> None:
    """A hyphen: itself at the edges of the class, of ``&&`` and after a range; else the middle of a range."""
    at = cursor.pos - 1
    if level.state != "value" or cursor.peek("]") or cursor.peek("&&"):
        level.value(ord("-"))
        return
    first = level.pending
    if first is None:
        raise cursor.refused("unmatched range specifier in char-class", at)
    if cursor.peek("["):
        raise cursor.unsupported("a range up to a nested class", "not verified", at)
    if cursor.done():
        raise cursor.refused("premature end of char-class", at)
    last = _item(cursor)
    if not isinstance(last, int):
        raise cursor.refused("char-class value at end of range", at)
    if last < first:
        raise cursor.refused("empty range in char class", at)
    level.pending = None
    level.ranges.append((first, last))
    level.state = "complete"


def _item(cursor: Cursor) -> int | CharSet:
    """One character or escape (fetch_token_cc)."""
    start = cursor.pos
    letter = cursor.next("premature end of char-class")
    if letter != "\\":
        return ord(letter)
    letter = cursor.next("end pattern at escape")
    if letter.lower() in NAMED_ESCAPES:
        chars = named("[" + NAMED_ESCAPES[letter.lower()])
        assert chars is not None
        return ~chars if letter.isupper() else chars
    if letter in "pP" and cursor.take("{"):
        return cursor.property_set(letter == "P", in_brackets=True)
    if letter in "1234567":
        raise cursor.unsupported(f"\\{letter} in brackets", "octal numbers without a leading 0", start)
    if letter in "cCM":
        raise cursor.unsupported(f"\\{letter}", "control and meta notation", start)
    code = cursor.number_escape(letter, start)
    return cursor.control(letter) if code is None else code
