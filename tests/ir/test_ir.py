"""The intermediate representation: what it checks about itself, and its steps as plain maps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import pytest

from tests.hostile.gguf_builder import CONTROL, gguf, vocabulary
from tokpack.findings import Severity
from tokpack.formats.gguf import read_bytes
from tokpack.ir import BPE, AddedToken, SpecialId, TokenizerIR, steps
from tokpack.ir.codec import model_plain, step_from_plain, to_plain

STEPS = sorted((c for c in vars(steps).values() if is_dataclass(c) and hasattr(c, "kind")), key=lambda c: str(c.kind))


def ir() -> TokenizerIR:
    built: TokenizerIR = read_bytes(gguf(vocabulary([("<s>", CONTROL)])))
    return built


def test_a_good_one_has_no_findings() -> None:
    assert ir().validate() == []


def broken_sizes(good: TokenizerIR) -> TokenizerIR:
    return replace(good, vocab=replace(good.vocab, attrs=good.vocab.attrs[:-1]))


def broken_scores(good: TokenizerIR) -> TokenizerIR:
    return replace(good, vocab=replace(good.vocab, scores=np.zeros(3, dtype=np.float32)))


def broken_role(good: TokenizerIR) -> TokenizerIR:
    roles = {**good.specials.roles, "pad": SpecialId(len(good.vocab), "here")}
    return replace(good, specials=replace(good.specials, roles=roles))


def broken_negative_role(good: TokenizerIR) -> TokenizerIR:
    return replace(good, specials=replace(good.specials, roles={"bos": SpecialId(-1, "here")}))


def broken_added(good: TokenizerIR) -> TokenizerIR:
    return replace(good, added_tokens=(*good.added_tokens, AddedToken(1 << 40, b"x")))


def broken_eog(good: TokenizerIR) -> TokenizerIR:
    return replace(good, specials=replace(good.specials, eog=(1, 1 << 32)))


def broken_rank_count(good: TokenizerIR) -> TokenizerIR:
    assert isinstance(good.model, BPE)
    return replace(good, model=replace(good.model, ranks=(1, 2)))


def broken_rank_order(good: TokenizerIR) -> TokenizerIR:
    assert isinstance(good.model, BPE)
    return replace(good, model=replace(good.model, ranks=tuple(range(len(good.model.merges), 0, -1))))


BROKEN = [
    (broken_sizes, "ir-sizes", "vocab.attrs"),
    (broken_scores, "ir-sizes", "vocab.scores"),
    (broken_role, "ir-id-range", "specials.pad"),
    (broken_negative_role, "ir-id-range", "specials.bos"),
    (broken_added, "ir-id-range", "added_tokens"),
    (broken_eog, "ir-id-range", "specials.eog"),
    (broken_rank_count, "ir-merge-ranks", "model.ranks"),
    (broken_rank_order, "ir-merge-ranks", "model.ranks"),
]


@pytest.mark.parametrize(("breaking", "code", "path"), BROKEN)
def test_what_contradicts_itself_is_found(breaking: Callable[[TokenizerIR], TokenizerIR], code: str, path: str) -> None:
    found = breaking(ir()).validate()
    assert [(item.code, item.severity, item.location.path) for item in found] == [(code, Severity.REFUSE, path)]


def test_it_is_frozen() -> None:
    good = ir()
    for part in (good, good.vocab, good.alphabet, good.model, good.specials, good.source, good.added_tokens[0]):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(part, fields(part)[0].name, None)


# --- steps as maps ---------------------------------------------------------------------------------------------------


def sample(kind: str, name: str) -> Any:
    """A value for a field, by its annotation."""
    enums = {"Dialect": steps.Dialect.ONIG, "Behavior": next(iter(steps.Behavior))}
    plain = {"str": f"<{name}>", "int": 3, "bool": True, "float": 0.5, "bytes": b"\x00\xff"}
    if kind in enums:
        return enums[kind]
    if kind in plain:
        return plain[kind]
    if kind.endswith(" | None"):
        return sample(kind.removesuffix(" | None"), name)
    if kind == "tuple[int, ...]":
        return (1, 2)
    if kind == "tuple[str, ...]":
        return ("a", "b")
    if kind == "tuple[TemplateItem, ...]":
        return (steps.TemplateItem("A"), steps.TemplateItem(None, (5,), 1))
    if kind.startswith("tuple[tuple["):
        parts = kind.removeprefix("tuple[tuple[").split("]")[0].split(", ")
        return tuple(tuple(sample(part, name) for part in parts if part != "...") for _ in range(2))
    raise AssertionError(f"no sample for {kind}")


def filled(cls: Any) -> Any:
    return cls(**{field.name: sample(str(field.type), field.name) for field in fields(cls)})


@pytest.mark.parametrize("cls", STEPS, ids=lambda cls: cls.kind)
def test_every_step_survives_the_way_through_a_map(cls: Any) -> None:
    step = filled(cls)
    plain = to_plain(step)
    assert plain["kind"] == cls.kind
    assert set(plain) == {"kind", *(field.name for field in fields(cls))}
    assert step_from_plain(plain) == step
    assert not any(isinstance(value, (Enum, tuple)) for value in plain.values())


@pytest.mark.parametrize("cls", STEPS, ids=lambda cls: cls.kind)
def test_every_step_survives_msgpack(cls: Any) -> None:
    import msgpack

    step = filled(cls)
    assert step_from_plain(msgpack.unpackb(msgpack.packb(to_plain(step)))) == step


def test_kinds_are_distinct() -> None:
    assert len({cls.kind for cls in STEPS}) == len(STEPS) >= 30


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"kind": "nothing"},
        {"kind": None},
        {"kind": ["split"]},
        {"kind": "split"},
        {"kind": "split", "pattern": "x", "dialect": "perl", "behavior": "isolated", "invert": False},
        {"kind": "bos-eos", "add_bos": True},
    ],
)
def test_maps_that_are_no_step(plain: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        step_from_plain(plain)


def test_a_model_as_a_map_leaves_its_big_arrays_out() -> None:
    plain = model_plain(ir().model)
    assert plain["kind"] == "BPE"
    assert not {"merges", "ranks"} & set(plain)
    assert json.loads(json.dumps({**plain, "continuing_subword_prefix": "", "end_of_word_suffix": ""}))
