"""What is shown for the fixtures: JSON compared as data and against its schema, screens as text at 80 columns."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

import tokpack
from tests.analysis.explain.cases import CASES, GOLDEN, Case
from tests.analysis.explain.record import as_json, as_screen

jsonschema = pytest.importorskip("jsonschema", reason="the schema is checked with the package jsonschema")


def schema() -> dict[str, Any]:
    text = files("tokpack.analysis").joinpath("schemas/explain.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_document(case: Case) -> None:
    document = json.loads(as_json(case))
    assert document == json.loads((GOLDEN / f"{case.name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    tokenizer = tokpack.load(case.path, **case.options)
    assert document["ids"] == tokenizer.encode(case.text, case.add_special, case.parse_special)
    assert document["pieces"] == [
        {"id": p.id, "text": p.text, "bytes": p.bytes.hex(), "start": p.start, "end": p.end}
        for p in tokenizer.pieces(case.text, case.add_special, case.parse_special)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_screen(case: Case) -> None:
    screen = as_screen(case)
    assert screen == (GOLDEN / f"{case.name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_screens_fit_the_width(width: int) -> None:
    from rich.cells import cell_len

    for case in CASES[::4]:
        assert all(cell_len(line) <= width for line in as_screen(case, width).splitlines()), case.name


def test_the_schema_is_strict() -> None:
    """Every object names all its keys, and no others: a key that is added or left out is noticed."""
    jsonschema.Draft202012Validator.check_schema(schema())

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(schema())


def test_every_kind_of_stage_is_recorded() -> None:
    seen: set[str] = set()

    def part(node: dict[str, Any]) -> None:
        seen.add(node["kind"])
        seen.update(step["stage"] for step in node["steps"])
        seen.update(word["method"] for word in node["words"])
        seen.update(action["kind"] for word in node["words"] for action in word["actions"])
        for inner in node["parts"]:
            seen.add("inner")
            part(inner)

    for case in CASES:
        for node in json.loads((GOLDEN / f"{case.name}.json").read_text(encoding="utf-8"))["parts"]:
            part(node)
    assert seen == {
        "text", "token", "dropped", "inner", "normalizer", "pre-tokenizer",
        "merges", "viterbi", "min-cost", "longest-match", "lookup", "merge", "choice", "match",
    }  # fmt: skip
