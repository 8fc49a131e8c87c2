"""What a tokenizer is, at a glance: the facts behind ``tokpack inspect``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tokpack.analysis.subject import Subject
from tokpack.runtime.errors import meta_errors

__all__ = ["SCHEMA", "TYPES", "summarize", "type_name"]

SCHEMA = "tokpack.inspect/1"
_NESTING = 64
TYPES = ("undefined", "normal", "unknown", "control", "user-defined", "unused", "byte")


def type_name(number: int) -> str:
    """The name of a piece type of the source."""
    return TYPES[number] if number < len(TYPES) else str(number)


def summarize(subject: Subject) -> dict[str, Any]:
    """All facts as one JSON-ready document with a fixed set of keys (``schemas/inspect.json``).

    What could not be read, in a file that is cut off, is None or empty. FormatError for a pack with a damaged index.
    """
    with meta_errors(subject.file):
        facts: dict[str, Any] = _jsonable(_facts(subject))
        return facts


def _jsonable(value: Any, depth: int = 0) -> Any:
    """Maps with str keys, lists, and what JSON can hold (bytes are left to the writer); a pack may hold anything."""
    if depth > _NESTING:
        raise ValueError("maps are nested too deeply")
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool, bytes)) else str(value)


def _facts(subject: Subject) -> dict[str, Any]:
    meta, about = subject.meta, subject.about
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "file": subject.file,
        "size": subject.size,
        "format": subject.format,
        "complete": meta is not None,
        "source": about["source"],
    }
    facts |= _tokenizer(subject) if meta is not None else dict.fromkeys(_UNKNOWN) | dict(_EMPTY)
    return facts | {
        "chat_templates": [_template(name, text) for name, text in about["chat_templates"].items()],
        "extras": {key: value[0] if isinstance(value, list) else "json" for key, value in about["extras"].items()},
        "keys": None if subject.look is None else subject.look.keys,
        "findings": [finding.as_dict() for finding in subject.findings],
    }


_UNKNOWN = ("reference", "rules", "vocabulary", "model", "post_processor", "template", "added_tokens")
_EMPTY: dict[str, list[Any]] = {
    name: [] for name in ("normalizer", "pre_tokenizer", "decoder", "special_ids", "end_of_generation")
}


def _tokenizer(subject: Subject) -> dict[str, Any]:
    meta = subject.meta
    assert meta is not None
    origins, size = subject.about["origins"], len(subject.types)

    def text(token: int) -> str | None:
        return subject.text(token).decode("utf-8", "replace") if 0 <= token < size else None

    return {
        "reference": meta["reference"],
        "rules": meta["rules"],
        "vocabulary": _vocabulary(subject),
        "model": {**meta["model"], "merges": subject.merges},
        "normalizer": meta["normalizer"],
        "pre_tokenizer": meta["pre_tokenizer"],
        "decoder": meta["decoder"],
        "post_processor": meta["post_processor"],
        "template": _single(meta["post_processor"], text),
        "special_ids": [
            {"role": role, "id": token, "text": text(token), "origin": origins.get(role)}
            for role, token in meta["specials"].items()
        ],
        "end_of_generation": [{"id": token, "text": text(token)} for token in meta["eog"]],
        "added_tokens": subject.added,
    }


def _vocabulary(subject: Subject) -> dict[str, Any]:
    meta = subject.meta
    assert meta is not None
    return {
        "pieces": len(subject.types),
        "types": {type_name(number): n for number, n in sorted(Counter(subject.types).items())},
        "alphabet": meta["alphabet"],
        "byte_fallback": meta["byte_fallback"],
        "scores": subject.scores,
    }


def _single(post: dict[str, Any] | None, text: Callable[[int], str | None]) -> str | None:
    """The template for one sequence, such as ``[CLS] $A [SEP]``; None when the post-processor is not a template."""
    if post is None or post["kind"] != "template":
        return None
    parts = []
    for item in post["single"]:
        parts += [f"${item['sequence']}"] if item["sequence"] else [str(text(token)) for token in item["ids"]]
    return " ".join(parts)


def _template(name: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "characters": len(text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "first_line": text.split("\n", 1)[0],
    }
