"""Damaged MNN files and packs: one clear error each, in little time."""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.seeds import run_seed
from tokpack.errors import TokpackError
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

FOLDER = FIXTURES / "mnn"
MTOK = sorted(path.name for path in FOLDER.glob("*.mtok"))
TEXT = sorted(path.name for path in FOLDER.glob("*.txt"))
ROUNDS = 2 * int(os.environ.get("TOKPACK_EXAMPLES", "5"))
PROBE = "the quick a1 <|end|> é世界 \x00\ud800 [CLS]"


def opens(data: bytes, path: Path) -> bool:
    """Whether a file opens and encodes; anything but our own errors fails the test."""
    path.write_bytes(data)
    start = time.monotonic()
    try:
        tokenizer = tokpack.load(path)
        tokenizer.decode(tokenizer.encode(PROBE)[:5])
    except TokpackError as error:
        text = str(error)
        assert "\n" not in text
        assert time.monotonic() - start < 5
        return False
    assert time.monotonic() - start < 5
    return True


@pytest.mark.parametrize("name", ["equal-ranks.mtok", "word-piece.mtok", "unigram.mtok"])
def test_cut_off_anywhere(name: str, tmp_path: Path) -> None:
    data = (FOLDER / name).read_bytes()
    step = 1 if ROUNDS > 50 else max(1, len(data) // 20)
    head = range(0, min(len(data), 60), 1 if ROUNDS > 50 else 4)
    tail = range(len(data) - 20, len(data))
    for size in sorted({*head, *tail, *range(0, len(data), step)}):
        if opens(data[:size], tmp_path / "cut.mtok"):
            # only where a tail section may be missing
            assert size > len(data) - 60


@pytest.mark.parametrize("name", TEXT)
def test_text_cut_off_anywhere(name: str, tmp_path: Path) -> None:
    data = (FOLDER / name).read_bytes()
    for size in sorted({*range(0, 40, 2), *range(0, len(data), max(1, len(data) // 12))}):
        opens(data[:size], tmp_path / "cut.txt")


@pytest.mark.parametrize("name", MTOK + TEXT)
def test_garbage(name: str, tmp_path: Path) -> None:
    """Every number in a body is somewhere: extreme values at random places, and random bytes."""
    seed = run_seed()
    print(f"garbage with seed {seed}")
    rng = random.Random(seed)
    data = (FOLDER / name).read_bytes()
    for _ in range(ROUNDS):
        broken = bytearray(data)
        at = rng.randrange(min(len(data), 200) if rng.random() < 0.5 else len(data))
        value = rng.choice((b"\0", b"\1", b"\xff", b"\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"))
        broken[at : at + len(value)] = value if rng.random() < 0.7 else rng.randbytes(len(value))
        opens(bytes(broken), tmp_path / name)


@pytest.mark.parametrize("numbers", ["-1", "0", "1", "99999999999", "x", "2147483647", ""])
@pytest.mark.parametrize("kind", range(4))
def test_counts_of_text_files(kind: int, numbers: str, tmp_path: Path) -> None:
    second = f" {numbers}" if kind == 3 else ""
    data = f"430 {kind}\n1 1 1\n0 0 0\n{numbers}{second}\nYQ== 0 1\nYg== 0 1\n".encode()
    opens(data, tmp_path / "count.txt")


def test_deep_and_wide_sequences(tmp_path: Path) -> None:
    head = b"430 4\n0 0 0\n\n"
    deep = head + b"\x04\x01\0\0\0" * 100_000
    wide = head + b"\x04" + struct.pack("<I", 900_000) + bytes(1_000_000)
    assert not opens(deep, tmp_path / "deep.mtok")
    assert not opens(wide, tmp_path / "wide.mtok")


@pytest.mark.parametrize("name", ["byte-level.mtok", "unigram-bytes.mtok", "word-piece.mtok", "sentencepiece.txt"])
def test_long_texts_take_near_linear_time(name: str) -> None:
    tokenizer = tokpack.load(FOLDER / name)
    for text in ("a" * 100_000, " " * 100_000, "世" * 40_000, "<|end|>" * 10_000):
        start = time.monotonic()
        tokenizer.encode(text)
        assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    "name", ["byte-level.mtok", "equal-ranks.mtok", "unigram-bytes.mtok", "word-piece.mtok", *TEXT]
)
def test_damaged_packs(name: str) -> None:
    """What lies in the sections is not trusted: no crash, no loop, no foreign exception."""
    seed = run_seed()
    print(f"damage with seed {seed}")
    rng = random.Random(seed)
    data = build_pack(tokpack.read(FOLDER / name))
    whole = PackView(data)
    sections = [(start, size) for section, (start, size) in whole.sections.items() if size and section != "about"]
    for _ in range(3 * ROUNDS):
        broken = bytearray(data)
        start, size = rng.choice(sections)
        for _ in range(rng.randrange(1, 6)):
            at = start + rng.randrange(size)
            broken[at] = rng.choice((0, 0xFF, 0x7F, rng.randrange(256)))
        try:
            tokenizer = Tokenizer(PackView(bytes(broken)))
            ids = tokenizer.encode(PROBE)
            tokenizer.pieces(PROBE)
            tokenizer.decode([token for token in ids if isinstance(token, int)])
            tokenizer.id_to_bytes(1)
        except TokpackError:
            continue
