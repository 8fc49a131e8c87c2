"""The three models of a ``.mtok`` (``tokenizer.cpp``): a word to ids."""

from __future__ import annotations

from collections.abc import Mapping

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.mnn.edits import to_bytes
from tokpack.runtime.mnn.merging import Merger, read_same
from tokpack.runtime.mnn.rows import read_rows
from tokpack.runtime.mnn.viterbi import UnigramModel
from tokpack.typed import Any, Protocol
from tokpack.unicode import byte_level

__all__ = ["BpeModel", "Model", "Spans", "WordPieceModel", "make_model"]

Spans = list[tuple[int, int]]  # id, end in bytes of the word
_CHARS = 1 << 16  # characters that are remembered
_WRAP = 65_535  # bytes: the length of a text that is looked up is an uint16_t


class Model(Protocol):
    """A model of a pack."""

    def encode(self, word: str) -> list[int]:
        """Ids of a word that is not empty."""

    def spans(self, word: str) -> Spans:
        """Ids of a word that is not empty, each with its end in the word's bytes."""


class BpeModel:
    """``BPEModel``.

    Args:
        view, pieces: the pack.
        byte_pieces: id of ``<0xHH>`` for each byte, -1 for none; or empty.
        spelled: words come as bytes, one symbol for each, spelled in GPT-2's characters.
        drops: a byte whose character is no piece is dropped; else its UTF-8 becomes byte pieces.
    """

    def __init__(
        self, view: PackView, pieces: PieceTable, byte_pieces: list[int], *, spelled: bool, drops: bool
    ) -> None:
        self._pieces = pieces
        self._merger = Merger(view, pieces, stops=True)
        self._same = read_same(view)
        # of texts that are a piece of one id and an alias of another, the lower id counts: that is in ``same``
        rows = list(read_rows(view.meta["post_processor"]["aliases"]))
        self._aliases = {text: number for number, text in reversed(rows) if pieces.find_text(text) < 0}
        self._byte_pieces = byte_pieces
        self._spelled = spelled
        self._drops = drops
        self._chars: dict[str, tuple[int, ...]] = {}
        self._bytes: list[tuple[int, ...]] | None = None
        self._simple: list[int] | None = None

    def encode(self, word: str) -> list[int]:
        """See :meth:`Model.encode`."""
        symbols = self.first_symbols(word, None)
        return self._merger.merge(symbols, None)[0]

    def spans(self, word: str) -> Spans:
        """See :meth:`Model.spans`."""
        ends: list[int] = []
        symbols = self.first_symbols(word, ends)
        found, places = self._merger.merge(symbols, ends)
        return list(zip(found, places or [], strict=True))

    def first_symbols(self, word: str, ends: list[int] | None) -> list[int]:
        """Symbols of the characters or bytes of a word; their ends are put into ``ends``."""
        if self._spelled:
            raw = to_bytes(word)
            table = self._bytes if self._bytes is not None else self._fill()
            if ends is None and self._simple is not None:
                return list(map(self._simple.__getitem__, raw))
            parts = [table[byte] for byte in raw]
            sizes = [1] * len(raw)
        else:
            chars = self._chars
            parts = []
            for char in word:
                part = chars.get(char)
                parts.append(self._char(char) if part is None else part)
            sizes = [] if ends is None else [len(to_bytes(char)) for char in word]
        if ends is not None:
            at = 0
            for part, size in zip(parts, sizes, strict=True):
                at += size
                ends += [at] * len(part)
        return [symbol for part in parts for symbol in part]

    def _char(self, char: str) -> tuple[int, ...]:
        raw = to_bytes(char)
        found = self._find(raw) if not "\udc80" <= char <= "\udcff" else -1
        symbols = (found,) if found >= 0 else self._fallback(raw)
        if len(self._chars) >= _CHARS:
            self._chars.clear()
        self._chars[char] = symbols
        return symbols

    def _find(self, text: bytes) -> int:
        """Id that a lookup gives, or -1."""
        found = self._aliases.get(text)
        if found is None:
            found = self._pieces.find_text(text)
            found = self._same.get(found, found)
        return found if found < self._pieces.size else -1

    def _fallback(self, raw: bytes) -> tuple[int, ...]:
        """Byte pieces; what has none is dropped."""
        table = self._byte_pieces
        return tuple(table[byte] for byte in raw if table[byte] >= 0) if table else ()

    def _fill(self) -> list[tuple[int, ...]]:
        table = []
        for char in byte_level.CHARS:
            raw = char.encode()
            found = self._find(raw)
            table.append((found,) if found >= 0 else () if self._drops else self._fallback(raw))
        if all(len(part) == 1 for part in table):
            self._simple = [part[0] for part in table]
        self._bytes = table
        return table


class WordPieceModel:
    """``WordPieceModel``: greedy longest pieces by bytes, all or unknown.

    Args:
        view, pieces: the pack; ``trie`` holds all pieces but the unknown one, ``user`` those behind the prefix.
        plain: the model's parameters.
        unk: id of the unknown piece, -1 for none.
    """

    def __init__(self, view: PackView, pieces: PieceTable, plain: Mapping[str, Any], unk: int) -> None:
        self._first = Trie.of(view, "trie")
        self._rest = Trie.of(view, "user")
        limit = int(plain["max_input_chars_per_word"])
        self._longest = limit if limit < 1 << 31 else -1  # the engine's number is an int
        self._unk = unk
        self._pieces = pieces

    def encode(self, word: str) -> list[int]:
        """See :meth:`Model.encode`."""
        return [token for token, _ in self.spans(word)]

    def spans(self, word: str) -> Spans:
        """See :meth:`Model.spans`."""
        text = to_bytes(word)
        if len(text) > self._longest:
            return [(self._unk, len(text))] if self._unk >= 0 else []
        if len(text) > _WRAP:
            raise EncodeError("a word of more than 65,535 bytes, whose length wraps around in MNN")
        out: Spans = []
        at = 0
        while at < len(text):
            end, token = (self._rest if at else self._first).longest(text, at)
            if token < 0:
                return [(self._unknown(), len(text))]
            if token >= self._pieces.size:
                raise self._pieces.damaged("trie.value", f"id {token} is out of range")
            at = end
            out.append((token, end))
        return out

    def _unknown(self) -> int:
        if self._unk < 0:
            raise EncodeError("a word has no pieces and the vocabulary no unknown one: MNN gives the id -1")
        return self._unk


def make_model(view: PackView, pieces: PieceTable, spelled: bool) -> Model:
    """The model of a ``.mtok`` pack.

    Args:
        view: the pack.
        pieces: its pieces.
        spelled: the last pre-tokenizer turns bytes into GPT-2's characters, which is left to the model.
    """
    plain, own, header = view.meta["model"], view.meta["mnn"], view.meta["post_processor"]
    kind = plain["kind"]
    byte_pieces = [int(value) for value in own["bytes"]]
    if len(byte_pieces) not in (0, 256) or any(not -1 <= value < pieces.symbols for value in byte_pieces):
        raise ValueError("mnn.bytes")
    if kind == "BPE":
        inside = bool(header["byte_level"])
        if spelled and inside:
            return _Respelled(BpeModel(view, pieces, byte_pieces, spelled=True, drops=True))
        return BpeModel(view, pieces, byte_pieces, spelled=spelled or inside, drops=inside)
    if kind == "WordPiece":
        model: Model = WordPieceModel(view, pieces, plain, int(own["unk"]))
    elif kind == "Unigram":
        model = UnigramModel(view, pieces, int(plain["unk_id"]), byte_pieces if view.meta["byte_fallback"] else [])
    else:
        raise UnsupportedError(f"a pack with the model {kind!r} under the rules of MNN")
    return _Respelled(model) if spelled else model


class _Respelled:
    """A model that wants words spelled in GPT-2's characters."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def encode(self, word: str) -> list[int]:
        return self._model.encode(byte_level.encode(to_bytes(word)))

    def spans(self, word: str) -> Spans:
        raw = to_bytes(word)
        ends = [0]
        for byte in raw:
            ends.append(ends[-1] + len(byte_level.CHARS[byte].encode()))
        place = {end: at for at, end in enumerate(ends)}
        out: Spans = []
        last = 0
        for token, end in self._model.spans(byte_level.encode(raw)):
            last = place.get(end, last)
            out.append((token, last))
        return out
