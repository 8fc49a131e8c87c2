"""``tokpack vocab``."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click

from tokpack.cli.common import FILE, emit_json, source_options

if TYPE_CHECKING:
    from tokpack.analysis.listing import Listing

__all__ = ["command"]

_SHOWN = 50  # rows of a table, unless --limit says otherwise
_COUNT = click.IntRange(min=0)


@click.command("vocab", short_help="List, search and check the pieces of a vocabulary.")
@click.argument("file", type=FILE)
@source_options
@click.option("--search", metavar="TEXT", help="Pieces that hold TEXT as a person reads it.")
@click.option("--regex", metavar="REGEX", help="Pieces in whose text REGEX is found.")
@click.option("--bytes", "digits", metavar="HEX", help="Pieces that hold these bytes, such as e282ac.")
@click.option("--type", "kind", metavar="NAME", help="Pieces of a type: normal, control …; or hole.")
@click.option("--range", "span", metavar="A-B", help="Ids from A to B.")
@click.option("--script", metavar="NAME", help="Pieces with a character of a script: Han …")
@click.option("--duplicates", is_flag=True, help="Pieces whose text another id has, too.")
@click.option("--unused", is_flag=True, help="Unused pieces, by their type or name.")
@click.option("--unreachable", is_flag=True, help="Pieces that no text is encoded to (*).")
@click.option("--no-merge-path", is_flag=True, help="Pieces that merging their text does not give.")
@click.option("--no-roundtrip", is_flag=True, help="encode(decode(ID)) is not [ID] (*).")
@click.option("--stats", is_flag=True, help="The vocabulary in figures.")
@click.option("--limit", type=_COUNT, metavar="N", help=f"At most N rows; a table shows {_SHOWN}.")
@click.option("--offset", type=_COUNT, default=0, metavar="N", help="Leave out the first N rows.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    file: str,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    stats: bool,
    limit: int | None,
    offset: int,
    as_csv: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """List the pieces of FILE: text, bytes, type, score or rank. Filters combine.

    \b
    tokpack vocab model.gguf --search " the" --limit 10
    tokpack vocab model.gguf --unreachable --csv

    (*) Unreachable: the model, given a piece's own text as one word, does not answer with its id. Control pieces and
    holes are not counted. Round trip: decoding shows special tokens; encoding reads them and adds none.
    """
    from tokpack.analysis import open_vocabulary, statistics
    from tokpack.analysis.listing import listing
    from tokpack.analysis.lookup import one_of
    from tokpack.analysis.vocabulary_screen import render_rows, render_statistics

    one_of({"--json": as_json, "--csv": as_csv})
    one_of({"--stats": stats, "--csv": as_csv})
    one_of({"--stats": stats, "a filter": any(value not in (None, False) for value in filters.values())})
    vocabulary = open_vocabulary(file, source_format, **options)
    if stats:
        figures = statistics(vocabulary)
        if as_json:
            emit_json(figures)
        else:
            click.echo(render_statistics(figures))
        return
    if limit is None and not (as_json or as_csv):
        limit = _SHOWN
    found = listing(vocabulary, filters, offset, limit)
    if as_json:
        emit_json(found.as_dict())
    elif as_csv:
        click.echo(_csv(found), nl=False)
    else:
        click.echo(render_rows(found))


def _csv(found: Listing) -> str:
    """Texts are escaped, so that a row is a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = ["id", "text", "bytes", "type", "score", "rank", "flags", *(["reason"] if found.reasons else [])]
    writer.writerow(columns)
    for row in found.rows():
        row |= {"text": row["readable"], "flags": " ".join(row["flags"])}
        writer.writerow([row[name] for name in columns])
    return out.getvalue()
