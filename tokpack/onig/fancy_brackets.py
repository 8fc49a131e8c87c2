"""Bracket classes of tiktoken's patterns: ranges, nested classes, ``&&``, POSIX names (regex-syntax, ast/parser.rs).

Case folding comes before complementing, at every level (hir/translate.rs, ``unicode_fold_and_negate``).
"""

from __future__ import annotations

from tokpack.onig.fancy_cursor import FancyCursor
from tokpack.onig.fancy_sets import fold, named
from tokpack.onig.sets import CharSet

__all__ = ["parse_class"]

_MAX_DEPTH = 60
_EMPTY = CharSet.of(())


def parse_class(cursor: FancyCursor, depth: int = 0) -> CharSet:
    """The class after its ``[``."""
    start = cursor.pos - 1
    if depth > _MAX_DEPTH:
        raise cursor.unsupported("deeply nested brackets", f"more than {_MAX_DEPTH} levels", start)
    negate = cursor.take("^")
    left: CharSet | None = None
    parts: list[CharSet] = []
    ranges: list[tuple[int, int]] = []
    if cursor.peek("]") or cursor.peek("-]"):
        # a first `]` or `-` stands for itself
        ranges.append((ord(cursor.pattern[cursor.pos]),) * 2)
        cursor.pos += 1

    def total() -> CharSet:
        here = CharSet.of_ranges(ranges)
        for part in parts:
            here = here | part
        here = fold(here) if cursor.fold else here
        return here if left is None else left & here

    while True:
        if cursor.done():
            raise cursor.refused("invalid character class", start)
        if cursor.take("]"):
            break
        if cursor.take("&&"):
            left = total()
            parts, ranges = [], []
        elif cursor.peek("--") or cursor.peek("~~"):
            raise cursor.unsupported("a difference of sets", "not verified")
        elif cursor.take("["):
            parts.append(_nested(cursor, depth))
        else:
            _item(cursor, parts, ranges)
    made = total()
    return ~made if negate else made


def _nested(cursor: FancyCursor, depth: int) -> CharSet:
    if not cursor.peek(":"):
        return parse_class(cursor, depth + 1)
    start = cursor.pos - 1
    end = cursor.pattern.find(":]", cursor.pos + 1)
    name = cursor.pattern[cursor.pos + 1 : end] if end >= 0 else ""
    chars = named(f"[{name.removeprefix('^')}") if len(name) < 16 else None
    if chars is None or name.removeprefix("^") in ("decimal", "white", "hex"):
        raise cursor.unsupported("[: in brackets", "not a POSIX class", start)
    cursor.pos = end + 2
    chars = fold(chars) if cursor.fold else chars
    return ~chars if name.startswith("^") else chars


def _item(cursor: FancyCursor, parts: list[CharSet], ranges: list[tuple[int, int]]) -> None:
    start = cursor.pos
    first = _one(cursor)
    if not isinstance(first, int):
        if cursor.peek("-") and not cursor.peek("-]"):
            raise cursor.unsupported("a hyphen behind a set", "not verified")
        parts.append(first)
        return
    if not cursor.peek("-") or cursor.peek("-]"):
        ranges.append((first, first))
        return
    cursor.pos += 1
    if cursor.peek("-") or cursor.peek("["):
        raise cursor.unsupported("an odd range", "not verified", start)
    last = _one(cursor)
    if not isinstance(last, int) or last < first:
        raise cursor.refused("invalid range in a character class", start)
    ranges.append((first, last))


def _one(cursor: FancyCursor) -> int | CharSet:
    """One character or escape."""
    start = cursor.pos
    letter = cursor.next("invalid character class")
    if letter != "\\":
        return ord(letter)
    if cursor.take("b"):
        return 0x08
    escaped = cursor.pattern[cursor.pos : cursor.pos + 1]
    saved, cursor.fold = cursor.fold, cursor.fold and escaped not in "xuU"
    chars = cursor.escape(start)
    cursor.fold = saved
    if chars is None:
        raise cursor.unsupported(f"\\{escaped} in brackets", "not verified", start)
    if escaped in "wWdDsShHpP":
        return chars
    return int(chars.points[0])
