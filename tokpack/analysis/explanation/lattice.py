"""The best path through all ways to cut a word, with the rivals that it beat."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from tokpack.analysis.explanation.trace import Choice

__all__ = ["Edges", "best_path", "single_precision"]

Edges = tuple[int, list[tuple[int, float, int]]]  # bytes to the next place; (length, score, id) of what begins here

_Way = tuple[int, int, float, float]  # id, start, score, total


def single_precision(value: float) -> float:
    """``value`` as a float32."""
    return array("f", [value])[0]


def best_path(
    text: bytes,
    edges: Callable[[int], Edges],
    add: Callable[[float, float], float] = lambda here, score: here + score,
    *,
    reset: float | None = None,
    unreached: tuple[int, float] | None = None,
) -> list[Choice]:
    """The path with the highest sum, of equal ones the one found first; forward from the first place.

    Args:
        text: the word.
        edges: what may follow at an offset.
        add: sums as the reference rounds them.
        reset: sums beyond this, up or down, start again from zero, as sentencepiece's do.
        unreached: (id, sum) of a way from the start to each place that is there before any other; None for no such way.
    """
    size = len(text)
    nothing = None if unreached is None else (unreached[0], 0, unreached[1], unreached[1])
    best: list[_Way | None] = [nothing] * (size + 1)
    best[0] = None
    second: list[_Way | None] = [None] * (size + 1)
    here, at, frontier = 0.0, 0, 0
    while at < size:
        way = best[at]
        here = way[3] if way is not None else 0.0
        if reset is not None and not -reset <= here <= reset:
            _shift(best, second, at, frontier, here)
            here = 0.0
        advance, found = edges(at)
        for length, score, token in found:
            end = at + length
            frontier = max(frontier, end)
            loser: _Way | None = (token, at, score, add(here, score))
            before = best[end]
            assert loser is not None
            if before is None or loser[3] > before[3]:
                best[end], loser = loser, before
            rival = second[end]
            if loser is not None and loser is not nothing and (rival is None or loser[3] > rival[3]):
                second[end] = loser
        at += advance
    return _backtrack(text, best, second)


def _shift(best: list[_Way | None], second: list[_Way | None], at: int, frontier: int, offset: float) -> None:
    for ways in (best, second):
        for end in range(at, frontier + 1):
            way = ways[end]
            if way is not None:
                ways[end] = (*way[:3], single_precision(way[3] - offset))


def _backtrack(text: bytes, best: list[_Way | None], second: list[_Way | None]) -> list[Choice]:
    out: list[Choice] = []
    end = len(text)
    while end > 0:
        way = best[end]
        if way is None:
            break
        token, start, score, total = way
        other = second[end]
        rival = None if other is None else (other[0], text[other[1] : end], other[3])
        out.append(Choice(token, text[start:end], start, end, score, total, rival))
        end = start
    out.reverse()
    return out
