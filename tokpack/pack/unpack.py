"""Decoding small msgpack maps without the package ``msgpack``, whose import takes longer than opening a pack.

Only what packs hold: nil, booleans, integers, floats, text, bytes, lists and maps, in any of their encodings. The
result equals ``msgpack.unpackb(raw, raw=False, strict_map_key=False)``; what that raises an error for, or gives an
extension type for, is a ValueError here, and so are maps and lists that are nested more than 64 deep.
"""

from __future__ import annotations

from struct import Struct

from tokpack.typed import Any

__all__ = ["SMALL", "unpack"]

SMALL = 1 << 13  # bytes from which on msgpack is worth its import
_NESTING = 64

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: Struct(">f"),
    0xCB: Struct(">d"),
    0xCC: Struct(">B"),
    0xCD: Struct(">H"),
    0xCE: Struct(">I"),
    0xCF: Struct(">Q"),
    0xD0: Struct(">b"),
    0xD1: Struct(">h"),
    0xD2: Struct(">i"),
    0xD3: Struct(">q"),
}
# first byte → (kind, bytes of the length behind it)
_SIZED = {
    0xC4: ("bytes", 1),
    0xC5: ("bytes", 2),
    0xC6: ("bytes", 4),
    0xD9: ("text", 1),
    0xDA: ("text", 2),
    0xDB: ("text", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}


def unpack(raw: bytes) -> object:
    """The value that ``raw`` holds, nothing before or behind it; ValueError when it does not."""
    try:
        value, end = _value(raw, 0, _NESTING)
    except (IndexError, TypeError) as error:  # the end of the bytes, a list as a key
        raise ValueError(f"{error}") from error
    if end != len(raw):
        raise ValueError("there is something behind the value")
    return value


def _value(raw: bytes, at: int, levels: int) -> tuple[Any, int]:
    head = raw[at]
    at += 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head >= 0xC0:
        return _long(raw, at, head, levels)
    if head >= 0xA0:
        return _text(raw, at, head & 31)
    found = _items(raw, at, (head & 15) << (head < 0x90), levels)
    return (_pairs(found[0]), found[1]) if head < 0x90 else found


def _long(raw: bytes, at: int, head: int, levels: int) -> tuple[Any, int]:
    """A value whose first byte ``head`` only says what follows."""
    if head in _CONSTANTS:
        return _CONSTANTS[head], at
    if head in _NUMBERS:
        number = _NUMBERS[head]
        return number.unpack(_part(raw, at, number.size))[0], at + number.size
    if head not in _SIZED:
        raise ValueError(f"byte {at - 1} is {head:#x}, which begins no value that a pack holds")
    kind, width = _SIZED[head]
    size = int.from_bytes(_part(raw, at, width), "big")
    at += width
    if kind == "bytes":
        return _part(raw, at, size), at + size
    if kind == "text":
        return _text(raw, at, size)
    if kind == "list":
        return _items(raw, at, size, levels)
    items, at = _items(raw, at, 2 * size, levels)
    return _pairs(items), at


def _part(raw: bytes, at: int, size: int) -> bytes:
    part = raw[at : at + size]
    if len(part) != size:
        raise ValueError(f"{size} bytes at byte {at} lie beyond the end")
    return part


def _text(raw: bytes, at: int, size: int) -> tuple[str, int]:
    return _part(raw, at, size).decode("utf-8"), at + size


def _items(raw: bytes, at: int, size: int, levels: int) -> tuple[list[Any], int]:
    """``size`` values; each takes a byte at least, so that a false size ends at the end of the bytes."""
    if not levels:
        raise ValueError("it is nested too deeply")
    found: list[Any] = []
    levels -= 1
    for _ in range(size):
        head = raw[at]
        if head < 0x80:
            found.append(head)
            at += 1
        elif 0xA0 <= head < 0xC0 and at + head - 0x9F <= len(raw):  # a short text, which most values are
            end = at + head - 0x9F
            found.append(raw[at + 1 : end].decode())
            at = end
        else:
            value, at = _value(raw, at, levels)
            found.append(value)
    return found, at


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))
