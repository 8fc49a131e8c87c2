"""Protobuf's wire format: fields of a message, each checked against the bytes that are left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._cursor import Cursor

__all__ = ["FIXED32", "LENGTH", "VARINT", "Field", "fields", "varint"]

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
_NAMES = ("a varint", "8 bytes", "a length and bytes", "a group", "the end of a group", "4 bytes")
_DEEPEST = 100  # protobuf's own limit
_TAG_BYTES, _TAG_LIMIT = 5, 1 << 32


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        number, wire: of the tag.
        value: of a varint; else 0.
        begin: offset of the tag.
        start, end: offsets of the content, without a length in front.
    """

    number: int
    wire: int
    value: int
    begin: int
    start: int
    end: int

    def of_wire(self, wire: int, name: str, cursor: Cursor) -> Field:
        """Self; FormatError unless the field has this wire type.

        sentencepiece would read on as if the field were absent.
        """
        if self.wire != wire:
            what = f"{name} is {_NAMES[self.wire]}, not {_NAMES[wire]}"
            raise cursor.fail(what, path=name, offset=self.begin, hint="is this a SentencePiece model?")
        return self


def varint(cursor: Cursor, what: str, size: int = 10) -> int:
    """A varint of at most ``size`` bytes, cut off to 64 bits."""
    data, start, end = cursor.data, cursor.pos, cursor.end
    value = shift = 0
    for at in range(start, min(start + size, end)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            cursor.pos = at + 1
            return value & 0xFFFFFFFFFFFFFFFF
        shift += 7
    if end - start < size:
        raise cursor.fail(f"{what} is cut off", path=what)
    raise cursor.fail(f"{what} is a varint of more than {size} bytes", path=what)


def fields(cursor: Cursor, path: str, depth: int = 0) -> Iterator[Field]:
    """The fields of the message that reaches from the position of ``cursor`` to its end."""
    while cursor.left:
        begin = cursor.pos
        number, wire = _tag(cursor, path)
        if wire == END_GROUP:
            raise cursor.fail(f"a group ends in {path} that has not begun", path=path, offset=begin)
        value = 0
        start = cursor.pos
        if wire == VARINT:
            value = varint(cursor, f"field {number} of {path}")
        elif wire == LENGTH:
            size = varint(cursor, f"length of field {number} of {path}")
            start = cursor.pos
            if size > cursor.left:
                what = f"field {number} has {size} bytes, {cursor.left} are left: the file is cut off or damaged"
                raise cursor.fail(what, path=path, offset=begin)
            cursor.pos += size
        else:
            _skip(cursor, wire, number, path, depth)
        yield Field(number, wire, value, begin, start, cursor.pos)


def _tag(cursor: Cursor, path: str) -> tuple[int, int]:
    begin = cursor.pos
    tag = varint(cursor, f"tag in {path}", _TAG_BYTES) % _TAG_LIMIT
    number, wire = tag >> 3, tag & 7
    if not number or wire >= len(_NAMES):
        hint = "is this a SentencePiece model?"
        raise cursor.fail(f"tag {tag} is none of protobuf's", path=path, offset=begin, hint=hint)
    return number, wire


def _skip(cursor: Cursor, wire: int, number: int, path: str, depth: int) -> None:
    """Pass over 4 or 8 bytes, or over a group with all that is in it."""
    if wire != GROUP:
        cursor.skip(4 if wire == FIXED32 else 8, f"field {number} of {path}")
        return
    begin = cursor.pos
    waiting = [number]
    while waiting:
        if not cursor.left:
            raise cursor.fail(f"the group {waiting[-1]} does not end", path=path, offset=begin)
        inner, kind = _tag(cursor, path)
        if kind == GROUP:
            waiting.append(inner)
            if depth + len(waiting) > _DEEPEST:
                raise cursor.fail(f"more than {_DEEPEST} groups inside each other", path=path, offset=begin)
        elif kind == END_GROUP:
            if waiting.pop() != inner:
                raise cursor.fail(f"group {inner} ends inside another one", path=path)
        elif kind == VARINT:
            varint(cursor, f"field {inner} of a group of {path}")
        elif kind == LENGTH:
            cursor.skip(varint(cursor, f"length of field {inner} of a group of {path}"), f"field {inner} of {path}")
        else:
            cursor.skip(4 if kind == FIXED32 else 8, f"field {inner} of a group of {path}")
