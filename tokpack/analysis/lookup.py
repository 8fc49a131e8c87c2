"""One key or one section of a file, by name; a wrong name is answered with the nearest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tokpack.analysis.file_layout import layout
from tokpack.analysis.screen import render
from tokpack.analysis.show import readable, shorten
from tokpack.analysis.subject import Subject
from tokpack.analysis.summary import summarize
from tokpack.errors import UsageError
from tokpack.pack.view import map_pack

__all__ = ["find_key", "find_section", "one_of", "render_key", "render_section"]

_FIRST_BYTES = 256
_ITEMS = 20  # of a list, on a screen
_LONGEST = 200


def one_of(given: Mapping[str, bool]) -> None:
    """UsageError when more than one of these options is given."""
    names = [name for name, there in given.items() if there]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} do not go together", hint="give one of them")


def _unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    names = list(known)
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    ends = [full for full in names if full.endswith((f".{name}", f"/{name}"))]
    holds = [full for full in names if name and name in full]
    near = list(dict.fromkeys([*ends[:3], *close, *holds]))
    some = f"{len(names)} names are known: {', '.join(names[:12])}"
    hint = f"did you mean {' or '.join(near[:3])}?" if near else some
    return UsageError(f"there is no {what} {name!r}", hint=hint)


def find_key(subject: Subject, name: str) -> dict[str, Any]:
    """A key of the file, or a fact of :func:`tokpack.analysis.summarize` by its path (``vocabulary.pieces``).

    Returns ``schema``, ``file``, ``key``, ``kind`` (the type in the file, or ``fact``), ``count`` and ``value``.
    Raises UsageError for a name that is neither.
    """
    entries = {entry["key"]: entry for entry in (subject.look.keys or [] if subject.look else [])}
    document: dict[str, Any] = {"schema": "tokpack.key/1", "file": subject.file, "key": name}
    if name in entries:
        entry = entries[name]
        value = entry["value"]
        if value is None and subject.look is not None and subject.look.value is not None:
            value = subject.look.value(name)
        return document | {"kind": entry["type"], "count": entry["count"], "offset": entry["offset"], "value": value}
    extras, templates = subject.about["extras"], subject.about["chat_templates"]
    if name in extras:
        typed = isinstance(extras[name], list) and len(extras[name]) == 2
        kind, value = extras[name] if typed else ("json", extras[name])
        return document | {"kind": kind, "count": _count(value), "offset": None, "value": value}
    if name.startswith("chat_templates.") and name.partition(".")[2] in templates:
        text = templates[name.partition(".")[2]]
        return document | {"kind": "string", "count": 1, "offset": None, "value": text}
    facts = summarize(subject)
    paths = dict(_paths(facts, ""))
    if name not in paths:
        raise _unknown("key", name, [*entries, *extras, *(f"chat_templates.{key}" for key in templates), *paths])
    return document | {"kind": "fact", "count": _count(paths[name]), "offset": None, "value": paths[name]}


def _count(value: object) -> int:
    return len(value) if isinstance(value, (list, tuple)) else 1


def _paths(value: object, path: str) -> Iterable[tuple[str, Any]]:
    """(dotted path, value) of everything in maps; lists are values."""
    if path:
        yield path, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}" if path else str(key))


def render_key(found: dict[str, Any], *, verbose: bool = False) -> str:
    """A text as it is but escaped line by line; a list item by item, the first ones unless ``verbose``."""
    value = found["value"]
    if isinstance(value, str):
        return "\n".join(readable(line, backslash=False) for line in value.split("\n"))
    if value is None and found["count"] > 1:
        return f"{found['kind']}, {found['count']:,} elements, not read"
    if isinstance(value, (list, tuple)):
        shown = value if verbose else value[:_ITEMS]
        lines = [_item(item, verbose=verbose) for item in shown]
        more = [f"… {len(value) - len(shown):,} more; -v shows all"] if len(shown) < len(value) else []
        return "\n".join([*lines, *more])
    return _item(value, verbose=verbose)


def _item(value: object, *, verbose: bool) -> str:
    if isinstance(value, (str, bytes)):
        text = readable(value)
    else:
        text = readable(json.dumps(value, ensure_ascii=False, default=_plain), backslash=False)
    return text if verbose else shorten(text, _LONGEST)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else str(value)


def find_section(path: str, name: str, format: str | None = None) -> dict[str, Any]:  # noqa: A002
    """A section of :func:`tokpack.analysis.layout` with its first bytes; UsageError for another name."""
    sections, total = layout(path, format)
    found = next((part for part in sections if part.name == name), None)
    if found is None:
        ends = [part for part in sections if part.name.rpartition("/")[2] == name]
        found = ends[0] if len(ends) == 1 else None
    if found is None:
        raise _unknown("section", name, [part.name for part in sections])
    data = map_pack(found.file or path)
    there = min(found.size - found.missing, _FIRST_BYTES)
    first = bytes(data[found.offset : found.offset + there])
    return {"schema": "tokpack.section/1", "path": path, **found.as_dict(total), "first_bytes": first.hex()}


def render_section(found: dict[str, Any]) -> str:
    """Figures, and a dump of the first bytes."""
    from rich.text import Text

    share = f"{found['share']:.1%} of {'both files' if found['file'] else 'the file'}"
    missing = f", {found['missing']:,} bytes missing" if found["missing"] else ""
    place = f"offset {found['offset']:,}, {found['size']:,} bytes{missing}"
    figures = f"{place}, aligned to {found['alignment']:,}, {share}"
    lines = [readable(found["name"]), f"  {figures}", *([f"  {readable(found['note'])}"] if found["note"] else [])]
    raw = bytes.fromhex(found["first_bytes"])
    for at in range(0, len(raw), 16):
        row = raw[at : at + 16]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"  {found['offset'] + at:08x}  {row.hex(' '):<47}  {text}")
    return render(*(Text(line, overflow="ellipsis", no_wrap=True) for line in lines))
