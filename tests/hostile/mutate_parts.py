"""Damage that is done part by part and put together again: bodies of MNN, packs, regular expressions."""

from __future__ import annotations

import copy
import random
import struct
import zlib
from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgpack

from tests.hostile.mutate import NUMBERS, TEXTS, places, raw
from tokpack.errors import TokpackError
from tokpack.formats.mnn import parts
from tokpack.formats.mnn.body import serialize
from tokpack.formats.mnn.read_body import read_body
from tokpack.pack import layout
from tokpack.pack.build import assemble
from tokpack.pack.view import PackView, find_footer

__all__ = ["mtok", "pack", "pattern"]

# --- bodies of MNN ----------------------------------------------------------------------------------------------------

NORMALIZERS: tuple[parts.Normalizer, ...] = (
    parts.Prepend("▁"),
    parts.Replace(" ", "▁"),
    parts.Replace("a", "aa"),
    parts.BertNormalizer(True, True, True, True, ((0xE9, "e"),)),
    parts.BertNormalizer(False, False, False, True),
    parts.TableNormalizer(((0x41, "a"), (0xE9, ""), (0x10FFFF, "x"))),
    parts.Strip(True, True),
)
PRE_TOKENIZERS: tuple[parts.PreTokenizer, ...] = (
    parts.ByteLevel(True),
    parts.ByteLevel(False),
    parts.Digits(True),
    parts.Metaspace("▁", True),
    parts.Split(r"\s+", False, "isolated"),
    parts.Split("(a|b)+?(?!c)[^x-z]", True, "removed"),
    parts.BertPreTokenizer(),
)
DECODERS: tuple[parts.Decoder, ...] = (
    parts.ByteLevelDecoder(),
    parts.ByteFallbackDecoder(),
    parts.MetaspaceDecoder("▁", True),
    parts.WordPieceDecoder("##", True),
    parts.FuseDecoder(),
    parts.ReplaceDecoder("▁", " "),
    parts.StripDecoder(" ", 1, 0),
)
MENUS: dict[str, tuple[Any, ...]] = {
    "normalizer": NORMALIZERS,
    "pre_tokenizer": PRE_TOKENIZERS,
    "decoder": DECODERS,
    "added_tokens": (parts.AddedToken(5, b"<x>", True, False, True), parts.AddedToken(-1, b"", True, True, True)),
}


def mtok(data: bytes, rng: random.Random) -> bytes:
    """Steps added, dropped, exchanged and changed, numbers and texts of the rest: a body that is written anew.

    Often the bytes before or behind the vocabulary alone are damaged instead, or any.
    """
    if rng.random() < 0.3:
        return raw(data, rng)
    if rng.random() < 0.4:
        size = min(len(data), rng.choice((64, 300, 2000)))
        end = rng.random() < 0.5
        part = raw(data[-size:] if end else data[:size], rng)
        return data[:-size] + part if end else part + data[size:]
    try:
        body = read_body(data)
        for _ in range(1 + rng.randrange(3)):
            body = _changed_body(body, rng)
        return serialize(body)
    except (TokpackError, OverflowError, ValueError, struct.error, TypeError):
        return raw(data, rng)


def _changed_body(body: Any, rng: random.Random) -> Any:
    name = rng.choice([*MENUS, *MENUS, "model", "special", "chat_template", "eos"])
    value = getattr(body, name)
    if name in MENUS:
        steps = list(value)
        at = rng.randrange(len(steps) + 1)
        kind = rng.randrange(4)
        if kind == 0 and steps:
            del steps[min(at, len(steps) - 1)]
        elif kind == 1 and steps:
            steps[at % len(steps)] = _changed_part(steps[at % len(steps)], rng)
        else:
            steps.insert(at, rng.choice(MENUS[name]))
        return replace(body, **{name: tuple(steps)})
    if name == "model":
        return replace(body, model=_changed_part(value, rng))
    if name == "special":
        return replace(body, special=(*value, rng.choice((0, 1, 7, 1 << 20))))
    return replace(body, **{name: rng.choice(TEXTS)})


def _changed_part(part: Any, rng: random.Random) -> Any:
    """One field of a dataclass set to something of its type."""
    if not is_dataclass(part) or isinstance(part, type) or not fields(part):
        return part
    name = rng.choice([field.name for field in fields(part)])
    value = getattr(part, name)
    if isinstance(value, bool):
        return replace(part, **{name: not value})
    if isinstance(value, int):
        return replace(part, **{name: rng.choice(NUMBERS[:12])})
    if isinstance(value, str):
        return replace(part, **{name: rng.choice((value + "a", "", "é", "\0", "(", "[^a]", "a|b*", value * 3))})
    if isinstance(value, bytes):
        return replace(part, **{name: rng.choice(TEXTS)})
    if isinstance(value, tuple) and value and name in ("pieces", "scores"):
        items = list(value)
        at, other = rng.randrange(len(items)), rng.randrange(len(items))
        items[at] = rng.choice((*TEXTS, items[other])) if name == "pieces" else rng.choice((0.0, -1e30, 5.0))
        return replace(part, **{name: tuple(items)})
    return part


# --- packs ------------------------------------------------------------------------------------------------------------


def pack(data: bytes, rng: random.Random) -> bytes:
    """Sections whose values are damaged, exchanged, cut or left out; maps whose parts are. Footer and table fit."""
    if find_footer(data) is None or rng.random() < 0.1:
        return raw(data, rng)
    if rng.random() < 0.15:
        return _pack_table(data, rng)
    try:
        view = PackView(data)
        sections = {name: bytes(view.raw(name)) for name in view.sections}
    except TokpackError:
        return raw(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(sections))
        if name in ("meta", "about"):
            sections[name] = _map(sections[name], rng)
        elif rng.random() < 0.06:
            del sections[name]
        else:
            code = layout.SECTIONS[name].code if name in layout.SECTIONS else "B"
            sections[name] = _array(sections[name], code, rng)
    return assemble(sections)


def _map(packed: bytes, rng: random.Random) -> bytes:
    """Values of a msgpack map replaced, removed and exchanged."""
    try:
        tree = msgpack.unpackb(packed, strict_map_key=False)
        found: list[tuple[Any, Any]] = []
        places(tree, found)
        container, key = rng.choice(found)
        other, other_key = rng.choice(found)
        kind = rng.randrange(4)
        if kind == 0:
            del container[key]
        elif kind == 1:
            container[key] = copy.deepcopy(other[other_key])
        elif kind == 2 and isinstance(container[key], (str, bytes)):
            more = rng.choice(("", "a", "(", "\0", "▁"))
            container[key] += more if isinstance(container[key], str) else more.encode()
        else:
            container[key] = rng.choice((None, 0, -1, 1 << 40, True, "", "x", b"\xff", [], {}, [[]], 0.5, "byte-level"))
        result: bytes = msgpack.packb(tree)
        return result
    except Exception:  # what damaged maps hold need not be packed again
        return raw(packed, rng)


def _array(values: bytes, code: str, rng: random.Random) -> bytes:
    """Elements changed, exchanged, or all of them at once; now and then a few less."""
    size = struct.calcsize(code)
    count = len(values) // size
    if not count:
        return rng.randbytes(size * rng.choice((1, 2, 256)))
    kind = rng.randrange(10)
    if kind == 0:
        return rng.choice((bytes(len(values)), b"\xff" * len(values), rng.randbytes(len(values))))
    if kind == 1:
        return values[: size * rng.choice((0, 1, count // 2, count - 1))]
    if kind == 2:
        return values + values[: size * rng.choice((1, count))]
    out = bytearray(values)
    for _ in range(rng.choice((1, 1, 3, 20))):
        at, other = size * rng.randrange(count), size * rng.randrange(count)
        if kind < 5:
            out[at : at + size] = values[other : other + size]
        elif kind < 8:
            near = int.from_bytes(values[at : at + size], "little") + rng.choice((-256, -2, -1, 1, 2, 5, 256))
            number = rng.choice((near, near, *NUMBERS, rng.randrange(4 * count)))
            out[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        else:
            out[at : at + size] = rng.randbytes(size)
    return bytes(out)


def _pack_table(data: bytes, rng: random.Random) -> bytes:
    """Sections moved about and cut by the table alone, whose checksum is made right."""
    found = find_footer(data)
    assert found is not None
    footer, out = found[1], bytearray(data)
    start, end = footer.table_offset, footer.table_offset + footer.table_length
    try:
        table = msgpack.unpackb(bytes(data[start:end]))
        names = [name for name, entry in table.items() if len(entry) == 3]
        for _ in range(1 + rng.randrange(3)):
            name, other = rng.choice(names), table[rng.choice(names)]
            if rng.random() < 0.5:
                table[name] = [other[0], other[1] - other[1] % 8, table[name][2]]
            else:
                table[name][1] = max(0, table[name][1] - rng.choice((1, 2, 4, 8, 64, table[name][1])))
        packed = msgpack.packb(table)
    except (ValueError, TypeError, AttributeError, IndexError, msgpack.UnpackException):
        return raw(data, rng)
    if len(packed) == footer.table_length:
        out[start:end] = packed
        crc = zlib.crc32(packed)
        at = len(out) - layout.FOOTER
        out[at:] = bytes(out[at:]).replace(struct.pack("<I", footer.table_checksum), struct.pack("<I", crc), 1)
    return bytes(out)


# --- regular expressions ----------------------------------------------------------------------------------------------

FRAGMENTS = (
    *(
        "a",
        "é",
        "日",
        "\\",
        "|",
        "(",
        ")",
        "(?:",
        "(?i:",
        "(?=",
        "(?!",
        "(?<=",
        "(?<!",
        "(?>",
        "(?<n>",
        "\\k<n>",
        "\\1",
    ),
    *("[", "]", "[^", "[a-z]", "[[:alpha:]]", "[[:^space:]]", "[a&&b]", "[\\p{L}--[a-z]]", "-", "^", "$", "\\b", "\\B"),
    *("*", "+", "?", "*?", "++", "??", "{2}", "{,3}", "{2,}", "{2,3}+", "{99999}", "{3,1}", ".", "\\X", "\\R", "\\K"),
    *("\\p{L}", "\\p{^N}", "\\P{Lu}", "\\p{Han}", "\\p{IsGreek}", "\\p{", "\\pL", "\\d", "\\S", "\\h", "\\H", "\\w"),
    *("\\x41", "\\x{10FFFF}", "\\x{110000}", "\\u00e9", "\\n", "\\0", "\\cA", "\\A", "\\z", "\\Z", "\\G", "(?#x)"),
    *("(?i)", "(?x)", "(?m)", "(?-i)", "(a+)+b", "(a|a)*c", "(?<=a|bc)", "(?<!a*)", "\\s+(?!\\S)", "(?P<n>a)", "(?~a)"),
)


def pattern(data: bytes, rng: random.Random) -> bytes:
    """Fragments of expressions put in, parts taken out, doubled and moved."""
    text = data.decode("utf-8", "replace")
    for _ in range(1 + rng.randrange(4)):
        at, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        end = min(end, at + rng.choice((1, 2, 5, 30)))
        kind = rng.randrange(6)
        if kind < 3:
            text = text[:at] + rng.choice(FRAGMENTS) + text[at:]
        elif kind == 3:
            text = text[:at] + text[end:]
        elif kind == 4:
            text = text[:end] + text[at:end] * rng.choice((1, 2, 40)) + text[end:]
        else:
            text = text[:at] + rng.choice(FRAGMENTS) + text[end:]
    return text[: rng.choice((20, 200, 3000))].encode("utf-8", "replace")
