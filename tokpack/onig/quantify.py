"""Quantifiers: how they are spelled and how Oniguruma rewrites one right on another."""

from __future__ import annotations

import string
from dataclasses import dataclass

from tokpack.onig.cursor import Cursor
from tokpack.onig.nodes import Alt, Anchor, Look, Node, Repeat

__all__ = ["Quantifier", "interval", "invalid_target", "reduced", "repeat"]

_MAX_REPEAT = 100_000  # ONIG_MAX_REPEAT_NUM
# the six simple quantifiers: (low, high, greedy) → row and column of the table below (quantifier_type_num)
_SIMPLE = {
    (0, 1, True): 0,
    (0, None, True): 1,
    (1, None, True): 2,
    (0, 1, False): 3,
    (0, None, False): 4,
    (1, None, False): 5,
}
# inner quantifier (row), outer (column): "" keep both, "-" drop the outer, else the one that replaces both;
# "+)??" is the pair of + inside ?? (ReduceTypeTable in src/regparse.c)
_REDUCE = (
    ("-", "*", "*", "??", "*?", ""),
    ("-", "-", "-", "+)??", "+)??", "-"),
    ("*", "*", "-", "", "+)??", "-"),
    ("-", "*?", "*?", "-", "*?", "*?"),
    ("-", "-", "-", "-", "-", "-"),
    ("", "*", "+", "*?", "*?", "-"),
)
_NEW: dict[str, tuple[int, int | None, bool]] = {
    "*": (0, None, True),
    "+": (1, None, True),
    "*?": (0, None, False),
    "??": (0, 1, False),
}


@dataclass(frozen=True, slots=True)
class Quantifier:
    """One quantifier as it is spelled."""

    low: int
    high: int | None
    greedy: bool = True
    possessive: bool = False


def interval(cursor: Cursor) -> Quantifier | None:
    """``{n,m} {n,} {,m} {n}`` (fetch_interval); None: the brace is a character.

    ``+`` after it is a quantifier of its own, and so is ``?`` after ``{n}``. ``{5,3}`` is ``{3,5}`` possessive.
    """
    start = cursor.pos
    cursor.pos += 1
    low = _number_at(cursor, start)
    comma = cursor.take(",")
    high = _number_at(cursor, start) if comma else low
    if (low is None and high is None) or not cursor.take("}"):
        cursor.pos = start
        return None
    low = low or 0
    if high is not None and low > high:
        return Quantifier(high, low, possessive=True)
    if comma and cursor.take("?"):
        return Quantifier(low, high, greedy=False)
    return Quantifier(low, high)


def _number_at(cursor: Cursor, start: int) -> int | None:
    digits = cursor.run(string.digits, len(cursor.pattern))
    value = digits.lstrip("0")
    if len(value) > 6 or int(value or 0) > _MAX_REPEAT:
        raise cursor.refused("too big number for repeat range", start)
    return int(value or 0) if digits else None


def invalid_target(node: Node) -> bool:
    """Whether the engine refuses to repeat it (is_invalid_quantifier_target)."""
    if isinstance(node, Alt):
        return any(map(invalid_target, node.items))
    return isinstance(node, (Anchor, Look))


def repeat(node: Node, found: Quantifier) -> Repeat:
    """The item repeated (assign_quantifier_body)."""
    outer = Repeat(node, found.low, found.high, found.greedy)
    if not isinstance(node, Repeat):
        return outer
    if _number(node) is not None and _number(outer) is None:
        # (?:a*){n,m}, (?:a+){n,m} => (?:a*){n,n}, (?:a+){n,n}
        if _number(node) in (1, 2) and outer.high is not None and outer.high > 1 and outer.greedy:
            return Repeat(node, outer.low, outer.low or 1)
        return outer
    return reduced(outer, node)


def reduced(outer: Repeat, inner: Repeat) -> Repeat:
    """One quantifier for two (onig_reduce_nested_quantifier)."""
    row, column = _number(inner), _number(outer)
    if row is None or column is None:
        if outer.low == outer.high and inner.low == inner.high:
            count = outer.low * inner.low
            return Repeat(inner.body, count, count, outer.greedy)
        return outer
    rule = _REDUCE[row][column]
    if not rule:
        return outer
    if rule == "-":
        return inner
    if rule == "+)??":
        return Repeat(Repeat(inner.body, 1, None), 0, 1, greedy=False)
    low, high, greedy = _NEW[rule]
    return Repeat(inner.body, low, high, greedy)


def _number(node: Repeat) -> int | None:
    return _SIMPLE.get((node.low, node.high, node.greedy))
