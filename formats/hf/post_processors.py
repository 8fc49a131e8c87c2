"""Post-processors of tokenizer.json, lowered to one template (tokenizers/src/processors/).

A post-processor maps a list of encodings to a list of encodings, which are joined at the end. It is run here on
placeholders: one for each of the sequences A and B, with the type ids that they have at that point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.ir.steps import Template, TemplateItem

from .components import Family, Parser, Untagged
from .getters import Obj, as_object, as_string, as_unsigned, describe
from .notes import Notes

__all__ = ["read_post_processor"]

Encoding = list[TemplateItem]
Process = Callable[[list[Encoding], bool], list[Encoding]]
_PATH = "post_processor"


@dataclass(frozen=True, slots=True)
class _Step:
    """One post-processor; ``changes`` is false when it leaves ids and type ids alone."""

    process: Process
    changes: bool = True


def read_post_processor(value: Any, notes: Notes) -> Template | None:
    """The ``post_processor`` key; None when nothing is added and no type id is changed."""
    if value is None:
        return None
    steps = [step for step in _FAMILY.parse(value, _PATH, notes) if step.changes]
    if not steps:
        return None
    single = _run(steps, [TemplateItem("A")])
    pair = _run(steps, [TemplateItem("A"), TemplateItem("B", type_id=1)])
    return Template(single, pair)


def _run(steps: list[_Step], sequences: list[TemplateItem]) -> tuple[TemplateItem, ...]:
    results = []
    for add_special_tokens in (True, False):
        encodings = [[item] for item in sequences]
        for step in steps:
            encodings = step.process(encodings, add_special_tokens)
        results.append(tuple(item for encoding in encodings for item in encoding))
    whole, bare = results
    if tuple(item for item in whole if item.sequence is not None) != bare:
        what = "the sequences stand in another order, or have other type ids, with special tokens than without"
        raise UnsupportedError(what, location=Location(None, _PATH))
    return whole


def _retyped(encoding: Encoding, type_id: int) -> Encoding:
    return [replace(item, type_id=type_id) for item in encoding]


def _token(node: Obj, key: str) -> int:
    """``[content, id]``; the id counts, whatever the vocabulary says."""
    value = node.array(key)
    path = node.at(key)
    if len(value) != 2:
        raise FormatError(f"invalid length {len(value)}, expected a tuple of size 2", location=Location(None, path))
    as_string(value[0], f"{path}[0]")
    return as_unsigned(value[1], f"{path}[1]")


def _bert(node: Obj, notes: Notes) -> list[_Step]:
    """The ids are cls A sep, then B sep; A keeps type id 0, B type id 1."""
    sep, cls = _token(node, "sep"), _token(node, "cls")

    def process(encodings: list[Encoding], add: bool) -> list[Encoding]:
        if not add:
            return encodings
        first = [TemplateItem(None, (cls,), 0), *encodings[0], TemplateItem(None, (sep,), 0)] if encodings else []
        rest = [[*encoding, TemplateItem(None, (sep,), 1)] for encoding in encodings[1:]]
        return [first, *rest] if encodings else []

    return [_Step(process)]


def _roberta(node: Obj, notes: Notes) -> list[_Step]:
    """The ids are cls A sep, then sep B sep; all type ids 0, also without special tokens."""
    sep, cls = _token(node, "sep"), _token(node, "cls")
    for key in ("trim_offsets", "add_prefix_space"):  # offsets only
        node.boolean(key)

    def process(encodings: list[Encoding], add: bool) -> list[Encoding]:
        plain = [_retyped(encoding, 0) for encoding in encodings]
        if not add:
            return plain
        ends = TemplateItem(None, (sep,), 0)
        starts = [TemplateItem(None, (cls,), 0)] + [ends] * (len(plain) - 1)
        return [[start, *encoding, ends] for start, encoding in zip(starts, plain, strict=False)]

    return [_Step(process)]


def _byte_level(node: Obj, notes: Notes) -> list[_Step]:
    for key in ("add_prefix_space", "trim_offsets"):  # offsets only
        node.boolean(key)
    node.boolean("use_regex", True)
    return [_Step(lambda encodings, add: encodings, changes=False)]


def _sequence(node: Obj, notes: Notes) -> list[_Step]:
    path = node.at("processors")
    steps: list[_Step] = []
    for at, value in enumerate(node.array("processors")):
        steps += _FAMILY.parse(value, f"{path}[{at}]", notes)
    return steps


_Piece = tuple[int | None, tuple[int, ...], int]  # which sequence, or the ids of a special token; type id


def _template(node: Obj, notes: Notes) -> list[_Step]:
    special = _special_tokens(node.obj("special_tokens"))
    templates = {name: _pieces(node, name, special, notes) for name in ("single", "pair")}
    for piece in templates["single"]:
        if piece[0] == 1:
            message = "the template for one sequence uses the second: tokenizers aborts on every text"
            notes.refuse("hf-panic", message, node.at("single"))
            templates["single"] = [piece for piece in templates["single"] if piece[0] != 1]
            break

    def process(encodings: list[Encoding], add: bool) -> list[Encoding]:
        if len(encodings) not in (1, 2):
            what = f"a template that is to be put around {len(encodings)} encodings: tokenizers aborts"
            hint = "a Sequence of post-processors can have one template, in front"
            raise UnsupportedError(what, location=Location(None, node.path), hint=hint)
        result: list[Encoding] = []
        for at, ids, type_id in templates["single" if len(encodings) == 1 else "pair"]:
            if at is not None:
                result.append(_retyped(encodings[at], type_id))
            elif add:
                result.append([TemplateItem(None, ids, type_id)])
        return result

    return [_Step(process)]


def _special_tokens(node: Obj) -> dict[str, tuple[int, ...]]:
    special: dict[str, tuple[int, ...]] = {}
    for key, value in node.data.items():
        token = as_object(value, node.at(key))
        token.string("id")
        path = token.at("ids")
        special[key] = tuple(as_unsigned(item, f"{path}[{at}]") for at, item in enumerate(token.array("ids")))
        path = token.at("tokens")
        for at, text in enumerate(token.array("tokens")):
            as_string(text, f"{path}[{at}]")
    return special


def _pieces(node: Obj, key: str, special: dict[str, tuple[int, ...]], notes: Notes) -> list[_Piece]:
    pieces: list[_Piece] = []
    for outer in node.objects(key):
        if len(outer.data) != 1:
            what = "invalid value: map, expected map with a single key"
            raise FormatError(what, location=Location(None, outer.path))
        ((kind, _),) = outer.data.items()
        if kind not in ("Sequence", "SpecialToken"):
            what = f"unknown variant `{kind[:60]}`, expected `Sequence` or `SpecialToken`"
            raise UnsupportedError(what, location=Location(None, outer.path))
        inner = outer.obj(kind)
        type_id = inner.unsigned("type_id")
        if kind == "Sequence":
            pieces.append((inner.choice("id", {"A": 0, "B": 1}), (), type_id))
            continue
        name = inner.string("id")
        if name not in special:
            message = f"{describe(name)} is not among special_tokens: tokenizers aborts when special tokens are added"
            notes.refuse("hf-template-token", message, inner.at("id"), "list it under special_tokens")
        pieces.append((None, special.get(name, ()), type_id))
    return pieces


def _structure(name: str, fields: set[str], parse: Parser[_Step], *, checks_type: bool = False) -> Untagged[_Step]:
    return Untagged(name, frozenset(fields), parse, frozenset({name}), checks_type)


# Every structure is tried in this order, and only two look at the type: a BertProcessing with trim_offsets and
# add_prefix_space is a RobertaProcessing (processors/mod.rs).
_FAMILY: Family[_Step] = Family(
    "post-processor",
    {},
    (
        _structure("RobertaProcessing", {"sep", "cls", "trim_offsets", "add_prefix_space"}, _roberta),
        _structure("BertProcessing", {"sep", "cls"}, _bert),
        _structure("ByteLevel", {"add_prefix_space", "trim_offsets"}, _byte_level, checks_type=True),
        _structure("TemplateProcessing", {"single", "pair", "special_tokens"}, _template),
        _structure("Sequence", {"processors"}, _sequence, checks_type=True),
    ),
)
