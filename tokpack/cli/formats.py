"""``tokpack formats``."""

from __future__ import annotations

import click

from tokpack import formats
from tokpack.cli.common import emit_json

__all__ = ["command"]


@click.command("formats", short_help="List the formats that are read and written.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def command(as_json: bool) -> None:
    """List every known format: whether it is read and written, and its file endings.

    \b
    tokpack formats
    """
    entries = list(formats.all_formats().values())
    if as_json:
        rows = [
            {"name": e.name, "title": e.title, "reads": e.reads, "writes": e.writes, "endings": list(e.suffixes)}
            for e in entries
        ]
        emit_json({"schema": "tokpack.formats/1", "formats": rows})
        return
    for e in entries:
        marks = f"{'read' if e.reads else '-':<5}{'write' if e.writes else '-':<6}"
        click.echo(f"{e.name:<15}{marks}{' '.join(e.suffixes) or '-':<10}{e.title}")
