r"""From Oniguruma's patterns to what MNN's own matcher reads.

MNN 3.6.1 (``fold_text`` and the matcher in ``transformers/llm/engine/src/tokenizer/unicode.cpp``) folds a text to one
byte per code point: ASCII is itself, all others are one of seven kinds. So every set of a pattern, whatever it is
spelled like, is a set of ASCII characters and kinds here, and is written as such: nothing of Oniguruma's syntax reaches
MNN, which would read possessive quantifiers, class operators, scripts and case folding as something else.

A kind of which a set holds a part is taken whole when the set holds most of it. Where that matters,
:class:`Folded` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from tokpack.errors import TokpackError
from tokpack.ir.patterns import Dialect
from tokpack.onig import quote
from tokpack.onig.cursor import Cursor
from tokpack.onig.fancy_parse import parse as parse_fancy
from tokpack.onig.lower import lower
from tokpack.onig.nodes import Alt, Anchor, Atomic, Chars, Group, Look, Node, Repeat, Seq, Set, children
from tokpack.onig.parse import parse
from tokpack.onig.sets import CharSet, named
from tokpack.onig.simplify import can_be_empty, simplify

__all__ = ["ANY", "Folded", "fold", "fold_set", "parse_pattern", "wide_class"]

ANY = r"[\s\S]"
_NEVER = rf"(?!{ANY}){ANY}"
_NEGLIGIBLE = 0.002  # share of a kind on which a set may differ: newer and older Unicode versions do so too
_MOST_RANGES = 512  # of a class for std::wregex
_ASCII = frozenset(range(8, 128))
_LETTERS = frozenset((*range(0x41, 0x5B), *range(0x61, 0x7B), 1))
_NUMBERS = frozenset((*range(0x30, 0x3A), 2))
_SPACES = frozenset((9, 10, 11, 12, 13, 32, 3))
_ALL = _ASCII | frozenset(range(1, 8))
_NAMED = ((r"\p{L}", _LETTERS), (r"\p{N}", _NUMBERS), (r"\s", _SPACES))
# ends can be said by what does not follow; beginnings cannot
_ENDS = {"$": r"(?![^\n])", "\\z": f"(?!{ANY})", "\\Z": rf"(?!(?!\n?(?!{ANY})))"}
_META = frozenset(r"\^$.|?*+()[]{}")


@dataclass(slots=True)
class Folded:
    """A pattern for MNN's matcher.

    Attributes:
        pattern: the pattern; empty if no part of it could be kept.
        reasons: why it is not the same language, empty if it is.
    """

    pattern: str
    reasons: list[str] = field(default_factory=list)


def parse_pattern(pattern: str, dialect: Dialect) -> Node:
    """The tree of a pattern of ``tokenizers`` or tiktoken, of sets only.

    Raises TokpackError for one that cannot be read exactly.
    """
    if dialect is Dialect.PCRE:
        return simplify(parse_fancy(pattern))
    text = quote(pattern) if dialect is Dialect.LITERAL else pattern
    return simplify(lower(parse(text), Cursor(text)))


def fold(tree: Node) -> Folded:
    """The pattern of ``tree``; branches at the top that have no form are left out."""
    result = Folded("")
    branches = tree.items if isinstance(tree, Alt) else (tree,)
    kept = []
    for branch in branches:
        reason = _cannot(branch)
        if reason:
            result.reasons.append(reason)
        else:
            kept.append(_emit(branch, result))
    if can_be_empty(tree):
        result.reasons.append("it may match nothing at all")
        return result
    result.pattern = "|".join(kept)
    return result


def _cannot(node: Node) -> str | None:
    """Why MNN's matcher has no form for a branch."""
    if isinstance(node, Look) and node.behind:
        return "there is no lookbehind"
    if isinstance(node, Anchor) and node.kind not in _ENDS:
        return f"there is no anchor {node.kind}"
    if isinstance(node, Repeat) and can_be_empty(node.body):
        return "a part that may be empty is repeated"
    return next(filter(None, map(_cannot, children(node))), None)


def _emit(node: Node, result: Folded) -> str:
    if isinstance(node, Set):
        symbols, exact = fold_set(node.chars)
        if not exact:
            result.reasons.append("a set is a part of a general category")
        return _class(symbols)
    if isinstance(node, Seq):
        return "".join(_grouped(item, result) for item in node.items)
    if isinstance(node, Alt):
        return "|".join(_emit(item, result) for item in node.items)
    if isinstance(node, Repeat):
        return _repeat(node, result)
    if isinstance(node, Look):
        inside = f"(?!{_emit(node.body, result)})"
        return inside if node.negate else f"(?!{inside})"
    if isinstance(node, Anchor):
        return _ENDS[node.kind]
    if isinstance(node, Atomic):
        result.reasons.append("a part never gives back what it has matched")
    assert not isinstance(node, Chars)
    return _emit(node.body, result)


def _grouped(node: Node, result: Folded) -> str:
    while isinstance(node, Group):
        node = node.body
    text = _emit(node, result)
    return f"(?:{text})" if isinstance(node, Alt) else text


def _repeat(node: Repeat, result: Folded) -> str:
    if not node.greedy:
        result.reasons.append("a part takes as little as it can")
    body = node.body
    text = _emit(body, result)
    if not isinstance(body, Set) or text == _NEVER:
        text = f"(?:{text})"
    short = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}.get((node.low, node.high))
    if short is None:
        high = "" if node.high is None else str(node.high)
        short = f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{high}}}"
    return text + short


# --- sets -------------------------------------------------------------------------------------------------------


@cache
def _kinds() -> tuple[tuple[CharSet, int], ...]:
    """Letter, number, space, other, mark, punctuation, symbol: the order of their bytes; each with its size."""
    beyond = CharSet.of_ranges(((0x80, 0xD7FF), (0xE000, 0x10FFFF)))
    rest = beyond
    found: dict[str, CharSet] = {}
    for name in ("l", "n", "zs", "m", "p", "s"):
        chars = named(name)
        assert chars is not None
        found[name] = chars & beyond
        rest -= found[name]
    kinds = (found["l"], found["n"], found["zs"], rest, found["m"], found["p"], found["s"])
    return tuple((kind, _count(kind)) for kind in kinds)


def _count(chars: CharSet) -> int:
    return sum(last - first + 1 for first, last in chars.ranges())


def fold_set(chars: CharSet) -> tuple[frozenset[int], bool]:
    """The bytes that stand for a set, and whether they stand for nothing else."""
    members = np.flatnonzero(chars.has(np.arange(128, dtype=np.int64))).tolist()
    symbols = {code for code in members if code in _ASCII}
    exact = True
    for at, (kind, size) in enumerate(_kinds()):
        inside = _count(chars & kind)
        if 2 * inside > size:
            symbols.add(at + 1)
        exact = exact and min(inside, size - inside) <= _NEGLIGIBLE * size
    if exact and members and not symbols:
        exact = False
    return frozenset(symbols), exact and (bool(symbols) or not chars)


def _class(symbols: frozenset[int]) -> str:
    """A class in MNN's syntax."""
    if not symbols:
        return _NEVER
    if symbols == _ALL:
        return ANY
    if len(symbols) == 1:
        (code,) = symbols
        return f"\\{chr(code)}" if chr(code) in _META else _char(code)
    inside, outside = _inside(symbols), _inside(_ALL - symbols)
    negate = len(outside) < len(inside)
    inside = outside if negate else inside
    if not negate and inside in (r"\p{L}", r"\p{N}", r"\s"):
        return inside
    return r"\S" if negate and inside == r"\s" else f"[{'^' if negate else ''}{inside}]"


def _inside(symbols: frozenset[int]) -> str:
    parts = []
    left = set(symbols)
    for name, members in _NAMED:
        if members <= left:
            parts.append(name)
            left -= members
    return "".join((*parts, *_runs_of(left)))


def _runs_of(codes: set[int]) -> Iterator[str]:
    """Ranges of letters and digits, everything else one by one."""
    order = sorted(codes)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and order[end + 1] == order[end] + 1 and chr(order[end + 1]).isalnum():
            if not chr(order[at]).isalnum():
                break
            end += 1
        if end - at > 1:
            yield f"{chr(order[at])}-{chr(order[end])}"
        else:
            yield from (_char(code) for code in order[at : end + 1])
        at = end + 1


def _char(code: int) -> str:
    """One character, in a class or alone."""
    char = chr(code)
    if char in "\\]^-[":
        return f"\\{char}"
    named_controls = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
    if char in named_controls:
        return named_controls[char]
    return char if char.isprintable() else f"\\x{code:02X}"


def wide_class(chars: CharSet) -> str | None:
    """The inside of a class for ``std::wregex``, which compares code points; None if it would be too long."""
    ranges = []
    for first, last in chars.ranges():
        first = max(first, 1)
        for low, high in ((first, min(last, 0xD7FF)), (max(first, 0xE000), last)):
            if low <= high:
                ranges.append((low, high))
    if len(ranges) > _MOST_RANGES or not any(high >= 0x80 for _, high in ranges):
        return None
    return "".join(_wide(low) if low == high else f"{_wide(low)}-{_wide(high)}" for low, high in ranges)


def _wide(code: int) -> str:
    char = chr(code)
    return f"\\{char}" if char in "\\]^-[" else char


def has_sets_only(tree: Node) -> bool:
    """Whether a tree is made of sets, sequences, alternatives and repetitions alone."""
    plain = isinstance(tree, (Set, Seq, Alt, Repeat, Group))
    return plain and all(has_sets_only(child) for child in children(tree))


def readable(pattern: str, dialect: Dialect) -> Node | None:
    """As :func:`parse_pattern`; None for a pattern that cannot be read exactly."""
    try:
        return parse_pattern(pattern, dialect)
    except TokpackError:
        return None
