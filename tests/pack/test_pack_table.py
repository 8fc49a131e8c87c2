"""Footer and section table: every field that can contradict the file is noticed when a pack is opened."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.hostile.guard import Trouble, limit
from tests.pack.helpers import (
    FIXTURES,
    FOOTER,
    fixture_ir,
    pack_of,
    read_footer,
    sections_of,
    survive,
    with_footer,
    with_table,
)
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.pack.build import assemble, build_index
from tokpack.pack.layout import SECTIONS
from tokpack.pack.view import PackView, find_footer
from tokpack.runtime.tokenizer import Tokenizer

TEXT = "Hello world 123"
PRESENT = [name for name in SECTIONS if name in sections_of("small")]


def refused(data: bytes) -> FormatError:
    with limit(1), pytest.raises(FormatError) as caught:
        Tokenizer(PackView(data, "damaged.tokpack"))
    assert caught.value.location.file == "damaged.tokpack"
    assert caught.value.hint is not None
    return caught.value


def test_the_helpers_change_nothing_by_themselves() -> None:
    data = pack_of("small")
    assert with_footer(data) == data
    assert with_table(data, lambda table: None) == data
    assert Tokenizer(PackView(data)).encode(TEXT)


# --- footer ----------------------------------------------------------------------------------------------------------

NUMBERS = ["table_offset", "table_length", "body_length", "index_offset", "total_length", "fingerprint"]
WIDTH = {"fingerprint": 32, "table_checksum": 32}


@pytest.mark.parametrize("field", [*NUMBERS, "table_checksum"])
def test_every_number_of_the_footer_is_checked(field: str) -> None:
    data = pack_of("small")
    true = read_footer(data)[field]
    top = (1 << WIDTH.get(field, 64)) - 1
    values = {0, 1, true + 1, max(0, true - 1), true ^ 4096, true ^ 64, true * 2, top, top >> 1, top - 127}
    for value in values - {true}:
        if value <= top:
            refused(with_footer(data, **{field: value}))


@pytest.mark.parametrize("version", [0, 2, 3, (1 << 32) - 1])
def test_another_container_version_is_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedError, match=str(version)):
        PackView(with_footer(pack_of("small"), version=version))


def test_a_sidecar_flag_on_a_whole_file_is_noticed() -> None:
    refused(with_footer(pack_of("small"), flags=1))


@pytest.mark.parametrize("field", ["body_hash", "index_hash", "reserved", "flags"])
def test_fields_that_opening_does_not_check_do_no_harm(field: str) -> None:
    data = pack_of("small")
    value: Any = 1 << 31 if field == "flags" else b"\xff" * len(read_footer(data)[field])
    assert survive(with_footer(data, **{field: value})) in ("refused", "loaded")


@pytest.mark.parametrize("field", ["magic", "end_magic"])
def test_without_magic_there_is_no_index(field: str) -> None:
    data = with_footer(pack_of("small"), **{field: b"TOKPACK\r"})
    assert find_footer(data) is None
    assert "no index" in refused(data).what


@pytest.mark.parametrize("extra", [b"\0", b"\n", bytes(4096), b"x" * 128])
def test_bytes_behind_the_footer(tmp_path: Path, extra: bytes) -> None:
    refused(pack_of("small") + extra)
    path = tmp_path / "x.tokpack"
    path.write_bytes(pack_of("small") + extra)
    with pytest.raises(TokpackError):
        tokpack.load(path)


@pytest.mark.parametrize("data", [b"", b"T", b"TOKPACK\n", bytes(127), bytes(128), b"TOKPACK\n" * 16])
def test_files_that_are_footers_at_most(tmp_path: Path, data: bytes) -> None:
    with limit(1), pytest.raises(TokpackError):
        PackView(data, "x")
    (tmp_path / "x.tokpack").write_bytes(data)
    for name in (None, "tokpack", "mtok"):
        with limit(1), pytest.raises(TokpackError):
            tokpack.load(tmp_path / "x.tokpack", format=name)


def test_every_bit_of_the_footer() -> None:
    data = pack_of("small")
    start = len(data) - FOOTER.size
    for at in range(start, len(data)):
        for bit in range(8):
            changed = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            with limit(1), contextlib.suppress(TokpackError):
                Tokenizer(PackView(changed)).encode(TEXT)


# --- section table ---------------------------------------------------------------------------------------------------

Change = Callable[[dict[str, Any]], object]


def put(name: str, place: int, value: object) -> Change:
    def change(table: dict[str, Any]) -> None:
        table[name][place] = value

    return change


@pytest.mark.parametrize("name", PRESENT)
def test_sections_outside_the_file(name: str) -> None:
    data = pack_of("small")
    limit_ = len(data) // 4096 * 4096
    for value in (limit_, limit_ + 4096, 1 << 40, (1 << 63) - 4096, (1 << 64) - 4096, -4096):
        assert name in refused(with_table(data, put(name, 0, value))).what
    for value in (len(data) * 8, 1 << 40, (1 << 64) - 8, -8):
        assert name in refused(with_table(data, put(name, 1, value))).what


@pytest.mark.parametrize("name", PRESENT)
def test_misaligned_sections(name: str) -> None:
    for value in (1, 4, 64, 2048, 4095):
        refused(with_table(pack_of("small"), put(name, 0, value)))


@pytest.mark.parametrize("name", PRESENT)
def test_sections_of_another_element_type(name: str) -> None:
    spec = SECTIONS[name]
    for code in {"B", "H", "I", "i", "Q", "f", "d", "", "II", 4, "<I"} - {spec.code}:
        refused(with_table(pack_of("small"), put(name, 2, code)))


@pytest.mark.parametrize("name", [name for name in PRESENT if SECTIONS[name].size > 1])
def test_sections_that_hold_a_part_of_an_element(name: str) -> None:
    data = pack_of("small")

    def shorten(table: dict[str, Any]) -> None:
        table[name][1] -= 1

    refused(with_table(data, shorten))


@pytest.mark.parametrize("name", PRESENT)
def test_missing_sections(name: str) -> None:
    """Required ones are missed when a pack is opened, others when they are needed; none leads to another exception."""

    def drop(table: dict[str, Any]) -> None:
        del table[name]

    data = with_table(pack_of("small"), drop)
    if SECTIONS[name].required:
        assert name in refused(data).what
    else:
        survive(data)


@pytest.mark.parametrize("name", PRESENT)
@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_shortened_and_empty_sections(name: str, keep: float) -> None:
    def shorten(table: dict[str, Any]) -> None:
        table[name][1] = int(table[name][1] * keep) // 8 * 8

    survive(with_table(pack_of("small"), shorten))


@pytest.mark.parametrize("name", PRESENT)
def test_lengthened_sections(name: str) -> None:
    """A section may run on into its padding: its length then contradicts others."""
    grown = 0

    def lengthen(table: dict[str, Any]) -> None:
        nonlocal grown
        grown = (4096 - table[name][1] % 4096) % 4096
        table[name][1] += grown

    survive(with_table(pack_of("small"), lengthen))


def test_sections_that_lie_on_each_other() -> None:
    data = pack_of("small")
    trouble = Trouble()
    for one in PRESENT:
        for other in PRESENT:

            def overlay(table: dict[str, Any], one: str = one, other: str = other) -> None:
                size = SECTIONS[one].size
                table[one][:2] = [table[other][0], table[other][1] // size * size]

            with trouble.note(f"{one} on {other}"):
                survive(with_table(data, overlay), restoring=False)
    trouble.report()


@pytest.mark.parametrize(
    "entry",
    [None, 7, "x", [], [0], [0, 0], [0, 0, "B", 0], {}, [None, 0, "B"], [0, None, "B"], ["0", "0", "B"], [[], 0, 0]],
)
@pytest.mark.parametrize("name", ["meta", "piece.offset", "unknown.section"])
def test_entries_of_another_shape(name: str, entry: object) -> None:
    refused(with_table(pack_of("small"), lambda table: table.update({name: entry})))


@pytest.mark.parametrize("table", [[], None, 5, "x", b"x", {}, {1: [0, 0, "B"]}, {b"meta": [0, 0, "B"]}])
def test_tables_of_another_shape(table: object) -> None:
    import msgpack

    packed = msgpack.packb(table)
    data = with_table(pack_of("small"), lambda _: msgpack.unpackb(packed, strict_map_key=False))
    if table is not None:
        refused(data)


def test_a_section_of_a_newer_version_is_passed_over() -> None:
    def add(table: dict[str, Any]) -> None:
        table["future.section"] = [0, 16, "z"]

    assert Tokenizer(PackView(with_table(pack_of("small"), add))).encode(TEXT)


def test_a_table_that_is_not_msgpack() -> None:
    import zlib

    data = pack_of("small")
    footer = read_footer(data)
    start, size = footer["table_offset"], footer["table_length"]
    for raw in (b"\xc1" * size, b"\x9f" * size, b"\xdf\xff\xff\xff\xff" + bytes(size - 5), b"\x91" * size, bytes(size)):
        changed = data[:start] + raw + data[start + size :]
        refused(with_footer(changed, table_checksum=zlib.crc32(raw)))


def test_every_bit_of_the_table_is_covered_by_its_checksum() -> None:
    data = pack_of("small")
    footer = read_footer(data)
    for at in range(footer["table_offset"], footer["table_offset"] + footer["table_length"]):
        refused(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])


def test_a_big_endian_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections are little-endian and mapped as they are."""
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(UnsupportedError):
        PackView(pack_of("small"))


# --- the body --------------------------------------------------------------------------------------------------------


def converted(folder: Path, index: str = "inline") -> Path:
    path = folder / f"{index}.mtok"
    tokpack.write(fixture_ir("demo"), path, index=index)
    return path


def noticed(path: Path) -> bool:
    """Whether a changed body does not get the ids of the index."""
    try:
        return tokpack.load(path).reference == "mnn"
    except TokpackError:
        return True  # the body is damaged, so there are no ids at all


@pytest.mark.parametrize("index", ["inline", "sidecar"])
def test_a_changed_body_is_noticed(tmp_path: Path, index: str) -> None:
    path = converted(tmp_path, index)
    data = path.read_bytes()
    size = read_footer(data)["body_length"] if index == "inline" else len(data)
    pages = [*range(0, 4096, 397), 4095, *range(size - 4096, size, 389), size - 1]
    samples = [size * sample // 15 + step for sample in range(1, 15) for step in (0, 63)]
    for at in pages + samples:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert noticed(path), at
    path.write_bytes(data)
    assert not noticed(path)


@pytest.mark.parametrize("index", ["inline", "sidecar"])
def test_a_body_of_another_length_is_noticed(tmp_path: Path, index: str) -> None:
    path = converted(tmp_path, index)
    data = path.read_bytes()
    for changed in (data[1:], b"4" + data, data[:100] + b"x" + data[100:], data[:100] + data[101:]):
        path.write_bytes(changed)
        assert noticed(path)


def test_an_index_with_the_body_of_another_vocabulary_is_noticed() -> None:
    one, two = fixture_ir("default"), fixture_ir("gpt-2")
    from tokpack.formats.mnn import write_body

    whole = assemble(build_index(one), write_body(one)[0])
    size = read_footer(whole)["body_length"]
    other = write_body(two)[0][:size].ljust(size, b"\0")
    refused(other + whole[size:])


def test_a_tokpack_has_no_body_and_an_mtok_has_one(tmp_path: Path) -> None:
    tokpack.convert(FIXTURES / "default.gguf", tmp_path / "x.tokpack")
    with pytest.raises(FormatError, match="body"):
        tokpack.read(tmp_path / "x.tokpack", format="mtok")
