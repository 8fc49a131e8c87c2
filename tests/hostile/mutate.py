"""Damage that knows the structure of a file: each mutator takes bytes and a Random and gives other bytes."""

from __future__ import annotations

import base64
import copy
import json
import random
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["NUMBERS", "TEXTS", "WIDE", "Mutator", "gguf", "json_tree", "lines", "places", "protobuf", "raw"]

Mutator = Callable[[bytes, random.Random], bytes]

NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    8,
    127,
    128,
    255,
    256,
    1023,
    4096,
    65535,
    65536,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)
WIDE = (*NUMBERS, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
TEXTS = (
    b"",
    b"\0",
    b"a",
    b" ",
    b"\xff",
    b"\xe2\x96\x81",
    b"<0x41>",
    b"<unk>",
    b"a" * 300,
    b"\xed\xa0\x80",
    b"\n",
    b"##a",
)


def raw(data: bytes, rng: random.Random) -> bytes:
    """Bits, bytes, numbers, cuts, insertions, and parts moved about."""
    out = bytearray(data)
    for _ in range(1 + rng.randrange(4)):
        if not out:
            return b"\0"
        at, kind = rng.randrange(len(out)), rng.randrange(8)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            out[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS))
        elif kind == 3:
            out[at : at + 8] = struct.pack("<Q", rng.choice(WIDE))
        elif kind == 4:
            del out[at : at + 1 + rng.randrange(40)]
        elif kind == 5:
            out[at:at] = rng.choice(TEXTS)
        elif kind == 6:
            end = rng.randrange(len(out))
            out[at:at] = out[end : end + 1 + rng.randrange(60)]
        else:
            del out[at:]
    return bytes(out)


# --- JSON -------------------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 1e308, -0.0, "", "a", "\0", "\ud800", "▁", [], {}, [[]]),
    *("(", "(a+)+b", r"\p{L}", "Sequence", "ByteLevel", ["a", "b"], [["a", 0.5]], {"": None}),
    {"type": "Sequence", "normalizers": []},
)


def places(value: Any, found: list[tuple[Any, Any]]) -> None:
    """(container, key) of every value below."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items)[:400]:
        found.append((value, key))
        places(inner, found)


def json_tree(data: bytes, rng: random.Random) -> bytes:
    """Values replaced, removed, doubled and exchanged; now and then the bytes are damaged after all."""
    if rng.random() < 0.15:
        return raw(data, rng)
    try:
        tree = json.loads(data)
    except ValueError:
        return raw(data, rng)
    for _ in range(1 + rng.randrange(3)):
        found: list[tuple[Any, Any]] = []
        places(tree, found)
        if not found:
            break
        container, key = rng.choice(found)
        kind = rng.randrange(6)
        other, other_key = rng.choice(found)
        if kind == 0:
            container[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 1:
            del container[key]
        elif kind == 2:
            container[key] = copy.deepcopy(other[other_key])
        elif kind == 3 and isinstance(container, dict):
            container[rng.choice(("type", "vocab", "merges", "pattern", "id", "content", ""))] = container[key]
        elif kind == 4:
            container[key] = [copy.deepcopy(container[key])] * rng.choice((1, 2, 50))
        elif isinstance(container[key], str):
            container[key] += rng.choice(("", "a", "\0", "(", "▁", "\ud800"))
    return json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


# --- protobuf ---------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes) -> list[tuple[int, int, Any]] | None:
    """(number, wire type, value) of a message; None when it is not one."""
    found, at = [], 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if at < 0 or not key >> 3:
            return None
        wire: int = key & 7
        value: Any
        if wire == 0:
            value, at = _read_varint(data, at)
            if at < 0:
                return None
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        elif wire == 2:
            size, at = _read_varint(data, at)
            if at < 0 or at + size > len(data):
                return None
            value, at = data[at : at + size], at + size
        else:
            return None
        found.append((key >> 3, wire, value))
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    return 0, -1


def _message(fields: list[tuple[int, int, Any]]) -> bytes:
    out = []
    for number, wire, value in fields:
        out.append(_varint(number << 3 | wire))
        out.append(_varint(value) if wire == 0 else _varint(len(value)) + value if wire == 2 else value)
    return b"".join(out)


def protobuf(data: bytes, rng: random.Random, depth: int = 0) -> bytes:
    """Fields changed, dropped, doubled, moved, given another number or type; inner messages too."""
    fields = None if rng.random() < 0.15 else _fields(data)
    if not fields:
        return raw(data, rng)
    at = rng.randrange(len(fields))
    number, wire, value = fields[at]
    kind = rng.randrange(8)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields.insert(rng.randrange(len(fields) + 1), fields[at])
    elif kind == 2:
        fields[at] = (rng.choice((1, 2, 3, 4, 5, 10, 35, 40, 45, 200, 1 << 28)), wire, value)
    elif wire == 0:
        fields[at] = (number, 0, rng.choice(WIDE))
    elif wire == 2 and depth < 3 and kind < 7:
        fields[at] = (number, 2, protobuf(value, rng, depth + 1) if rng.random() < 0.8 else rng.choice(TEXTS))
    elif wire == 2:
        fields[at] = (number, 2, rng.choice(TEXTS))
    else:
        bits = rng.choice((0, 0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x7F7FFFFF, 0x00000001))
        fields[at] = (number, 5, struct.pack("<I", bits))
    return _message(fields)


# --- GGUF -------------------------------------------------------------------------------------------------------

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
_Entry = tuple[bytes, int, Any]


class _EndError(Exception):
    """The file is not a whole header."""


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise _EndError
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == 8:
            return self.take(self.number("<Q"))
        if kind != 9:
            raise _EndError
        inner, count = self.number("<I"), self.number("<Q")
        if count > 1 << 20:
            raise _EndError
        return inner, [self.value(inner) for _ in range(count)]


def _gguf_value(kind: int, value: Any) -> bytes:
    if kind in _SCALARS:
        form = _SCALARS[kind]
        if form in ("<f", "<d"):
            return struct.pack(form, value)
        size = struct.calcsize(form)
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if kind == 8:
        return struct.pack("<Q", len(value)) + value
    inner, items = value
    return struct.pack("<IQ", inner, len(items)) + b"".join(_gguf_value(inner, item) for item in items)


def gguf(data: bytes, rng: random.Random) -> bytes:
    """Keys dropped, doubled, renamed; values changed, arrays cut, items exchanged: the file stays well-formed."""
    if rng.random() < 0.2 or data[:4] != b"GGUF" or len(data) < 24:
        return raw(data, rng)
    version, _, count = struct.unpack("<IQQ", data[4:24])
    reader, entries = _Reader(data, 24), list[_Entry]()
    try:
        for _ in range(min(count, 10_000)):
            key = reader.value(8)
            kind = reader.number("<I")
            entries.append((key, kind, reader.value(kind)))
    except _EndError:
        return raw(data, rng)
    for _ in range(1 + rng.randrange(2)):
        if entries:
            _change_entry(entries, rng)
    body = b"".join(_gguf_value(8, key) + struct.pack("<I", kind) + _gguf_value(kind, v) for key, kind, v in entries)
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + body


def _change_entry(entries: list[_Entry], rng: random.Random) -> None:
    at = rng.randrange(len(entries))
    key, kind, value = entries[at]
    choice = rng.randrange(10)
    if choice == 0:
        del entries[at]
    elif choice == 1:
        entries.append(entries[at])
    elif choice == 2:
        entries[at] = (rng.choice(entries)[0], kind, value)
    elif kind == 9:
        entries[at] = (key, kind, _change_array(value, rng))
    elif kind == 8:
        text = rng.choice((*TEXTS, b"llama", b"gpt2", b"bert", b"t5", b"rwkv", b"plamo2", b"gemma4", b"whitespace"))
        entries[at] = (key, kind, text if rng.random() < 0.7 else raw(value, rng))
    elif kind in (6, 12):
        entries[at] = (key, kind, rng.choice((0.0, -1.0, float("inf"), float("nan"), -1000.0)))
    elif choice < 6:
        entries[at] = (key, kind, rng.choice(WIDE))
    else:
        entries[at] = (key, rng.choice((0, 4, 5, 7, 10, 11)), value)


def _change_array(value: tuple[int, list[Any]], rng: random.Random) -> tuple[int, list[Any]]:
    inner, items = value[0], list(value[1])
    if not items:
        return inner, items
    at, choice = rng.randrange(len(items)), rng.randrange(6)
    if choice == 0:
        del items[at:]
    elif choice == 1:
        items.append(items[at])
    elif choice == 2:
        items[at] = items[rng.randrange(len(items))]
    elif inner == 8:
        items[at] = rng.choice(TEXTS) if rng.random() < 0.6 else raw(items[at], rng)
    elif inner in (6, 12):
        items[at] = rng.choice((0.0, -1.0, float("inf"), float("nan"), -1000.0, 1e30))
    elif inner in _SCALARS:
        items[at] = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 255, -1))
    return inner, items


# --- others -----------------------------------------------------------------------------------------------------


def lines(data: bytes, rng: random.Random) -> bytes:
    """Lines dropped, doubled, exchanged; words of a line replaced."""
    if rng.random() < 0.2:
        return raw(data, rng)
    rows = data.split(b"\n")
    for _ in range(1 + rng.randrange(3)):
        at, kind = rng.randrange(len(rows)), rng.randrange(6)
        words = rows[at].split(b" ")
        if kind == 0 and len(rows) > 1:
            del rows[at]
        elif kind == 1:
            rows.insert(at, rows[at])
        elif kind == 2:
            other = rng.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        elif kind == 3:
            words[rng.randrange(len(words))] = str(rng.choice((*WIDE, -1, 1e30, float("nan")))).encode()
            rows[at] = b" ".join(words)
        elif kind == 4:
            words[rng.randrange(len(words))] = base64.b64encode(rng.choice(TEXTS))
            rows[at] = b" ".join(words)
        else:
            rows[at] = rng.choice(TEXTS)
    return b"\n".join(rows)
