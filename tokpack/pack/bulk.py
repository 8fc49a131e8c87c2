"""Sections for the bulk path: which pieces are words that encode to themselves.

``bulk.words``
    bit ``i & 7`` of byte ``i >> 3`` belongs to piece i: the model makes of the bytes of the piece, as one word, this
    piece alone, by merging. Without the section the bulk path finds it out word by word.
``bulk.whole``
    u32: pieces that a word becomes as a whole, although merging does not give them, ascending.
``bulk.pairs``
    bits: 2**19 of hashed pairs of characters that stand side by side in a symbol, then 2**16 of pairs of bytes where
    the symbol begins inside the left character, see :mod:`tokpack.runtime.bulk.cuts`. Byte-level alphabets and rank
    files: of characters beyond ASCII only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.ir import BPE, PieceAttr, RankMerge, Reference, ScoreMerge, TokenizerIR
from tokpack.pack.layout import HOLE, SPELLED
from tokpack.pack.symbols import Sections, SymbolTable
from tokpack.runtime.bulk.bpe import WIDTHS, BatchMerger
from tokpack.runtime.bulk.cuts import BytePairs

__all__ = ["bulk_sections"]


def bulk_sections(ir: TokenizerIR, table: SymbolTable, sections: Sections) -> Sections:
    """The sections, out of the others of the same pack; none for a model that has no use for them."""
    model = ir.model
    if isinstance(model, RankMerge):
        return _ranked(ir, table, sections) if ir.reference is Reference.TIKTOKEN else {}
    if not isinstance(model, (BPE, ScoreMerge)) or ir.reference is Reference.MNN:
        return {}
    if ir.reference is Reference.SENTENCEPIECE and (ir.vocab.attrs & PieceAttr.UNUSED).any():
        return {}
    whole = False
    if isinstance(model, BPE):
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            return {}
        whole = model.ignore_merges and table.byte_level
    spelled = np.frombuffer(sections["piece.flags"], dtype=np.uint8)[: table.size]
    usable = spelled & (SPELLED | HOLE) == (SPELLED if table.byte_level else 0)
    winners = np.zeros(len(table.texts), dtype=np.bool_)
    winners[list(table.symbols.values())] = True
    usable &= winners[: table.size]
    if ir.reference is not Reference.LLAMA_CPP:
        usable &= (ir.vocab.attrs & PieceAttr.NORMAL) != 0
    reached = usable & _reached(table, sections)
    pairs = BytePairs.of_symbols(*_bytes_of(sections, len(table.texts)), 0x80 if table.byte_level else 0)
    out = {"bulk.pairs": pairs.bits()}
    out |= {"bulk.words": np.packbits(reached, bitorder="little").tobytes()}
    if whole:
        out["bulk.whole"] = np.flatnonzero(usable & ~reached).astype("<u4").tobytes()
    return out


def _ranked(ir: TokenizerIR, table: SymbolTable, sections: Sections) -> Sections:
    """All pieces but special tokens are words as a whole."""
    winners = np.zeros(len(table.texts), dtype=np.bool_)
    winners[list(table.symbols.values())] = True
    usable = winners[: table.size] & ((ir.vocab.attrs & PieceAttr.CONTROL) == 0)
    usable &= np.array([bool(piece) for piece in ir.vocab.pieces], dtype=np.bool_)
    reached = usable & _reached(table, sections)
    return {
        "bulk.pairs": BytePairs.of_symbols(*_bytes_of(sections, len(table.texts)), 0x80).bits(),
        "bulk.words": np.packbits(reached, bitorder="little").tobytes(),
        "bulk.whole": np.flatnonzero(usable & ~reached).astype("<u4").tobytes(),
    }


def _reached(table: SymbolTable, sections: Sections) -> NDArray[np.bool_]:
    """Whether merging the bytes or the characters of a piece gives the piece."""

    def array(name: str, code: str) -> NDArray[Any]:
        return np.frombuffer(sections[name], dtype=code)

    reached = np.zeros(table.size, dtype=np.bool_)
    if not len(array("merge.rank", "<u4")):
        return reached
    by_bytes = table.byte_level or bool(table.byte_symbols)
    first = array("byte.symbol", "<u4").astype(np.int32) if by_bytes else None
    merger = BatchMerger(array("merge.key", "<u8"), array("merge.rank", "<u4"), array("merge.result", "<u4"), first)
    units, offset = _bytes_of(sections, table.size) if by_bytes else _symbols_of(table)
    sizes = np.diff(offset)
    shorter = 0
    for width in WIDTHS:
        ids = np.flatnonzero((sizes > shorter) & (sizes <= width))
        shorter = width
        if len(ids):
            flat, counts = merger.merge(units[offset[ids][:, None] + np.arange(width)], sizes[ids])
            begins = np.cumsum(counts) - counts
            single = counts == 1
            reached[ids[single]] = flat[begins[single]] == ids[single]
    return reached


def _bytes_of(sections: Sections, size: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes of all symbols with padding, where each of the first ``size`` begins)."""
    offset = np.frombuffer(sections["piece.offset"], dtype="<u4").astype(np.int64)[: size + 1]
    blob = np.frombuffer(sections["piece.blob"], dtype=np.uint8)
    return np.append(blob, np.zeros(WIDTHS[-1], dtype=np.uint8)), offset


def _symbols_of(table: SymbolTable) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(first symbols of all pieces with padding, where each piece begins); pieces that are not text have none."""
    flat: list[int] = []
    sizes: list[int] = []
    known = table.symbols
    by_char: dict[str, int] = {}
    for text in table.texts[: table.size]:
        before = len(flat)
        try:
            chars = b"".decode() if text is None else text.decode("utf-8")
        except UnicodeDecodeError:
            chars = ""
        if len(chars) <= WIDTHS[-1]:
            for char in chars:
                symbol = by_char.get(char)
                if symbol is None:
                    symbol = by_char[char] = known.get(char.encode(), -1)
                if symbol < 0:  # to the model it is no character of its own
                    del flat[before:]
                    break
                flat.append(symbol)
        sizes.append(len(flat) - before)
    offset = np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64))))
    return np.array(flat + [-1] * WIDTHS[-1], dtype=np.int32), offset
