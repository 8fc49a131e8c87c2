"""``(?i)``: what a class and a string match, and the steps on the tree that come before (Oniguruma, full case folding).

Sources: src/regparse.c (i_apply_case_fold), src/regcomp.c (reduce_string_list, unravel_case_fold_string),
src/unicode.c (onigenc_unicode_get_case_fold_codes_by_str).
"""

from __future__ import annotations

import numpy as np

from tokpack.onig.nodes import Alt, Chars, Group, Node, Repeat, Seq, Set, children, rebuild
from tokpack.onig.quantify import reduced
from tokpack.onig.sets import CharSet, folds

__all__ = ["drop_unnamed", "fold_class", "has_named", "join_strings", "unravel"]


def _equal(code: int) -> Set:
    return Set(CharSet.of(folds().same.get(code, (code,))))


def _one(code: int) -> Set:
    """A character of a long folding: equal to those that fold to one character only."""
    return Set(CharSet.of(c for c in folds().same.get(code, (code,)) if c not in folds().long))


def fold_class(chars: CharSet, *, negate: bool) -> Node:
    """A bracket class under ``(?i)``: closed under folding, before it is complemented.

    If it is not complemented, each member that folds to two or three characters adds these as alternatives.
    """
    table = folds()
    closed = table.close(chars)
    if negate:
        return Set(~closed)
    inside = closed.has(np.array(list(table.long), dtype=np.int64)).tolist()
    longs = sorted(
        {fold for fold, hit in zip(table.long.values(), inside, strict=True) if hit}, key=lambda f: (len(f), f)
    )
    alternatives = [Seq(tuple(_one(c) for c in fold)) for fold in longs]
    return Alt((Set(closed), *alternatives)) if alternatives else Set(closed)


def join_strings(node: Node) -> Node:
    """Neighbouring strings of one list become one (reduce_string_list); the empty string folds nothing."""
    if not isinstance(node, Seq):
        return rebuild(node, join_strings)
    items: list[Node] = []
    for item in node.items:
        last = items[-1] if items else None
        if isinstance(item, Chars) and isinstance(last, Chars) and item.fold == last.fold:
            items[-1] = Chars(last.codes + item.codes, item.fold)
        else:
            items.append(join_strings(item))
    return Seq(tuple(items))


def has_named(node: Node) -> bool:
    """Whether any group has a name: then groups without one capture nothing."""
    return (isinstance(node, Group) and node.kind == "named") or any(map(has_named, children(node)))


def drop_unnamed(node: Node) -> Node:
    """Without the groups that capture nothing (make_named_capture_number_map); quantifiers that now meet are one."""
    if isinstance(node, Group) and node.kind == "plain":
        return drop_unnamed(node.body)
    made = rebuild(node, drop_unnamed)
    if isinstance(made, Repeat) and isinstance(made.body, Repeat) and isinstance(node, Repeat):
        return reduced(made, made.body) if isinstance(node.body, Group) else made
    return made


def unravel(codes: tuple[int, ...], *, behind: bool) -> Node:
    """A string under ``(?i)``: three characters that are a long folding first, then two, then one by one.

    In a lookbehind only single characters are equal to single characters.
    """
    table = folds()
    keys = tuple(table.representative(c) for c in codes)
    items: list[Node] = []
    place = 0
    while place < len(codes):
        for size in () if behind else (3, 2):
            same = table.short.get(keys[place : place + size]) if place + size <= len(codes) else None
            if same:
                spelled = Seq(tuple(_one(c) for c in codes[place : place + size]))
                items.append(Alt((spelled, Set(CharSet.of(same)))))
                place += size
                break
        else:
            code = codes[place]
            fold = table.long.get(code)
            if fold is None or behind:
                items.append(_equal(code))
            else:
                items.append(Alt((_equal(code), Seq(tuple(_one(c) for c in fold)))))
            place += 1
    return items[0] if len(items) == 1 else Seq(tuple(items))
