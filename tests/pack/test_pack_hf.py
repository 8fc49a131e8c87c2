"""Packs of tokenizer.json files: the way back to the IR, and damage."""

from __future__ import annotations

import random

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.pack.helpers import survive
from tests.pack.test_pack_roundtrip import differences
from tests.seeds import run_seed
from tokpack.pack.build import assemble, build_index, build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView

NAMES = (
    *("gpt2", "qwen2", "deepseek", "llama2", "metaspace-first", "t5", "bert-uncased", "word-level", "added-flags"),
    *("scripts", "normalizers"),
)
ROUNDS = 25


READABLE = sorted(path.stem for path in (FIXTURES / "hf").glob("*.json") if not path.stem.startswith("refused-"))


@pytest.mark.parametrize("name", READABLE)
def test_a_pack_restores_to_the_ir_that_it_was_built_from(name: str) -> None:
    ir = tokpack.read(FIXTURES / "hf" / f"{name}.json")
    assert differences(ir, restore(PackView(build_pack(ir)))) == []
    assert build_pack(ir) == build_pack(ir)


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """A section of zeros, of ones, of noise, or with a few other bytes."""
    kind = rng.randrange(4)
    if kind < 3:
        return (bytes(len(raw)), b"\xff" * len(raw), rng.randbytes(len(raw)))[kind]
    changed = bytearray(raw)
    for _ in range(rng.randrange(1, 20)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_sections(name: str) -> None:
    """An error or a tokenizer that works; never another exception or a hang."""
    seed = run_seed()
    print(f"seed {seed}")
    rng = random.Random(seed)
    sections = build_index(tokpack.read(FIXTURES / "hf" / f"{name}.json"))
    outcomes = set()
    for _ in range(ROUNDS):
        changed = dict(sections)
        section = rng.choice([key for key, raw in sections.items() if raw])
        changed[section] = damaged(sections[section], rng)
        outcomes.add(survive(assemble(changed), 5.0))
    assert outcomes, "nothing was tried"
