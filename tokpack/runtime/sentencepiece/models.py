"""sentencepiece's models: normalized text to (id, end offset) pairs, -1 for what no piece stands for.

``word_model.cc``, ``char_model.cc`` and ``bpe_model.cc``; Unigram has a module of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import NORMAL, USER_DEFINED, PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import Merger
from tokpack.runtime.sentencepiece.resegment import UnusedMerger
from tokpack.runtime.sentencepiece.unigram import UnigramModel
from tokpack.runtime.sentencepiece.user import PrefixMatcher
from tokpack.typed import Any, Protocol
from tokpack.unicode.utf8 import split_characters

__all__ = ["Model", "Tokens", "make_model"]

Tokens = list[tuple[int, int]]
_MARK = "▁".encode()
_CACHE = 1 << 18


class Model(Protocol):
    """What makes pieces of a normalized text.

    ``cut`` says where what lies between user-defined pieces may be cut without a change: ``before`` or ``after``
    spaces, or ``""`` for nowhere.
    """

    @property
    def cut(self) -> str:
        """See above."""

    def encode(self, text: bytes, *, valid: bool) -> Tokens:
        """(id or -1, end) of the pieces of ``text``; ``valid`` if it is known to be UTF-8."""


def make_model(view: PackView, pieces: PieceTable, user: PrefixMatcher, facts: Mapping[str, Any]) -> Model:
    """The model that the meta section names."""
    kind = view.meta["model"]["kind"]
    if kind == "ScoreMerge":
        return MergeModel(view, pieces, user, facts)
    if kind == "Unigram":
        mark = "▁" if view.meta["normalizer"][0]["escape_whitespaces"] else " "
        return UnigramModel(view, pieces, facts, mark.encode())
    if kind == "WordLevel":
        return WordModel(view, pieces)
    if kind == "Characters":
        return CharacterModel(view, pieces, user)
    raise UnsupportedError(f"a pack with the model {kind!r} and the rules of sentencepiece")


class _Lookup(dict[bytes, int]):
    """Text → id, or -1; bounded."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        super().__init__()
        self._trie = Trie.of(view, "trie")
        self._pieces = pieces

    def __missing__(self, text: bytes) -> int:
        end, token = self._trie.longest(text, 0)
        found = token if end == len(text) else -1
        if found >= self._pieces.size:
            raise self._pieces.damaged("trie.value", f"id {found} is out of range")
        if len(text) <= 64:
            if len(self) >= _CACHE:
                self.clear()
            self[text] = found
        return found


class WordModel:
    """Words that begin with U+2581, whatever the trainer was told about spaces (``SplitIntoWords``)."""

    cut = ""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._ids = _Lookup(view, pieces)

    def encode(self, text: bytes, *, valid: bool) -> Tokens:
        """See :class:`Model`."""
        ids, out, start = self._ids, [], 0
        for end in self._ends(text, valid=valid):
            out.append((ids[text[start:end]], end))
            start = end
        return out

    @staticmethod
    def _ends(text: bytes, *, valid: bool) -> list[int]:
        if valid:
            parts = text.split(_MARK)
            ends, at = [], len(parts[0])
            if at:
                ends.append(at)
            for part in parts[1:]:
                at += len(_MARK) + len(part)
                ends.append(at)
            return ends
        ends, start = [], 0
        for end in split_characters(text):  # the mark counts only where a character begins
            if text[start:end] == _MARK and start:
                ends.append(start)
            start = end
        return [*ends, len(text)] if text else []


class CharacterModel:
    """Every character, or user-defined piece, by itself."""

    cut = ""

    def __init__(self, view: PackView, pieces: PieceTable, user: PrefixMatcher) -> None:
        self._ids = _Lookup(view, pieces)
        self._user = user

    def encode(self, text: bytes, *, valid: bool) -> Tokens:
        """See :class:`Model`."""
        ids = self._ids
        out: Tokens = []
        for token, begin, stop in self._user.split(text, valid=valid):
            if token >= 0:
                out.append((token, stop))
                continue
            part, start = text[begin:stop], 0
            for end in split_characters(part):
                out.append((ids[part[start:end]], begin + end))
                start = end
        return out


class _Symbols(dict[bytes, int]):
    """Character → its symbol, or -1; bounded."""

    def __init__(self, pieces: PieceTable) -> None:
        super().__init__()
        self._pieces = pieces

    def __missing__(self, char: bytes) -> int:
        symbol = self._pieces.find_raw(char, False)
        if len(self) >= _CACHE:
            self.clear()
        self[char] = symbol
        return symbol


class MergeModel:
    """BPE: the pair whose piece has the highest score is merged first, the leftmost of equal ones.

    User-defined pieces take no part in merging. A piece that is unused may be made on the way, and is then cut into
    what it was made of.
    """

    def __init__(self, view: PackView, pieces: PieceTable, user: PrefixMatcher, facts: Mapping[str, Any]) -> None:
        self._pieces = pieces
        self._user = user
        self._unused = bool(facts["unused"])
        self._merger = UnusedMerger(view, pieces) if self._unused else Merger(view, pieces)
        self._chars = _Symbols(pieces)
        # an unused piece is cut up as it was last made anywhere in the text
        self.cut = "" if self._unused else str(facts["cut"])

    @property
    def cuts_up(self) -> bool:
        """Whether there are pieces that merging makes and cuts up again, by what it did elsewhere in the text."""
        return self._unused

    def encode(self, text: bytes, *, valid: bool) -> Tokens:
        """See :class:`Model`."""
        if isinstance(self._merger, UnusedMerger):
            return self._encode_unused(self._merger, text, valid=valid)
        if self._user.empty:
            return self._encode_part(text, 0)
        out: Tokens = []
        for token, start, end in self._user.split(text, valid=valid):
            if token >= 0:
                out.append((token, end))
            else:
                out += self._encode_part(text[start:end], start)
        return out

    def _encode_part(self, text: bytes, base: int) -> Tokens:
        merged, places = self._merger.merge(*self._symbols(text))
        piece = self._piece
        return [(piece(symbol), base + end) for symbol, end in zip(merged, places, strict=True)]

    def _piece(self, symbol: int) -> int:
        if 0 <= symbol < self._pieces.size and self._pieces.attrs[symbol] & (NORMAL | USER_DEFINED):
            return symbol
        return -1

    def _symbols(self, text: bytes) -> tuple[list[int], list[int]]:
        """The characters as symbols (-1: one that no piece holds), and their ends."""
        chars, ends = self._chars, split_characters(text)
        return [chars[text[start:end]] for start, end in zip([0, *ends], ends, strict=False)], ends

    def _encode_unused(self, merger: UnusedMerger, text: bytes, *, valid: bool) -> Tokens:
        symbols: list[int] = []
        ends: list[int] = []
        fixed: set[int] = set()  # positions of user-defined pieces
        for token, start, stop in self._user.split(text, valid=valid):
            if token >= 0:
                fixed.add(len(symbols))
                symbols.append(token)
                ends.append(stop)
            else:
                part, places = self._symbols(text[start:stop])
                symbols += part
                ends += [start + place for place in places]
        return [(self._final(symbol), end) for symbol, end in merger.merge_and_cut(symbols, ends, fixed)]

    def _final(self, symbol: int) -> int:
        if symbol > 0 and symbol & UnusedMerger.KEPT:
            return symbol & ~UnusedMerger.KEPT
        return self._piece(symbol)
