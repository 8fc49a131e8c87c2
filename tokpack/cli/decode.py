"""``tokpack decode``."""

from __future__ import annotations

import re
from typing import Any

import click

from tokpack.api import load
from tokpack.cli.common import FILE, emit_json, read_data, source_options
from tokpack.errors import UsageError

__all__ = ["command"]

_SEPARATORS = re.compile(rb"[\s,\[\]]+")


def _parse(data: bytes) -> list[int]:
    """Ids separated by spaces, commas or lines; a JSON list fits, too."""
    ids = []
    for part in _SEPARATORS.split(data):
        if not part:
            continue
        if not re.fullmatch(rb"[0-9]{1,10}", part):
            shown = part[:20].decode("utf-8", "replace")
            raise UsageError(f"{shown!r} is not an id", hint="ids are numbers separated by spaces or commas")
        ids.append(int(part))
    return ids


@click.command("decode", short_help="Ids to text.")
@click.argument("file", type=FILE)
@click.argument("ids", nargs=-1, metavar="[ID]... | -")
@click.option("--file", "ids_file", type=FILE, metavar="FILE", help="Take the ids from this file.")
@click.option("--skip-special/--no-skip-special", default=True, help="Leave control tokens out (default), or not.")
@click.option("-n", "--no-newline", is_flag=True, help="Print the text alone, without a line end.")
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print the text as JSON.")
def command(
    file: str,
    ids: tuple[str, ...],
    ids_file: str | None,
    skip_special: bool,
    no_newline: bool,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Decode ids with the tokenizer in FILE and print the text.

    \b
    tokpack decode out.mtok 9707 1879
    """
    inline = " ".join(ids) if ids and ids != ("-",) else None
    data = read_data(inline, ids_file, "-" if ids == ("-",) else None, "the ids")
    numbers = _parse(data.encode() if isinstance(data, str) else data)
    tokenizer = load(file, source_format, allow, **options)
    raw = tokenizer.decode_bytes(numbers, skip_special)
    if as_json:
        text = raw.decode("utf-8", "replace")
        emit_json({"schema": "tokpack.decode/1", "text": text, "bytes": raw.hex()})
    else:
        click.echo(raw, nl=not no_newline)
