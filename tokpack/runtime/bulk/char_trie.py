"""The byte trie of a pack as one of characters, for many places of a text at a time.

A step leads from a node by a character to another node. Nodes keep the numbers that they have in the pack, of which
those in the middle of a character are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack.errors import FormatError, Location
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DEAD", "CharTrie"]

DEAD = -1
_POINT_BITS = np.int64(21)
_NODE_BITS = np.uint64(21)
_FEW_NODES = 1 << 21  # with so many, a step fits into 8 bytes
_PROBES = 64  # slots that a search goes through at most
_NODE_MASK = np.uint64(_FEW_NODES - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)


class CharTrie:
    """Walks the trie.

    Attributes:
        complete: whether all texts are made of whole characters.
        value: what the text up to a node stands for, or -1; int32 ``[nodes + 1]``, the last entry for no node.
        grows: whether anything is behind a node; bool ``[nodes + 1]``.
    """

    def __init__(self, first: NDArray[np.int64], label: NDArray[np.uint8], value: NDArray[np.int32]) -> None:
        nodes = len(value)
        count = np.diff(first)
        parent = np.concatenate(([0], np.repeat(np.arange(nodes), count)))
        byte = np.concatenate(([0], label)).astype(np.int64)
        starts, ends, points = _characters(parent, byte)
        self.complete = _complete(value, ends)
        inner = starts != 0
        key = (starts[inner] << _POINT_BITS | points[inner]).view(np.uint64)
        steps = ends[inner]
        self._steps = _Steps(key, steps) if nodes < _FEW_NODES else Table.of((key,), steps.astype(np.int32))
        self._root = np.full(0x110000, DEAD, dtype=np.int32)
        self._root[points[~inner]] = ends[~inner]
        self.value = np.append(value, np.int32(-1)).astype(np.int32)
        self.grows = np.append(np.zeros(nodes, dtype=np.bool_), False)
        self.grows[starts] = True

    @classmethod
    def of(cls, view: PackView, size: int) -> CharTrie:
        """The trie in the sections ``trie.*``, whose values are below ``size``; FormatError if it is damaged."""
        first = np.frombuffer(view.raw("trie.first"), dtype="<u4").astype(np.int64)
        label = np.frombuffer(view.raw("trie.label"), dtype=np.uint8)
        value = np.frombuffer(view.raw("trie.value"), dtype="<i4")
        if not len(first) and not len(label) and not len(value):
            first, value = np.zeros(2, dtype=np.int64), np.full(1, -1, dtype=np.int32)
        ok = len(first) == len(value) + 1 == len(label) + 2 and not first[0] and int(first[-1]) == len(label)
        # numbers only grow, breadth first: anything else would be a loop
        ok = ok and bool((first[1:] >= first[:-1]).all() and (first[:-2] >= np.arange(len(value) - 1)).all())
        if not ok or int(value.max()) >= size:
            what = "the index is damaged: the trie contradicts itself"
            raise FormatError(what, location=Location(view.file, "trie.first"), hint="convert the tokenizer again")
        return cls(first, label, value)

    def begin(self, points: NDArray[np.integer]) -> NDArray[np.int32]:
        """Nodes of first characters, DEAD for those that nothing begins with."""
        return self._root.take(points)

    def step(self, nodes: NDArray[np.int32], points: NDArray[np.integer]) -> NDArray[np.int32]:
        """Nodes behind ``nodes`` by these characters, DEAD for none."""
        key = nodes.astype(np.int64)
        key <<= _POINT_BITS
        key |= points
        found = self._steps.find((key.view(np.uint64),))
        return np.maximum(found, DEAD, out=found)

    def node(self, text: str) -> int:
        """Node of a text, or DEAD; 0 for the empty one."""
        node = 0
        for at, char in enumerate(text):
            point = np.array([ord(char)])
            node = int((self.step(np.array([node], dtype=np.int32), point) if at else self.begin(point))[0])
            if node < 0:
                return DEAD
        return node


class _Steps:
    """Node and character → next node: a hash table of 8-byte entries, ``key << 21 | node``, 0 for none.

    Args:
        key: node << 21 | code point, each once.
        node: where it leads, above 0.
    """

    def __init__(self, key: NDArray[np.uint64], node: NDArray[np.int64]) -> None:
        bits = max(8, (3 * len(key)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._entries = np.zeros((1 << bits) + _PROBES, dtype=np.uint64)
        entry = key << _NODE_BITS | node.astype(np.uint64)
        slot = self._slots(key)
        for _ in range(_PROBES):
            if not len(slot):
                break
            free = self._entries.take(slot) == 0
            self._entries[slot[free]] = entry[free]  # of several for one slot the last one stays
            left = np.flatnonzero(self._entries.take(slot) != entry)
            slot, entry = slot.take(left) + 1, entry.take(left)
        self._rest = dict(zip((entry >> _NODE_BITS).tolist(), (entry & _NODE_MASK).tolist(), strict=True))

    def _slots(self, key: NDArray[np.uint64]) -> NDArray[np.int64]:
        slots: NDArray[np.int64] = ((key * _MIX) >> self._shift).view(np.int64)
        return slots

    def find(self, keys: tuple[NDArray[np.uint64]]) -> NDArray[np.int32]:
        """Where each key leads, below 0 for nowhere."""
        (key,) = keys
        slot = self._slots(key)
        entry = self._entries.take(slot)
        nodes: NDArray[np.int32] = (entry & _NODE_MASK).astype(np.int32)
        entry >>= _NODE_BITS
        nodes -= entry == 0
        other = np.flatnonzero(entry != key)
        if not len(other):
            return nodes
        nodes[other] = DEAD
        other = other.take(np.flatnonzero(entry.take(other)))  # an empty slot ends the search
        slot = slot.take(other)
        for _ in range(_PROBES - 1):
            if not len(other):
                return nodes
            slot += 1
            entry = self._entries.take(slot)
            right = np.flatnonzero(entry >> _NODE_BITS == key.take(other))
            nodes[other.take(right)] = (entry.take(right) & _NODE_MASK).astype(np.int32)
            going = (entry != 0) & (entry >> _NODE_BITS != key.take(other))
            other, slot = other[going], slot[going]
        for at in other.tolist() if self._rest else ():
            nodes[at] = self._rest.get(int(key[at]), DEAD)
        return nodes


def _characters(
    parent: NDArray[np.int64], byte: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(node before a character, node behind it, code point) of all characters of valid UTF-8."""
    node = np.arange(1, len(parent))
    chain = [node]
    for _ in range(4):
        chain.append(parent[chain[-1]])
    last = byte[chain[0]]
    whole = np.zeros(len(parent), dtype=np.bool_)  # nodes behind a character
    whole[0] = True
    size = np.where(last < 0x80, 1, 0)
    trail = (last & 0xC0) == 0x80
    for count, low, high in ((2, 0xC2, 0xDF), (3, 0xE0, 0xEF), (4, 0xF0, 0xF4)):
        lead = byte[chain[count - 1]]
        fits = trail & (size == 0) & (lead >= low) & (lead <= high) & (chain[count - 1] > 0)
        size[fits] = count
        trail &= (lead & 0xC0) == 0x80
    points = np.where(size == 1, last, 0)
    for count in (2, 3, 4):
        value = byte[chain[count - 1]] & (0x7F >> count)
        for at in range(count - 2, -1, -1):
            value = value << 6 | (byte[chain[at]] & 0x3F)
        points = np.where(size == count, value, points)
    start = np.choose(size, chain)
    good = (size > 0) & (points < 0x110000)
    # a parent has a smaller number than its child: one pass from the top settles which nodes begin characters
    shortest = np.array([0, 0, 0x80, 0x800, 0x10000])
    good &= points >= shortest[size]
    reached = _reached(start, node, good, len(parent))
    good &= reached[start]
    return start[good], node[good], points[good]


def _reached(
    start: NDArray[np.int64], node: NDArray[np.int64], good: NDArray[np.bool_], count: int
) -> NDArray[np.bool_]:
    """Nodes that whole characters lead to from the root."""
    reached = np.zeros(count, dtype=np.bool_)
    reached[0] = True
    todo = np.flatnonzero(good)
    while len(todo):
        new = reached[start[todo]]
        if not new.any():
            break
        reached[node[todo[new]]] = True
        todo = todo[~new]
    return reached


def _complete(value: NDArray[np.int32], ends: NDArray[np.int64]) -> bool:
    """Whether all texts are made of whole characters."""
    whole = np.zeros(len(value), dtype=np.bool_)
    whole[ends] = True
    return not bool((value[~whole] >= 0).any())
