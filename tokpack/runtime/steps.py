"""Steps of a trie, remembered: walking it again costs a look into a dict for each byte."""

from __future__ import annotations

from tokpack.pack.trie import Trie

__all__ = ["TrieSteps"]

_CACHED = 1 << 17
_BYTES = tuple(bytes((byte,)) for byte in range(256))


class TrieSteps(dict[int, int]):
    """node << 8 | byte → the node behind that edge, or -1; bounded.

    Args:
        trie: is asked once for each step.
    """

    def __init__(self, trie: Trie) -> None:
        super().__init__()
        self._child = trie.child

    def __missing__(self, key: int) -> int:
        node = self._child(key >> 8, _BYTES[key & 255])
        if len(self) >= _CACHED:
            self.clear()
        self[key] = node
        return node
