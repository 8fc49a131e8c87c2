"""Random texts, patterns and normalizers: our reading of a body gives the ids of the real engine."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES
from tests.runtime.mnn.live import CRASHED, ask, needs_engine
from tests.seeds import run_seed
from tokpack.errors import EncodeError, UnsupportedError
from tokpack.formats.mnn import parts
from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

FILES = sorted(path.name for path in (FIXTURES / "mnn").glob("*.*") if path.suffix in (".mtok", ".txt"))
ROUNDS = int(os.environ.get("TOKPACK_EXAMPLES", "6"))
LIVE_TEXTS = int(os.environ.get("TOKPACK_LIVE_TEXTS", "60"))

BYTES = parts.Bpe(tuple(b"<0x%02X>" % byte for byte in range(256)), np.empty((0, 3), dtype=np.uint32))
CHARS = (
    "abcxyzABZ 0123.!-_'$^\n\r\t\x0b\x01\x03\x05"
    "éÉß世界ー١½\u0301\u00a0\u3000\u2028\u2029€…😀İ\ue000\ufffd\x85\u200b\ufeff"
)


def rng_of(seed: int) -> random.Random:
    return random.Random(seed)


def some_texts(rng: random.Random, count: int) -> list[str]:
    out = [""]
    for _ in range(count):
        chars = rng.sample(CHARS, rng.randrange(1, 8)) if rng.random() < 0.6 else CHARS
        out.append("".join(rng.choice(chars) for _ in range(rng.randrange(1, 30))))
    return out


def read_back(data: bytes, folder: Path) -> Tokenizer:
    path = folder / "live.mtok"
    path.write_bytes(data)
    return Tokenizer(PackView(build_pack(tokpack.read(path, "mnn"))))


def compare(data: bytes, texts: list[str], folder: Path, what: str) -> bool:
    """Whether there was something to compare."""
    try:
        tokenizer = read_back(data, folder)
    except UnsupportedError:
        return False  # refused by name
    expected = ask(data, "encode", texts)
    assert expected != CRASHED, f"{what}: the engine crashes, and we read it"
    for text, ids in zip(texts, expected, strict=True):
        assert isinstance(ids, list)
        try:
            found: Any = tokenizer.encode(text)
        except EncodeError:
            continue
        assert found == ids, f"{what}: {text!r}: {found}, the engine {ids}"
        assert [piece.id for piece in tokenizer.pieces(text)] == ids, f"{what}: pieces of {text!r}"
    return True


ATOMS = (
    "a",
    "b",
    "x",
    " ",
    "1",
    ".",
    r"\s",
    r"\S",
    r"\d",
    r"\w",
    r"\p{L}",
    r"\p{N}",
    r"\P{L}",
    r"[^\s\p{L}]",
    "[a-c]",
    "[^ab]",
    r"[\p{L}\d]",
    r"\n",
    r"\x41",
    "'",
    r"\.",
    r"[\r\n]",
    r"[[:alpha:]]",
    "[-a]",
    "[a-]",
    "^",
    "$",
    r"\b",
    "é",
    r"\p{Lu}",
    r"\p{Z}",
    r"\p{M}",
    "[]a]",
    "[^]a]",
    r"\W",
    r"\D",
    "}",
    "]",
)
TIMES = ("", "", "", "?", "*", "+", "{2}", "{1,3}", "{0,}", "{,2}", "{}", "+?", "++", "*?", "{3,1}", "?+")


def folded_pattern(rng: random.Random, depth: int = 2) -> str:
    parts_of = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.random()
        if depth and kind < 0.3:
            head = rng.choice(("(?:", "(", "(?!", "(?i:", "(?:", "(?i)", "(?=", "(?<="))
            parts_of.append(head + folded_pattern(rng, depth - 1) + ")" + rng.choice(TIMES))
        else:
            parts_of.append(rng.choice(ATOMS) + rng.choice(TIMES))
    text = "".join(parts_of)
    return text + "|" + folded_pattern(rng, depth - 1) if depth and rng.random() < 0.35 else text


WIDE = (
    "世",
    "[一-龥]",
    "[^世 ]",
    "[é-ー]",
    "a",
    "[a-z]",
    r"\s",
    r"\d",
    "[世a-c]",
    r"[\s世]",
    ".",
    r"\w",
    "ー",
    r"[\d界]",
)
WIDE_TIMES = ("", "", "?", "+", "*", "{2}", "{1,3}", "+?", "??")


def wide_pattern(rng: random.Random, depth: int = 1) -> str:
    parts_of = []
    for _ in range(rng.randrange(1, 4)):
        if depth and rng.random() < 0.3:
            head = rng.choice(("(?:", "(?=", "(?!", "("))
            inner = wide_pattern(rng, 0)
            parts_of.append(f"{head}{inner})" + (rng.choice(("", "?", "{2}")) if head not in ("(?=", "(?!") else ""))
        else:
            parts_of.append(rng.choice(WIDE) + rng.choice(WIDE_TIMES))
    text = "".join(parts_of)
    return text + "|" + wide_pattern(rng, 0) if depth and rng.random() < 0.3 else text


def some_splits(rng: random.Random, make: Any) -> tuple[parts.Split, ...]:
    behaviors = ("isolated", "removed", "merged-with-previous")
    return tuple(parts.Split(make(rng), rng.random() < 0.3, rng.choice(behaviors)) for _ in range(rng.randrange(1, 3)))


@needs_engine
@settings(max_examples=ROUNDS, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_patterns_of_the_matcher(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = rng_of(seed)
    splits = some_splits(rng, folded_pattern)
    data = serialize(MtokBody(BYTES, pre_tokenizer=(*splits, parts.ByteLevel())))
    compare(data, some_texts(rng, LIVE_TEXTS), tmp_path_factory.mktemp("live"), f"seed {seed}: {splits}")


@needs_engine
@settings(max_examples=ROUNDS, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_patterns_of_std_wregex(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = rng_of(seed)
    splits = some_splits(rng, wide_pattern)
    data = serialize(MtokBody(BYTES, pre_tokenizer=splits))
    compare(data, some_texts(rng, LIVE_TEXTS), tmp_path_factory.mktemp("live"), f"seed {seed}: {splits}")


def some_normalizer(rng: random.Random) -> parts.Normalizer:
    texts = ("", "a", "ab", " ", "▁", "é", "\u0301", "  ", "世界")
    table = {ord(rng.choice(CHARS)): rng.choice(texts) for _ in range(rng.randrange(1, 9))}
    flags = [rng.random() < 0.5 for _ in range(4)]
    return rng.choice(
        (
            parts.Prepend(rng.choice(texts)),
            parts.Replace(rng.choice(texts[1:]), rng.choice(texts)),
            parts.TableNormalizer(tuple(sorted(table.items()))),
            parts.Strip(flags[0], flags[1]),
            parts.BertNormalizer(*flags, tuple(sorted(table.items())) if flags[2] else ()),
        )
    )


def some_pre_tokenizer(rng: random.Random) -> parts.PreTokenizer:
    flag = rng.random() < 0.5
    return rng.choice(
        (
            parts.ByteLevel(flag),
            parts.Digits(flag),
            parts.Metaspace(rng.choice(("▁", "_", "", "  ")), flag),
            parts.BertPreTokenizer(),
            parts.Split(r"\s+", flag, "removed"),
        )
    )


def some_model(rng: random.Random) -> parts.Model:
    texts = {"".join(rng.choice(CHARS) for _ in range(rng.choice((1, 1, 2, 3)))) for _ in range(60)}
    pieces = [text.encode() for text in sorted(texts)] + [b"?", b"\xe4", b"\xb8\x96"]
    pieces = list(dict.fromkeys(pieces))
    kind = rng.randrange(4)
    if kind == 0:
        unk = rng.randrange(len(pieces))
        scores = tuple(rng.choice((-1.0, -2.0, -3.5, -0.25)) for _ in pieces)
        return parts.Unigram((*pieces, pieces[3]), (*scores, -1.0), unk, False)
    if kind == 1:
        more = tuple(b"##" + piece for piece in pieces[::2])
        return parts.WordPiece((*pieces, *more), b"?", b"##", rng.choice((3, 12, 100)))
    base = [char.encode() for char in CHARS]
    pieces = list(dict.fromkeys((*base, *(b"<0x%02X>" % byte for byte in range(256)))))
    merges: dict[tuple[int, int], int] = {}
    for _ in range(60):
        left, right = rng.randrange(len(pieces)), rng.randrange(len(base))
        if pieces[left] + pieces[right] not in pieces:
            pieces.append(pieces[left] + pieces[right])
        if rng.random() < 0.9 or kind == 3:
            merges.setdefault((left, right), rng.randrange(30))
    rows = np.array([(left, right, rank) for (left, right), rank in merges.items()], dtype=np.uint32)
    return parts.Bpe(tuple(pieces), rows.reshape(-1, 3), byte_level=kind == 3)


def some_body(rng: random.Random) -> MtokBody:
    model = some_model(rng)
    size = len(model.pieces)
    added = {rng.choice(("a", "é", " x", "世", "<m>", "1.", "ab")): rng.random() < 0.5 for _ in range(3)}
    return MtokBody(
        model,
        special=tuple(rng.randrange(size + 2) for _ in range(rng.randrange(3))),
        prefix=tuple(rng.randrange(size) for _ in range(rng.randrange(2))),
        normalizer=tuple(some_normalizer(rng) for _ in range(rng.randrange(3))),
        pre_tokenizer=tuple(some_pre_tokenizer(rng) for _ in range(rng.randrange(3))),
        added_tokens=tuple(
            parts.AddedToken(size + at, text.encode(), flag, rng.random() < 0.3, rng.random() < 0.3)
            for at, (text, flag) in enumerate(added.items())
        ),
    )


@needs_engine
@settings(max_examples=2 * ROUNDS, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_bodies(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = rng_of(seed)
    body = some_body(rng)
    compare(serialize(body), some_texts(rng, LIVE_TEXTS), tmp_path_factory.mktemp("live"), f"seed {seed}")


@needs_engine
@pytest.mark.parametrize("name", FILES)
def test_fixtures_on_new_texts(name: str) -> None:
    seed = run_seed()
    print(f"texts with seed {seed}")
    source = FIXTURES / "mnn" / name
    tokenizer = tokpack.load(source)
    texts = some_texts(rng_of(seed), 5 * LIVE_TEXTS)
    expected = ask(source.read_bytes(), "encode", texts)
    assert expected != CRASHED
    assert [tokenizer.encode(text) for text in texts] == expected
