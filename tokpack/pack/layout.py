"""Where things are in a pack: footer, section table, names and types of sections.

A pack is ``body | zero padding | sections | section table | footer``. The body is a complete MNN .mtok file or empty
(.tokpack). Every section starts on a page boundary; all numbers are little-endian. Readers start from the footer.
docs/formats/index-format.md describes the format byte by byte.
"""

from __future__ import annotations

import struct
import zlib

from tokpack.records import dataclass

__all__ = [
    "ENGINE",
    "FOOTER",
    "MAGIC",
    "PAGE",
    "SECTIONS",
    "VERSION",
    "Footer",
    "SectionSpec",
    "align",
    "fingerprint",
]

MAGIC = b"TOKPACK\n"
VERSION = 1  # of the container: footer and section table
ENGINE = 1  # of the meaning of the sections: raised when an old runtime would give other ids
PAGE = 4096
ZEROS = 64  # at least so many zero bytes between the body and the first section
TABLE_LIMIT = 1 << 16  # bytes of the section table
META_LIMIT = 1 << 24  # bytes of the meta section

FLAG_SIDECAR = 1  # the body lies in another file

# magic, container version, flags, table offset, table length, body length, index offset, total length,
# body fingerprint, table checksum, body hash, index hash, reserved, magic
_FOOTER = struct.Struct("<8sIIQQQQQII16s16s24s8s")
FOOTER = _FOOTER.size
assert FOOTER == 128


@dataclass(frozen=True, slots=True)
class Footer:
    """The last 128 bytes of a pack.

    Attributes:
        flags: FLAG_SIDECAR or 0.
        table_offset, table_length: section table, from the start of the file.
        body_length: bytes of the body, at the start of the file (or the length of the other file of a sidecar).
        index_offset: first section, a multiple of the page size; section offsets count from here.
        total_length: length of the file.
        body_fingerprint: :func:`fingerprint` of the body.
        table_checksum: CRC-32 of the section table.
        body_hash, index_hash: BLAKE2b-128 of the body, and of everything from index_offset to the footer.
    """

    flags: int
    table_offset: int
    table_length: int
    body_length: int
    index_offset: int
    total_length: int
    body_fingerprint: int
    table_checksum: int
    body_hash: bytes
    index_hash: bytes

    def pack(self) -> bytes:
        """The 128 bytes."""
        return _FOOTER.pack(
            MAGIC,
            VERSION,
            self.flags,
            self.table_offset,
            self.table_length,
            self.body_length,
            self.index_offset,
            self.total_length,
            self.body_fingerprint,
            self.table_checksum,
            self.body_hash,
            self.index_hash,
            bytes(24),
            MAGIC,
        )

    @staticmethod
    def unpack(raw: bytes) -> tuple[int, Footer] | None:
        """(container version, footer), or None when these are not the last 128 bytes of a pack."""
        if len(raw) != FOOTER or raw[:8] != MAGIC or raw[-8:] != MAGIC:
            return None
        fields = _FOOTER.unpack(raw)
        return fields[1], Footer(*fields[2:12])


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """What a reader demands of a section.

    Attributes:
        code: element type as :mod:`struct` and :meth:`memoryview.cast` name it.
        size: bytes of an element.
        required: every pack has it.
    """

    code: str
    size: int
    required: bool = False


# V pieces, S symbols (V plus texts that occur only in merges), M merges, A added tokens
SECTIONS: dict[str, SectionSpec] = {
    "meta": SectionSpec("B", 1, required=True),  # msgpack: what the runtime needs
    "about": SectionSpec("B", 1, required=True),  # msgpack: origins, templates, findings; read on demand
    "piece.blob": SectionSpec("B", 1, required=True),  # bytes of symbol i at offset[i] .. offset[i + 1]
    "piece.offset": SectionSpec("I", 4, required=True),  # [S + 1]
    "piece.flags": SectionSpec("B", 1, required=True),  # [S], bits below
    "piece.types": SectionSpec("B", 1, required=True),  # [V], numbers of the source
    "piece.attrs": SectionSpec("H", 2, required=True),  # [V], PieceAttr
    "piece.scores": SectionSpec("f", 4),  # [V]
    "lookup.hash": SectionSpec("I", 4, required=True),  # [L], CRC-32 of symbol bytes, ascending
    "lookup.symbol": SectionSpec("I", 4, required=True),  # [L]
    "merge.key": SectionSpec("Q", 8),  # [M], left << 32 | right, ascending
    "merge.rank": SectionSpec("I", 4),  # [M], beside merge.key
    "merge.result": SectionSpec("I", 4),  # [M], beside merge.key: the symbol that the merge makes
    "merge.source_rank": SectionSpec("I", 4),  # [M], by rank, when the source counted otherwise
    "trie.first": SectionSpec("I", 4),  # byte trie of what the model matches, see pack/trie.py
    "trie.label": SectionSpec("B", 1),
    "trie.value": SectionSpec("i", 4),
    "user.first": SectionSpec("I", 4),  # byte trie of the user-defined pieces (Unigram)
    "user.label": SectionSpec("B", 1),
    "user.value": SectionSpec("i", 4),
    "charsmap": SectionSpec("B", 1),  # sentencepiece charsmap, as in the source
    "decoder.charsmap": SectionSpec("B", 1),  # sentencepiece charsmap of the denormalizer
    "char.index": SectionSpec("H", 2),  # [4352], two-stage table of character actions
    "char.blocks": SectionSpec("I", 4),  # [256 n], see pack/chars.py
    "piece.cost": SectionSpec("i", 4),  # [V], integer cost of a piece (MinCost); the lowest int32 is unusable
    "piece.scores64": SectionSpec("d", 8),  # [V], scores of the tokenizers library are doubles
    "onig.index": SectionSpec("H", 2),  # [4352], two-stage table: class character of each code point
    "onig.blocks": SectionSpec("H", 2),
    "hf.sets.index": SectionSpec("H", 2),  # [4352], character sets of the tokenizers library, see runtime/hf/sets.py
    "hf.sets.blocks": SectionSpec("B", 1),
    "hf.scripts.index": SectionSpec("H", 2),  # [4352], script numbers
    "hf.scripts.blocks": SectionSpec("B", 1),
    "mnn.class.index": SectionSpec("H", 2),  # [4352], folded classes of the MNN engine, see pack/mnn.py
    "mnn.class.blocks": SectionSpec("B", 1),
    "mnn.lower.from": SectionSpec("I", 4),
    "mnn.lower.to": SectionSpec("I", 4),
    "mnn.same.id": SectionSpec("I", 4),
    "mnn.same.first": SectionSpec("i", 4),
    "mnn.merge.rank": SectionSpec("I", 4),
    "mnn.special.first": SectionSpec("I", 4),
    "mnn.special.label": SectionSpec("B", 1),
    "mnn.special.value": SectionSpec("i", 4),
    "mnn.added.first": SectionSpec("I", 4),
    "mnn.added.label": SectionSpec("B", 1),
    "mnn.added.value": SectionSpec("i", 4),
    "byte.symbol": SectionSpec("I", 4),  # [256], first symbol of each byte (byte-level alphabets)
    "byte.emit": SectionSpec("i", 4),  # [512], up to two ids for a byte that is left over, -1 for none
    "class.index": SectionSpec("H", 2),  # [4352], two-stage class table
    "class.blocks": SectionSpec("B", 1),  # [256 n]
    "class.spaces": SectionSpec("I", 4),  # White_Space code points
    "added.id": SectionSpec("I", 4, required=True),  # [A], in matching order
    "added.flags": SectionSpec("B", 1, required=True),  # [A], bits below
    "added.blob": SectionSpec("B", 1, required=True),
    "added.offset": SectionSpec("I", 4, required=True),  # [A + 1]
    "bulk.words": SectionSpec("B", 1),  # [ceil(V / 8)] bits: pieces that are words, see pack/bulk.py
    "bulk.pairs": SectionSpec("B", 1),  # bits: pairs of characters in symbols
    "bulk.whole": SectionSpec("I", 4),  # pieces that are words only as a whole
}

# piece.flags
SPELLED = 1  # the text is the byte-level spelling of the bytes in the blob; else the blob holds the text itself
HOLE = 2  # no piece has this id
# added.flags
SPECIAL, LSTRIP, RSTRIP, NORMALIZED, SINGLE_WORD = 1, 2, 4, 8, 16


def align(offset: int, step: int = PAGE) -> int:
    """The next multiple of ``step``."""
    return -(-offset // step) * step


def fingerprint(body: bytes | memoryview) -> int:
    """CRC-32 over the first and last page and 14 samples of 64 bytes: bounded work on a body of any size."""
    view = memoryview(body)
    size = len(view)
    crc = zlib.crc32(view[:PAGE], size & 0xFFFFFFFF)
    crc = zlib.crc32(view[max(0, size - PAGE) :], crc)
    for sample in range(1, 15):
        at = size * sample // 15
        crc = zlib.crc32(view[at : at + 64], crc)
    return crc
