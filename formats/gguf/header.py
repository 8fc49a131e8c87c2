"""GGUF container: the key-value section, without meaning and without tensor data.

Layout (ggml ``docs/gguf.md``; versions 2 and 3 differ in nothing that matters here): magic ``GGUF``, u32 version,
u64 tensor count, u64 key count, then the pairs. Everything is in the byte order that the version number shows.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.limits import DEFAULT, Limits, hint_for

from .._cursor import Cursor

__all__ = ["MAGIC", "CutOffError", "Entry", "Header", "ValueType", "read_header", "read_partial"]

MAGIC = b"GGUF"
_KEPT_PREFIXES = ("tokenizer.", "general.")


class ValueType(IntEnum):
    """``enum gguf_type``."""

    U8 = 0
    I8 = 1
    U16 = 2
    I16 = 3
    U32 = 4
    I32 = 5
    F32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    U64 = 10
    I64 = 11
    F64 = 12

    def __str__(self) -> str:
        return self.name.lower()


_SIZES = {
    ValueType.U8: 1,
    ValueType.I8: 1,
    ValueType.U16: 2,
    ValueType.I16: 2,
    ValueType.U32: 4,
    ValueType.I32: 4,
    ValueType.F32: 4,
    ValueType.BOOL: 1,
    ValueType.U64: 8,
    ValueType.I64: 8,
    ValueType.F64: 8,
    ValueType.STRING: 8,  # at least: the length
    ValueType.ARRAY: 12,  # at least: element type and count
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One key and its value.

    Attributes:
        key: the key.
        type: type of the value.
        item_type: element type of an array, else None.
        offset: byte offset of the value.
        count: number of elements of an array, else 1.
        value: int, float, bool, bytes, a list of bytes, a numpy array, or a nested list; None when it was passed over
            because nobody asks for the key, or because it is above the limit for strings.
    """

    key: str
    type: ValueType
    item_type: ValueType | None
    offset: int
    count: int
    value: Any

    @property
    def type_name(self) -> str:
        """Such as ``u32`` or ``array[string]``."""
        return f"array[{self.item_type}]" if self.type is ValueType.ARRAY else str(self.type)


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the tensor infos."""

    version: int
    big_endian: bool
    tensor_count: int
    entries: dict[str, Entry]
    end: int


class CutOffError(FormatError):
    """The file ends inside something; ``location`` is where that begins."""


class _CutCursor(Cursor):
    """A cursor that tells the end of the file from other damage."""

    def need(self, size: int, what: str) -> None:
        if size > self.end - self.pos:
            raise _cut_off(self, f"the file ends inside {what}")

    def count(self, kind: str, what: str, item_size: int, limit: int, name: str | None = None) -> int:
        at = self.pos
        value = int(self.number(kind, what))
        if 0 <= value <= limit and value * item_size > self.left:
            raise _cut_off(self, f"the file ends before the {value} that {what} promises", at)
        self.pos = at
        return super().count(kind, what, item_size, limit, name)

    def skip_strings(self, count: int, what: str, limit: int, name: str | None = None) -> None:
        for index in range(count):
            self.skip(self.count("u64", f"length of {what}[{index}]", 1, limit, name), what)


def _cut_off(cursor: Cursor, what: str, offset: int | None = None) -> CutOffError:
    return CutOffError(what, location=Location(cursor.file, None, cursor.pos if offset is None else offset))


def read_header(data: bytes | mmap.mmap, file: str | None = None, limits: Limits = DEFAULT) -> Header:
    """Read the key-value section; values of keys outside ``tokenizer.*`` and ``general.*`` are passed over if large.

    Raises FormatError for anything malformed, UnsupportedError for another version.
    """
    cursor = Cursor(data, file)
    version, big_endian, tensor_count = _read_start(cursor)
    # a pair takes at least 13 bytes: key length, value type, one byte of value
    key_count = cursor.count("u64", "key count", 13, limits.keys, "keys")
    entries: dict[str, Entry] = {}
    _read_pairs(cursor, key_count, entries, limits)
    return Header(version, big_endian, tensor_count, entries, cursor.pos)


def read_partial(
    data: bytes | mmap.mmap, file: str | None = None, limits: Limits = DEFAULT
) -> tuple[Header, CutOffError | None]:
    """As :func:`read_header`, of a file that may be cut off: the keys as far as they go, and where the file ends.

    A key whose value is cut off is there with the count that it promises and the value None.
    Raises FormatError for other damage, and when not even the counts are there.
    """
    cursor = _CutCursor(data, file)
    version, big_endian, tensor_count = _read_start(cursor)
    at = cursor.pos
    key_count = int(cursor.number("u64", "key count"))
    if key_count > limits.keys:
        raise cursor.fail(
            f"key count {key_count} is above the limit of {limits.keys}", offset=at, hint=hint_for("keys")
        )
    entries: dict[str, Entry] = {}
    cut: CutOffError | None = None
    try:
        _read_pairs(cursor, key_count, entries, limits)
    except CutOffError as error:
        cut = error
    return Header(version, big_endian, tensor_count, entries, cursor.pos), cut


def _read_start(cursor: Cursor) -> tuple[int, bool, int]:
    """Version, whether numbers are big-endian, tensor count."""
    if cursor.take(4, "magic") != MAGIC:
        raise cursor.fail("not a GGUF file: it does not start with 'GGUF'", offset=0)
    version = cursor.number("u32", "version")
    big_endian = version & 0xFFFF == 0 and version != 0
    if big_endian:
        cursor.set_order(">")
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (2, 3):
        hint = "version 1 had 32-bit lengths; convert the model again" if version == 1 else "versions 2 and 3 are read"
        raise UnsupportedError(f"GGUF version {version}", location=Location(cursor.file, None, 4), hint=hint)
    return version, big_endian, cursor.number("u64", "tensor count")


def _read_pairs(cursor: Cursor, count: int, entries: dict[str, Entry], limits: Limits) -> None:
    for index in range(count):
        start = cursor.pos
        try:
            entry = _read_pair(cursor, index, limits)
        except CutOffError:
            cursor.pos = start
            _read_promise(cursor, index, entries, limits)
            raise
        if entry.key in entries:
            raise cursor.fail("the key occurs twice", path=entry.key, offset=entry.offset)
        entries[entry.key] = entry


def _read_promise(cursor: Cursor, index: int, entries: dict[str, Entry], limits: Limits) -> None:
    """The entry of a value that is cut off, if its type is still there; leaves the cursor at the pair."""
    start = cursor.pos
    try:
        key = cursor.string("u64", f"key {index}", limits.key_bytes, "key_bytes").decode("utf-8")
        kind = ValueType(cursor.number("u32", key))
        at = cursor.pos
        item, count = None, 1
        if kind is ValueType.ARRAY:
            item, count = ValueType(cursor.number("u32", key)), int(cursor.number("u64", key))
        entries.setdefault(key, Entry(key, kind, item, at, count, None))
    except (FormatError, ValueError):
        pass
    cursor.pos = start


def _read_pair(cursor: Cursor, index: int, limits: Limits) -> Entry:
    start = cursor.pos
    raw = cursor.string("u64", f"key {index}", limits.key_bytes, "key_bytes")
    if not raw:
        raise cursor.fail(f"key {index} is empty", offset=start)
    try:
        key = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise cursor.fail(f"key {index} is not UTF-8: {raw[:40]!r}", offset=start) from error
    type_at = cursor.pos
    kind = _value_type(cursor, cursor.number("u32", f"type of {key}"), key, type_at)
    at = cursor.pos
    if kind is not ValueType.ARRAY:
        return Entry(key, kind, None, at, 1, _read_scalar(cursor, kind, key, limits))
    item, count, value = _read_array(cursor, key, limits, keep=key.startswith(_KEPT_PREFIXES), depth=1)
    return Entry(key, kind, item, at, count, value)


def _value_type(cursor: Cursor, number: int, key: str, at: int) -> ValueType:
    try:
        return ValueType(number)
    except ValueError:
        raise cursor.fail(f"unknown value type {number}", path=key, offset=at) from None


def _read_scalar(cursor: Cursor, kind: ValueType, key: str, limits: Limits) -> Any:
    if kind is ValueType.STRING:
        return cursor.string("u64", key, limits.string_bytes, "string_bytes")
    if kind is ValueType.BOOL:
        return cursor.number("u8", key) != 0
    return cursor.number(str(kind), key)


def _read_array(cursor: Cursor, key: str, limits: Limits, *, keep: bool, depth: int) -> tuple[ValueType, int, Any]:
    type_at = cursor.pos
    item = _value_type(cursor, cursor.number("u32", f"element type of {key}"), key, type_at)
    walked = item in (ValueType.STRING, ValueType.ARRAY)
    limit = limits.array_items if walked else 1 << 62
    count = cursor.count("u64", f"length of {key}", _SIZES[item], limit, "array_items")
    if item is ValueType.ARRAY:
        if depth >= limits.nesting:
            what = f"arrays are nested more than {limits.nesting} deep"
            raise cursor.fail(what, path=key, offset=type_at, hint=hint_for("nesting"))
        parts = []
        for _ in range(count):
            part = _read_array(cursor, key, limits, keep=keep, depth=depth + 1)
            if keep:
                value = part[2].tobytes() if hasattr(part[2], "tobytes") else part[2]
                parts.append([str(part[0]), value])
        return item, count, parts if keep else None
    if item is ValueType.STRING:
        if keep:
            return item, count, cursor.strings(count, key, limits.string_bytes, "string_bytes")
        cursor.skip_strings(count, key, limits.string_bytes, "string_bytes")
        return item, count, None
    if not keep or count * _SIZES[item] > limits.string_bytes:
        cursor.skip(count * _SIZES[item], key)
        return item, count, None
    kind = "u8" if item is ValueType.BOOL else str(item)
    return item, count, cursor.array(kind, count, key)
