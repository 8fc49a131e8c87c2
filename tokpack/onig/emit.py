"""Trees → patterns for ``re`` over class characters, and the table from code points to class characters.

ASCII stands for itself. All other code points that no set of any pattern tells apart are one class; class k is the
character ``0x80 + k``. Every set is spelled out, so nothing depends on Python's own Unicode tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import UnsupportedError
from tokpack.onig.nodes import Alt, Anchor, Atomic, Look, Node, Repeat, Seq, Set, children
from tokpack.onig.sets import SIZE, CharSet, named

__all__ = ["FLAGS", "Classes", "emit"]

FLAGS = re.ASCII | re.DOTALL
_ASCII = 0x80
_BLOCK = 256
_MAX_CLASSES = 0x4000


def _word() -> CharSet:
    word = named("word")
    assert word is not None
    return word


def _sets(node: Node) -> Iterator[CharSet]:
    if isinstance(node, Set):
        yield node.chars
    elif isinstance(node, Anchor) and node.kind in ("\\b", "\\B"):
        yield _word()
    for child in children(node):
        yield from _sets(child)


class Classes:
    """The partition of the code points by the sets of all trees.

    Attributes:
        index: uint16 ``[4352]``, the block of each code point's upper bits.
        blocks: uint16 ``[n, 256]``, class characters.
    """

    def __init__(self, trees: Sequence[Node]) -> None:
        sets = {chars.key(): chars for tree in trees for chars in _sets(tree)}
        self._columns = {key: column for column, key in enumerate(sets)}
        edges = np.unique(np.concatenate([np.array([0, _ASCII]), *(s.points for s in sets.values())]))
        edges = edges[(edges >= _ASCII) & (edges < SIZE)]
        rows = np.stack([np.ones(edges.size, dtype=np.bool_), *(s.has(edges) for s in sets.values())], axis=1)
        signatures, number = np.unique(np.packbits(rows, axis=1), axis=0, return_inverse=True)
        if len(signatures) > _MAX_CLASSES:
            raise UnsupportedError(f"the patterns tell {len(signatures)} classes of characters apart")
        self._rows = np.unpackbits(signatures, axis=1, count=rows.shape[1]).astype(np.bool_)[:, 1:]
        self._ascii = {key: s.has(np.arange(_ASCII)) for key, s in sets.items()}
        self._spelled: dict[bytes, str] = {}
        table = np.arange(SIZE, dtype=np.uint32)
        table[_ASCII:] = np.repeat(number.reshape(-1) + _ASCII, np.diff(np.append(edges, SIZE)))
        self.index, self.blocks = _two_stages(table.astype(np.uint16))

    def spell(self, chars: CharSet) -> str:
        """The set as one item of a pattern."""
        key = chars.key()
        if key not in self._spelled:
            member = np.concatenate((self._ascii[key], self._rows[:, self._columns[key]]))
            self._spelled[key] = _bracket(member)
        return self._spelled[key]


def _two_stages(table: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    rows = table.reshape(-1, _BLOCK)
    seen: dict[bytes, int] = {}
    index = [seen.setdefault(row.tobytes(), len(seen)) for row in rows]
    blocks = np.frombuffer(b"".join(seen), dtype=np.uint16).reshape(-1, _BLOCK)
    return np.array(index, dtype=np.uint16), blocks


def _bracket(member: NDArray[np.bool_]) -> str:
    """``[…]`` or ``[^…]``, whichever has fewer ranges; ``.`` for all characters."""
    if member.all():
        return "."
    inside, outside = _ranges(member), _ranges(~member)
    if not inside:
        return "[^\\x00-\\U0010ffff]"
    if len(inside) == 1 and inside[0][0] == inside[0][1]:
        return _literal(inside[0][0])
    chosen, sign = (inside, "") if len(inside) <= len(outside) else (outside, "^")
    parts = [_literal(a) if a == b else f"{_literal(a)}{'' if b == a + 1 else '-'}{_literal(b)}" for a, b in chosen]
    return f"[{sign}{''.join(parts)}]"


def _ranges(member: NDArray[np.bool_]) -> list[tuple[int, int]]:
    padded = np.concatenate(([False], member, [False]))
    flat = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    return [(a, b - 1) for a, b in zip(flat[::2], flat[1::2], strict=True)]


def _literal(code: int) -> str:
    """A character that means itself in brackets and out of them."""
    char = chr(code)
    if code < _ASCII and char.isalnum():
        return char
    if 0x20 < code < 0x7F:
        return "\\" + char
    return char if code == 0x20 else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def emit(tree: Node, classes: Classes) -> str:
    """The pattern of one tree."""
    return _Emitter(classes).alternatives(tree)


class _Emitter:
    """Writes one pattern; the only capturing groups are those of atomic groups, numbered as they open."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.groups = 0

    def alternatives(self, node: Node) -> str:
        """Where ``|`` needs no group around it."""
        items = node.items if isinstance(node, Alt) else (node,)
        return "|".join(map(self.sequence, items))

    def sequence(self, node: Node) -> str:
        """Where only ``|`` needs a group around it."""
        items = node.items if isinstance(node, Seq) else (node,)
        return "".join(map(self.item, items))

    def item(self, node: Node) -> str:
        """One item that a quantifier can follow."""
        if isinstance(node, Set):
            return self.classes.spell(node.chars)
        if isinstance(node, Repeat):
            return self.repeat(node)
        if isinstance(node, Atomic):
            self.groups += 1
            number = self.groups
            return f"(?=({self.alternatives(node.body)}))(?:\\{number})"
        if isinstance(node, Look):
            sign = ("<" if node.behind else "") + ("!" if node.negate else "=")
            return f"(?{sign}{self.alternatives(node.body)})"
        if isinstance(node, Anchor):
            return self.anchor(node.kind)
        return f"(?:{self.alternatives(node)})"

    def repeat(self, node: Repeat) -> str:
        body = self.item(node.body) if isinstance(node.body, Set) else f"(?:{self.alternatives(node.body)})"
        bounds = (node.low, node.high)
        simple = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get(bounds)
        if simple is None:
            high = "" if node.high is None else str(node.high)
            simple = f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{high}}}"
        return body + simple + ("" if node.greedy else "?")

    def anchor(self, kind: str) -> str:
        """Line anchors as in Ruby; the end of a text that ends in a newline begins no line (OP_BEGIN_LINE)."""
        if kind == "^":
            return "(?:\\A|(?<=\\n)(?!\\Z))"
        if kind == "$":
            return "(?=\\n|\\Z)"
        if kind in ("\\b", "\\B"):
            word = self.classes.spell(_word())
            if kind == "\\b":
                return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
            return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
        return {"\\A": "\\A", "\\z": "\\Z", "\\Z": "(?=\\n?\\Z)"}[kind]
