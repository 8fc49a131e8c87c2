"""Strict JSON: what serde_json refuses is refused, with a place; nothing in a file crashes the parser."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.formats.hf.hf_documents import added, document, read_json
from tokpack.errors import FormatError
from tokpack.formats.hf import read_bytes
from tokpack.formats.hf.json import MAX_DEPTH, load, serde_float
from tokpack.limits import DEFAULT


def refused(data: bytes, what: str, offset: int | None = None, path: str | None = None) -> None:
    with pytest.raises(FormatError) as caught:
        load(data, "x.json")
    assert what in caught.value.what
    assert (caught.value.location.file, caught.value.location.offset) == ("x.json", offset)
    assert caught.value.location.path == path


def test_syntax_error_has_the_byte_offset() -> None:
    refused('{"ä": 1,, }'.encode(), "not JSON", 9)
    refused(b"", "not JSON", 0)
    refused(b"{} x", "extra data", 3)


def test_byte_order_mark() -> None:
    refused(b"\xef\xbb\xbf{}", "byte order mark", 0)


def test_not_utf8() -> None:
    refused(b'{"a": "\xff"}', "not UTF-8", 7)
    refused(b'{"a": "\xed\xa0\x80"}', "not UTF-8", 7)  # a surrogate in UTF-8


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_no_number(name: str) -> None:
    refused(f'{{"a": {name}}}'.encode(), "expected value")


@pytest.mark.parametrize("number", ["1e999", "-1e309", "1e99999999999", "9" * 400 + ".0"])
def test_number_out_of_range(number: str) -> None:
    refused(f"[{number}]".encode(), "number out of range")


def test_integer_of_many_digits() -> None:
    with pytest.raises(FormatError):
        read_bytes(b'{"model": {"type": "BPE", "vocab": {"a": %s}, "merges": []}}' % (b"9" * 10_000))


def test_duplicate_keys_have_a_path() -> None:
    refused(b'{"model": {"vocab": [1, {"x": 1, "y": 2, "x": 3}]}}', "duplicate key 'x'", path="model.vocab[1]")
    refused(b'{"a": 1, "a": 1}', "duplicate key 'a'")


def test_duplicate_keys_of_a_companion_are_listed() -> None:
    found = load(b'{"a": {"b": 1, "b": 2}, "c": NaN}', companion=True)
    assert found.duplicates == [("a", "b")]
    assert found.value["a"] == {"b": 2}


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (rb'["\ud800"]', 2),
        (rb'["\udc00"]', 2),
        (rb'["\ud83d\ud83d\ude00"]', 2),
        (rb'["\ud83d \ude00"]', 2),
        (rb'["\ud83d\ude00\ude00"]', 14),
        (rb'["\\\ud800"]', 4),
        (rb'["\uDBFF\\uDC00"]', 2),
    ],
)
def test_lone_surrogate(text: bytes, offset: int) -> None:
    refused(text, "lone surrogate", offset)


def test_paired_and_escaped_surrogates_are_fine() -> None:
    assert load(rb'["\ud83d\ude00", "\\ud800", "\\\\\udbff\udfff"]').value == ["😀", "\\ud800", "\\\\\U0010ffff"]


def test_nesting() -> None:
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert load(deep)
    refused(b"[" + deep + b"]", "recursion limit exceeded")
    refused(b"[" * 100_000 + b"]" * 100_000, "recursion limit exceeded")
    refused(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "recursion limit exceeded")
    with pytest.raises(FormatError):
        load(b"[" * 1_000_000)


def test_size_limits() -> None:
    with pytest.raises(FormatError, match="the limit of 10"):
        load(b"[1, 2, 3, 4]", limits=replace(DEFAULT, file_bytes=10))
    long = "x" * (DEFAULT.piece_bytes + 1)
    with pytest.raises(FormatError, match="a piece of"):
        read_json(document(model={"type": "BPE", "vocab": {long: 0}, "merges": []}))
    with pytest.raises(FormatError, match="a token of"):
        read_json(document(added_tokens=[added(long)]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9.748204231262207", -9.748204231262209),  # one unit off the nearest double
        ("-0.9439948991237769", -0.9439948991237768),
        ("2.550690257394217e+206", 2.5506902573942173e206),
        ("9.522444552911936e-279", 9.522444552911935e-279),
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("-0.0", -0.0),
        ("1e-400", 0.0),
        ("0e999999999999", 0.0),
        ("1E5", 1e5),
        ("18446744073709551616.5", 18446744073709551616.5),
        ("0." + "0" * 5000 + "1", 0.0),
    ],
)
def test_floats_are_those_of_serde_json(text: str, value: float) -> None:
    found = serde_float(text)
    assert (found, str(found)) == (value, str(value))


def test_floats_equal_the_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    seed = 20
    rng = random.Random(seed)
    texts = [repr(rng.gauss(-10, 4) * 10 ** rng.choice([0, 0, 0, -3, 250, -290])) for _ in range(5000)]
    texts += [
        "".join(rng.choices("0123456789", k=rng.randint(1, 30))).lstrip("0") + "1." + repr(rng.random())[2:]
        for _ in range(500)
    ]
    rows = ",".join(f'["{at}",{text}]' for at, text in enumerate(texts))
    library = tokenizers.Tokenizer.from_str('{"model":{"type":"Unigram","unk_id":0,"vocab":[' + rows + "]}}")
    expected = [score for _, score in json.loads(library.to_str())["model"]["vocab"]]
    assert [serde_float(text) for text in texts] == expected, seed


def test_hostile_shapes_take_bounded_time() -> None:
    start = time.process_time()
    for data in (
        b'["' + b"\\\\" * 500_000 + rb"\ud800" + b'"]',
        b'["' + rb"\ud83d\ude00" * 200_000 + b'"]',
        b"[" + b"[]," * 300_000 + b"[]]",
        b"[1." + b"0" * 1_000_000 + b"1]",
        b"[" + b"1" * 4000 + b".5]",
    ):
        with suppress(FormatError):
            load(data)
    assert time.process_time() - start < 10
