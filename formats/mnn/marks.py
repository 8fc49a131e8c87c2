r"""Marked text: every character with a mark behind it that says which sets of some patterns it belongs to.

MNN's matcher knows ASCII characters and seven kinds of others. On marked text, patterns over any sets can be said with
ASCII alone: a character of a class is ``[^marks][mark of the class]``. Printable ASCII characters are themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tokpack.onig.nodes import Alt, Anchor, Atomic, Chars, Group, Look, Node, Repeat, Seq, Set, children
from tokpack.onig.sets import CharSet
from tokpack.unicode import byte_level

from .core import refuse
from .hf_patterns import ANY
from .unknown import possible_characters

__all__ = ["Marks"]

# control characters that MNN's matcher does not use itself; no white space, and no text has them behind a table
_POOL = tuple(map(chr, (*range(0x0E, 0x20), 0x08)))
_PRINTABLE = frozenset(map(chr, range(0x21, 0x7F)))
_META = frozenset("\\]^-")


@dataclass(frozen=True, slots=True)
class _Class:
    """Marks of the characters that are in the same sets.

    Attributes:
        inner: behind all bytes of a character but the last one; empty unless characters are bytes.
        last: behind a character.
        unknown: stands for a character without a piece; empty if every character has pieces.
    """

    inner: str
    last: str
    unknown: str


class Marks:
    """Classes of characters, their marks, and patterns on marked text.

    Attributes:
        behind: the marks that stand behind a symbol; the last one in byte order is :attr:`main`.
    """

    def __init__(self, trees: Iterable[Node], known: frozenset[str] | None) -> None:
        """``known``: the characters that have a piece; None for byte-level text, where all have."""
        self._known = known
        self._bytes = known is None
        self._visible = _PRINTABLE if known is None else _PRINTABLE & known
        self._sets = list({s.key(): s for tree in trees for s in _sets(tree)}.values())
        self._chars = [char for char in possible_characters() if char not in self._visible]
        codes = np.array([ord(char) for char in self._chars], dtype=np.int64)
        rows = np.array([s.has(codes) for s in self._sets], dtype=np.uint8).reshape(len(self._sets), len(codes))
        kinds, self._class_of = np.unique(rows.T, axis=0, return_inverse=True)
        self._members = kinds.astype(bool)
        pool = list(_POOL)
        if 1 + len(kinds) * 2 > len(pool):
            raise refuse("the patterns have too many different sets of characters", "pre_tokenizer", "mtok-affix")
        self._plain = pool.pop(0)
        self._classes = [
            _Class(pool.pop(0) if self._bytes else "", pool.pop(0), "" if self._bytes else pool.pop(0)) for _ in kinds
        ]
        self.behind = sorted({self._plain, *(m for c in self._classes for m in (c.inner, c.last) if m)})
        self._all = "".join(sorted({*self.behind, *(c.unknown for c in self._classes if c.unknown)}))

    @property
    def main(self) -> str:
        """The mark in the texts of pieces."""
        return self.behind[-1]

    @property
    def unknown(self) -> list[str]:
        """What stands for unknown characters."""
        return [c.unknown for c in self._classes if c.unknown]

    def table(self) -> dict[str, str]:
        """Character → marked text."""
        texts = {char: char + self._plain for char in self._visible}
        for char, number in zip(self._chars, self._class_of.reshape(-1).tolist(), strict=True):
            kind = self._classes[number]
            if self._known is None:
                symbols = byte_level.encode(char.encode())
                texts[char] = kind.inner.join(symbols) + kind.last
            else:
                texts[char] = char + kind.last if char in self._known else kind.unknown
        return texts

    def symbols(self) -> list[tuple[str, list[str]]]:
        """(symbol, marks that may stand behind it)."""
        if self._known is not None:
            last = {c: k.last for c, k in zip(self._chars, self._kinds(), strict=True) if c in self._known}
            return [(char, [self._plain]) for char in sorted(self._visible)] + [(c, [m]) for c, m in last.items()]
        marks = [mark for mark in self.behind if mark != self._plain]
        return [(char, [self._plain] if char in self._visible else marks) for char in byte_level.CHARS]

    def _kinds(self) -> list[_Class]:
        return [self._classes[number] for number in self._class_of.reshape(-1).tolist()]

    # --- patterns ---

    def pattern(self, node: Node) -> str:
        """``node`` on marked text; UnsupportedError for what MNN's matcher has no form for."""
        if isinstance(node, Set):
            return self._set(node.chars)
        if isinstance(node, Seq):
            return "".join(self._grouped(item) for item in node.items)
        if isinstance(node, Alt):
            return "|".join(self.pattern(item) for item in node.items)
        if isinstance(node, Repeat) and node.greedy:
            high = "" if node.high is None else str(node.high)
            short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.low, node.high), f"{{{node.low},{high}}}")
            return f"(?:{self.pattern(node.body)}){short}"
        if isinstance(node, Look) and not node.behind:
            inside = f"(?!{self.pattern(node.body)})"
            return inside if node.negate else f"(?!{inside})"
        if isinstance(node, Group):
            return self.pattern(node.body)
        assert not isinstance(node, Chars)
        what = node.kind if isinstance(node, Anchor) else "atomic group" if isinstance(node, Atomic) else "pattern"
        raise refuse(f"the {what} has no form on marked text", "pre_tokenizer", "mtok-affix")

    def _grouped(self, node: Node) -> str:
        while isinstance(node, Group):
            node = node.body
        text = self.pattern(node)
        return f"(?:{text})" if isinstance(node, Alt) else text

    def _set(self, chars: CharSet) -> str:
        at = next(i for i, s in enumerate(self._sets) if s.key() == chars.key())
        chosen = [kind for kind, inside in zip(self._classes, self._members[:, at].tolist(), strict=True) if inside]
        visible = [char for char in sorted(self._visible) if chars.has(np.array([ord(char)]))[0]]
        forms = [_class(visible) + self._plain] if visible else []
        if chosen:
            last = _class([kind.last for kind in chosen])
            other = f"[^{self._all}]"
            inner = f"(?:{other}{_class([kind.inner for kind in chosen])})*" if self._bytes else ""
            forms.append(f"{inner}{other}{last}")
            if not self._bytes:
                forms.append(_class([kind.unknown for kind in chosen]))
        if not forms:
            return rf"(?!{ANY}){ANY}"
        return forms[0] if len(forms) == 1 else f"(?:{'|'.join(forms)})"

    def end(self) -> str:
        """The mark at the end of a word."""
        return f"{_class(self.behind)}(?!{ANY})"


def _sets(node: Node) -> Iterable[CharSet]:
    if isinstance(node, Set):
        yield node.chars
    for child in children(node):
        yield from _sets(child)


def _class(chars: Sequence[str]) -> str:
    return "[" + "".join(f"\\{char}" if char in _META else char for char in chars) + "]"
