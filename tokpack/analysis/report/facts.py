"""The facts of :func:`tokpack.analysis.summary.summarize` as names and values, escaped for the eye."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tokpack.analysis.show import readable

__all__ = ["fact_rows"]

_LEFT_OUT = ("kind", "charsmap", "table", "kmers")


def fact_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """(name, values) pairs; findings and special ids have sections of their own."""
    yield "file", [readable(str(facts["file"]))]
    yield "size", [f"{facts['size']:,} bytes" if facts["size"] is not None else "a folder"]
    source = facts["source"]
    yield "source", [source["format"], *map(_named, _plain(source["facts"]))]
    yield "ids as", [f"{facts['reference']} ({readable(str(facts['rules']))})"]
    vocabulary = facts["vocabulary"]
    types = ", ".join(f"{count:,} {readable(str(name))}" for name, count in vocabulary["types"].items())
    yield "vocabulary", [f"{vocabulary['pieces']:,} pieces, {readable(str(vocabulary['alphabet']))}: {types}"]
    yield "model", [_step(facts["model"])]
    for name, key in (("normalizer", "normalizer"), ("pre-tokenizer", "pre_tokenizer"), ("decoder", "decoder")):
        yield name, [_step(step) for step in facts[key]]
    template = facts["template"]
    yield "post-processor", [readable(template) if template else _step(facts["post_processor"] or {})]
    yield "added tokens", [f"{facts['added_tokens']:,} are cut out of a text before anything else"]
    yield (
        "chat templates",
        [f"{readable(str(entry['name']))}: {entry['characters']:,} characters" for entry in facts["chat_templates"]],
    )
    if facts["extras"]:
        yield "other keys", [", ".join(map(readable, facts["extras"]))]


def _plain(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if name not in _LEFT_OUT and value not in (None, False, "", b"", [], ()):
            shown = value if isinstance(value, (str, bytes)) else str(value)
            yield readable(str(name).replace("_", " ")), readable(shown, backslash=False)


def _named(pair: tuple[str, str]) -> str:
    return pair[0] if pair[1] == "True" else " ".join(pair)


def _step(step: Mapping[str, Any]) -> str:
    """A step with its parameters."""
    if not step:
        return "none"
    details = ", ".join(map(_named, _plain(step)))
    return readable(str(step.get("kind", ""))) + (f" ({details})" if details else "")
