"""Damaged packs and files: looked at or refused with one clear error; nothing else, and not for long."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.hostile.guard import Trouble, limit
from tests.pack.helpers import pack_of, with_meta
from tests.pack.test_pack_damage import ODD, edit, fills
from tokpack.analysis import Vocabulary, near_duplicates, render_summary, statistics, summarize, unreachable, unused
from tokpack.analysis.listing import listing
from tokpack.analysis.sections import Section
from tokpack.analysis.subject import subject_of_view
from tokpack.analysis.vocabulary_screen import render_rows, render_statistics
from tokpack.errors import FormatError, TokpackError
from tokpack.formats.gguf.layout import look
from tokpack.pack.layout import SECTIONS
from tokpack.pack.view import PackView

SEED = 4_712
PACKS = ("small", "llama-bpe", "sarvam-moe")


def look_at_all(data: bytes) -> None:
    """Everything that the tools do with a pack; only errors of the library may come out."""
    try:
        view = PackView(data, "damaged")
    except TokpackError:
        return
    for job in (_summary, _listing, _statistics, _unreachable):
        with suppress(TokpackError):
            job(view)


def _summary(view: PackView) -> None:
    facts = summarize(subject_of_view(view))
    json.dumps(facts, default=lambda value: value.hex())
    render_summary(facts)


def _listing(view: PackView) -> None:
    found = listing(Vocabulary(view), {"search": "e"}, 0, 40)
    json.dumps(found.as_dict())
    render_rows(found)


def _statistics(view: PackView) -> None:
    vocabulary = Vocabulary(view)
    render_statistics(statistics(vocabulary))
    unused(vocabulary)
    near_duplicates(vocabulary)


def _unreachable(view: PackView) -> None:
    unreachable(Vocabulary(view))


@pytest.mark.parametrize("section", ["meta", "about"])
def test_flipped_bytes_of_the_maps(section: str) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    data = pack_of("small")
    start, size = PackView(data).sections[section]
    trouble = Trouble()
    for _ in range(60):
        at, mask = start + rng.randrange(size), rng.choice((1, 0x20, 0x80))
        with trouble.note(f"byte {at - start} of {section} ^ {mask:#x}"), limit(10):
            look_at_all(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
    trouble.report()


@pytest.mark.parametrize(
    "section", ["piece.offset", "piece.flags", "piece.attrs", "merge.result", "merge.key", "added.id"]
)
def test_wrong_values_inside_a_section(section: str) -> None:
    data = pack_of("small")
    start, size = PackView(data).sections[section]
    trouble = Trouble()
    for what, raw in fills(section, data[start : start + size], random.Random(SEED)).items():
        with trouble.note(what), limit(10):
            look_at_all(data[:start] + raw + data[start + size :])
    trouble.report()


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
def test_wrong_values_inside_every_section(name: str) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    data = pack_of(name)
    trouble = Trouble()
    for section in SECTIONS:
        if section in ("meta", "about") or not PackView(data).sections.get(section, (0, 0))[1]:
            continue
        start, size = PackView(data).sections[section]
        choices = fills(section, data[start : start + size], rng)
        for what in rng.sample(sorted(choices), 3):
            with trouble.note(f"{section}: {what}"), limit(20):
                look_at_all(data[:start] + choices[what] + data[start + size :])
    trouble.report()


@pytest.mark.parametrize(
    "key", ["model", "specials", "eog", "decoder", "normalizer", "pre_tokenizer", "post_processor"]
)
def test_a_map_of_another_shape(key: str) -> None:
    trouble = Trouble()
    for value in [*ODD, KeyError]:
        with trouble.note(f"{key} = {value!r}"), limit(10):
            look_at_all(with_meta("small", edit((key,), value)))
    trouble.report()


def test_offsets_that_lie_do_not_multiply_memory() -> None:
    data = pack_of("llama-bpe")
    start, size = PackView(data).sections["piece.offset"]
    blob = PackView(data).sections["piece.blob"][1]
    raw = struct.pack("<II", 0, blob) * (size // 8) + bytes(size % 8)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="do not ascend"):
            Vocabulary(PackView(data[:start] + raw + data[start + size :]))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_gguf_with_any_byte_changed_has_a_layout_inside_the_file_or_an_error() -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    data = (FIXTURES / "gemma4.gguf").read_bytes()
    for _ in range(400):
        at = rng.choice((rng.randrange(400), rng.randrange(len(data))))
        changed = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        try:
            with limit(2):
                sections = look(changed).sections
        except TokpackError:
            continue
        assert all(0 <= section.offset <= len(data) and section.size >= section.missing >= 0 for section in sections)
        assert all(section.offset + section.size - section.missing <= len(data) for section in sections)


def test_a_section_of_an_empty_file_has_no_share() -> None:
    assert Section("a", 0, 0).as_dict(0)["share"] == 0.0


def test_long_values_are_cut_on_a_screen(tmp_path: Path) -> None:
    """A pattern of a megabyte, and a name without a space, in a pack."""
    data = with_meta("small", edit(("rules",), "x" * 1_000_000))
    with limit(5):
        shown = render_summary(summarize(subject_of_view(PackView(data, "long"))))
    assert max(map(len, shown.splitlines())) <= 80
