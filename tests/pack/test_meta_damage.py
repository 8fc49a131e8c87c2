"""A meta section without a key, or with another value there: one error of ours, whatever the rules of the pack are."""

from __future__ import annotations

import copy
import os
import random
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import Trouble, exercise, limit
from tests.pack.helpers import sections_of, with_meta
from tests.pack.test_pack_damage import edit
from tokpack.errors import FormatError, TokpackError
from tokpack.pack.build import assemble, build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

SOURCES: dict[str, dict[str, Any]] = {
    "demo.gguf": {},
    "ugm.gguf": {},
    "wpm.gguf": {},
    "hf/gpt2.json": {},
    "hf/llama2.json": {},
    "hf/t5.json": {},
    "hf/bert-uncased.json": {},
    "hf/normalizers.json": {},
    "sentencepiece/bpe.model": {},
    "sentencepiece/unigram.model": {},
    "tiktoken/tekken-v3.json": {},
    "mnn/unigram.mtok": {"format": "mnn"},
    "mnn/sentencepiece.txt": {},
}
assert all((FIXTURES / name).exists() for name in SOURCES)
OTHERS: tuple[Any, ...] = (None, 0, -1, "x", [], {}, [None], {"kind": "x"}, [{"kind": "x"}], True, 1 << 40)


@pytest.mark.parametrize("name", SOURCES)
def test_every_key(name: str) -> None:
    pack = build_pack(tokpack.read(FIXTURES / name, **SOURCES[name]))
    trouble = Trouble()
    for number, key in enumerate(PackView(pack).meta):
        for other in ("absent", *OTHERS[number % 3 :: 3], None):
            view = PackView(pack)
            meta = {k: v for k, v in view.meta.items() if k != key}
            view.meta = meta if other == "absent" else {**meta, key: other}
            with trouble.note(f"{key} = {other!r}"), limit(10):
                try:
                    exercise(Tokenizer(view))
                except TokpackError:
                    continue
    trouble.report()


@pytest.mark.parametrize("other", ["x", None, 7, [], ["a"], {1: "a"}, {"default": 5}, {"default": None}])
@pytest.mark.parametrize("key", ["chat_templates", "extras"])
def test_templates_and_keys_that_are_none(tmp_path: Path, key: str, other: Any) -> None:
    """Reading such a pack, or converting it, raised AttributeError."""
    if key == "extras" and isinstance(other, dict) and all(isinstance(name, str) for name in other):
        return
    path = tmp_path / "x.tokpack"
    path.write_bytes(with_meta("small", edit((key,), other), "about"))
    with pytest.raises(FormatError):
        tokpack.read(path)
    with pytest.raises(FormatError):
        tokpack.convert(path, tmp_path / "x.mtok")


@pytest.mark.parametrize(
    ("section", "path", "other"),
    [
        ("meta", ("eog",), ["x"]),
        ("meta", ("suppress",), [None]),
        ("meta", ("rules",), 7),
        ("meta", ("specials",), {"bos": "x"}),
        ("about", ("source", "facts"), 5),
        ("about", ("source", "facts"), {"a": [1]}),
        ("about", ("source", "format"), 5),
    ],
)
def test_plain_values_of_another_type(tmp_path: Path, section: str, path: tuple[str, ...], other: Any) -> None:
    """Reading such a pack back gave an IR on which validating or writing raised TypeError."""
    file = tmp_path / "x.tokpack"
    file.write_bytes(with_meta("small", edit(path, other), section))
    with pytest.raises(FormatError):
        tokpack.read(file)


def test_pieces_that_lie_upon_each_other_are_not_read_back() -> None:
    """The texts together would be far larger than the file."""
    sections = dict(sections_of("small"))
    count, blob = len(sections["piece.offset"]) // 8, len(sections["piece.blob"])
    sections["piece.offset"] = struct.pack("<II", 0, blob) * count + struct.pack("<I", blob)
    with pytest.raises(FormatError, match=r"piece\.offset"):
        restore(PackView(assemble(sections)))


# --- values inside of steps ---

VALUES: tuple[Any, ...] = ("absent", None, 0, -1, 1 << 40, "", "x", b"x", True, 0.5, [], [None], {}, {"kind": "x"})


@cache
def of_each_kind() -> dict[str, tuple[str, dict[str, Any]]]:
    """Kind of a step, or of a model → (file, options) of a fixture with it."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    names = [path.relative_to(FIXTURES).as_posix() for path in sorted(FIXTURES.rglob("*")) if path.is_file()]
    for name in names:
        if not name.endswith((".gguf", ".json", ".model", ".mtok", ".txt")) or "refused" in name:
            continue
        options = {"format": "mnn"} if name.endswith(".mtok") else {}
        try:
            ir = tokpack.read(FIXTURES / name, **options)
        except TokpackError:
            continue
        steps = [step for place in (ir.normalizer, ir.pre_tokenizer, ir.decoder) for step in place]
        for part in (*steps, ir.model, ir.post_processor):
            found.setdefault(f"{ir.reference.value} {type(part).__name__}", (name, options))
    return found


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside of maps and lists; of long lists the first ones."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))[:4]
    return [path for key, inner in items for path in ((*before, key), *paths(inner, (*before, key)))]


def changed(meta: Any, path: tuple[Any, ...], other: Any) -> Any:
    tree = copy.deepcopy(meta)
    place = tree
    for key in path[:-1]:
        place = place[key]
    if other == "absent":
        del place[path[-1]]
    else:
        place[path[-1]] = other
    return tree


def check_places(name: str, options: dict[str, Any], share: float) -> None:
    seed = int(os.environ["TOKPACK_SEED"])
    print(f"seed {seed}")
    rng = random.Random(f"{seed} {name}")
    pack = build_pack(tokpack.read(FIXTURES / name, **options))
    meta, trouble = dict(PackView(pack).meta), Trouble()
    for path in paths(meta):
        for other in VALUES:
            if len(path) < 2 or rng.random() >= share:
                continue
            view = PackView(pack)
            view.meta = changed(meta, path, other)
            with trouble.note(f"{list(path)} = {other!r}"), limit(10):
                try:
                    exercise(Tokenizer(view))
                except TokpackError:
                    continue
    trouble.report()


def test_places_inside_of_steps() -> None:
    for name, options in dict.fromkeys((name, tuple(options.items())) for name, options in of_each_kind().values()):
        check_places(name, dict(options), 0.01)


@pytest.mark.slow
def test_every_place_inside_of_steps() -> None:
    for name, options in dict.fromkeys((name, tuple(options.items())) for name, options in of_each_kind().values()):
        check_places(name, dict(options), 1)
