"""Pieces of a pack: bytes, text, attributes, and looking them up. No numpy; nothing is read before it is asked for."""

from __future__ import annotations

from bisect import bisect_left
from zlib import crc32

from tokpack.errors import FormatError, Location
from tokpack.pack.layout import HOLE, SPELLED
from tokpack.pack.view import PackView
from tokpack.unicode import byte_level

__all__ = ["BYTE", "CONTROL", "NORMAL", "UNKNOWN", "UNUSED", "USER_DEFINED", "PieceTable"]

_LONGEST = 1 << 21  # bytes: limits.piece_bytes, doubled for the longer spelling
UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32  # PieceAttr, without its import


class PieceTable:
    """Symbols 0 … size-1 are the pieces; those behind occur only in merges.

    Attributes:
        size: number of pieces.
        symbols: number of symbols.
        attrs: PieceAttr bits, uint16 ``[size]``.
    """

    def __init__(self, view: PackView) -> None:
        size = view.meta.get("vocab_size")
        self._blob = view.raw("piece.blob")
        self._offset = view.array("piece.offset")
        self._flags = view.raw("piece.flags")
        self.attrs = view.array("piece.attrs")
        self.types = view.raw("piece.types")
        self.scores = view.array("piece.scores")
        self._hash = view.array("lookup.hash")
        self._symbol = view.array("lookup.symbol")
        self.byte_level = view.meta.get("alphabet") == "byte-level"
        self.symbols = len(self._offset) - 1
        self._file = view.file
        if not isinstance(size, int) or size < 0 or len(self.attrs) != size or len(self.types) != size:
            raise self.damaged("piece.attrs", "its length is not the vocabulary size")
        self.size = size
        if self.symbols < size or len(self._flags) != self.symbols:
            raise self.damaged("piece.offset", "it is shorter than the vocabulary")
        if len(self._hash) != len(self._symbol):
            raise self.damaged("lookup.hash", "it differs in length from lookup.symbol")
        if len(self.scores) not in (0, size):
            raise self.damaged("piece.scores", "its length is not the vocabulary size")

    def damaged(self, section: str, what: str) -> FormatError:
        """An error about a section."""
        where = Location(self._file, section)
        return FormatError(f"the index is damaged: {what}", location=where, hint="convert the tokenizer again")

    def raw(self, symbol: int) -> bytes:
        """Bytes of a symbol as stored: what a byte-level text spells, else the text. ``symbol`` must be in range."""
        start, end = self._offset[symbol], self._offset[symbol + 1]
        if end - start > _LONGEST:
            raise self.damaged("piece.offset", f"symbol {symbol} has {end - start} bytes")
        return bytes(self._blob[start:end])  # a slice never leaves the section, whatever the offsets say

    def spelled(self, symbol: int) -> bool:
        """Whether the text of a symbol is the byte-level spelling of :meth:`raw`."""
        return bool(self._flags[symbol] & SPELLED)

    def is_hole(self, symbol: int) -> bool:
        """Whether no piece has this id."""
        return bool(self._flags[symbol] & HOLE)

    def text(self, symbol: int) -> bytes:
        """The text of a symbol as the source spells it, as bytes."""
        raw = self.raw(symbol)
        return byte_level.encode(raw).encode() if self._flags[symbol] & SPELLED else raw

    def find_raw(self, raw: bytes, spelled: bool) -> int:
        """Symbol with these stored bytes, or -1; ``spelled`` says which of the two kinds is meant."""
        hashes, symbols = self._hash, self._symbol
        crc = crc32(raw)
        at = bisect_left(hashes, crc)
        while at < len(hashes) and hashes[at] == crc:
            symbol = symbols[at]
            if symbol < self.symbols and self.raw(symbol) == raw and self.spelled(symbol) == spelled:
                return int(symbol)
            at += 1
        return -1

    def find_text(self, text: bytes) -> int:
        """Id of the piece with this text, or -1."""
        raw = byte_level.decode(text) if self.byte_level else None
        found = self.find_raw(text, False) if raw is None else self.find_raw(raw, True)
        return found if found < self.size else -1
