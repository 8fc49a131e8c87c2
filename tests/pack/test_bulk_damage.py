"""Damaged sections on the ways of long texts and many ids: arrays of numpy look into them without asking each element.

Only errors of the library come out, in bounded time and memory, and within a process that lives on.
"""

from __future__ import annotations

import contextlib
import os
import random
import struct
import tracemalloc
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import Trouble, exercise_bulk, limit
from tests.pack.test_pack_damage import fills
from tokpack.errors import FormatError, TokpackError
from tokpack.ir import BPE
from tokpack.ir.steps import MnnTableNormalizer
from tokpack.pack.build import assemble, build_index
from tokpack.pack.layout import SECTIONS
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

SEED = int(os.environ["TOKPACK_SEED"])
RANKS: dict[str, Any] = {"pattern": "cl100k_base", "special_tokens": "none"}
PACKS: dict[str, dict[str, Any]] = {
    "demo.gguf": {},
    "llama-bpe.gguf": {},
    "spm.gguf": {},
    "wpm.gguf": {},
    "ugm.gguf": {},
    "gemma4.gguf": {},
    "rwkv.gguf": {},
    "hf/llama3.json": {},
    "hf/llama2.json": {},
    "hf/bert-uncased.json": {},
    "hf/t5.json": {},
    "hf/normalizers.json": {},
    "sentencepiece/bpe.model": {},
    "sentencepiece/rules.model": {},
    "sentencepiece/unigram.model": {},
    "tiktoken/plain.tiktoken": RANKS,
    "tiktoken/tekken-v13.json": {},
    "mnn/unigram.mtok": {},
    "mnn/byte-level-regex.mtok": {},
}

QUICK = ("demo.gguf", "spm.gguf", "wpm.gguf", "hf/llama3.json", "hf/t5.json", "sentencepiece/bpe.model")
QUICK += ("sentencepiece/unigram.model", "tiktoken/plain.tiktoken", "mnn/unigram.mtok")


@cache
def sections_of(name: str) -> dict[str, bytes]:
    form = "mnn" if name.endswith(".mtok") else "tiktoken" if name.endswith(".tiktoken") else None
    return dict(build_index(tokpack.read(FIXTURES / name, form, **PACKS[name])))


def survive(sections: dict[str, bytes], seconds: float = 4.0) -> str:
    """``refused`` or ``loaded``; a hang, or any exception but TokpackError, fails."""
    with limit(seconds):
        try:
            tokenizer = Tokenizer(PackView(assemble(sections), "damaged.tokpack"))
        except TokpackError:
            return "refused"
        exercise_bulk(tokenizer)
    return "loaded"


def damages(name: str) -> list[tuple[str, str, bytes]]:
    """(section, what is wrong, other bytes): of the same length, shorter, longer, none."""
    found = []
    for section, raw in sorted(sections_of(name).items()):
        if section in ("meta", "about") or section not in SECTIONS or not raw:
            continue
        size = SECTIONS[section].size
        changed = fills(section, raw, random.Random(SEED))
        changed |= {"nothing": b"", "one less": raw[:-size], "one more": raw + raw[-size:], "twice": raw + raw}
        found += [(section, what, other) for what, other in changed.items() if other != raw]
    return found


def check(name: str, chosen: list[tuple[str, str, bytes]]) -> None:
    trouble = Trouble()
    for section, what, other in chosen:
        with trouble.note(f"{name}: {section}: {what}"):
            survive({**sections_of(name), section: other})
    trouble.report()


def test_packs_are_whole() -> None:
    for name in QUICK:
        assert survive(sections_of(name)) == "loaded"


@pytest.mark.parametrize("name", QUICK)
def test_a_damaged_section_and_long_texts(name: str) -> None:
    print(f"seed {SEED}")
    found = damages(name)
    check(name, random.Random(f"{SEED} {name}").sample(found, min(5, len(found))))


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_every_damaged_section_and_long_texts(name: str) -> None:
    print(f"seed {SEED}")
    check(name, damages(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_several_damaged_sections_and_long_texts(name: str) -> None:
    print(f"seed {SEED}")
    rng, found, trouble = random.Random(f"{SEED} {name}"), damages(name), Trouble()
    for _ in range(60):
        several = rng.sample(found, min(3, len(found)))
        with trouble.note(f"{name}: {[(section, what) for section, what, _ in several]}"):
            survive({**sections_of(name), **{section: other for section, _, other in several}})
    trouble.report()


def test_ids_beyond_those_of_arrays() -> None:
    """An added token with an id of 32 bits: numpy's OverflowError came out."""
    sections = sections_of("mnn/unigram.mtok")
    changed = {**sections, "added.id": b"\xff" * len(sections["added.id"])}
    tokenizer = Tokenizer(PackView(assemble(changed), "damaged.tokpack"))
    added = bytes(sections["added.blob"]).decode()
    assert added
    with pytest.raises(FormatError, match=r"damaged\.tokpack: the index is damaged"):
        tokenizer.encode_array(f"a {added} b")


def test_tables_of_a_normalizer_that_are_cut_off(tmp_path: Path) -> None:
    """Writing what such a pack holds as .mtok raised ValueError."""
    ir = tokpack.read(FIXTURES / "mnn/word-piece.mtok", "mnn")
    steps = tuple(
        replace(step, table=step.table[:-1] + b"x") if getattr(step, "table", b"") else step for step in ir.normalizer
    )
    step = MnnTableNormalizer(b"\1\2\3")
    for normalizer in (steps, (*steps, step)):
        if normalizer != ir.normalizer:
            with pytest.raises(TokpackError):
                tokpack.write(replace(ir, normalizer=normalizer), tmp_path / "x.mtok", force=True)


def test_merges_of_what_are_no_pieces(tmp_path: Path) -> None:
    """Writing what such a pack holds as .mtok raised KeyError."""
    ir = tokpack.read(FIXTURES / "hf/llama3.json")
    assert isinstance(ir.model, BPE)
    model = replace(ir.model, merges=(*ir.model.merges, (b"nobody", b"x")), ranks=None)
    with pytest.raises(TokpackError):
        tokpack.write(replace(ir, model=model), tmp_path / "x.mtok")


OFFSETS = ("first moved", "all in the last", "all alike", "every other the whole")


@pytest.mark.parametrize("how", OFFSETS)
@pytest.mark.parametrize(
    "name", ["tiktoken/plain.tiktoken", *(pytest.param(n, marks=pytest.mark.slow) for n in QUICK[:2] + QUICK[3:4])]
)
def test_offsets_that_ascend_but_lie(name: str, how: str) -> None:
    """Tables of pairs and of words are then made from symbols of other lengths than ever; memory stays bounded."""
    sections = sections_of(name)
    raw, blob = sections["piece.offset"], len(sections["piece.blob"])
    count = len(raw) // 4
    offset = list(struct.unpack(f"<{count}I", raw))
    if how == "first moved":
        offset[0] = min(3, offset[1])
    elif how == "all in the last":
        offset[:-1] = [0] * (count - 1)
    elif how == "all alike":
        offset = [blob] * count
    else:
        offset = [0, blob] * (count // 2) + [blob] * (count % 2)
    changed = {**sections, "piece.offset": struct.pack(f"<{count}I", *offset)}
    for left_out in ((), ("bulk.pairs",), ("bulk.words", "bulk.whole")):
        kept = {section: content for section, content in changed.items() if section not in left_out}
        tracemalloc.start()
        try:
            survive(kept)
            with contextlib.suppress(TokpackError):
                ids = list(range(300)) * 30
                Tokenizer(PackView(assemble(kept))).decode_bytes(ids)
            assert tracemalloc.get_traced_memory()[1] < 300_000_000
        finally:
            tracemalloc.stop()
