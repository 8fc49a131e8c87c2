"""The MNN fixtures give what the MNN engine 3.6.1 answered: from the file and from a converted pack."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.errors import EncodeError

FOLDER = FIXTURES / "mnn"
NAMES = sorted(path.name for path in FOLDER.glob("*.*") if path.suffix in (".mtok", ".txt"))


def texts() -> list[str]:
    lines = (FIXTURES / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[str] = [item["text"] for item in map(json.loads, lines) if "text" in item]
    found += json.loads((FOLDER / "mnn_texts.json").read_text(encoding="utf-8"))
    return [text for text in found if "\0" not in text]


def answers(name: str) -> dict[str, list[Any]]:
    data: dict[str, list[Any]] = json.loads(lzma.decompress((FOLDER / "golden" / f"{name}.json.xz").read_bytes()))
    return data


def test_there_are_fixtures() -> None:
    assert len(NAMES) == 13


@pytest.mark.parametrize("name", NAMES)
def test_ids(name: str, tmp_path: Path) -> None:
    source, target = FOLDER / name, tmp_path / f"{name}.tokpack"
    tokenizer = tokpack.load(source)
    assert tokenizer.reference == "mnn"
    tokpack.convert(source, target)
    assert target.read_bytes() == tokenizer.view.data
    recorded = answers(name)
    packed = tokpack.load(target)
    wrong = []
    for index, (text, expected) in enumerate(zip(texts(), recorded["encode"], strict=True)):
        if packed.encode(text) != expected:
            wrong.append((text, packed.encode(text), expected))
        if index % 6 == 0:  # another way to the same ids
            pieces = packed.pieces(text)
            assert [piece.id for piece in pieces] == expected, text
            assert all(0 <= piece.start <= piece.end <= len(text) for piece in pieces), text
    assert not wrong, f"{len(wrong)} differences, first: {wrong[0]}"


@pytest.mark.parametrize("name", NAMES)
def test_text_of_each_id(name: str) -> None:
    tokenizer = tokpack.load(FOLDER / name)
    wrong = []
    for token, expected in enumerate(answers(name)["decode"], start=-1):
        if not 0 <= token < tokenizer.vocab_size:
            with pytest.raises(EncodeError, match="outside"):
                tokenizer.id_to_bytes(token)
            continue
        raw = tokenizer.id_to_bytes(token)
        # the binding takes a C string of whole characters
        if expected is not None and raw.split(b"\0")[0] != bytes.fromhex(expected).split(b"\0")[0]:
            wrong.append((token, raw, bytes.fromhex(expected)))
        elif expected is None and raw.decode("utf-8", "replace").encode() == raw:
            wrong.append((token, raw, None))
    assert not wrong, f"{len(wrong)} differences, first: {wrong[:3]}"
