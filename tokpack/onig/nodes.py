"""The syntax tree of a pattern, in the shape in which Oniguruma's parser leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tokpack.onig.sets import CharSet

__all__ = ["Alt", "Anchor", "Atomic", "Chars", "Group", "Look", "Node", "Repeat", "Seq", "Set", "children", "rebuild"]


@dataclass(frozen=True, slots=True)
class Chars:
    """A run of characters; ``fold`` under ``(?i)``. Empty: matches the empty text."""

    codes: tuple[int, ...]
    fold: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """The first that lets the rest match."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``{low,high}``; high None: no limit."""

    body: Node
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Atomic:
    """``(?>…)``: never gives back."""

    body: Node


@dataclass(frozen=True, slots=True)
class Look:
    """Lookahead, lookbehind; ``offset`` is where it stands in the pattern."""

    body: Node
    behind: bool
    negate: bool
    offset: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """One of ``^ $ \\A \\z \\Z \\b \\B``."""

    kind: str


@dataclass(frozen=True, slots=True)
class Group:
    """A border in the tree: kind is ``plain``, ``named`` (both capture) or ``option``."""

    body: Node
    kind: str


Node = Chars | Set | Seq | Alt | Repeat | Atomic | Look | Anchor | Group


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below."""
    if isinstance(node, (Seq, Alt)):
        yield from node.items
    elif isinstance(node, (Repeat, Atomic, Look, Group)):
        yield node.body


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each child changed."""
    if isinstance(node, (Seq, Alt)):
        return type(node)(tuple(change(item) for item in node.items))
    if isinstance(node, (Repeat, Atomic, Look, Group)):
        return replace(node, body=change(node.body))
    return node
