"""PLaMo2 (``llm_tokenizer_plamo2``): the cheapest way to cut a fragment, found from its end.

A piece costs -round(10,000 score), an unknown character 10,000,000 and becomes byte pieces; of equal totals the longer
piece wins. A piece that costs exactly as much as an unknown character is taken for the end of a list by the original,
with effects on its neighbours that :meth:`MinCostFragments._path_with_sentinels` reproduces.
"""

from __future__ import annotations

from functools import cached_property

from tokpack.runtime.spans import Spans
from tokpack.runtime.whole import Fragments
from tokpack.unicode.utf8 import code_points

__all__ = ["MinCostFragments"]

_UNKNOWN_COST = 10_000_000
_UNUSABLE = -(1 << 31)
_INFINITE = 1 << 60
_BYTE_ORDER_MARK = "\ufeff".encode()

Path = dict[int, tuple[int, int]]  # offset of a character → (id or -1 for its bytes, end offset)


class MinCostFragments(Fragments):
    """A fragment → ids."""

    @cached_property
    def _costs(self) -> memoryview[int]:
        costs = self._view.array("piece.cost")
        if len(costs) != self._pieces.size:
            raise self._pieces.damaged("piece.cost", "its length is not the vocabulary size")
        return costs

    @cached_property
    def _bytes(self) -> list[int]:
        emit = self._view.array("byte.emit")
        found = [emit[2 * byte] for byte in range(256)] if len(emit) == 512 else [-1]
        if any(not 0 <= token < self._pieces.size for token in found):
            raise self._pieces.damaged("byte.emit", "a byte has no piece")
        return found

    @cached_property
    def _suffixes(self) -> frozenset[bytes] | None:
        """All ends of all pieces, needed only if some piece costs as much as an unknown character."""
        if _UNKNOWN_COST not in self._costs:
            return None
        found: set[bytes] = set()
        for index in range(self._pieces.size):
            text = _characters(self._pieces.text(index))[0]
            whole = b"".join(text)
            if self._trie.longest(whole, 0) == (len(whole), index):  # byte pieces are not among the candidates
                found.update(b"".join(text[at:]) for at in range(len(text)))
        return frozenset(found)

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        out: Spans = []
        for token, text, start, end in self.path(raw):
            if token >= 0:
                out.append((token, start, end))
            else:
                out += [(self._bytes[byte], start, end) for byte in text]
        return out

    def path(self, raw: bytes) -> list[tuple[int, bytes, int, int]]:
        """(id, or -1 for a character without a piece; its text; start, end in ``raw``) of each best step."""
        chars, ends = _characters(raw)
        source = [0, *ends]
        if chars[:1] == [_BYTE_ORDER_MARK]:
            del chars[0], source[0]
        starts = [0]
        for char in chars:
            starts.append(starts[-1] + len(char))
        text = b"".join(chars)
        path = self._path(text, starts) if self._suffixes is None else self._path_with_sentinels(text, starts)
        place = dict(zip(starts, source, strict=True))
        out: list[tuple[int, bytes, int, int]] = []
        at = 0
        while at < len(text):
            token, end = path[at]
            out.append((token, text[at:end], place[at], place[end]))
            at = end
        return out

    def _path(self, text: bytes, starts: list[int]) -> Path:
        cost = {starts[-1]: 0}
        path: Path = {}
        for index in range(len(starts) - 2, -1, -1):
            at, following = starts[index], starts[index + 1]
            candidates = [(end, token) for end, token in reversed(self._trie.prefixes(text, at)) if end in cost]
            cost[at], path[at] = self._cheapest(candidates, following, cost)
        return path

    def _cheapest(
        self, candidates: list[tuple[int, int]], following: int, cost: dict[int, int]
    ) -> tuple[int, tuple[int, int]]:
        """(total, step) of the best of the pieces (longest first) and of the unknown character."""
        lowest, step = _INFINITE, (-1, following)
        for end, token in candidates:
            piece = self._costs[self._checked(token)]
            if piece != _UNUSABLE and cost[end] + piece < lowest:
                lowest, step = cost[end] + piece, (token, end)
            if piece == _UNKNOWN_COST:
                return lowest, step
        unknown = cost[following] + _UNKNOWN_COST
        return (unknown, (-1, following)) if unknown < lowest else (lowest, step)

    def _path_with_sentinels(self, text: bytes, starts: list[int]) -> Path:
        """The original walks a table of piece ends; its rows are the beginnings of the end that fits here.

        It looks for the longest row that it can extend by the next character, and for the pieces among the rows, but
        stops at a row that looks like the last one.
        """
        cost = {starts[-1]: 0}
        path: Path = {}
        fit = len(starts) - 1  # the end that fits at the position after this one stretches to this character
        for index in range(len(starts) - 2, -1, -1):
            at, following = starts[index], starts[index + 1]
            fit = self._extend(text, index, fit, starts)
            candidates = [
                (end, token)
                for end, token in reversed(self._trie.prefixes(text, at))
                if end in cost and end <= starts[fit]
            ]
            cost[at], path[at] = self._cheapest(candidates, following, cost)
        return path

    def _extend(self, text: bytes, index: int, fit: int, starts: list[int]) -> int:
        """To which character the longest piece end at ``index`` stretches that the walk can find; itself for none."""
        suffixes = self._suffixes
        assert suffixes is not None
        at, following = starts[index], starts[index + 1]
        for row in range(fit, index, -1):
            end = starts[row]
            if end > following and text[following:end] not in suffixes:
                continue
            if text[at:end] in suffixes:
                return row
            if end > following:
                stop, token = self._trie.longest(text[following:end], 0)
                if stop == end - following and token >= 0 and self._costs[self._checked(token)] == _UNKNOWN_COST:
                    return index
        return index


def _characters(raw: bytes) -> tuple[list[bytes], list[int]]:
    """Characters in their shortest form (above U+10FFFF: as they are), and where each ends in ``raw``."""
    chars, ends = [], []
    at = 0
    for value, end in code_points(raw):
        chars.append(chr(value).encode("utf-8", "surrogatepass") if value <= 0x10FFFF else raw[at:end])
        ends.append(end)
        at = end
    return chars, ends
