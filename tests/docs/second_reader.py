"""A reader of the index, written from docs/formats/index-format.md alone: nothing of tokpack is imported.

``python -m tests.docs.second_reader FILE [BODY]`` prints what it finds; BODY is the .mtok of an index of its own.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import zlib
from bisect import bisect_left
from pathlib import Path
from typing import Any

import msgpack

MAGIC = b"TOKPACK\n"
FOOTER = struct.Struct("<8s2I5Q2I16s16s24s8s")
SIZES = {"B": 1, "H": 2, "I": 4, "i": 4, "Q": 8, "f": 4, "d": 8}


class BadPackError(Exception):
    """The file is not what the page says."""


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise BadPackError(what)


def _fingerprint(body: bytes) -> int:
    crc = zlib.crc32(body[:4096], len(body) & 0xFFFFFFFF)
    crc = zlib.crc32(body[-4096:], crc)
    for k in range(1, 15):
        at = k * len(body) // 15
        crc = zlib.crc32(body[at : at + 64], crc)
    return crc


class Index:
    """The index of a pack.

    Attributes:
        meta, about: the two maps.
        arrays: name → values, as the section table types them.
    """

    def __init__(self, data: bytes, body: bytes | None = None) -> None:
        _demand(len(data) >= FOOTER.size, "shorter than a footer")
        end = len(data) - FOOTER.size
        (magic, version, flags, table_at, table_size, body_size, start, total, fingerprint, checksum, body_hash) = (
            FOOTER.unpack(data[end:])[:11]
        )
        index_hash, zeros, last = FOOTER.unpack(data[end:])[11:]
        _demand(magic == last == MAGIC, "no magic")
        _demand(version == 1, "another container version")
        _demand(total == len(data), "another length")
        if not flags & 1:
            body = data[:body_size]
            _demand(body_size <= start and not any(data[body_size:start]), "something between body and sections")
        _demand(body is not None and len(body) == body_size, "another body")
        assert body is not None
        _demand(_fingerprint(body) == fingerprint, "another body")
        _demand(start % 4096 == 0 and start <= table_at and table_at + table_size == end, "offsets contradict")
        table = data[table_at:end]
        _demand(zlib.crc32(table) == checksum, "the table is damaged")
        _demand(hashlib.blake2b(body, digest_size=16).digest() == body_hash, "hash of the body")
        _demand(hashlib.blake2b(data[start:end], digest_size=16).digest() == index_hash, "hash of the index")
        _demand(not any(zeros), "reserved bytes")
        self.arrays: dict[str, tuple[Any, ...]] = {}
        self.raw: dict[str, bytes] = {}
        for name, (offset, size, code) in msgpack.unpackb(table).items():
            _demand(offset % 4096 == 0 and start + offset + size <= table_at, f"{name} lies outside")
            _demand(size % SIZES[code] == 0, f"{name} has half an element")
            self.raw[name] = data[start + offset : start + offset + size]
            if code != "B":
                self.arrays[name] = struct.unpack(f"<{size // SIZES[code]}{code}", self.raw[name])
            else:
                self.arrays[name] = tuple(self.raw[name])
        self.meta: dict[str, Any] = msgpack.unpackb(self.raw["meta"], strict_map_key=False)
        _demand(self.meta["engine"] == 1, "another engine")
        self.about: dict[str, Any] = msgpack.unpackb(self.raw["about"], strict_map_key=False)

    def symbol(self, number: int) -> bytes:
        """Bytes of a symbol as they stand in the blob."""
        offset = self.arrays["piece.offset"]
        return self.raw["piece.blob"][offset[number] : offset[number + 1]]

    def find(self, text: bytes) -> list[int]:
        """Symbols with these bytes."""
        hashes, symbols, found = self.arrays["lookup.hash"], self.arrays["lookup.symbol"], []
        at = bisect_left(hashes, zlib.crc32(text))
        while at < len(hashes) and hashes[at] == zlib.crc32(text):
            if self.symbol(symbols[at]) == text:
                found.append(symbols[at])
            at += 1
        return found

    def merge(self, left: int, right: int) -> tuple[int, int] | None:
        """(rank, result) of a pair of symbols."""
        keys, wanted = self.arrays["merge.key"], left << 32 | right
        at = bisect_left(keys, wanted)
        if at == len(keys) or keys[at] != wanted:
            return None
        return self.arrays["merge.rank"][at], self.arrays["merge.result"][at]

    def walk(self, text: bytes, trie: str = "trie") -> int:
        """Value of ``text`` in a trie, -1 for none."""
        first, label, value = (self.arrays[f"{trie}.{part}"] for part in ("first", "label", "value"))
        node = 0
        for byte in text:
            edges = range(first[node], first[node + 1])
            node = next((edge + 1 for edge in edges if label[edge] == byte), -1)
            if node < 0:
                return -1
        return int(value[node])

    def two_stage(self, name: str, code: int) -> int:
        """Value of a code point."""
        index, blocks = self.arrays[f"{name}.index"], self.arrays[f"{name}.blocks"]
        return int(blocks[index[code >> 8] * 256 + (code & 255)])

    def added(self) -> list[tuple[int, int, bytes]]:
        """(id, flags, text) of the added tokens, in matching order."""
        offset, blob = self.arrays["added.offset"], self.raw["added.blob"]
        ids, flags = self.arrays["added.id"], self.arrays["added.flags"]
        return [(ids[i], flags[i], blob[offset[i] : offset[i + 1]]) for i in range(len(ids))]


if __name__ == "__main__":
    found = Index(*(Path(name).read_bytes() for name in sys.argv[1:3]))
    print(found.meta)
    for name, values in found.arrays.items():
        print(f"{name:20}{len(values):>10}  {values[:6]}")
