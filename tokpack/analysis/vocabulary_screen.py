"""Vocabularies on a screen: rows of pieces, and figures."""

from __future__ import annotations

from typing import Any

from tokpack.analysis.listing import Listing
from tokpack.analysis.reach import REASONS
from tokpack.analysis.screen import facts_table, render, table
from tokpack.analysis.show import readable, shorten

__all__ = ["render_rows", "render_statistics"]

_LONGEST_TEXT = 48
_LONGEST_BYTES = 24
_LONGEST_FLAGS = 30
_RUNS = 12
_SCRIPTS = 16
_BAR = 30


def render_rows(found: Listing) -> str:
    """A table, and how many pieces there are besides."""
    from rich.text import Text

    ranked = found.vocabulary.ranks is not None
    scored = found.vocabulary.scores is not None
    headers = ["id", "text", "bytes", "type", *(["rank"] if ranked else []), *(["score"] if scored else []), "flags"]
    if found.reasons:
        headers.append("why")
    rows = []
    for row in found.rows():
        text = "" if row["type"] == "hole" else f'"{row["readable"]}"'
        cells = [str(row["id"]), shorten(text, _LONGEST_TEXT), shorten(row["bytes"], _LONGEST_BYTES), row["type"]]
        if ranked:
            cells.append("" if row["rank"] is None else f"{row['rank']:,}")
        if scored:
            cells.append("" if row["score"] is None else f"{row['score']:.6g}")
        cells.append(shorten(", ".join(row["flags"]), _LONGEST_FLAGS))
        if found.reasons:
            cells.append(row["reason"])
        rows.append(cells)
    last = found.offset + len(rows)
    size = f"{found.vocabulary.size:,}"
    total = f"{size} ids" if found.matched == found.vocabulary.size else f"{found.matched:,} found, of {size} ids"
    if not found.matched:
        total = f"none of {size} ids"
    elif len(rows) < found.matched:
        shown = f"{found.offset + 1:,} to {last:,}" if rows else "none"
        total = f"{shown} of {total}; --offset and --limit show others"
    notes = [f"{name}: {REASONS[name]}" for name in REASONS if name in set(found.reasons.values())]
    if found.whole_words:
        notes.append(f"{found.whole_words:,} more are reached as whole words only: --no-merge-path shows them")
    body = [table(headers, rows, right=("id", "rank", "score"), wide=("text", "bytes", "flags"))] if rows else []
    return render(*body, *(Text(line) for line in (total, *notes)))


def render_statistics(figures: dict[str, Any]) -> str:
    """One screen."""
    from rich.text import Text

    lengths = figures["bytes"]
    missing = figures["byte_coverage"]["missing"]
    types = ", ".join(f"{count:,} {kind}" for kind, count in figures["types"].items())
    scripts = figures["scripts"]
    most = max((entry["pieces"] for entry in figures["lengths"]), default=1)
    rows: list[tuple[str, list[str]]] = [
        ("pieces", [f"{figures['pieces']:,} of {figures['size']:,} ids: {types}"]),
        (
            "bytes",
            [
                f"{lengths['total']:,} in all; shortest {lengths['shortest']:,}, mean {lengths['mean']:.2f}, "
                f"median {lengths['median']:g}, longest {lengths['longest']:,}"
            ],
        ),
        ("single bytes", [f"{256 - len(missing)} of 256{', not ' + _spans(missing) if missing else ''}"]),
        (
            "lengths",
            [
                f"{_class(entry):>9}  {entry['pieces']:>9,}  {'█' * max(1, round(entry['pieces'] / most * _BAR))}"
                for entry in figures["lengths"]
            ],
        ),
        ("scripts", [", ".join(f"{entry['script']} {entry['pieces']:,}" for entry in scripts[:_SCRIPTS])]),
        ("reserved", _reserved(figures["reserved"])),
        ("duplicates", [_groups(figures["duplicates"])]),
        *((f"same {name}", [_groups(found)]) for name, found in _near(figures)),
    ]
    if len(scripts) > _SCRIPTS:
        rows[4][1].append(f"and {len(scripts) - _SCRIPTS} more: {', '.join(e['script'] for e in scripts[_SCRIPTS:])}")
    return render(Text(readable(str(figures["file"])), style="bold"), facts_table(rows, fold=True))


_NEAR = {"bytes": "bytes", "normalization": "NFC", "case": "but for case", "space": "but for space"}


def _near(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(_NEAR[name], found) for name, found in figures["near_duplicates"].items()]


def _class(entry: dict[str, int]) -> str:
    return str(entry["from"]) if entry["from"] == entry["to"] else f"{entry['from']}-{entry['to']}"


def _spans(values: list[int]) -> str:
    """Bytes as ranges: ``0x00-0x1f, 0x7f``."""
    spans: list[list[int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1][1] = value
        else:
            spans.append([value, value])
    return ", ".join(f"0x{a:02x}" if a == b else f"0x{a:02x}-0x{b:02x}" for a, b in spans)


def _reserved(runs: list[dict[str, Any]]) -> list[str]:
    lines = []
    for run in sorted(runs, key=lambda run: run["first"] - run["last"])[:_RUNS]:
        count = run["last"] - run["first"] + 1
        ids = f"{run['first']}" if count == 1 else f"{run['first']}-{run['last']}"
        lines.append(f"{ids}: {count:,} {run['kind']} {run['example']}".rstrip())
    if len(runs) > _RUNS:
        lines.append(f"and {len(runs) - _RUNS:,} more runs")
    return lines or ["none"]


def _groups(found: dict[str, Any]) -> str:
    if not found["groups"]:
        return "none"
    example = " = ".join(f'{entry["id"]} "{entry["readable"]}"' for entry in found["examples"][0][:4])
    groups = "1 group" if found["groups"] == 1 else f"{found['groups']:,} groups"
    return f"{groups} of {found['pieces']:,} pieces, such as {shorten(example, 60)}"
