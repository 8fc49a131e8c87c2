"""Charsmaps read character by character, and character maps as MNN applies them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.conftest import FIXTURES
from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.formats.mnn.char_map import SPACED, WHITE_SPACE, lower_case, map_and_drop_marks, map_chars
from tokpack.formats.mnn.charsmap import entries, pairs
from tokpack.formats.mnn.parts import Bpe, ByteLevel, Normalizer
from tokpack.runtime.unigram import CharsMap
from tokpack.unicode import byte_level, llamacpp

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fixture_charsmap", FIXTURES / "charsmap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shows(normalizer: tuple[Normalizer, ...]) -> bytes:
    """A tokenizer whose ids are the bytes of the normalized text."""
    pieces = tuple(char.encode() for char in byte_level.CHARS)
    model = Bpe(pieces, np.zeros((0, 3), np.uint32))
    return serialize(MtokBody(model, normalizer=normalizer, pre_tokenizer=(ByteLevel(),)))


def test_single_characters_of_a_charsmap(builder: ModuleType) -> None:
    table = {"\t": " ", "Ａ": "A", "\u2163": "IV", "\u00ad": "", "e\u0301": "é", "𝐀": "A", "same": "x", "z": "z"}
    blob = builder.charsmap({key.encode(): value.encode() for key, value in table.items()} | {b"\xff": b"?"})
    mapping = entries(blob).single
    assert mapping == {"\t": " ", "Ａ": "A", "\u2163": "IV", "\u00ad": "", "𝐀": "A"}
    assert (entries(blob).several, entries(blob).longer) == ({"e\u0301": "é"}, 1)
    reference = CharsMap(blob)
    for char in map(chr, (*range(1, 0x3000), *range(0xFF00, 0xFFFF), *range(0x1D400, 0x1D500))):
        length, text = reference.longest(char.encode(), 0)
        assert mapping.get(char, char) == (text.decode() if length else char)


@pytest.mark.parametrize("blob", [b"", b"\0\0\0\0", b"\x04\0\0\0", b"\x08\0\0\0\0\4\0\0\x61\1\0\0", b"\xff" * 4096])
def test_damaged_charsmaps(blob: bytes) -> None:
    entries(blob)


def test_a_charsmap_cut_anywhere(builder: ModuleType) -> None:
    blob = builder.charsmap({b"a": b"bc", "é".encode(): b"e", b"xy": b"z"})
    for end in range(len(blob)):
        assert set(entries(blob[:end]).single) <= {"a", "é"}


def test_pairs_that_passes_replace_as_the_longest_match_does(builder: ModuleType) -> None:
    table = {
        "e\u0302": "ê",
        "ê\u0301": "ế",
        "e\u0302\u0301": "ế",
        "o\u0302": "ô",
        "ô\u0301": "x",
        "((": "(",
        "q\u0308": "a",
    }
    found = pairs(entries(builder.charsmap({key.encode(): text.encode() for key, text in table.items()})), "êếôx(a")
    # "o^" would become "x" with one more accent, for which the charsmap has no entry
    assert found == [("e\u0302", "ê"), ("q\u0308", "a"), ("ô\u0301", "x"), ("ê\u0301", "ế")]
    assert pairs(entries(b""), "é") == []


def test_a_map_of_any_character(ask: Ask) -> None:
    mapping = {
        "a": "b",
        "b": "",
        "\u200d": "",
        "\u200b": " ",
        "\x01": "a",
        "\ufeff": "xy",
        "é": "e\u0301",
        "中": " 中 ",
    }
    known = {"\x02", "\u200e", "a"}
    answers = ask(
        shows(map_chars(mapping, known)), "encode", ["aba\u0301", "a\u200da\u200b\x01\ufeffé", "中\x02\u200e"]
    )
    assert [bytes(ids).decode() for ids in answers] == ["bb\u0301", "bb axye\u0301", " 中 \x02\u200e"]


def test_controls_that_no_piece_has_stay_one_character(ask: Ask) -> None:
    (ids,) = ask(shows(map_chars({"a": "b"}, ())), "encode", ["".join(SPACED) + "a"])
    assert len(bytes(ids).decode()) == len(SPACED) + 1
    assert not set(bytes(ids).decode()) & {" ", "a"}


def test_no_map_needs_no_step() -> None:
    assert map_chars({}, ()) == map_and_drop_marks({}) == ()


def test_a_map_that_drops_marks(ask: Ask) -> None:
    normalizer = map_and_drop_marks({"a": " b ", "\u200d": "", "\x01": "c"})
    answers = ask(shows(normalizer), "encode", ["a\u0301x\u200d\x01\u200e\u0903"])
    assert [bytes(ids).decode() for ids in answers] == [" b xc\u200e"]


def test_lower_case_is_the_simple_map(ask: Ask) -> None:
    pairs = {chr(upper): chr(lower) for upper, lower in llamacpp.lower().tolist()}
    (ids,) = ask(shows(lower_case()), "encode", ["".join(pairs)])
    assert bytes(ids).decode() == "".join(pairs.values())


def test_white_space() -> None:
    assert set(map(ord, WHITE_SPACE)) | {0x20} == set(llamacpp.whitespace().tolist())
