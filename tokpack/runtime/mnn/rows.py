"""Tables of a ``.mtok`` as a pack keeps them: u32 number, u16 length, bytes of each entry; little-endian."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["read_rows"]

_HEAD = struct.Struct("<IH")


def read_rows(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, bytes) of each entry; ValueError for a damaged table."""
    at = 0
    while at < len(raw):
        if at + _HEAD.size > len(raw):
            raise ValueError("a table is cut off")
        number, size = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        if at + size > len(raw):
            raise ValueError("a table is cut off")
        yield number, raw[at : at + size]
        at += size
