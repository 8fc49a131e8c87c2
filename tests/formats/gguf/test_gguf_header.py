"""The container: versions, byte orders, value types, and headers that lie about lengths, counts and types."""

from __future__ import annotations

import gc
import struct
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.hostile.gguf_builder import TYPES, Key, declare, gguf, walk
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.formats.gguf.header import Header, ValueType, read_header
from tokpack.limits import DEFAULT

HUGE = (1 << 60, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) // 12 + 1, (1 << 64) // 8, 1 << 32, 1 << 31)
SCALARS = [kind for kind in TYPES if kind not in ("str", "array")]
ORDERS = ("<", ">")


def extremes(kind: str) -> list[Any]:
    """The smallest and the largest value of a type, and one between."""
    if kind in ("f32", "f64"):
        return [-1.5, 0.0, float("inf")]
    if kind == "bool":
        return [False, True]
    bits, signed = int(kind[1:]), kind[0] == "i"
    return [-(1 << bits - 1), -1, (1 << bits - 1) - 1] if signed else [0, 1, (1 << bits) - 1]


def quick(data: bytes, expected: type[TokpackError] = FormatError) -> TokpackError:
    """The error of a hostile header, which has to come at once and without memory for what it promises."""
    gc.disable()
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(expected) as caught:
            read_header(data, "hostile.gguf")
        seconds = time.process_time() - start
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert seconds < 0.1
    assert peak < len(data) + 500_000
    assert caught.value.location.file == "hostile.gguf"
    return caught.value


def names(error: TokpackError, key: str, offset: int) -> bool:
    """Whether the error says which key it is about, and where."""
    return key in str(error) and error.location.offset == offset


# --- what is right ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("version", [2, 3])
def test_both_versions_and_byte_orders_are_read(version: int, order: str) -> None:
    keys = [Key("general.name", "str", "näme"), Key("tokenizer.count", "u32", 0x01020304)]
    header = read_header(gguf(keys, version=version, order=order, tensors=7))
    assert (header.version, header.big_endian, header.tensor_count) == (version, order == ">", 7)
    assert {key: entry.value for key, entry in header.entries.items()} == {
        "general.name": "näme".encode(),
        "tokenizer.count": 0x01020304,
    }


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", SCALARS)
def test_every_scalar_type_keeps_its_value(kind: str, order: str) -> None:
    values = extremes(kind)
    data = gguf([Key(f"general.{i}", kind, value) for i, value in enumerate(values)], order=order)
    entries = read_header(data).entries
    assert [entries[f"general.{i}"].value for i in range(len(values))] == values
    assert {str(entry.type) for entry in entries.values()} == {kind}
    assert {type(entry.value) for entry in entries.values()} == {type(values[0])}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", SCALARS)
def test_every_array_type_keeps_its_values(kind: str, order: str) -> None:
    values = extremes(kind)
    data = gguf([Key("tokenizer.a", f"[{kind}]", values), Key("tokenizer.empty", f"[{kind}]", [])], order=order)
    entry, empty = read_header(data).entries.values()
    assert entry.value.tolist() == [int(v) if kind == "bool" else v for v in values]
    assert entry.value.dtype.isnative
    assert (entry.type_name, entry.count, empty.count, len(empty.value)) == (f"array[{kind}]", len(values), 0, 0)


@pytest.mark.parametrize("order", ORDERS)
def test_strings_and_arrays_of_strings_are_bytes_as_they_stand(order: str) -> None:
    texts = [b"", b"\0", b"a\0b", b"\xff\xfe", "日本".encode(), b"x" * 70_000]
    data = gguf([Key("general.s", "str", texts[2]), Key("tokenizer.a", "[str]", texts)], order=order)
    one, many = read_header(data).entries.values()
    assert one.value == texts[2]
    assert many.value == texts
    assert many.type_name == "array[string]"


def test_offsets_are_those_of_the_values() -> None:
    keys = [Key("general.a", "u8", 5), Key("tokenizer.b", "[u16]", [7]), Key("tokenizer.c", "str", "cc")]
    data = gguf(keys)
    entries = read_header(data).entries
    assert data[entries["general.a"].offset] == 5
    assert struct.unpack_from("<IQH", data, entries["tokenizer.b"].offset) == (2, 1, 7)
    assert struct.unpack_from("<Q2s", data, entries["tokenizer.c"].offset) == (2, b"cc")


@pytest.mark.parametrize("kind", ["[u8]", "[f64]", "[bool]", "[str]", "[[i16]]", "[[str]]"])
def test_large_values_of_other_keys_are_passed_over(kind: str) -> None:
    item: Any = "x" if "str" in kind else 1
    value = [[item] * 3] * 5 if kind.startswith("[[") else [item] * 15
    header = read_header(gguf([Key("model.big", kind, value), Key("tokenizer.after", "u8", 9)]))
    assert header.entries["model.big"].value is None
    assert header.entries["model.big"].count == len(value)
    assert header.entries["tokenizer.after"].value == 9


def test_nothing_behind_the_last_key_is_looked_at() -> None:
    data = gguf([Key("general.a", "u8", 1)], tensors=(1 << 64) - 1)
    header = read_header(data + b"\xff" * 100)
    assert header.end == len(data)
    assert header.tensor_count == (1 << 64) - 1


def nested(depth: int, name: str) -> Key:
    value: Any = [3]
    kind = "[u8]"
    for _ in range(depth - 1):
        value, kind = [value], f"[{kind}]"
    return Key(name, kind, value)


@pytest.mark.parametrize("name", ["tokenizer.deep", "model.deep"])
def test_arrays_nest_up_to_the_limit(name: str) -> None:
    entry = read_header(gguf([nested(DEFAULT.nesting, name)])).entries[name]
    if name.startswith("tokenizer."):
        value = entry.value
        for _ in range(DEFAULT.nesting - 1):
            ((_, value),) = value
        assert bytes(value) == b"\x03"  # numbers, or their bytes


@pytest.mark.parametrize("name", ["tokenizer.deep", "model.deep"])
@pytest.mark.parametrize("beyond", [1, 5_000])
def test_arrays_nested_deeper_are_an_error_not_a_recursion(name: str, beyond: int) -> None:
    head = gguf([Key(name, "[u8]", [])])[:-12]
    deep = head + struct.pack("<IQ", 9, 1) * (DEFAULT.nesting + beyond - 1) + struct.pack("<IQB", 0, 1, 3)
    error = quick(deep)
    assert error.location.path == name
    assert "nested" in error.what


# --- versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("version", [0, 1, 4, 77, 0xFFFF])
def test_other_versions_are_refused_by_number(version: int, order: str) -> None:
    error = quick(gguf([], version=version, order=order), UnsupportedError)
    assert f"version {version}" in error.what
    assert error.location.offset == 4


def test_version_1_says_what_to_do() -> None:
    error = quick(gguf([], version=1), UnsupportedError)
    assert error.hint is not None
    assert "again" in error.hint


@pytest.mark.parametrize("data", [b"", b"G", b"GGU", b"GGUf" + bytes(40), b"FUGG" + bytes(40), b"gguf" + bytes(40)])
def test_files_that_are_no_gguf(data: bytes) -> None:
    assert quick(data).location.offset == 0


# --- keys ------------------------------------------------------------------------------------------------------------

GOOD = Key("general.good", "u32", 1)


def test_an_empty_key_is_named_by_its_number() -> None:
    """A report of 2026: 37 bytes that ended the process of another reader."""
    assert names(quick(gguf([Key("", "u32", 1)])), "key 0", 24)
    first = gguf([GOOD])
    assert names(quick(gguf([GOOD, Key("", "u32", 1)])), "key 1", len(first))


@pytest.mark.parametrize("raw", [b"\xff", b"general.\xc3", b"\xed\xa0\x80", b"a\x80b"])
def test_a_key_that_is_not_utf8_is_an_error_at_its_offset(raw: bytes) -> None:
    assert names(quick(gguf([GOOD, Key(raw, "u32", 1)])), "key 1 is not UTF-8", len(gguf([GOOD])))


@pytest.mark.parametrize("kind", ["u32", "[u8]", "str"])
def test_a_duplicate_key_is_an_error(kind: str) -> None:
    again = Key("general.good", kind, {"u32": 2, "[u8]": [1], "str": "x"}[kind])
    data = gguf([GOOD, Key("general.other", "u8", 0), again])
    error = quick(data)
    assert error.location.path == "general.good"
    assert "twice" in error.what
    assert len(gguf([GOOD, Key("general.other", "u8", 0)])) <= (error.location.offset or 0) < len(data)


def test_the_longest_key_is_read_and_a_longer_one_is_not() -> None:
    longest = "k" * DEFAULT.key_bytes
    assert longest in read_header(gguf([Key(longest, "u8", 1)])).entries
    assert names(quick(gguf([Key(longest + "k", "u8", 1)])), "key 0", 24)


@pytest.mark.parametrize("number", [13, 14, 99, 255, 1 << 16, (1 << 32) - 1])
def test_an_unknown_value_type_is_named(number: int) -> None:
    error = quick(gguf(declare([GOOD], "general.good", type=number)))
    assert error.location.path == "general.good"
    assert str(number) in error.what
    assert error.location.offset == 24 + 8 + len("general.good")


@pytest.mark.parametrize("number", [13, 99, (1 << 32) - 1])
@pytest.mark.parametrize("name", ["tokenizer.list", "model.list"])
def test_an_unknown_element_type_is_named(name: str, number: int) -> None:
    error = quick(gguf(declare([Key(name, "[u8]", [1, 2])], name, item_type=number)))
    assert error.location.path == name
    assert str(number) in error.what
    assert error.location.offset == 24 + 8 + len(name) + 4


# --- counts and lengths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [*HUGE, 65_537, 3])
def test_a_key_count_beyond_the_file(count: int, order: str) -> None:
    data = gguf([GOOD, Key("general.b", "u8", 1)], order=order, key_count=count)
    error = quick(data)
    assert error.location.offset in (16, len(data))
    assert "key" in str(error)


def test_a_key_count_above_the_limit_in_a_file_that_is_large_enough() -> None:
    limits = replace(DEFAULT, keys=10)
    data = gguf([Key(f"k{i}", "u8", 1) for i in range(11)])
    with pytest.raises(FormatError, match="limit of 10") as caught:
        read_header(data, limits=limits)
    assert caught.value.location.offset == 16
    assert len(read_header(gguf([Key(f"k{i}", "u8", 1) for i in range(10)]), limits=limits).entries) == 10


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", HUGE)
def test_a_key_length_beyond_the_file(length: int, order: str) -> None:
    data = gguf([GOOD, replace(Key("general.b", "u8", 1), key_length=length)], order=order)
    assert names(quick(data), "key 1", len(gguf([GOOD])))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [*HUGE, 3])
@pytest.mark.parametrize("name", ["general.text", "model.text"])
def test_a_string_length_beyond_the_file(name: str, length: int, order: str) -> None:
    data = gguf([Key(name, "str", "ab", count=length)], order=order)
    assert names(quick(data), name, 24 + 8 + len(name) + 4)


ARRAYS = [f"[{kind}]" for kind in TYPES if kind != "array"] + ["[[u8]]", "[[str]]"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", ["tokenizer.list", "model.list"])
def test_an_array_length_beyond_the_file(name: str, kind: str, order: str) -> None:
    for count in HUGE:
        data = gguf([Key(name, kind, [], count=count), GOOD], order=order)
        assert names(quick(data), name, 24 + 8 + len(name) + 8), count


@pytest.mark.parametrize("name", ["tokenizer.list", "model.list"])
@pytest.mark.parametrize("length", HUGE)
def test_the_length_of_a_string_inside_an_array(name: str, length: int) -> None:
    key = Key(name, "[str]", [b"one", b"two"])
    place = next(field for field in walk(gguf([key]))[0] if field.what == f"length of {name}[1]")
    error = quick(place.set(gguf([key]), length))
    assert names(error, f"{name}[1]", place.offset)


@pytest.mark.parametrize("name", ["tokenizer.list", "model.list"])
@pytest.mark.parametrize("count", HUGE)
def test_the_length_of_an_inner_array(name: str, count: int) -> None:
    key = Key(name, "[[u32]]", [[1], [2, 3]])
    place = next(field for field in walk(gguf([key]))[0] if field.what == f"count of {name}[1]")
    assert names(quick(place.set(gguf([key]), count)), name, place.offset)


def test_a_43_byte_file_with_an_array_of_2_to_the_63() -> None:
    """The tiny file with a gigantic array on which another reader loops almost for ever."""
    data = gguf([Key("abc", "[u8]", [], count=1 << 63)])
    assert len(data) <= 51
    assert names(quick(data), "abc", 24 + 8 + 3 + 8)


def test_many_strings_cost_time_by_their_number_not_by_their_claims() -> None:
    """Every string but the last is empty; the last claims more than there is."""
    key = Key("tokenizer.list", "[str]", [b""] * 20_000)
    data = gguf([key])
    start = time.process_time()
    assert read_header(data).entries["tokenizer.list"].count == 20_000
    with pytest.raises(FormatError, match=r"tokenizer\.list\[19999\]"):
        read_header(data[:-8] + struct.pack("<Q", 1))
    assert time.process_time() - start < 0.2


def limited(field: str, value: int) -> Callable[[bytes], Header]:
    limits = replace(DEFAULT, **{field: value})
    return lambda data: read_header(data, limits=limits)


def test_limits_hold_for_files_that_do_have_the_bytes() -> None:
    with pytest.raises(FormatError, match="limit"):
        limited("string_bytes", 10)(gguf([Key("general.s", "str", "x" * 11)]))
    for name in ("tokenizer.s", "model.s"):
        with pytest.raises(FormatError):
            limited("string_bytes", 10)(gguf([Key(name, "[str]", ["x" * 11])]))
        with pytest.raises(FormatError, match="limit"):
            limited("array_items", 10)(gguf([Key(name, "[str]", [""] * 11)]))
        with pytest.raises(FormatError, match="limit"):
            limited("array_items", 10)(gguf([Key(name, "[[u8]]", [[]] * 11)]))
        with pytest.raises(FormatError, match="nested"):
            limited("nesting", 1)(gguf([Key(name, "[[u8]]", [[]])]))


@pytest.mark.parametrize("order", ORDERS)
def test_cut_at_every_byte(order: str) -> None:
    keys = [
        Key("general.name", "str", "cut"),
        Key("tokenizer.texts", "[str]", ["a", "", "bcd"]),
        Key("tokenizer.numbers", "[i32]", [1, 2, 3]),
        Key("tokenizer.nest", "[[u16]]", [[1], [], [2, 3]]),
        Key("model.floats", "[f64]", [0.5, 1.5]),
        Key("model.texts", "[str]", ["q", "rs"]),
        *(Key(f"general.{kind}", kind, extremes(kind)[-1]) for kind in SCALARS),
    ]
    data = gguf(keys, order=order)
    assert len(read_header(data).entries) == len(keys)
    for size in range(len(data)):
        with pytest.raises(FormatError) as caught:
            read_header(data[:size])
        assert (caught.value.location.offset or 0) <= size


def test_value_types_are_those_of_the_format() -> None:
    assert {str(kind).replace("string", "str"): int(kind) for kind in ValueType} == {
        name: number for name, (number, _) in TYPES.items()
    }
