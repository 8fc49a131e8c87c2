"""JSON values that are carried and not interpreted."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["as_extra"]

_DEPTH = 16  # levels that every reader of a pack unpacks


def as_extra(value: Any) -> list[Any]:
    """``["json", value]``, or ``["json-text", text]`` for what a pack's header cannot hold as a value.

    That is integers beyond 64 bits (``model_max_length`` often is 10**30) and deep nesting.
    """
    return ["json", value] if _fits(value) else ["json-text", json.dumps(value)]


def _fits(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper += item.values()
                deeper += item.keys()
            elif isinstance(item, list):
                deeper += item
            elif isinstance(item, int) and not -(1 << 63) <= item < 1 << 64:
                return False
        if not deeper:
            return True
        level = deeper
    return False
