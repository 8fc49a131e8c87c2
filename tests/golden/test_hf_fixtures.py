"""Every fixture of fixtures/hf equals what the tokenizers library said: from the JSON and from a converted pack."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.ir.steps import Template

FOLDER = FIXTURES / "hf"
TEXT_FILES = (FIXTURES / "texts.jsonl", FOLDER / "texts.jsonl")


@cache
def texts() -> list[str]:
    lines = [line for path in TEXT_FILES for line in path.read_text(encoding="utf-8").splitlines()]
    return [item["text"] for item in map(json.loads, lines) if "text" in item]


@cache
def golden(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(FOLDER / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
    return meta, arrays


NAMES = sorted(path.stem for path in (FOLDER / "golden").glob("*.npz"))
LOADED = [name for name in NAMES if not golden(name)[0]["refused"]]
REFUSED = [name for name in NAMES if golden(name)[0]["refused"]]


def source(name: str) -> Path:
    return FOLDER / str(golden(name)[0]["fixture"])


def variants(name: str, folder: Path) -> Iterator[tuple[str, tokpack.Tokenizer]]:
    """The tokenizer from the JSON, from its folder if it has one, and from a pack."""
    path = source(name)
    yield path.name, tokpack.load(path)
    if path.parent != FOLDER:
        yield f"{path.parent.name}/", tokpack.load(path.parent)
    target = folder / f"{name}.tokpack"
    tokpack.convert(path, target, allow=[finding.code for finding in tokpack.read(path).findings])
    yield target.name, tokpack.load(target)


def answer(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except tokpack.EncodeError as error:
        return f"EncodeError: {error}"


def failed(meta: dict[str, Any], kind: str) -> set[int]:
    return {at for found in meta["failures"].get(kind, {}).values() for at in found}


def test_there_are_fixtures_of_both_kinds() -> None:
    assert len(LOADED) >= 30
    assert len(REFUSED) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_record_belongs_to_the_fixture(name: str) -> None:
    meta, _ = golden(name)
    assert meta["fixture_sha256"] == hashlib.sha256(source(name).read_bytes()).hexdigest()
    assert meta["texts_sha256"] == hashlib.sha256(b"".join(path.read_bytes() for path in TEXT_FILES)).hexdigest()


@pytest.mark.parametrize("name", LOADED)
def test_ids(name: str, tmp_path: Path) -> None:
    meta, arrays = golden(name)
    ids = [part.tolist() for part in np.split(arrays["ids"], np.cumsum(arrays["lens"].astype(np.int64))[:-1])]
    exempt = failed(meta, "encode")
    for label, tokenizer in variants(name, tmp_path):
        wrong: list[Any] = []
        for at, text in enumerate(texts()):
            if at in exempt:
                continue
            for special in (False, True):
                expected = [*meta["prefix"], *ids[at], *meta["suffix"]] if special else ids[at]
                got = answer(tokenizer.encode, text, special)
                if got != expected:
                    wrong.append((text, special, got, expected))
        assert not wrong, f"{label}: {len(wrong)} differences, first: {wrong[:3]}"


@pytest.mark.parametrize("name", LOADED)
def test_decoded_text(name: str, tmp_path: Path) -> None:
    meta, arrays = golden(name)
    ids = [part.tolist() for part in np.split(arrays["ids"], np.cumsum(arrays["lens"].astype(np.int64))[:-1])]
    skipped, everything = (json.loads(arrays[key].tobytes()) for key in ("decode_skip", "decode_all"))
    before, after = meta["shell"]
    for label, tokenizer in variants(name, tmp_path):
        wrong: list[Any] = []
        for at, text in enumerate(texts()):
            short = {0: text, 2: " " + text}.get(skipped[at], skipped[at])
            long = before + short + after if everything[at] == 1 else everything[at]
            full = [*meta["prefix"], *ids[at], *meta["suffix"]]
            for skip, expected in ((True, short), (False, long)):
                if expected is None:  # the library failed, in encoding or in decoding
                    continue
                got = answer(tokenizer.decode, full, skip)
                if got != expected:
                    wrong.append((text, skip, got, expected))
        assert not wrong, f"{label}: {len(wrong)} differences, first: {wrong[:3]}"


def expand(runs: list[list[int]]) -> list[int]:
    return [value for value, count in runs for _ in range(count)]


@pytest.mark.parametrize("name", LOADED)
def test_pairs(name: str) -> None:
    """The template for two sequences, filled in with the ids of both."""
    meta, _ = golden(name)
    post = tokpack.read(source(name)).post_processor
    assert post is None or isinstance(post, Template)
    tokenizer = tokpack.load(source(name))
    compared = 0
    for pair in meta["pairs"]:
        if "failed" in pair["special"]:
            assert "failed" in pair["plain"]
            continue
        ids = dict(zip("AB", (tokenizer.encode(texts()[at], False) for at in pair["texts"]), strict=True))
        for key in ("plain", "special"):
            items = [(ids["A"], 0, True), (ids["B"], 1, True)]
            if post is not None:
                items = [
                    (ids[item.sequence] if item.sequence else list(item.ids), item.type_id, bool(item.sequence))
                    for item in post.pair
                ]
            chosen = [(some, type_id) for some, type_id, own in items if own or key == "special"]
            assert [token for some, _ in chosen for token in some] == pair[key]["ids"], (pair["texts"], key)
            type_ids = [type_id for some, type_id in chosen for _ in some]
            assert type_ids == expand(pair[key]["type_ids"]), (pair["texts"], key)
        compared += 1
    assert compared or len(failed(meta, "encode")) > 300


@pytest.mark.parametrize("name", LOADED)
def test_size_of_the_vocabulary(name: str) -> None:
    pieces = tokpack.read(source(name)).vocab.pieces
    assert sum(piece is not None for piece in pieces) == golden(name)[0]["vocab_size"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_library_refuses_is_refused(name: str, tmp_path: Path) -> None:
    path = source(name)
    with pytest.raises(tokpack.TokpackError) as caught:
        tokpack.load(path)
    assert str(path) in str(caught.value)
    with pytest.raises(tokpack.TokpackError):
        tokpack.convert(path, tmp_path / "out.tokpack")
    assert list(tmp_path.iterdir()) == []


def test_the_folder() -> None:
    path = FOLDER / "chat"
    tokenizer = tokpack.load(path)
    config, generation = (
        json.loads((path / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("tokenizer_config", "generation_config")
    )
    assert tokenizer.id_to_token(tokenizer.bos_id or 0) == config["bos_token"]
    assert tokenizer.id_to_token(tokenizer.eos_id or 0) == config["eos_token"]
    assert tokenizer.id_to_token(tokenizer.pad_id or 0) == config["pad_token"]
    assert tokenizer.eog_ids == set(generation["eos_token_id"])
    templates = {"default": "chat_template", "tool_use": "chat_templates/tool_use", "plain": "chat_templates/plain"}
    assert set(tokenizer.chat_templates) == set(templates)
    for key, file in templates.items():
        assert tokenizer.chat_templates[key] == (path / f"{file}.jinja").read_text(encoding="utf-8")
