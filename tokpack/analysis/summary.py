"""What a tokenizer is, at a glance: the facts behind ``tokpack inspect``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from tokpack.analysis.show import readable, shorten
from tokpack.findings import Finding
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView

__all__ = ["SCHEMA", "render_summary", "summarize"]

SCHEMA = "tokpack.inspect/1"
_TYPES = ("undefined", "normal", "unknown", "control", "user-defined", "unused", "byte")
_WIDTH = 100


def summarize(view: PackView, *, packed: bool) -> dict[str, Any]:
    """All facts as one JSON-ready document with a fixed set of keys.

    Args:
        view: index of the tokenizer.
        packed: whether the index comes from the file itself (else it was made from another format just now).
    """
    pieces = PieceTable(view)
    meta, about = view.meta, view.about()

    def text(token: int) -> str:
        return pieces.text(token).decode("utf-8", "replace")

    return {
        "schema": SCHEMA,
        "file": view.file,
        "size": len(view.data) if packed else None,
        "format": _format(view, packed, about),
        "source": about["source"],
        "reference": meta["reference"],
        "rules": meta["rules"],
        "vocabulary": _vocabulary(view, pieces),
        "model": {**meta["model"], "merges": len(view.array("merge.key"))},
        "normalizer": meta["normalizer"],
        "pre_tokenizer": meta["pre_tokenizer"],
        "decoder": meta["decoder"],
        "post_processor": meta["post_processor"],
        "template": _single(meta["post_processor"], text),
        "special_ids": [
            {"role": role, "id": token, "text": text(token), "origin": about["origins"].get(role)}
            for role, token in meta["specials"].items()
        ],
        "end_of_generation": [{"id": token, "text": text(token)} for token in meta["eog"]],
        "added_tokens": len(view.array("added.id")),
        "chat_templates": [_template(name, text) for name, text in about["chat_templates"].items()],
        "extras": {key: value[0] for key, value in about["extras"].items()},
        "findings": [finding.as_dict() for finding in view.findings()],
    }


def _format(view: PackView, packed: bool, about: dict[str, Any]) -> dict[str, Any]:
    if not packed:
        return {"name": about["source"]["format"], "body": None, "index": None}
    footer = view.footer
    return {
        "name": "mtok" if footer.body_length else "tokpack",
        "body": footer.body_length,
        "index": footer.total_length - footer.index_offset,
    }


def _vocabulary(view: PackView, pieces: PieceTable) -> dict[str, Any]:
    counts = Counter(bytes(pieces.types))
    named = {_TYPES[number] if number < len(_TYPES) else str(number): n for number, n in sorted(counts.items())}
    return {
        "pieces": pieces.size,
        "types": named,
        "alphabet": view.meta["alphabet"],
        "byte_fallback": view.meta["byte_fallback"],
        "scores": bool(len(pieces.scores)),
    }


def _single(post: dict[str, Any] | None, text: Callable[[int], str]) -> str | None:
    """The template for one sequence, such as ``[CLS] $A [SEP]``; None when the post-processor is not a template."""
    if post is None or post["kind"] != "template":
        return None
    parts = (
        f"${item['sequence']}" if item["sequence"] else " ".join(map(text, item["ids"])) for item in post["single"]
    )
    return " ".join(parts)


def _template(name: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "characters": len(text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "first_line": text.split("\n", 1)[0],
    }


def render_summary(facts: dict[str, Any], *, verbose: bool = False) -> str:
    """The document of :func:`summarize` as one screen of text; long lines are cut unless ``verbose``."""
    lines = [_title(facts)]

    def row(name: str, *values: str) -> None:
        for index, value in enumerate(values):
            lines.append(f"  {name if not index else '':<15} {value if verbose else shorten(value, _WIDTH)}")

    source = facts["source"]
    details = [f"{key} {readable(str(value))}" for key, value in source["facts"].items() if value is not False]
    row("source", f"{source['format']}: {', '.join(details)}")
    row("ids as", f"{facts['reference']} ({facts['rules']})")
    vocabulary = facts["vocabulary"]
    types = ", ".join(f"{n:,} {name}" for name, n in vocabulary["types"].items())
    row("vocabulary", f"{vocabulary['pieces']:,} pieces, {vocabulary['alphabet']}: {types}")
    model = facts["model"]
    flags = [name.replace("_", " ") for name, value in model.items() if value is True]
    merges = [f"{model['merges']:,} merges"] if model["merges"] else []
    row("model", ", ".join([model["kind"], *merges, *flags]))
    if facts["normalizer"]:
        row("normalizer", *(_step(step) for step in facts["normalizer"]))
    row("pre-tokenizer", *(_step(step) for step in facts["pre_tokenizer"] or [{"kind": "none"}]))
    row("adds", _adds(facts["post_processor"], facts["template"]))
    row("special ids", *(_special(entry) for entry in facts["special_ids"]))
    ends = (f"{entry['id']} {readable(entry['text'])}" for entry in facts["end_of_generation"])
    row("ends generation", ", ".join(ends) or "none")
    row("added tokens", f"{facts['added_tokens']:,} cut out of the text before splitting")
    row("chat templates", *(map(_shown_template, facts["chat_templates"])))
    if facts["extras"]:
        row("other keys", ", ".join(f"{readable(key)} ({kind})" for key, kind in facts["extras"].items()))
    row("findings", *(_finding(data, verbose) for data in facts["findings"]))
    return "\n".join(lines)


def _finding(data: dict[str, Any], verbose: bool) -> str:
    finding = Finding.from_dict(data)
    text = str(finding) if verbose else f"{finding.severity} [{finding.code}] {finding.message}"
    return readable(text, backslash=False)


def _title(facts: dict[str, Any]) -> str:
    shape = facts["format"]
    name = readable(str(facts["file"]))
    if shape["index"] is None:
        return f"{name}: {shape['name']}"
    parts = f"body {shape['body']:,} + index {shape['index']:,} bytes" if shape["body"] else f"{facts['size']:,} bytes"
    return f"{name}: {shape['name']}, {parts}"


def _step(step: dict[str, Any]) -> str:
    name = step.get("scanner") or step.get("dialect") or ""
    detail = step.get("pattern", "")
    if step["kind"] == "replace":
        detail = f"{detail!r} -> {step['content']!r}"
    return " ".join(
        part for part in (step["kind"], f"[{name}]" if name else "", readable(str(detail), backslash=False)) if part
    )


def _adds(post: dict[str, Any] | None, template: str | None) -> str:
    if template is not None:
        return readable(template)
    rule = None if post is None else post.get("rule")
    if rule == "cls-sep":
        return "CLS before and SEP behind, whatever the flags say"
    if rule == "never":
        return "nothing"
    flags = {} if post is None else {k[4:].upper(): v for k, v in post.items() if k.startswith("add_")}
    return ", ".join(f"{name} {'yes' if value else 'no'}" for name, value in flags.items()) or "nothing"


def _special(entry: dict[str, Any]) -> str:
    return f"{entry['role']} {entry['id']} {readable(entry['text'])}  ({readable(str(entry['origin']))})"


def _shown_template(entry: dict[str, Any]) -> str:
    first = shorten(readable(entry["first_line"]), 40)
    return f"{readable(entry['name'])}: {entry['characters']:,} characters, sha256 {entry['sha256'][:12]}, {first}"
