"""A GGUF with tensors, as large as one likes: the data is a hole in the file."""

from __future__ import annotations

import struct
from pathlib import Path

from tokpack.formats.gguf.header import read_header

TENSORS = 200
_F16 = 1


def make_sparse(source: Path, target: Path, size: int) -> int:
    """The keys of ``source`` with tensors of about ``size`` bytes in all; returns where their data begins."""
    data = source.read_bytes()
    end = read_header(data).end
    each = size // TENSORS // 4096 * 4096
    infos = b""
    for index in range(TENSORS):
        name = b"blk.%d.weight" % index
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, each // 64, 32, _F16, index * each)
    head = data[:8] + struct.pack("<Q", TENSORS) + data[16:end] + infos
    start = -(-len(head) // 32) * 32
    with target.open("wb") as handle:
        handle.write(head)
        handle.truncate(start + TENSORS * each)
    return start
