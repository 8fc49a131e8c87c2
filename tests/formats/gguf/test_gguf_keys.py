"""Typed access to keys: llama.cpp's strictness as findings, what cannot be used at all as errors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hostile.gguf_builder import Key, gguf
from tokpack.errors import FormatError
from tokpack.findings import Severity
from tokpack.formats.gguf.header import ValueType, read_header
from tokpack.formats.gguf.keys import Keys


def keys(*pairs: Key) -> Keys:
    return Keys(read_header(gguf(pairs), "a.gguf"), "a.gguf")


def test_absent_keys_are_none_everywhere() -> None:
    empty = keys()
    assert empty.entry("x") is None
    assert empty.raw_string("x") is None
    assert empty.string("x") is None
    assert empty.integer("x") is None
    assert empty.boolean("x") is None
    assert empty.strings("x") is None
    assert empty.numbers("x", (ValueType.I32,), 3) is None
    assert empty.findings == []


def test_strings_are_cut_at_nul_but_raw_strings_are_not() -> None:
    found = keys(Key("general.s", "str", b"ab\0cd"), Key("general.bad", "str", b"a\xffb"))
    assert found.raw_string("general.s") == b"ab\0cd"
    assert found.string("general.s") == "ab"
    assert found.string("general.bad") == "a�b"


@pytest.mark.parametrize("kind", ["u32", "bool", "f32", "[str]", "[u8]"])
def test_a_string_of_another_type_is_an_error(kind: str) -> None:
    value = {"[str]": ["x"], "[u8]": [1]}.get(kind, 1)
    found = keys(Key("general.s", kind, value))
    with pytest.raises(FormatError, match="expected string, found") as caught:
        found.string("general.s")
    where = caught.value.location
    assert (where.file, where.path, where.offset) == ("a.gguf", "general.s", 24 + 8 + 9 + 4)


def test_an_integer_of_the_right_type() -> None:
    found = keys(Key("tokenizer.n", "u32", (1 << 32) - 1))
    assert found.integer("tokenizer.n") == (1 << 32) - 1
    assert found.findings == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [("i32", -1), ("u64", (1 << 64) - 1), ("i64", -5), ("u8", 3), ("i8", -3), ("u16", 3), ("i16", 3), ("bool", True)],
)
def test_an_integer_of_another_type_is_used_and_refused(kind: str, value: int) -> None:
    found = keys(Key("tokenizer.n", kind, value))
    assert found.integer("tokenizer.n") == int(value)
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("gguf-wrong-type", Severity.REFUSE)
    assert (finding.location.path, finding.location.offset) == ("tokenizer.n", 24 + 8 + 11 + 4)
    assert kind in finding.message
    assert "u32" in finding.message


@pytest.mark.parametrize(("kind", "value"), [("f32", 1.0), ("f64", 1.0), ("str", "1"), ("[u32]", [1])])
def test_an_integer_that_is_no_number_is_an_error(kind: str, value: object) -> None:
    found = keys(Key("tokenizer.n", kind, value))
    for getter in (found.integer, found.boolean):
        with pytest.raises(FormatError, match="expected") as caught:
            getter("tokenizer.n")
        assert caught.value.location.path == "tokenizer.n"
        assert caught.value.location.offset == 24 + 8 + 11 + 4


def test_booleans() -> None:
    found = keys(Key("general.t", "bool", True), Key("general.f", "bool", False), Key("general.x", "u8", 2, type=7))
    assert [found.boolean(f"general.{name}") for name in "tfx"] == [True, False, True]
    assert found.findings == []


@pytest.mark.parametrize(("kind", "value"), [("u8", 1), ("i32", 1), ("u64", 1)])
def test_a_boolean_of_another_type_is_used_and_refused(kind: str, value: int) -> None:
    found = keys(Key("general.b", kind, value))
    assert found.boolean("general.b") is True
    assert [finding.code for finding in found.findings] == ["gguf-wrong-type"]
    assert "bool" in found.findings[0].message


@pytest.mark.parametrize(("kind", "value"), [("str", "x"), ("[u8]", [1]), ("[[str]]", [["x"]]), ("u32", 1)])
def test_an_array_of_strings_of_another_type_is_an_error(kind: str, value: object) -> None:
    found = keys(Key("tokenizer.a", kind, value))
    with pytest.raises(FormatError, match=r"expected array\[string\], found") as caught:
        found.strings("tokenizer.a")
    assert caught.value.location.path == "tokenizer.a"


def test_numbers_longer_than_asked_are_cut() -> None:
    found = keys(Key("tokenizer.a", "[i32]", [3, -1, 7, 9]))
    values = found.numbers("tokenizer.a", (ValueType.I32,), 3)
    assert values is not None
    assert values.tolist() == [3, -1, 7]
    assert found.findings == []


def test_numbers_shorter_than_asked_are_refused() -> None:
    found = keys(Key("tokenizer.a", "[i32]", [3, -1]))
    values = found.numbers("tokenizer.a", (ValueType.I32,), 3)
    assert values is not None
    assert values.tolist() == [3, -1]
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("gguf-array-short", Severity.REFUSE)
    assert finding.location.path == "tokenizer.a"
    assert "2" in finding.message
    assert "3" in finding.message


@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16", "u32", "u64", "i64", "f32", "f64", "bool"])
def test_numbers_of_another_element_type_are_refused(kind: str) -> None:
    found = keys(Key("tokenizer.a", f"[{kind}]", [1, 1, 1]))
    values = found.numbers("tokenizer.a", (ValueType.I32,), 3)
    assert np.asarray(values).tolist() == [1, 1, 1]
    assert [finding.code for finding in found.findings] == ["gguf-wrong-type"]
    assert f"array[{kind}]" in found.findings[0].message
    assert "array[i32]" in found.findings[0].message


@pytest.mark.parametrize(("kind", "value"), [("[str]", ["1"]), ("[[i32]]", [[1]]), ("i32", 1), ("str", "x")])
def test_numbers_that_are_no_array_of_numbers_are_an_error(kind: str, value: object) -> None:
    found = keys(Key("tokenizer.a", kind, value))
    with pytest.raises(FormatError, match=r"expected array\[i32\]"):
        found.numbers("tokenizer.a", (ValueType.I32,), 1)


def test_unused_keys_are_those_that_nobody_asked_for() -> None:
    found = keys(
        Key("tokenizer.a", "u32", 1),
        Key("tokenizer.b", "str", b"\xff"),
        Key("tokenizer.c", "[i16]", [1, -2]),
        Key("tokenizer.d", "[str]", [b"x", b""]),
        Key("general.e", "u8", 1),
    )
    assert found.integer("tokenizer.a") == 1
    assert found.unused("tokenizer.") == {
        "tokenizer.b": ["string", b"\xff"],
        "tokenizer.c": ["array[i16]", b"\x01\x00\xfe\xff"],
        "tokenizer.d": ["array[string]", [b"x", b""]],
    }
