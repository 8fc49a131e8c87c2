"""The only way to read bytes from an untrusted file.

A :class:`Cursor` never hands out a byte beyond the end: every read names what is being read, checks the length
against the bytes that are left, and fails with the file, the name and the byte offset. Counts are checked in O(1)
before any loop.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokpack.errors import FormatError, Location, ReadError
from tokpack.limits import hint_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Cursor", "map_file"]

_SCALARS = {
    "u8": "B",
    "i8": "b",
    "u16": "H",
    "i16": "h",
    "u32": "I",
    "i32": "i",
    "u64": "Q",
    "i64": "q",
    "f32": "f",
    "f64": "d",
}


@contextmanager
def map_file(path: str | os.PathLike[str]) -> Iterator[mmap.mmap | bytes]:
    """Map a regular file for reading; an empty file gives ``b""``.

    Raises ReadError when the file is missing, is not a regular file, or may not be read.
    """
    name = os.fspath(path)
    try:
        if not stat.S_ISREG(Path(name).stat().st_mode):  # opening a pipe would wait for somebody to write
            raise ReadError("not a regular file", location=Location(name), hint="save it to disk first")
        with Path(name).open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot open: {getattr(error, 'strerror', None) or error}", location=Location(name)) from error
    try:
        yield mapped
    finally:
        if isinstance(mapped, mmap.mmap):
            mapped.close()


class Cursor:
    """A position in a buffer, with checked reads.

    Attributes:
        data: the whole file, bytes or a read-only map.
        pos: offset of the next byte.
        end: offset behind the last byte that may be read.
        order: ``"<"`` or ``">"``, byte order of numbers.
    """

    __slots__ = ("_structs", "data", "end", "file", "order", "pos")

    def __init__(self, data: bytes | mmap.mmap, file: str | None = None, order: str = "<") -> None:
        self.data = data
        self.file = file
        self.pos = 0
        self.end = len(data)
        self._structs: dict[str, struct.Struct] = {}
        self.order = order

    def set_order(self, order: str) -> None:
        """Change the byte order of the numbers that follow."""
        self.order = order
        self._structs.clear()

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self.end - self.pos

    def fail(
        self, what: str, *, path: str | None = None, offset: int | None = None, hint: str | None = None
    ) -> FormatError:
        """An error at ``offset`` (default: here), to be raised by the caller."""
        return FormatError(what, location=Location(self.file, path, self.pos if offset is None else offset), hint=hint)

    def need(self, size: int, what: str) -> None:
        """Raise FormatError unless ``size`` more bytes are there."""
        if size > self.end - self.pos:
            raise self.fail(f"{what} needs {size} bytes, {self.left} are left: the file is cut off or damaged")

    def number(self, kind: str, what: str) -> Any:
        """One number of ``kind`` (u8 … f64)."""
        packer = self._structs.get(kind)
        if packer is None:
            packer = self._structs[kind] = struct.Struct(self.order + _SCALARS[kind])
        self.need(packer.size, what)
        (value,) = packer.unpack_from(self.data, self.pos)
        self.pos += packer.size
        return value

    def count(self, kind: str, what: str, item_size: int, limit: int, name: str | None = None) -> int:
        """A count of items that take at least ``item_size`` bytes each; checked against what is left and ``limit``.

        ``name``: of the limit, if it can be set.
        """
        at = self.pos
        value = int(self.number(kind, what))
        if value < 0 or value * item_size > self.left:
            raise self.fail(f"{what} {value} does not fit in the {self.left} bytes that are left", offset=at)
        if value > limit:
            hint = None if name is None else hint_for(name)
            raise self.fail(f"{what} {value} is above the limit of {limit}", offset=at, hint=hint)
        return value

    def take(self, size: int, what: str) -> bytes:
        """``size`` bytes."""
        self.need(size, what)
        start = self.pos
        self.pos += size
        return self.data[start : self.pos]

    def skip(self, size: int, what: str) -> None:
        """Pass over ``size`` bytes, which must be there."""
        self.need(size, what)
        self.pos += size

    def string(self, length_kind: str, what: str, limit: int, name: str | None = None) -> bytes:
        """Length-prefixed bytes; ``name`` as for :meth:`count`."""
        return self.take(self.count(length_kind, f"length of {what}", 1, limit, name), what)

    def strings(self, count: int, what: str, limit: int, name: str | None = None) -> list[bytes]:
        """``count`` byte strings with u64 lengths; the caller has checked ``count`` against what is left.

        The loop is written out because a vocabulary has some 300,000 of them.
        """
        unpack = struct.Struct(self.order + "Q").unpack_from
        data, pos, end = self.data, self.pos, self.end
        items: list[bytes] = []
        append = items.append
        for _ in range(count):
            start = pos + 8
            if start > end:
                break
            (size,) = unpack(data, pos)
            if size > limit or size > end - start:
                break
            pos = start + size
            append(data[start:pos])
        self.pos = pos
        if len(items) < count:
            self.string("u64", f"{what}[{len(items)}]", limit, name)  # says what is wrong with this one
            raise self.fail(f"{what}[{len(items)}] cannot be read")
        return items

    def skip_strings(self, count: int, what: str, limit: int, name: str | None = None) -> None:
        """Pass over ``count`` byte strings with u64 lengths."""
        unpack = struct.Struct(self.order + "Q").unpack_from
        data, pos, end = self.data, self.pos, self.end
        for index in range(count):
            if end - pos < 8:
                self.pos = pos
                raise self.fail(f"{what}[{index}] is cut off")
            (size,) = unpack(data, pos)
            pos += 8
            if size > limit or size > end - pos:
                self.pos = pos - 8
                self.string("u64", f"{what}[{index}]", limit, name)  # says what is wrong with this one
                raise self.fail(f"{what}[{index}] cannot be read")
            pos += size
        self.pos = pos

    def array(self, kind: str, count: int, what: str) -> NDArray[np.generic]:
        """``count`` numbers of ``kind`` as a read-only array in native byte order (a copy)."""
        import numpy as np

        dtype = np.dtype(self.order + _SCALARS[kind])
        raw = self.take(count * dtype.itemsize, what)
        return np.frombuffer(raw, dtype=dtype).astype(dtype.newbyteorder("="), copy=False)
