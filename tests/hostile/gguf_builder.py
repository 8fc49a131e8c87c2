"""A GGUF writer that may lie, a small byte-level vocabulary, and a walker that finds every count and length of a file.

The writer gives each key the declared lengths, counts and types that a test asks for, whatever the content is. The
walker is written from the format's description alone, so that it does not share mistakes with the reader under test.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["TYPES", "Field", "Key", "byte_chars", "gguf", "spell", "vocabulary", "walk"]

# name → (number of the value type, struct code); strings and arrays have no code
TYPES: dict[str, tuple[int, str]] = {
    "u8": (0, "B"),
    "i8": (1, "b"),
    "u16": (2, "H"),
    "i16": (3, "h"),
    "u32": (4, "I"),
    "i32": (5, "i"),
    "f32": (6, "f"),
    "bool": (7, "?"),
    "str": (8, ""),
    "array": (9, ""),
    "u64": (10, "Q"),
    "i64": (11, "q"),
    "f64": (12, "d"),
}
_BY_NUMBER = {number: (name, code) for name, (number, code) in TYPES.items()}

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True)
class Key:
    """One key and its value.

    Attributes:
        name: the key; bytes need not be UTF-8.
        kind: a name in TYPES, or one in brackets for an array (``[str]``, ``[[u8]]``).
        value: what the kind asks for.
        key_length, type, item_type, count: declared instead of the true key length, type number, element type number
            and array length (or string length).
    """

    name: str | bytes
    kind: str
    value: Any
    key_length: int | None = None
    type: int | None = None
    item_type: int | None = None
    count: int | None = None

    def pack(self, order: str) -> bytes:
        """The bytes of key, type and value."""
        raw = self.name.encode() if isinstance(self.name, str) else self.name
        number = 9 if self.kind.startswith("[") else TYPES[self.kind][0]
        head = struct.pack(order + "Q", len(raw) if self.key_length is None else self.key_length) + raw
        return head + struct.pack(order + "I", number if self.type is None else self.type) + self._value(order)

    def _value(self, order: str) -> bytes:
        if self.kind == "str":
            return _string(self.value, order, self.count)
        if not self.kind.startswith("["):
            return struct.pack(order + TYPES[self.kind][1], self.value)
        return _array(self.kind, self.value, order, self.item_type, self.count)


def _string(text: str | bytes, order: str, length: int | None = None) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack(order + "Q", len(raw) if length is None else length) + raw


def _array(
    kind: str, value: Sequence[Any], order: str, item_type: int | None = None, count: int | None = None
) -> bytes:
    item = kind[1:-1]
    number = 9 if item.startswith("[") else TYPES[item][0]
    head = struct.pack(order + "IQ", number if item_type is None else item_type, len(value) if count is None else count)
    if item.startswith("["):
        return head + b"".join(_array(item, part, order) for part in value)
    if item == "str":
        return head + b"".join(_string(text, order) for text in value)
    return head + struct.pack(f"{order}{len(value)}{TYPES[item][1]}", *value)


def gguf(
    keys: Iterable[Key],
    *,
    version: int = 3,
    order: str = "<",
    tensors: int = 0,
    key_count: int | None = None,
    magic: bytes = b"GGUF",
) -> bytes:
    """A GGUF file without tensor infos; ``key_count`` is declared instead of the true number of keys."""
    parts = [key.pack(order) for key in keys]
    head = struct.pack(order + "IQQ", version, tensors, len(parts) if key_count is None else key_count)
    return magic + head + b"".join(parts)


# --- a vocabulary ----------------------------------------------------------------------------------------------------


def byte_chars() -> list[str]:
    """The character by which byte-level BPE spells each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def spell(text: str) -> str:
    """The byte-level spelling of a text."""
    chars = byte_chars()
    return "".join(chars[byte] for byte in text.encode())


MERGES = ("H e", "l l", "ll o", "He llo", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "1 2", "Ġ 12")


def vocabulary(
    extra: Iterable[tuple[str | bytes, int]] = (),
    *,
    merges: Sequence[str | bytes] | None = MERGES,
    types: bool = True,
    pre: str | None = "gpt-2",
    without: Iterable[str] = (),
    change: Iterable[Key] = (),
) -> list[Key]:
    """Keys of a byte-level vocabulary: 256 bytes (byte ``b`` is id ``b``), merge results, ``<|endoftext|>``, ``extra``.

    Args:
        extra: further (text, type) behind the others.
        merges: merge lines, None for no such key.
        types: whether there is a token_type array.
        pre: pre-tokenizer name, None for no such key.
        without: names (behind ``tokenizer.ggml.``) of keys that are left out.
        change: keys that replace those of the same name, or are added at the end.
    """
    tokens: list[str | bytes] = [*byte_chars(), *(line.replace(" ", "") for line in MERGES), "<|endoftext|>"]
    kinds = [NORMAL] * (len(tokens) - 1) + [CONTROL]
    for text, kind in extra:
        tokens.append(text)
        kinds.append(kind)
    end = 256 + len(MERGES)
    keys = [
        Key("general.architecture", "str", "gpt2"),
        Key("general.name", "str", "hostile"),
        Key("tokenizer.ggml.model", "str", "gpt2"),
        *([] if pre is None else [Key("tokenizer.ggml.pre", "str", pre)]),
        Key("tokenizer.ggml.tokens", "[str]", tokens),
        *([Key("tokenizer.ggml.token_type", "[i32]", kinds)] if types else []),
        *([] if merges is None else [Key("tokenizer.ggml.merges", "[str]", list(merges))]),
        Key("tokenizer.ggml.bos_token_id", "u32", end),
        Key("tokenizer.ggml.eos_token_id", "u32", end),
    ]
    gone = {f"tokenizer.ggml.{name}" for name in without}
    keys = [key for key in keys if key.name not in gone]
    for new in change:
        places = [i for i, key in enumerate(keys) if key.name == new.name]
        if places:
            keys[places[0]] = new
        else:
            keys.append(new)
    return keys


def declare(keys: Sequence[Key], name: str, **declared: Any) -> list[Key]:
    """``keys`` with other declared numbers for the key called ``name``."""
    assert any(key.name == name for key in keys), name
    return [replace(key, **declared) if key.name == name else key for key in keys]


# --- the walker ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A number in a file that says how much follows, or what.

    Attributes:
        what: such as ``key 3 length``.
        offset: of its first byte.
        code: struct code with byte order.
        value: what the file says.
    """

    what: str
    offset: int
    code: str
    value: int

    @property
    def maximum(self) -> int:
        """The largest number that fits."""
        return (1 << 8 * struct.calcsize(self.code)) - 1

    def set(self, data: bytes, value: int) -> bytes:
        """``data`` with another number here."""
        raw = struct.pack(self.code, value)
        return data[: self.offset] + raw + data[self.offset + len(raw) :]


class _Walker:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.order = "<" if data[4] else ">"
        self.at = 4
        self.fields: list[Field] = []

    def number(self, code: str, what: str) -> int:
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.fields.append(Field(what, self.at, self.order + code, value))
        self.at += struct.calcsize(code)
        return int(value)

    def string(self, what: str) -> bytes:
        size = self.number("Q", f"length of {what}")
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, kind: int, what: str) -> None:
        name, code = _BY_NUMBER[kind]
        if name == "str":
            self.string(what)
        elif name == "array":
            item = self.number("I", f"element type of {what}")
            for index in range(self.number("Q", f"count of {what}")):
                self.value(item, f"{what}[{index}]")
        else:
            self.at += struct.calcsize(code)


def walk(data: bytes) -> tuple[list[Field], int]:
    """Every version, count, length and type number of a GGUF file, and the offset behind its last key."""
    walker = _Walker(data)
    walker.number("I", "version")
    walker.number("Q", "tensor count")
    for index in range(walker.number("Q", "key count")):
        key = walker.string(f"key {index}").decode("utf-8", "replace")
        walker.value(walker.number("I", f"type of {key}"), key)
    return walker.fields, walker.at
