"""Cutting special and added tokens out of a text: stages 1 and 2 of encoding.

Both look at bytes and at every byte, so a token may begin inside a character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tokpack.errors import FormatError, Location
from tokpack.pack.layout import LSTRIP, RSTRIP, SPECIAL
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView

__all__ = ["AddedMatcher", "Fragment", "SpecialMatcher"]

Fragment = tuple[int, int, int]  # id or -1 for text, start, end
_SPACES = b" \t\n\v\f\r"  # isspace in the "C" locale


def _damaged(file: str | None, section: str) -> FormatError:
    what = "the index is damaged: a position is out of range"
    return FormatError(what, location=Location(file, section), hint="convert the tokenizer again")


class _Finder:
    """Candidates: places where one of the stored texts begins."""

    def __init__(self, view: PackView, name: str) -> None:
        self._trie = Trie.of(view, name)
        first = view.array(f"{name}.first")
        labels = bytes(view.raw(f"{name}.label")[: first[1]]) if len(first) > 1 else b""
        members = b"".join(re.escape(labels[at : at + 1]) for at in range(len(labels)))
        self._begins = re.compile(b"[" + members + b"]") if members else None

    def find(self, text: bytes, at: int, choose: Callable[[list[tuple[int, int]]], int]) -> tuple[int, int, int] | None:
        """(start, end, value) of the first place from ``at`` where ``choose`` accepts one of the (end, value) there."""
        begins, prefixes = self._begins, self._trie.prefixes
        while begins is not None:
            match = begins.search(text, at)
            if match is None:
                return None
            at = match.start()
            found = prefixes(text, at)
            index = choose(found) if found else -1
            if index >= 0:
                return at, *found[index]
            at += 1
        return None


class SpecialMatcher:
    """Stage 1 (``Tokenizer::encode``): at each byte the first token in header order.

    Args:
        view: the pack; the trie gives the position in the header.
        special: ids in header order.
    """

    def __init__(self, view: PackView, special: list[int]) -> None:
        self._finder = _Finder(view, "mnn.special")
        self._special = special
        self._file = view.file

    def cut(self, text: bytes) -> Iterator[Fragment]:
        """The fragments of a text."""
        last = 0
        order = self._special
        while True:
            found = self._finder.find(text, last, _lowest)
            if found is None:
                break
            start, end, position = found
            if position >= len(order):
                raise _damaged(self._file, "mnn.special.value")
            if start > last:
                yield -1, last, start
            yield order[position], start, end
            last = end
        if last < len(text):
            yield -1, last, len(text)


def _lowest(found: list[tuple[int, int]]) -> int:
    return min(range(len(found)), key=lambda index: found[index][1])


class AddedMatcher:
    """Stage 2 (``PipelineTokenizer::encode``): leftmost, then longest; the first of equal texts.

    Args:
        view: the pack; the trie gives the position in the list of added tokens.
        special: ids that count as special besides those that say so.
    """

    def __init__(self, view: PackView, special: frozenset[int]) -> None:
        self._finder = _Finder(view, "mnn.added")
        self._ids = view.array("added.id")
        self._flags = view.raw("added.flags")
        self._special = special
        self._file = view.file

    def _longest(self, found: list[tuple[int, int]]) -> int:
        return len(found) - 1

    def _longest_plain(self, found: list[tuple[int, int]]) -> int:
        for index in range(len(found) - 1, -1, -1):
            position = found[index][1]
            if position >= min(len(self._ids), len(self._flags)):
                raise _damaged(self._file, "mnn.added.value")
            if not self._flags[position] & SPECIAL and self._ids[position] not in self._special:
                return index
        return -1

    def cut(self, text: bytes, start: int, end: int, parse_special: bool) -> Iterator[Fragment]:
        """The fragments of ``text[start:end]``; without ``parse_special`` special tokens stay text."""
        choose = self._longest if parse_special else self._longest_plain
        part = text[start:end] if (start, end) != (0, len(text)) else text
        last, size = 0, len(part)
        while last < size:
            found = self._finder.find(part, last, choose)
            if found is None:
                break
            begin, stop, position = found
            if position >= min(len(self._ids), len(self._flags)):
                raise _damaged(self._file, "mnn.added.value")
            flags = self._flags[position]
            left = begin
            while flags & LSTRIP and left > last and part[left - 1] in _SPACES:
                left -= 1
            if left > last:
                yield -1, start + last, start + left
            yield self._ids[position], start + begin, start + stop
            while flags & RSTRIP and stop < size and part[stop] in _SPACES:
                stop += 1
            last = stop
        if last < size:
            yield -1, start + last, end
