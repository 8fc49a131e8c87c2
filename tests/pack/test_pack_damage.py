"""Damaged packs: cut, flipped, or with wrong values inside arrays. They are refused, or work somehow; nothing else."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile.guard import TEXTS, Trouble, exercise, limit
from tests.pack.helpers import pack_of, read_footer, sections_of, survive, with_meta
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.pack.layout import SECTIONS
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

SEED = 4_711
PACKS = ("small", "llama-bpe", "sarvam-moe")  # byte-level; whole words; characters with byte pieces


def places(data: bytes) -> dict[str, tuple[int, int]]:
    return PackView(data).sections


# --- cut -------------------------------------------------------------------------------------------------------------


def test_cut_packs_are_refused() -> None:
    data = pack_of("small")
    rng = random.Random(SEED)
    print("seed", SEED)
    sizes = {*range(300), *range(len(data) - 2200, len(data)), *(rng.randrange(len(data)) for _ in range(500))}
    for size in sorted(sizes):
        with limit(1), pytest.raises(FormatError):
            PackView(data[:size], "cut.tokpack")


def test_packs_cut_at_the_front_are_refused() -> None:
    data = pack_of("small")
    for size in (1, 2, 64, 4095, 4096, 8192, len(data) - 200, len(data) - 128):
        with limit(1), pytest.raises(FormatError):
            PackView(data[size:], "cut.tokpack")


# --- flipped bytes ---------------------------------------------------------------------------------------------------


def flip(name: str, section: str, masks: tuple[int, ...], sample: int) -> None:
    """Change single bytes of a section, one at a time: all of them, or a sample."""
    print("seed", SEED)
    data = pack_of(name)
    start, size = places(data)[section]
    changes = [(at, mask) for at in range(start, start + size) for mask in masks]
    trouble = Trouble()
    for at, mask in random.Random(SEED).sample(changes, min(sample, len(changes))):
        with trouble.note(f"byte {at - start} of {section} ^ {mask:#x}"):
            survive(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :], 2, restoring=name == "small")
    trouble.report()


@pytest.mark.parametrize("section", ["meta", "about"])
def test_flipped_bytes_of_the_maps(section: str) -> None:
    flip("small", section, (0x01, 0x80), 250)


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
@pytest.mark.parametrize("section", ["meta", "about"])
def test_every_byte_of_the_maps(name: str, section: str) -> None:
    flip(name, section, (0x01, 0x20, 0xFF), 4000)


def test_flipped_bytes_anywhere() -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    trouble = Trouble()
    for name in PACKS:
        data = pack_of(name)
        spans = [span for span in places(data).values() if span[1]]
        for _ in range(120):
            changed = bytearray(data)
            for _ in range(rng.choice((1, 3, 30))):
                start, size = rng.choice(spans)
                changed[start + rng.randrange(size)] ^= 1 << rng.randrange(8)
            with trouble.note(name):
                survive(bytes(changed), 2, restoring=False)
    trouble.report()


# --- values inside arrays --------------------------------------------------------------------------------------------

ARRAYS = [name for name in SECTIONS if name not in ("meta", "about")]


def fills(name: str, raw: bytes, rng: random.Random) -> dict[str, bytes]:
    """Contents for a section of the same length: what makes it wrong → bytes."""
    size, code = SECTIONS[name].size, "<" + SECTIONS[name].code
    values = [raw[at : at + size] for at in range(0, len(raw), size)]
    count = len(values)
    middle = count // 2
    out = {
        "zero": bytes(len(raw)),
        "maximum": b"\xff" * len(raw),
        "half": (b"\xff" * (size - 1) + b"\x7f") * count,
        "random": rng.randbytes(len(raw)),
        "reversed": b"".join(reversed(values)),
        "shuffled": b"".join(rng.sample(values, count)),
        "shifted": b"".join(values[1:] + values[:1]),
        "all alike": values[middle] * count if values else b"",
    }
    if size > 1 and code[1] != "f":
        low = [rng.randrange(min(1 << 8 * size - 1, 3 * count + 2)) for _ in range(count)]
        out["small random"] = struct.pack(f"<{count}{code[1]}", *low)
    for what, value in (("zero", bytes(size)), ("maximum", b"\xff" * size)):
        for at in {0, middle, count - 1} if count else ():
            out[f"{what} at {at}"] = b"".join([*values[:at], value, *values[at + 1 :]])
    return out


@pytest.mark.parametrize(("name", "section"), [(n, s) for n in PACKS for s in ARRAYS if sections_of(n).get(s)])
def test_wrong_values_inside_a_section(name: str, section: str) -> None:
    data = pack_of(name)
    start, size = places(data)[section]
    trouble = Trouble()
    for what, raw in fills(section, data[start : start + size], random.Random(SEED)).items():
        assert len(raw) == size
        with trouble.note(what):
            survive(data[:start] + raw + data[start + size :], 1, restoring=name == "small")
    trouble.report()


def test_wrong_values_inside_all_sections_at_once() -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    trouble = Trouble()
    for name in PACKS:
        data = pack_of(name)
        for _ in range(40):
            changed = bytearray(data)
            for section in rng.sample(ARRAYS, 5):
                if section in places(data):
                    start, size = places(data)[section]
                    choices = fills(section, data[start : start + size], rng)
                    changed[start : start + size] = choices[rng.choice(sorted(choices))]
            with trouble.note(name):
                survive(bytes(changed), 1, restoring=False)
    trouble.report()


def test_a_long_text_on_merges_that_lie() -> None:
    """Long words go through a heap: ranks and results that make no sense must not keep it busy for ever."""
    data = pack_of("small")
    rng = random.Random(SEED)
    for section in ("merge.key", "merge.rank", "merge.result", "byte.symbol"):
        start, size = places(data)[section]
        for raw in fills(section, data[start : start + size], rng).values():
            changed = data[:start] + raw + data[start + size :]
            with limit(5), contextlib.suppress(TokpackError):
                Tokenizer(PackView(changed)).encode("Helloworld12" * 1500)


def test_offsets_that_lie_do_not_multiply_memory() -> None:
    """Every offset spans the whole blob: pieces are views of it, and only those that are asked for are copied."""
    import tracemalloc

    data = pack_of("llama-bpe")
    start, size = places(data)["piece.offset"]
    blob = places(data)["piece.blob"][1]
    raw = struct.pack("<II", 0, blob) * (size // 8) + bytes(size % 8)
    changed = data[:start] + raw + data[start + size :]
    tracemalloc.start()
    try:
        with limit(10):
            exercise(Tokenizer(PackView(changed)))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


# --- maps of another shape -------------------------------------------------------------------------------------------

ODD: list[Any] = [None, 0, -1, 1 << 63, True, "", "x", b"x", [], {}, [[]], {"kind": "x"}, 0.5, [None], "byte-level"]


def edit(path: tuple[Any, ...], value: object) -> Callable[[dict[str, Any]], None]:
    def change(plain: Any) -> None:
        for step in path[:-1]:
            plain = plain[step]
        if value is KeyError:
            del plain[path[-1]]
        else:
            plain[path[-1]] = value

    return change


def paths(plain: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a nested map."""
    if isinstance(plain, dict):
        return [p for key in plain for p in [(*prefix, key), *paths(plain[key], (*prefix, key))]]
    if isinstance(plain, list):
        return [p for i in range(min(len(plain), 3)) for p in [(*prefix, i), *paths(plain[i], (*prefix, i))]]
    return []


def unpacked(name: str, section: str) -> Any:
    import msgpack

    return msgpack.unpackb(sections_of(name)[section], strict_map_key=False)


@pytest.mark.parametrize("section", ["meta", "about"])
@pytest.mark.parametrize("name", ["small", "sarvam-moe"])
def test_values_of_another_type_in_the_maps(name: str, section: str) -> None:
    trouble = Trouble()
    for path in paths(unpacked(name, section)):
        for value in [KeyError, *ODD]:
            with trouble.note(f"{section}{list(path)} = {value!r}"):
                survive(with_meta(name, edit(path, value), section), 2)
    trouble.report()


@pytest.mark.parametrize("section", ["meta", "about"])
@pytest.mark.parametrize("value", [None, 5, [], "x", {}, {"engine": 1}])
def test_maps_that_are_none(section: str, value: object) -> None:
    survive(with_meta("small", lambda _: value if value is not None else [], section))


@pytest.mark.parametrize("engine", [None, 0, 2, "1", 1.5, -1])
def test_an_index_for_another_engine_is_unsupported(engine: object) -> None:
    with pytest.raises(UnsupportedError, match="engine"):
        PackView(with_meta("small", edit(("engine",), engine)))


@pytest.mark.parametrize("reference", ["mnn", "huggingface", "", None, 7])
def test_an_index_with_the_rules_of_somebody_else_is_unsupported(reference: object) -> None:
    with pytest.raises(TokpackError):
        Tokenizer(PackView(with_meta("small", edit(("reference",), reference))))


@pytest.mark.parametrize("depth", [300, 500, 900, 5_000, 200_000])
@pytest.mark.parametrize("section", ["meta", "about"])
@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\x81\xa1x\x91"])
def test_maps_nested_very_deep(section: str, depth: int, opening: bytes) -> None:
    from tokpack.pack.build import assemble

    raw = b"\x81\xa1a" + opening * depth + b"\xc0"
    survive(assemble({**sections_of("small"), section: raw}))


def nest(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = {"kind": "template", "single": [], "pair": []}
    for _ in range(depth):
        step = {"kind": "template", "single": [step], "pair": []}
    return step


@pytest.mark.parametrize("depth", [10, 200, 240])
@pytest.mark.parametrize("place", ["post_processor", "decoder", "normalizer", "pre_tokenizer"])
def test_steps_nested_in_steps(place: str, depth: int) -> None:
    value: Any = nest(depth) if place == "post_processor" else [nest(depth)]
    survive(with_meta("small", edit((place,), value)))


def restored(data: bytes) -> None:
    with contextlib.suppress(TokpackError):
        restore(PackView(data))


@pytest.mark.parametrize("depth", [10, 200, 240])
@pytest.mark.parametrize("place", ["post_processor", "decoder", "normalizer", "pre_tokenizer"])
def test_steps_nested_in_steps_are_restored_or_refused(place: str, depth: int) -> None:
    value: Any = nest(depth) if place == "post_processor" else [nest(depth)]
    with limit(1):
        restored(with_meta("small", edit((place,), value)))


# --- patterns --------------------------------------------------------------------------------------------------------

SLOW_TEXT = "a" * 64 + "!" + "7" * 64 + " " * 64 + "é" * 64


def step(pattern: object, dialect: str) -> list[dict[str, Any]]:
    return [{"kind": "split", "pattern": pattern, "dialect": dialect, "behavior": "isolated", "invert": False}]


@pytest.mark.parametrize("dialect", ["std-regex-collapsed", "std-wregex"])
@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a+)+b",
        "(?:a|a)*b",
        "(?:a?){64}a{64}b",
        "(" * 3000 + "a" + ")" * 3000,
        "(?:" * 400 + "a" + ")*" * 400,
        "a{99999999999}",
        "(?:a{60000}){60000}",
        "[[a]",
        "a**",
        "(?P<x>a)(?P=x)",
        "(?i:a)",
        "(?<=a+)b",
        "\\",
        "[",
        "\\p{N",
        "\\p{Zz}",
        "(a)(b)?",
        "",
        "(?!a)*",
        "\\Ga",
        "a" * 100_000,
    ],
    ids=range(21),
)
def test_patterns_that_no_writer_puts_there(pattern: str, dialect: str) -> None:
    """A pack is data from outside: a pattern in it must neither hang nor crash the matcher."""
    data = with_meta("small", edit(("pre_tokenizer",), step(pattern, dialect)))
    with limit(2):
        try:
            tokenizer = Tokenizer(PackView(data))
            for text in (*TEXTS, SLOW_TEXT):
                tokenizer.encode(text)
        except TokpackError:
            pass


@pytest.mark.parametrize("pattern", [7, None, b"a", ["a"], {"a": 1}])
def test_patterns_that_are_no_text(pattern: object) -> None:
    for dialect in ("std-regex-collapsed", "std-wregex", "onig", "literal", "", "x"):
        survive(with_meta("small", edit(("pre_tokenizer",), step(pattern, dialect))))


def test_many_steps_cost_no_more_than_their_number() -> None:
    steps = step(r"\s+", "std-wregex") * 2000
    with limit(5), contextlib.suppress(TokpackError):
        Tokenizer(PackView(with_meta("small", edit(("pre_tokenizer",), steps)))).encode("a b c" * 20)


def test_the_footer_of_a_good_pack_is_what_the_helpers_think() -> None:
    data = pack_of("small")
    assert read_footer(data)["total_length"] == len(data)
    assert survive(data) == "loaded"
