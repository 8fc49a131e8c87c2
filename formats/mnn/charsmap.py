"""What a SentencePiece charsmap makes of characters.

The map is a double array of bytes to replacement texts, searched for the longest match
(``xcda_array_view`` and ``normalize_prefix`` in llama.cpp's ``src/llama-vocab.cpp``, commit 0c1e570). A unit is
``offset << 10 | shift flag << 9 | leaf << 8 | label``, or a value with the top bit clear.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Entries", "entries", "pairs"]

_DEEPEST = 32  # bytes of a key; real keys have at most 21
_MOST_NODES = 1 << 19  # visited per depth: a damaged array may have as many paths as it likes
_STEP = 4096  # nodes expanded at once
_MOST_PAIRS = 2048  # each costs MNN one pass over every text


@dataclass(frozen=True, slots=True)
class Entries:
    """A charsmap by the length of its keys, in characters.

    Attributes:
        single: character → replacement, where that is another text.
        several: keys of two and three characters → replacement.
        longer: how many keys have more.
    """

    single: dict[str, str]
    several: dict[str, str]
    longer: int


def entries(blob: bytes) -> Entries:
    """What stands in a charsmap, as far as its keys are whole characters."""
    size = int.from_bytes(blob[:4], "little") if len(blob) > 4 else 0
    stored = min(size, max(len(blob) - 4, 0)) // 4
    units = np.frombuffer(blob, dtype="<u4", count=stored, offset=4) if stored else np.zeros(0, dtype="<u4")
    texts = blob[4 + size :]
    single: dict[str, str] = {}
    several: dict[str, str] = {}
    longer = 0
    nodes = _base(units[:1])
    keys = np.zeros((len(nodes), 0), dtype=np.uint8)
    for _ in range(_DEEPEST):
        nodes, keys, values = _children(units, nodes, keys)
        if not len(nodes) or len(nodes) > _MOST_NODES:
            break
        for row in np.flatnonzero(values >= 0).tolist():
            key = keys[row].tobytes().decode("utf-8", "replace")
            offset = int(values[row])
            if "\ufffd" in key or offset >= len(texts):
                continue
            if len(key) > 3:
                longer += 1
                continue
            text = texts[offset : max(offset, texts.find(b"\0", offset))].decode("utf-8", "replace")
            if len(key) > 1:
                several[key] = text
            elif key != text:
                single[key] = text
    return Entries(single, several, longer)


def pairs(table: Entries, wanted: Collection[str]) -> list[tuple[str, str]]:
    """Keys of two characters that become one, such as a letter with its accent, to be replaced one after the other.

    Args:
        table: the charsmap.
        wanted: results worth a pass over the text: the characters of the vocabulary.

    llama.cpp takes the longest key at each position, once. One pass per key gives the same if no key begins with the
    second character of another, no result is the later character of a key, and a result that begins a key itself
    stands for an entry of three characters. The keys come in such an order that a result is there before it is looked
    for. Keys with characters that are replaced alone too (a wide letter and its accent) are not worth their pass.
    """
    first = {key[0] for key in table.several}
    later = {char for key in table.several for char in key[1:]}
    chosen = {
        key: text
        for key, text in table.several.items()
        if len(key) == 2 and len(text) == 1 and text in wanted and text not in table.single
        if key[1] not in first and text not in later and table.single.keys().isdisjoint(key)
    }
    follow: dict[str, list[str]] = {}
    for key in chosen:
        follow.setdefault(key[0], []).append(key[1])
    for key, text in list(chosen.items()):
        if any(table.several.get(key + mark) != chosen.get(text + mark) for mark in follow.get(text, ())):
            del chosen[key]
    made = set(chosen.values())
    order = sorted(chosen, key=lambda key: (key[0] in made, key))
    return [(key, chosen[key]) for key in order[:_MOST_PAIRS]]


def _base(units: NDArray[np.uint32]) -> NDArray[np.int64]:
    wide = units.astype(np.int64)
    return (wide >> 10) << ((wide & 1 << 9) >> 6)


def _children(
    units: NDArray[np.uint32], nodes: NDArray[np.int64], keys: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Nodes one byte deeper, their keys, and the replacement offset of each or -1."""
    labels = np.arange(1, 256, dtype=np.int64)
    found = [(np.zeros(0, np.int64), np.zeros((0, keys.shape[1] + 1), np.uint8), np.zeros(0, np.int64))]
    for start in range(0, len(nodes), _STEP):
        places = nodes[start : start + _STEP, None] ^ labels
        inside = places < len(units)
        unit = units[np.where(inside, places, 0)]
        rows, columns = np.nonzero(inside & (unit & 0x800000FF == labels))
        chosen = unit[rows, columns]
        deeper = places[rows, columns] ^ _base(chosen)
        leaf = (chosen >> 8 & 1).astype(bool) & (deeper < len(units))
        values = np.where(leaf, units[np.where(leaf, deeper, 0)].astype(np.int64) & 0x7FFFFFFF, -1)
        longer = np.concatenate([keys[start + rows], labels[columns, None].astype(np.uint8)], axis=1)
        found.append((deeper, longer, values))
    deeper, longer, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return deeper, longer, values
