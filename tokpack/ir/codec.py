"""Step and model dataclasses ↔ plain maps, as a pack's meta section stores them."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

from tokpack.ir import steps
from tokpack.ir.model import Model

__all__ = ["check_types", "step_from_plain", "to_plain"]


def to_plain(part: Any, *, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """``{"kind": …, field: value, …}``; enums become their values, nested steps maps, tuples lists."""
    plain: dict[str, Any] = {"kind": part.kind}
    for field in fields(part):
        if field.name not in skip:
            plain[field.name] = _value(getattr(part, field.name))
    return plain


def _value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if hasattr(value, "kind"):
        return to_plain(value)
    return value


_KINDS = {cls.kind: cls for cls in vars(steps).values() if isinstance(cls, type) and hasattr(cls, "kind")}
_ENUMS = {"Dialect": steps.Dialect, "Behavior": steps.Behavior}
_PLAIN: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "str": (str,),
    "bytes": (bytes,),
    "int": (int,),
    "float": (int, float),
    "tuple[int, ...]": (tuple,),
}
_PLAIN |= {f"{name} | None": (*kinds, type(None)) for name, kinds in _PLAIN.items()}


def step_from_plain(plain: dict[str, Any]) -> Any:
    """The inverse of :func:`to_plain` for steps; raises KeyError, TypeError or ValueError on anything else."""
    cls = _KINDS[plain["kind"]]
    values = {}
    for field in fields(cls):
        value = plain[field.name]
        if field.type in _ENUMS:
            value = _ENUMS[str(field.type)](value)
        elif isinstance(value, list):
            value = tuple(
                step_from_plain(item) if isinstance(item, dict) else tuple(item) if isinstance(item, list) else item
                for item in value
            )
        values[field.name] = value
    return check_types(cls(**values))


def check_types(part: Any) -> Any:
    """A dataclass itself; TypeError unless its plain fields are what they are declared to be."""
    for field in fields(part):
        value, declared = getattr(part, field.name), str(field.type)
        kinds = _PLAIN.get(declared)
        if kinds is None:
            continue
        fits = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
        if isinstance(value, tuple):
            fits = fits and all(isinstance(item, int) for item in value)
        if not fits:
            raise TypeError(f"{field.name} of {type(part).__name__} is a {type(value).__name__}, not {declared}")
    return part


def model_plain(model: Model) -> dict[str, Any]:
    """Parameters of a model without its big arrays."""
    return to_plain(model, skip=("merges", "ranks"))
