"""Arrays of a pack as the bulk path needs them, checked so that nothing in them can lead outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.errors import FormatError, Location
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.bpe import LARGEST_RANK, BatchMerger
from tokpack.runtime.bulk.cuts import BytePairs
from tokpack.runtime.bulk.keys import LIMITS, PADDING
from tokpack.runtime.bulk.words import Resolver, Static, static_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["batch_merger", "char_symbols", "known_words", "piece_places", "section", "symbol_pairs"]

_CODES = {"B": "u1", "H": "<u2", "I": "<u4", "i": "<i4", "Q": "<u8"}
_NOT_UTF8 = 0xFF  # fills up short keys


def section(view: PackView, name: str, code: str) -> NDArray[Any]:
    """A section as an array without a copy."""
    return np.frombuffer(view.raw(name), dtype=_CODES[code])


def piece_places(view: PackView, pieces: PieceTable) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes of all symbols with padding, where each begins ``[S + 1]``)."""
    offset = section(view, "piece.offset", "I").astype(np.int64)
    blob = section(view, "piece.blob", "B")
    if (offset[1:] < offset[:-1]).any() or (len(offset) and int(offset[-1]) > len(blob)):
        raise pieces.damaged("piece.offset", "the offsets do not ascend, or lead outside")
    return np.append(blob, np.zeros(PADDING, dtype=np.uint8)), offset


def known_words(
    view: PackView, pieces: PieceTable, places: tuple[NDArray[np.uint8], NDArray[np.int64]], merge: Resolver
) -> Static:
    """The pieces that the pack says are words; none if it says nothing.

    Args:
        view: the pack.
        pieces: its pieces.
        places: of :func:`piece_places`.
        merge: what merging makes of words.
    """
    blob, offset = places
    bits, whole = section(view, "bulk.words", "B"), section(view, "bulk.whole", "I")
    if len(bits) not in (0, -(-pieces.size // 8)):
        raise pieces.damaged("bulk.words", "its length is not that of the vocabulary")
    sizes = np.diff(offset)[: pieces.size]
    fits = (sizes > 0) & (sizes <= LIMITS[-1])
    fills = np.flatnonzero(blob == _NOT_UTF8)
    inside = np.searchsorted(offset, fills, side="right") - 1
    fits[inside[inside < pieces.size]] = False
    usable = np.unpackbits(bits, count=pieces.size, bitorder="little").astype(np.bool_) if len(bits) else fits & False
    whole = whole[whole < pieces.size]
    whole = whole[fits[whole]].astype(np.int64)
    usable[whole] = False
    ids = np.flatnonzero(usable & fits)
    words = [pieces.raw(int(token)) for token in whole]
    flat, counts = merge(words) if words else (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))
    values = np.concatenate((ids, ~np.arange(len(whole)))).astype(np.int32)
    tables = static_tables(blob, offset, np.concatenate((ids, whole)), values)
    return Static(tables, whole.astype(np.int32), flat, counts)


def symbol_pairs(view: PackView, places: tuple[NDArray[np.uint8], NDArray[np.int64]], lowest: int) -> BytePairs:
    """The pairs of characters in symbols, from the pack or else from the symbols."""
    return BytePairs.of_bits(section(view, "bulk.pairs", "B"), lowest) or BytePairs.of_symbols(*places, lowest)


def char_symbols(
    places: tuple[NDArray[np.uint8], NDArray[np.int64]], count: int, find: Callable[[str], int]
) -> NDArray[np.int32]:
    """Symbol of each code point, int32 ``[0x110000]``, -1 for none.

    Args:
        places: of :func:`piece_places`.
        count: symbols that can be characters, the first ones.
        find: the scalar path's way from a character to its symbol.
    """
    blob, offset = places
    table = np.full(0x110000, -1, dtype=np.int32)
    sizes = np.diff(offset)[:count]
    raw = blob.tobytes()
    for symbol in np.flatnonzero((sizes > 0) & (sizes <= 4)).tolist():
        try:
            text = raw[offset[symbol] : offset[symbol + 1]].decode("utf-8")
        except UnicodeDecodeError:
            continue
        if len(text) == 1:
            table[ord(text)] = find(text)
    return table


def batch_merger(view: PackView, first: NDArray[np.int32] | None = None) -> BatchMerger:
    """The merges of a pack; ``first`` has the symbol of each byte, if words are bytes.

    FormatError when the sections cannot be those of a vocabulary.
    """
    keys, ranks, results = (
        section(view, name, code) for name, code in (("merge.key", "Q"), ("merge.rank", "I"), ("merge.result", "I"))
    )
    if not len(keys) == len(ranks) == len(results) or (len(ranks) and int(ranks.max()) > LARGEST_RANK):
        where = Location(view.file, "merge.rank")
        what = "the index is damaged: merges differ in number, or have ranks that no vocabulary has"
        raise FormatError(what, location=where, hint="convert the tokenizer again")
    return BatchMerger(keys, ranks, np.minimum(results, np.uint32(0x7FFFFFFF)), first)
