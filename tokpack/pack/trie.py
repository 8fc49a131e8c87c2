"""A static byte trie as three arrays, built with numpy, walked with plain indexing.

Nodes are numbered breadth-first, so edge e leads to node e + 1 and the edges of a node lie side by side:
``first[node] .. first[node + 1]`` are its edges, ``label`` their bytes in ascending order, ``value[node]`` what the
text up to a node stands for, or -1.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokpack.typed import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tokpack.pack.view import PackView

__all__ = ["Trie", "build_trie"]


class _Bytes(Protocol):
    """What both ``bytes`` and ``mmap`` have: a search inside a range."""

    def find(self, sub: bytes, start: int, end: int, /) -> int: ...


def build_trie(texts: Mapping[bytes, int], name: str = "trie") -> dict[str, bytes]:
    """Sections ``NAME.first`` (u32), ``NAME.label`` (u8) and ``NAME.value`` (i32) for non-empty texts.

    One step per depth: the texts are sorted, so those that share a node lie side by side, and a new node begins where
    the parent or the byte changes.
    """
    import numpy as np

    keys = sorted(text for text in texts if text)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    blob = np.frombuffer(b"".join(keys), dtype=np.uint8)
    values = np.fromiter((texts[key] for key in keys), dtype=np.int64, count=len(keys))
    alive = np.arange(len(keys))
    parent = np.zeros(len(keys), dtype=np.int64)  # node of each text that is alive, within its level
    level_size, counts, labels, value_levels = 1, [], [], [np.full(1, -1, dtype=np.int64)]
    depth = 0
    while alive.size:
        byte = blob[starts[alive] + depth]
        new = np.ones(alive.size, dtype=bool)
        new[1:] = (parent[1:] != parent[:-1]) | (byte[1:] != byte[:-1])
        node = np.cumsum(new) - 1
        counts.append(np.bincount(parent[new], minlength=level_size))
        labels.append(byte[new])
        level_size = int(node[-1]) + 1
        ends = lengths[alive] == depth + 1
        level = np.full(level_size, -1, dtype=np.int64)
        level[node[ends]] = values[alive[ends]]
        value_levels.append(level)
        alive, parent = alive[~ends], node[~ends]
        depth += 1
    counts.append(np.zeros(level_size, dtype=np.int64))
    first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    label = np.concatenate(labels) if labels else np.empty(0, dtype=np.uint8)
    return {
        f"{name}.first": first.astype("<u4").tobytes(),
        f"{name}.label": label.astype(np.uint8).tobytes(),
        f"{name}.value": np.concatenate(value_levels).astype("<i4").tobytes(),
    }


class Trie:
    """Walks the three arrays. Indices come from array lengths, so a damaged trie ends a walk early, never outside.

    Args:
        data: the file.
        label: (offset, length) of the labels in ``data``.
        first, value: views of the other two sections.
    """

    def __init__(self, data: _Bytes, label: tuple[int, int], first: Any, value: Any) -> None:
        self._data = data
        self._base, self._edges = label
        self._first = first
        self._value = value
        self._nodes = min(len(first) - 1, len(value), self._edges + 1)

    @classmethod
    def of(cls, view: PackView, name: str) -> Trie:
        """The trie in the sections ``NAME.*`` of a pack; an empty one when they are absent."""
        return cls(
            view.data,
            view.sections.get(f"{name}.label", (0, 0)),
            view.array(f"{name}.first"),
            view.array(f"{name}.value"),
        )

    def child(self, node: int, byte: bytes) -> int:
        """Node behind the edge ``byte`` (one byte) of ``node``, or -1."""
        if node >= self._nodes:
            return -1
        start, end = self._first[node], self._first[node + 1]
        if start >= end or end > self._edges:
            return -1
        at = self._data.find(byte, self._base + start, self._base + end)
        if at < 0:
            return -1
        found = at - self._base + 1
        # breadth-first numbers only grow: anything else would be a loop
        return found if node < found < self._nodes else -1

    def value(self, node: int) -> int:
        """What the text up to ``node`` stands for, or -1."""
        return int(self._value[node])

    def prefixes(self, text: bytes, start: int) -> list[tuple[int, int]]:
        """(end, value) of every stored text that begins at ``start``, shortest first."""
        found = []
        node, at, size = 0, start, len(text)
        while at < size:
            node = self.child(node, text[at : at + 1])
            if node < 0:
                break
            at += 1
            value = self._value[node]
            if value >= 0:
                found.append((at, value))
        return found

    def longest(self, text: bytes, start: int) -> tuple[int, int]:
        """(end, value) of the longest stored text that begins at ``start``, or (start, -1)."""
        found = self.prefixes(text, start)
        return found[-1] if found else (start, -1)

    def depth(self, text: bytes, start: int) -> int:
        """How many bytes of ``text`` from ``start`` the trie can follow, whether a stored text ends there or not."""
        node, at, size = 0, start, len(text)
        while at < size:
            node = self.child(node, text[at : at + 1])
            if node < 0:
                break
            at += 1
        return at - start
