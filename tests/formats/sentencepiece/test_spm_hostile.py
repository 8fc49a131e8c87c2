"""Damaged models and damaged packs of them: one clear error, or what the live library says."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import Trouble, limit
from tests.pack.helpers import survive
from tests.runtime.sentencepiece.random_models import make_charsmap, proto
from tests.seeds import run_seed
from tokpack.errors import FormatError, TokpackError
from tokpack.formats.sentencepiece import read_bytes
from tokpack.pack.build import assemble, build_index, build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

FOLDER = FIXTURES / "sentencepiece"
TEXTS = ("", "a", "the  ab t", "▁th\te", "é\0 <s>日", b"\xc3\xa9t e\xcc\xff")
EXAMPLES = int(os.environ.get("TOKPACK_EXAMPLES", "300"))


def small() -> bytes:
    """A model with something of everything, of less than 2 kB."""
    pieces: list[Any] = [
        ("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("▁", -2.0, 1), ("▁t", -2.5, 1), ("a", -1.0, 1), ("b", -1.0, 5),
        ("the", 0.0, 4), ("ab", -1.5, 1), ("e", -3.0, 1),
    ]  # fmt: skip
    rules = {"precompiled_charsmap": make_charsmap({b"\t": b" ", b"aa": b"a"}), "add_dummy_prefix": True}
    trainer = {"model_type": 1, "unk_surface": "?", "vocab_size": 300, "control_symbols": ["<s>"]}
    return proto.Model(pieces, trainer, rules, {}, proto.one(77, b"tail")).to_bytes()


try:
    LIBRARY: Any = pytest.importorskip("sentencepiece", "0.2")
except pytest.skip.Exception:
    LIBRARY = None  # what the library says is not compared then; that nothing breaks is


def live(data: bytes) -> Any:
    sentencepiece = LIBRARY
    sentencepiece.SetMinLogLevel(5)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(data)
    except (RuntimeError, UnicodeDecodeError):  # a message about a text that is no UTF-8
        return None
    return processor


def check(data: bytes) -> str:
    """``refused``, or ``loaded``: then the library loads it, too, and says the same."""
    try:
        ir = read_bytes(data)
        if any(finding.severity.value == "refuse" for finding in ir.findings):
            ours = any(finding.code == "spm-charsmap" for finding in ir.findings)
            assert ours or LIBRARY is None or live(data) is None, ir.findings
            return "refused"
        tokenizer = Tokenizer(PackView(build_pack(ir)))
    except TokpackError:
        return "refused"
    processor = None if LIBRARY is None else live(data)
    assert LIBRARY is None or processor is not None
    for text in TEXTS:
        ids = tokenizer.encode(text)
        text_again = tokenizer.decode_bytes(ids)
        if processor is not None:
            assert ids == processor.encode(text)
            assert text_again == processor.decode(ids, return_type=bytes)
    return "loaded"


def test_cut_off_at_every_byte() -> None:
    trouble = Trouble()
    outcomes = set()
    for data in (small(), (FOLDER / "odd.model").read_bytes()):
        for size in range(len(data)):
            with trouble.note(f"{size} bytes"), limit(5.0):
                outcomes.add(check(data[:size]))
    trouble.report()
    assert outcomes == {"refused", "loaded"}  # a model may end after any of its parts


def test_every_byte_changed() -> None:
    """Among them every length, count and tag: 0, 1, the largest of one byte, and one that goes on."""
    trouble = Trouble()
    data = small()
    head = data.index(make_charsmap({b"\t": b" ", b"aa": b"a"})[:8])
    places = [*range(head + 24), *range(head + 1024, len(data))]  # the array itself has a test of its own
    for at in places:
        for byte in (0, 1, 0x7F, 0xFF):
            with trouble.note(f"byte {at} = {byte}"), limit(5.0):
                check(data[:at] + bytes([byte]) + data[at + 1 :])
    trouble.report()


@pytest.mark.parametrize("name", ["odd", "bpe", "rules", "suffix", "no-unk", "char"])
def test_random_damage(name: str) -> None:
    seed = run_seed()
    print(f"seed {seed}")
    rng, trouble = random.Random(seed), Trouble()
    data = (FOLDER / f"{name}.model").read_bytes()
    for number in range(EXAMPLES // 10):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(changed))
            kind = rng.randrange(3)
            if kind == 0:
                changed[at] = rng.randrange(256)
            elif kind == 1:
                del changed[at : at + rng.randint(1, 20)]
            else:
                changed[at:at] = rng.randbytes(rng.randint(1, 8))
        with trouble.note(f"{number}"), limit(10.0):
            check(bytes(changed))
    trouble.report()


def test_garbage() -> None:
    rng, trouble = random.Random(3), Trouble()
    for size in range(300):
        with trouble.note(f"{size} bytes"), limit(5.0):
            assert check(rng.randbytes(size)) == "refused"
    trouble.report()


def test_damage_to_the_charsmap() -> None:
    """The double array at random: refused by both, or followed alike."""
    seed = run_seed()
    print(f"seed {seed}")
    rng, trouble = random.Random(seed), Trouble()
    good = make_charsmap({b"\t": b" ", b"aa": b"a", b"th": "é".encode(), "é".encode(): b"e"})
    for number in range(EXAMPLES):
        blob = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            blob[4 + rng.choice([4 * rng.randrange(256) + rng.randrange(4), rng.randrange(8)])] = rng.randrange(256)
        data = proto.Model(
            [("<unk>", 0.0, 2), ("▁", -1.0, 1), ("a", -1.0, 1), ("e", -2.0, 1)],
            {},
            {"precompiled_charsmap": bytes(blob)},
        ).to_bytes()
        with trouble.note(f"{number}"), limit(5.0):
            check(data)
    trouble.report()


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """A section of zeros, of ones, of noise, or with a few other bytes."""
    kind = rng.randrange(4)
    if kind < 3:
        return (bytes(len(raw)), b"\xff" * len(raw), rng.randbytes(len(raw)))[kind]
    changed = bytearray(raw)
    for _ in range(rng.randrange(1, 20)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("name", ["bpe", "unused", "unigram-unused", "rules", "word", "char", "no-unk"])
def test_damaged_sections(name: str) -> None:
    """An error or a tokenizer that works; never another exception or a hang."""
    seed = run_seed()
    print(f"seed {seed}")
    rng = random.Random(seed)
    sections = build_index(tokpack.read(FOLDER / f"{name}.model"))
    for _ in range(EXAMPLES // 15):
        changed = dict(sections)
        section = rng.choice([key for key, raw in sections.items() if raw])
        changed[section] = damaged(sections[section], rng)
        assert survive(assemble(changed), 5.0)


def test_user_piece_said_to_be_text_that_begins_inside_a_character() -> None:
    """A damaged pack: an error at the text, which may not be cut there."""
    sections = dict(build_index(tokpack.read(FOLDER / "bpe.model")))
    label = sections["user.label"]
    assert label[:1] == b"\n"  # an edge at the root, and a piece of its own
    sections["user.label"] = b"\x98" + label[1:]
    tokenizer = Tokenizer(PackView(assemble(sections), "damaged.tokpack"))
    with pytest.raises(FormatError, match="user-defined piece is not whole characters"):
        tokenizer.encode("\U0001f600")  # F0 9F 98 80


@pytest.mark.parametrize("name", ["bpe", "rules", "unused"])
@pytest.mark.parametrize("unit", ["a", " ", "▁", "the", "\U0001f600"])
def test_time_grows_with_the_length_of_a_text(name: str, unit: str) -> None:
    tokenizer = tokpack.load(FOLDER / f"{name}.model")
    times = []
    for size in (4_000, 32_000):
        text = unit * (size // len(unit))
        before = time.process_time()
        tokenizer.encode(text)
        times.append(time.process_time() - before)
    assert times[1] < 8 * 5 * max(times[0], 0.005), times  # eight times as long, and far from 64 times
