"""An explanation as one JSON document; ``schemas/explain.json`` describes it."""

from __future__ import annotations

from typing import Any

from tokpack.analysis.explanation.trace import Action, Choice, Explanation, Match, Merge, Part, Step, Token, Word

__all__ = ["SCHEMA", "as_document"]

SCHEMA = "tokpack.explain/1"


def as_document(found: Explanation) -> dict[str, Any]:
    """Plain data with a fixed set of keys. A text is a string, or ``{"bytes": hex}`` if it is not UTF-8."""
    return {
        "schema": SCHEMA,
        "file": found.file,
        "reference": found.reference,
        "rules": found.rules,
        "text": _text(found.text),
        "add_special": found.add_special,
        "parse_special": found.parse_special,
        "parts": [_part(part) for part in found.parts],
        "post": {
            "rule": found.post.rule,
            "before": [_token(token) for token in found.post.before],
            "after": [_token(token) for token in found.post.after],
        },
        "notes": list(found.notes),
        "ids": found.ids,
        "pieces": [
            {"id": p.id, "text": p.text, "bytes": p.bytes.hex(), "start": p.start, "end": p.end} for p in found.tokens
        ],
    }


def _text(raw: bytes) -> str | dict[str, str]:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": raw.hex()}


def _token(token: Token) -> dict[str, Any]:
    return {"id": token.id, "text": _text(token.text)}


def _part(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "text": _text(part.text),
        "start": part.start,
        "end": part.end,
        "token": None if part.token is None else _token(part.token),
        "steps": [_step(step) for step in part.steps],
        "parts": [_part(inner) for inner in part.parts],
        "words": [_word(word) for word in part.words],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "stage": step.stage,
        "name": step.name,
        "detail": step.detail,
        "changed": step.changed,
        "texts": [_text(text) for text in step.texts],
    }


def _word(word: Word) -> dict[str, Any]:
    return {
        "text": _text(word.text),
        "method": word.method,
        "symbols": [_text(symbol) for symbol in word.symbols],
        "actions": [_action(action) for action in word.actions],
        "tokens": [_token(token) for token in word.tokens],
        "note": word.note,
    }


def _action(action: Action) -> dict[str, Any]:
    place = {"start": action.start, "end": action.end}
    if isinstance(action, Merge):
        parts = {"left": _text(action.left), "right": _text(action.right), "result": _text(action.result)}
        return {"kind": "merge", "rank": action.rank, "score": _number(action.score), **parts, **place}
    if isinstance(action, Match):
        shorter = [_text(text) for text in action.shorter]
        return {"kind": "match", "id": action.id, "text": _text(action.text), **place, "shorter": shorter}
    assert isinstance(action, Choice)
    rival = action.rival
    return {
        "kind": "choice",
        "id": action.id,
        "text": _text(action.text),
        **place,
        "value": _number(action.value),
        "total": _number(action.total),
        "rival": rival and {"id": rival[0], "text": _text(rival[1]), "total": _number(rival[2])},
    }


def _number(value: float | None) -> float | str | None:
    """JSON has no infinities: they are strings."""
    if value is None or value - value == 0:
        return value
    return str(value)
