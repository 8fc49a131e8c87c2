"""The tree after parsing → one of sets only, without case folding, groups and lookbehinds of varying width."""

from __future__ import annotations

from itertools import product

from tokpack.onig.cursor import Cursor
from tokpack.onig.folding import drop_unnamed, has_named, join_strings, unravel
from tokpack.onig.nodes import Alt, Anchor, Atomic, Chars, Group, Look, Node, Repeat, Seq, Set, children, rebuild
from tokpack.onig.sets import CharSet

__all__ = ["EMPTY", "lower", "width"]

EMPTY = Seq(())
_MAX_VARIANTS = 64
_MAX_BEHIND = 1000


def lower(tree: Node, cursor: Cursor) -> Node:
    """The tree without what only Oniguruma has; the cursor makes the errors."""
    joined = join_strings(tree)
    if has_named(joined):
        joined = drop_unnamed(joined)
    return _Lowering(cursor).node(joined, behind=False)


def width(node: Node) -> int | None:
    """The number of characters of every match; None if it varies."""
    if isinstance(node, Set):
        return 1
    if isinstance(node, (Anchor, Look)):
        return 0
    if isinstance(node, Chars):
        return len(node.codes)
    if isinstance(node, Repeat):
        body = width(node.body)
        if body == 0:
            return 0
        return body * node.low if body is not None and node.low == node.high else None
    if isinstance(node, (Atomic, Group)):
        return width(node.body)
    widths = [width(item) for item in node.items]
    if isinstance(node, Alt):
        return widths[0] if len(set(widths)) == 1 else None
    return None if None in widths else sum(w for w in widths if w is not None)


class _Lowering:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def node(self, node: Node, *, behind: bool) -> Node:
        """One node; ``behind`` inside a lookbehind, where folding is of single characters."""
        if isinstance(node, Chars):
            if node.fold and node.codes:
                return unravel(node.codes, behind=behind)
            return Seq(tuple(Set(CharSet.of((c,))) for c in node.codes))
        if isinstance(node, Group):
            return self.node(node.body, behind=behind)
        if isinstance(node, Look) and node.behind:
            self._check(node.body, node)
            return self._behind(node, self.node(node.body, behind=True))
        if isinstance(node, Look):
            return Look(self.node(node.body, behind=behind), False, node.negate, node.offset)
        return rebuild(node, lambda item: self.node(item, behind=behind))

    def _check(self, node: Node, look: Look) -> None:
        """What the engine does not allow in a lookbehind (check_node_in_look_behind)."""
        bad = (
            (isinstance(node, Group) and node.kind != "option" and look.negate)
            or (isinstance(node, Anchor) and node.kind in ("\\z", "\\Z"))
            or (isinstance(node, Look) and not node.behind)
            or (isinstance(node, Look) and node.negate and not look.negate)
        )
        if bad:
            raise self.cursor.refused("invalid pattern in look-behind", look.offset)
        for child in children(node):
            self._check(child, look)

    def _behind(self, look: Look, body: Node) -> Node:
        """One lookbehind for each width: only whether one matches counts (divide_look_behind_alternatives)."""
        by_width: dict[int, list[Node]] = {}
        for size, variant in self._variants(_least_head(body), look):
            if size > _MAX_BEHIND:
                raise self.cursor.unsupported("a lookbehind this wide", f"more than {_MAX_BEHIND}", look.offset)
            by_width.setdefault(size, []).append(variant)
        looks = []
        for variants in by_width.values():
            inner = variants[0] if len(variants) == 1 else Alt(tuple(variants))
            looks.append(Look(inner, True, look.negate, look.offset))
        if len(looks) == 1:
            return looks[0]
        return Seq(tuple(looks)) if look.negate else Alt(tuple(looks))

    def _variants(self, node: Node, look: Look) -> list[tuple[int, Node]]:
        """The ways to match, each of one width."""
        if _has_atomic(node):
            raise self.cursor.unsupported("an atomic group in a lookbehind", "not verified", look.offset)
        size = width(node)
        if size is not None:
            return [(size, node)]
        found: list[tuple[int, Node]]
        if isinstance(node, Alt):
            found = [variant for item in node.items for variant in self._variants(item, look)]
        elif isinstance(node, Seq):
            found = self._product([self._variants(item, look) for item in node.items], look)
        else:
            assert isinstance(node, Repeat)
            if node.high is None:
                raise self.cursor.unsupported("a lookbehind of unlimited width", "`re` has none", look.offset)
            found = []
            for count in range(node.low, min(node.high, node.low + _MAX_VARIANTS + 1) + 1):
                found += self._product([self._variants(node.body, look)] * count, look)
        return self._limited(found, look)

    def _product(self, parts: list[list[tuple[int, Node]]], look: Look) -> list[tuple[int, Node]]:
        total = 1
        for part in parts:
            total *= len(part)
            if total > _MAX_VARIANTS:
                raise self._too_many(look)
        return [(sum(w for w, _ in way), Seq(tuple(n for _, n in way))) for way in product(*parts)]

    def _limited(self, found: list[tuple[int, Node]], look: Look) -> list[tuple[int, Node]]:
        if len(found) > _MAX_VARIANTS:
            raise self._too_many(look)
        return found

    def _too_many(self, look: Look) -> Exception:
        why = f"more than {_MAX_VARIANTS} ways to match"
        return self.cursor.unsupported("a lookbehind of many widths", why, look.offset)


def _has_atomic(node: Node) -> bool:
    return isinstance(node, Atomic) or any(map(_has_atomic, children(node)))


def _least_head(node: Node) -> Node:
    """What stands first in a lookbehind need not match more than it must (node_reduce_in_look_behind)."""
    if isinstance(node, Alt):
        return Alt(tuple(map(_least_head, node.items)))
    if isinstance(node, Seq):
        for place, item in enumerate(node.items):
            if item != EMPTY:
                return Seq((*node.items[:place], _least_head(item), *node.items[place + 1 :]))
        return node
    if isinstance(node, Repeat):
        return Repeat(node.body, node.low, node.low)
    return node
