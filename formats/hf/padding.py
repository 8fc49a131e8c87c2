"""``truncation`` and ``padding`` of tokenizer.json: checked, then carried as they are (tokenizers/src/utils/)."""

from __future__ import annotations

from typing import Any

from tokpack.errors import FormatError, Location
from tokpack.ir.steps import Template, TemplateItem

from .getters import as_object, as_unsigned, wrong
from .notes import Notes

__all__ = ["check_padding", "check_truncation"]

_SIDES = {"Left": "Left", "Right": "Right"}
_STRATEGIES = {name: name for name in ("LongestFirst", "OnlyFirst", "OnlySecond")}


def check_truncation(value: Any, post_processor: Template | None, notes: Notes) -> None:
    """``{direction, max_length, strategy, stride}``; only ``direction`` may be absent."""
    if value is None:
        return
    node = as_object(value, "truncation")
    node.choice("direction", _SIDES, "Right")
    node.choice("strategy", _STRATEGIES)
    node.unsigned("stride", 64)
    longest = node.unsigned("max_length", 64)
    added = max((_added(items) for items in _templates(post_processor)), default=0)
    if longest < added:
        message = f"max_length {longest} is less than the {added} special ids that are added: tokenizers aborts"
        notes.warn("hf-truncation-short", message, "truncation.max_length")


def _templates(post_processor: Template | None) -> tuple[tuple[TemplateItem, ...], ...]:
    return () if post_processor is None else (post_processor.single, post_processor.pair)


def _added(items: tuple[TemplateItem, ...]) -> int:
    return sum(len(item.ids) for item in items)


def check_padding(value: Any, notes: Notes) -> None:
    """``{strategy, direction, pad_to_multiple_of, pad_id, pad_type_id, pad_token}``."""
    if value is None:
        return
    node = as_object(value, "padding")
    strategy = node.required("strategy")
    path = node.at("strategy")
    if isinstance(strategy, dict) and list(strategy) == ["Fixed"]:
        as_unsigned(strategy["Fixed"], f"{path}.Fixed", 64)
    elif not isinstance(strategy, (str, dict)):
        raise wrong(strategy, "string or map", path)
    elif strategy != "BatchLongest":
        what = 'unknown strategy, expected "BatchLongest" or {"Fixed": length}'
        raise FormatError(what, location=Location(None, path))
    node.choice("direction", _SIDES)
    node.unsigned_or_none("pad_to_multiple_of", 64)
    for key in ("pad_id", "pad_type_id"):
        node.unsigned(key)
    node.string("pad_token")
