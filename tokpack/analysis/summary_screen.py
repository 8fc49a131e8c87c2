"""The document of :func:`tokpack.analysis.summary.summarize` as one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tokpack.analysis.screen import facts_table, render, table
from tokpack.analysis.sections import Section
from tokpack.analysis.show import readable, shorten
from tokpack.findings import Finding
from tokpack.runtime.errors import meta_errors

__all__ = ["render_layout", "render_summary"]

_LONGEST = 4096  # characters of a value, before the width of the screen cuts it
_NAME = 40  # characters of a section's name
_REFUSED = "refuse ["
_KEYS = 24  # of a file whose tokenizer cannot be read


def render_summary(facts: dict[str, Any], *, verbose: bool = False) -> str:
    """One screen of text; long lines are cut unless ``verbose``."""
    with meta_errors(facts["file"]):
        rows = _rows(facts, verbose=verbose) if facts["complete"] else _partial_rows(facts, verbose=verbose)
        shown = [(name, [shorten(value, _LONGEST) for value in values]) for name, values in rows]
    return render(_title(facts), facts_table(shown, fold=verbose, whole=lambda value: value.startswith(_REFUSED)))


def _title(facts: dict[str, Any]) -> Any:
    from rich.text import Text

    shape = facts["format"]
    parts = f"{facts['size']:,} bytes" if facts["size"] is not None else "a folder"
    if shape["body"]:
        parts = f"body {shape['body']:,} + index {shape['index']:,} bytes"
    return Text(f"{readable(str(facts['file']))}: {shape['name']}, {parts}", style="bold")


def _source(facts: dict[str, Any]) -> str:
    source = facts["source"]
    details = [f"{key} {readable(str(value))}" for key, value in source["facts"].items() if value is not False]
    return f"{source['format']}: {', '.join(details)}"


def _partial_rows(facts: dict[str, Any], *, verbose: bool) -> Iterator[tuple[str, Sequence[str]]]:
    yield "source", [_source(facts)]
    yield "tokenizer", ["incomplete: it cannot be read"]
    keys = facts["keys"] or []
    shown = keys if verbose else keys[-_KEYS:]
    more = [f"… {len(keys) - len(shown)} before"] if len(shown) < len(keys) else []
    yield "keys", more + [_key(entry) for entry in shown]
    yield "findings", [_finding(data, verbose=verbose) for data in facts["findings"]]


def _key(entry: dict[str, Any]) -> str:
    value = entry["value"]
    shown = f"= {readable(value if isinstance(value, str) else str(value))}" if value is not None else ""
    count = f", {entry['count']:,} elements" if entry["type"].startswith("array") else ""
    return f"{readable(entry['key'])} ({entry['type']}{count}) {shown}".rstrip()


def _rows(facts: dict[str, Any], *, verbose: bool) -> Iterator[tuple[str, Sequence[str]]]:
    yield "source", [_source(facts)]
    yield "ids as", [f"{facts['reference']} ({facts['rules']})"]
    vocabulary = facts["vocabulary"]
    types = ", ".join(f"{n:,} {name}" for name, n in vocabulary["types"].items())
    yield "vocabulary", [f"{vocabulary['pieces']:,} pieces, {vocabulary['alphabet']}: {types}"]
    model = facts["model"]
    flags = [name.replace("_", " ") for name, value in model.items() if value is True]
    merges = [f"{model['merges']:,} merges"] if model["merges"] else []
    yield "model", [", ".join([model["kind"], *merges, *flags])]
    if facts["normalizer"]:
        yield "normalizer", [_step(step) for step in facts["normalizer"]]
    yield "pre-tokenizer", [_step(step) for step in facts["pre_tokenizer"] or [{"kind": "none"}]]
    yield "adds", [_adds(facts["post_processor"], facts["template"])]
    yield "special ids", [_special(entry) for entry in facts["special_ids"]]
    ends = (f"{entry['id']} {readable(str(entry['text']))}" for entry in facts["end_of_generation"])
    yield "ends generation", [", ".join(ends) or "none"]
    yield "added tokens", [f"{facts['added_tokens']:,} cut out of the text before splitting"]
    yield "chat templates", [_template(entry) for entry in facts["chat_templates"]]
    if facts["extras"]:
        yield "other keys", [", ".join(f"{readable(key)} ({kind})" for key, kind in facts["extras"].items())]
    yield "findings", [_finding(data, verbose=verbose) for data in facts["findings"]]


def _finding(data: dict[str, Any], *, verbose: bool) -> str:
    finding = Finding.from_dict(data)
    text = str(finding) if verbose else f"{finding.severity} [{finding.code}] {finding.message}"
    return readable(text, backslash=False)


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


def _template(entry: dict[str, Any]) -> str:
    first = shorten(readable(entry["first_line"]), 40)
    return f"{readable(entry['name'])}: {entry['characters']:,} characters, sha256 {entry['sha256'][:12]}, {first}"


def render_layout(sections: Sequence[Section], total: int) -> str:
    """A table of sections; parts of a section are indented below it."""
    rows = []
    for section in sections:
        facts = section.as_dict(total)
        indent = "  " if section.parent is not None else ""
        short = section.name if section.parent is None else section.name[len(section.parent) + 1 :]
        note = section.note + (f" ({section.missing:,} bytes missing)" if section.missing else "")
        share = f"{float(str(facts['share'])):.1%}"
        places = (f"{section.offset:,}", f"{section.size:,}", f"{facts['alignment']:,}", share)
        rows.append((indent + shorten(readable(short), _NAME), *places, readable(note)))
    headers = ("section", "offset", "size", "aligned", "share", "holds")
    return render(table(headers, rows, right=headers[1:5], wide=("holds",)))
