"""A text for each loss: one on which the engine gives other ids, or decodes them to another text.

Candidates come from the loss itself, from ``examples.json`` by code, and from the tokenizer's own added tokens. Only
what our reading of the body confirms is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from tokpack.findings import Finding, Severity

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

    from .compare import Comparison

__all__ = ["with_examples"]

_TRIED = 24  # texts for one loss
_TOKENS = 6  # added tokens that are tried
_AROUND_TOKENS = {
    "mtok-normalized-token": ("{upper}", "{lower}", "x{token}y"),
    "mtok-single-word": ("x{token}y",),
    "mtok-strip-token": ("a\u00a0{token}\u00a0b", "a\u3000{token}\u3000b", "a {token} b"),
    "mtok-special-overlap": ("{token}{token}", "{half}{token}"),
    "mtok-prefix-space": ("{token}a", "a{token}b", "{token} a"),
    "mtok-special-shown": ("a{token}b",),
    "mtok-piece-text": ("a{token}b",),
}


@cache
def _table() -> dict[str, list[str]]:
    text = (resources.files(__package__) / "examples.json").read_text("ascii")
    table: dict[str, list[str | tuple[str, int]]] = json.loads(text)["texts"]
    return {code: [x if isinstance(x, str) else x[0] * x[1] for x in texts] for code, texts in table.items()}


def with_examples(pair: Comparison, losses: Sequence[Finding]) -> list[Finding]:
    """``losses``, each with an example where one is found; what was given as one and is none is taken away.

    Args:
        pair: the tokenizer and the engine.
        losses: findings of the severities ``ids`` and ``text``; others stay as they are.
    """
    return [replace(loss, example=_example(pair, loss)) for loss in losses]


def _example(pair: Comparison, loss: Finding) -> str | None:
    if loss.severity is Severity.IDS:
        differs = pair.other_ids
    elif loss.severity is Severity.TEXT:
        differs = pair.other_text
    else:
        return None
    return next((text for text in _first(_candidates(pair.ir, loss), _TRIED) if differs(text)), None)


def _first(texts: Iterable[str], count: int) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if len(seen) == count:
            return
        if text and text not in seen and "\0" not in text:
            seen.add(text)
            yield text


def _candidates(ir: TokenizerIR, loss: Finding) -> Iterator[str]:
    if loss.example is not None:
        yield loss.example
    shapes = _AROUND_TOKENS.get(loss.code, ())
    for token in ir.added_tokens[:_TOKENS] if shapes else ():
        text = token.content.decode("utf-8", "replace")
        for shape in shapes:
            yield shape.format(token=text, upper=text.upper(), lower=text.lower(), half=text[: len(text) // 2])
    # ordinary texts may differ for another reason: they are for losses without texts of their own
    yield from _table().get(loss.code, () if shapes else _table()["any"])
