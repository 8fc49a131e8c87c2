"""Rewriting that changes no match: alternatives of single characters become one set, nested repeats one repeat.

It keeps the stack of ``re`` short on long runs and removes the atomic groups that can never matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokpack.onig.lower import EMPTY, width
from tokpack.onig.nodes import Alt, Anchor, Atomic, Look, Node, Repeat, Seq, Set, rebuild
from tokpack.onig.sets import CharSet

__all__ = ["can_be_empty", "simplify"]


def simplify(tree: Node) -> Node:
    """The tree as it is emitted."""
    return _relax(_shrink(tree), _ALWAYS)


def can_be_empty(node: Node) -> bool:
    """Whether it may match the empty text."""
    if isinstance(node, Set):
        return False
    if isinstance(node, Seq):
        return all(map(can_be_empty, node.items))
    if isinstance(node, Alt):
        return any(map(can_be_empty, node.items))
    if isinstance(node, Repeat):
        return node.low == 0 or can_be_empty(node.body)
    if isinstance(node, Atomic):
        return can_be_empty(node.body)
    return True


def _shrink(node: Node) -> Node:
    node = rebuild(node, _shrink)
    if isinstance(node, Seq):
        items: list[Node] = []
        for item in node.items:
            items.extend(item.items if isinstance(item, Seq) else (item,))
        return items[0] if len(items) == 1 else Seq(tuple(items))
    if isinstance(node, Alt):
        return _shrink_alt(node)
    if isinstance(node, Repeat):
        return _shrink_repeat(node)
    if isinstance(node, Atomic) and (isinstance(node.body, Atomic) or width(node.body) is not None):
        return node.body
    return node


def _shrink_alt(node: Alt) -> Node:
    """Neighbouring single characters are one set: it makes no difference which of them matched."""
    items: list[Node] = []
    for item in node.items:
        for part in item.items if isinstance(item, Alt) else (item,):
            last = items[-1] if items else None
            if isinstance(part, Set) and isinstance(last, Set):
                items[-1] = Set(last.chars | part.chars)
            else:
                items.append(part)
    return items[0] if len(items) == 1 else Alt(tuple(items))


def _shrink_repeat(node: Repeat) -> Node:
    if node.high == 0 or node.body == EMPTY:
        return EMPTY
    if node.low == node.high == 1:
        return node.body
    body = node.body
    if node.high is None and node.low <= 1:
        if isinstance(body, Alt) and isinstance(body.items[0], Set) and _covered(body.items[0].chars, body.items[1:]):
            return Repeat(body.items[0], node.low, None, node.greedy)
        if isinstance(body, Repeat) and isinstance(body.body, Set) and body.greedy and node.greedy and body.low <= 1:
            return Repeat(body.body, min(node.low, body.low), None)
    return node


def _covered(chars: CharSet, others: tuple[Node, ...]) -> bool:
    """In ``(?:S|TU)*`` with T, U in S the second alternative only reaches places that S reached before it."""
    return all(
        isinstance(item, Seq)
        and item.items
        and all(isinstance(part, Set) and part.chars.issubset(chars) for part in item.items)
        for item in others
    )


@dataclass(frozen=True, slots=True)
class _Follow:
    """What stands behind a node: it always matches, or must begin with one of these characters, or neither is known."""

    always: bool = False
    chars: CharSet | None = None


_ALWAYS = _Follow(always=True)
_UNKNOWN = _Follow()


def _before(node: Node, follow: _Follow) -> _Follow:
    """What stands behind the node before this one."""
    if isinstance(node, Set):
        return _Follow(chars=node.chars)
    if isinstance(node, Seq):
        for item in reversed(node.items):
            follow = _before(item, follow)
        return follow
    if isinstance(node, Alt):
        follows = [_before(item, follow) for item in node.items]
        return _either(follows)
    if isinstance(node, Atomic):
        return _before(node.body, follow)
    if isinstance(node, Repeat):
        body = _before(node.body, _UNKNOWN)
        if node.low:
            return body
        return _ALWAYS if follow.always else _either([body, follow])
    return _UNKNOWN


def _either(follows: list[_Follow]) -> _Follow:
    """One of several; that one of them always matches is enough."""
    if any(f.always for f in follows):
        return _ALWAYS
    total = CharSet.of(())
    for follow in follows:
        if follow.chars is None:
            return _UNKNOWN
        total = total | follow.chars
    return _Follow(chars=total)


def _relax(node: Node, follow: _Follow) -> Node:
    """Without the atomic groups that could only give back what does not help the rest."""
    if isinstance(node, Seq):
        items: list[Node] = []
        for item in reversed(node.items):
            items.append(_relax(item, follow))
            follow = _before(item, follow)
        return Seq(tuple(reversed(items)))
    if isinstance(node, Alt):
        return Alt(tuple(_relax(item, follow) for item in node.items))
    if isinstance(node, Atomic):
        body = _relax(node.body, _ALWAYS)
        return body if follow.always or _gives_back_in_vain(body, follow) else Atomic(body)
    if isinstance(node, Look):
        return Look(_relax(node.body, _ALWAYS), node.behind, node.negate, node.offset)
    if isinstance(node, Repeat):
        return Repeat(_relax(node.body, _UNKNOWN), node.low, node.high, node.greedy)
    assert isinstance(node, (Set, Anchor))
    return node


def _gives_back_in_vain(body: Node, follow: _Follow) -> bool:
    """A greedy run of one set before something that cannot begin with it."""
    return (
        isinstance(body, Repeat)
        and isinstance(body.body, Set)
        and body.greedy
        and follow.chars is not None
        and not follow.chars & body.body.chars
    )
