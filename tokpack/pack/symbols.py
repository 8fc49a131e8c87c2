"""Numbers for every text that byte-pair merging can meet: the pieces by id, then texts that only merges name.

llama.cpp merges texts, not ids: a merge may have parts or a result that are not pieces. Giving those texts numbers of
their own behind the pieces keeps merging exact with integers alone.
"""

from __future__ import annotations

import zlib
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from tokpack.ir import BPE, AlphabetKind, PieceAttr, RankMerge, ScoreMerge, TokenizerIR
from tokpack.pack.layout import HOLE, SPELLED
from tokpack.unicode import byte_level
from tokpack.unicode.utf8 import split_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Sections", "SymbolTable", "offsets"]

Sections = dict[str, bytes]  # name → little-endian content


def offsets(sizes: Sequence[int]) -> NDArray[np.uint32]:
    """Start offsets of parts laid end to end, and the total: uint32 ``[len(sizes) + 1]``."""
    return np.fromiter(accumulate(sizes, initial=0), dtype="<u4", count=len(sizes) + 1)


class SymbolTable:
    """Symbols of a vocabulary: its pieces, and what merges name besides them.

    Attributes:
        symbols: text as spelled in the source → symbol; of equal pieces the last id.
        texts: symbol → text, None for a hole.
        byte_symbols: first symbol of each byte, for merging by rank; else empty.
    """

    def __init__(self, ir: TokenizerIR) -> None:
        self.byte_level = ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
        self.size = len(ir.vocab)
        self.texts: list[bytes | None] = list(ir.vocab.pieces)
        self.byte_symbols: list[int] = []
        self.symbols: dict[bytes, int] = {t: i for i, t in enumerate(ir.vocab.pieces) if t is not None}
        if self.byte_level:
            for char in byte_level.CHARS:
                self._number(char.encode())
        self.raw_bytes_fall_back = isinstance(ir.model, ScoreMerge)
        if isinstance(ir.model, BPE):
            self._number_merges(ir.model)
        elif isinstance(ir.model, RankMerge):
            self._prefer_ranks(ir)
        elif isinstance(ir.model, ScoreMerge):
            for text in [piece for piece in ir.vocab.pieces if piece is not None]:
                start = 0
                for end in split_characters(text):
                    self._number(text[start:end])
                    start = end

    def _number_merges(self, model: BPE) -> None:
        known, cut = self.symbols, len(model.continuing_subword_prefix)
        for left, right in model.merges:
            if left not in known:
                self._number(left)
            if right not in known:
                self._number(right)
            result = left + right[cut:]
            if result not in known:
                self._number(result)

    def _prefer_ranks(self, ir: TokenizerIR) -> None:
        """A text means the piece with a rank before a special token; single bytes merge even if they are no pieces."""
        control = (ir.vocab.attrs & PieceAttr.CONTROL) != 0
        self.symbols |= {t: i for i, t in enumerate(ir.vocab.pieces) if t is not None and not control[i]}
        for byte in range(256):
            text = bytes([byte])
            symbol = self.symbols.setdefault(text, len(self.texts))
            if symbol == len(self.texts) or control[symbol]:
                symbol = len(self.texts)
                self.texts.append(text)
            self.byte_symbols.append(symbol)

    def _number(self, text: bytes) -> None:
        if text not in self.symbols:
            self.symbols[text] = len(self.texts)
            self.texts.append(text)

    def _spell(self) -> tuple[list[bytes], bytearray]:
        """Bytes and flags of each symbol."""
        blobs: list[bytes] = []
        flags = bytearray(len(self.texts))
        for index, text in enumerate(self.texts):
            if text is None:
                flags[index] = HOLE
                blobs.append(b"")
                continue
            raw = byte_level.decode(text) if self.byte_level else None
            if raw is None:
                blobs.append(text)
            else:
                flags[index] = SPELLED
                blobs.append(raw)
        return blobs, flags

    def sections(self) -> Sections:
        """``piece.*`` and ``lookup.*``, and the two byte tables."""
        blobs, flags = self._spell()
        winners = np.fromiter(self.symbols.values(), dtype=np.int64, count=len(self.symbols))
        hashes = np.fromiter((zlib.crc32(blobs[i]) for i in winners.tolist()), dtype=np.uint32, count=len(winners))
        order = np.lexsort((winners, hashes))
        return {
            "piece.blob": b"".join(blobs),
            "piece.offset": offsets([len(blob) for blob in blobs]).tobytes(),
            "piece.flags": bytes(flags),
            "lookup.hash": hashes[order].astype("<u4").tobytes(),
            "lookup.symbol": winners[order].astype("<u4").tobytes(),
            "byte.emit": self._emissions().astype("<i4").tobytes(),
            **self._first_symbols(),
        }

    def _first_symbols(self) -> Sections:
        if not self.byte_level and not self.byte_symbols:
            return {}
        first = self.byte_symbols or [self.symbols[char.encode()] for char in byte_level.CHARS]
        return {"byte.symbol": np.array(first, dtype="<u4").tobytes()}

    def _emissions(self) -> NDArray[np.int32]:
        """Ids for a byte of a symbol that is not a piece, int32 ``[256, 2]``, -1 for none.

        Byte-level (``llama-vocab.cpp`` 745-765): each single byte of the byte's *spelling* is looked up as a text, so a
        character of two bytes is found only if someone made one-byte pieces out of its halves. Else ``<0xXX>``, for
        SPM then the piece that is the raw byte (``llama_vocab::impl::byte_to_token``).
        """
        ids = np.full((256, 2), -1, dtype=np.int32)
        for byte in range(256):
            texts = [b"<0x%02X>" % byte]
            if self.byte_level:
                texts = [bytes([part]) for part in byte_level.CHARS[byte].encode()]
            elif self.raw_bytes_fall_back:
                texts.append(bytes([byte]))
            found = [self.symbols[text] for text in texts if self.symbols.get(text, self.size) < self.size]
            found = found[:1] if self.raw_bytes_fall_back else found
            ids[byte, : len(found)] = found
        return ids
