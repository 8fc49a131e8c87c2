"""Branches of :mod:`~tokpack.runtime.mnn.folded` as a pattern of Python's ``re``, where both find the same.

Two things differ. A group of MNN takes its first alternative for good: that is the same if nothing behind the group can
fail, or if all alternatives have the same width. A repetition that matches nothing ends a group and does not count.
What has no form, and what a backtracking matcher could spend more than linear time on, is left to
:mod:`~tokpack.runtime.mnn.matcher`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokpack.runtime.mnn.folded import GROUP_LIMIT, Branch, Chars, Group, Look, Node

__all__ = ["can_be_empty", "char_class", "emit", "first_set", "retried"]

_ASCII = (1 << 128) - 1  # folded text has no other characters
_MANY = 64  # repetitions from which a limit is as good as none


def char_class(mask: int) -> str:
    """A class of ``re`` for a set of folded characters."""
    members = [code for code in range(128) if mask >> code & 1]
    if not members:
        return "(?!)"
    return "[" + "".join(f"\\x{code:02x}" for code in members) + "]"


def _count(low: int, high: int) -> str:
    if (low, high) == (1, 1):
        return ""
    return f"{{{low},{'' if high < 0 else high}}}"


def _width(branch: Sequence[Node]) -> int | None:
    """Characters that a branch always matches, or None if that varies."""
    total = 0
    for node in branch:
        if isinstance(node, Look):
            continue
        if node.low != node.high:
            return None
        size: int | None = 1
        if isinstance(node, Group):
            size = _common_width(node.branches)
            if not size:
                return None
        total += node.low * (size or 0)
    return total


def _common_width(branches: Iterable[Branch]) -> int | None:
    widths = {_width(branch) for branch in branches}
    return widths.pop() if len(widths) == 1 else None


def _least(branch: Sequence[Node]) -> int:
    """Characters that a branch matches at least."""
    total = 0
    for node in branch:
        if isinstance(node, Chars):
            total += node.low
        elif isinstance(node, Group):
            total += node.low * max(1, min(map(_least, node.branches)))
    return total


def can_be_empty(branches: Iterable[Branch]) -> bool:
    """Whether one of the branches can match nothing."""
    return any(_least(branch) == 0 for branch in branches)


def _can_fail(nodes: Iterable[Node]) -> bool:
    return any(isinstance(node, Look) or node.low > 0 for node in nodes)


def emit(branches: Iterable[Branch]) -> str | None:
    """The pattern, or None when ``re`` has no form for it."""
    parts = []
    for branch in branches:
        text = _branch(branch)
        if text is None:
            return None
        parts.append(text)
    return "|".join(parts)


def _branch(branch: Branch) -> str | None:
    out = []
    for at, node in enumerate(branch):
        if isinstance(node, Chars):
            if 0 <= node.high < node.low:
                return None
            out.append(char_class(node.mask) + _count(node.low, node.high))
            continue
        inner = emit(node.branches)
        if inner is None:
            return None
        if isinstance(node, Look):
            out.append(f"(?!{inner})")
            continue
        if not _is_plain(node, branch[at + 1 :]):
            return None
        out.append(f"(?:{inner})" + _count(node.low, GROUP_LIMIT if node.high < 0 else node.high))
    return "".join(out)


def _is_plain(group: Group, rest: Sequence[Node]) -> bool:
    """Whether ``re`` repeats a group as MNN does."""
    if min(map(_least, group.branches)) == 0 or 0 <= group.high < group.low or group.low > GROUP_LIMIT:
        return False
    return _common_width(group.branches) is not None or (group.low <= 1 and not _can_fail(rest))


def first_set(branches: Iterable[Branch]) -> int:
    """The characters with which a match that is not empty can begin (perhaps too many)."""
    mask = 0
    for branch in branches:
        for node in branch:
            if isinstance(node, Look):
                continue
            mask |= node.mask if isinstance(node, Chars) else first_set(node.branches)
            if node.low:
                break
    return mask & _ASCII


def retried(branches: Sequence[Branch]) -> tuple[int, int]:
    """(degree, characters): what a backtracking matcher may go over again.

    Degree 0 is linear. With degree 1 the time can grow with the square of a run of ``characters``, with 2 faster.
    """
    runs = [_run(branch) for branch in branches]
    worst, chars = 0, 0
    for branch in branches:
        degree, mask = _degree(branch)
        if degree == 1 and any(mask & ~run == 0 for run in runs if run):
            continue  # another branch takes the whole run where this one fails
        worst, chars = max(worst, degree), chars | mask
    return worst, chars


def _run(branch: Branch) -> int:
    """Characters of which a branch takes a whole run, whatever follows."""
    node = branch[0] if branch else None
    plain = isinstance(node, Chars) and node.low <= 1 and node.high < 0 and not _can_fail(branch[1:])
    return node.mask & _ASCII if plain and isinstance(node, Chars) else 0


def _degree(branch: Sequence[Node]) -> tuple[int, int]:
    degree, chars = 0, 0
    for at, node in enumerate(branch):
        rest = branch[at + 1 :]
        if isinstance(node, Look):
            inner = [_look(part) for part in node.branches]
        elif isinstance(node, Group):
            inner = [_degree(part) for part in node.branches]
            if _is_long(node) and _can_fail(rest):
                inner.append((1, first_set(node.branches)))
        else:
            inner = [(1, node.mask & _ASCII)] if _is_long(node) and not _gives_one(node, rest) else []
        # alternatives of one node are tried one after the other, nodes of a branch inside each other
        degree += max((part[0] for part in inner), default=0)
        for _, mask in inner:
            chars |= mask
    return degree, chars


def _look(branch: Branch) -> tuple[int, int]:
    degree, chars = _degree(branch)
    for node in branch:
        if not isinstance(node, Look) and _is_long(node):
            chars |= first_set((branch,)) | (node.mask if isinstance(node, Chars) else first_set(node.branches))
            degree = max(degree, 1)
    return degree, chars & _ASCII


def _is_long(node: Chars | Group) -> bool:
    return node.high < 0 or node.high > _MANY


def _gives_one(node: Chars, rest: Sequence[Node]) -> bool:
    """Whether what follows a run cannot fail, or needs no more than one of its characters."""
    if not _can_fail(rest):
        return True
    after = rest[0]
    more = isinstance(after, Chars) and after.low == 1 and node.mask & _ASCII & ~after.mask == 0
    return more and not _can_fail(rest[1:])
