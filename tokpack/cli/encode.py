"""``tokpack encode``."""

from __future__ import annotations

from typing import Any

import click

from tokpack.api import load
from tokpack.cli.common import FILE, emit_json, read_data, source_options

__all__ = ["command"]


@click.command("encode", short_help="Text to ids.")
@click.argument("file", type=FILE)
@click.argument("dash", metavar="[-]", required=False)
@click.option("--text", help="The text.")
@click.option("--file", "text_file", type=FILE, metavar="FILE", help="Take the text from this file, as it is.")
@click.option("--add-special/--no-add-special", default=True, help="Add what the tokenizer says, such as BOS.")
@click.option("--parse-special/--no-parse-special", default=True, help="Read control tokens in the text, or as text.")
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print ids and pieces as JSON.")
def command(
    file: str,
    dash: str | None,
    text: str | None,
    text_file: str | None,
    add_special: bool,
    parse_special: bool,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Encode a text with the tokenizer in FILE and print the ids, separated by spaces.

    \b
    tokpack encode out.mtok --text "Hello world"
    """
    data = read_data(text, text_file, dash, "the text")
    tokenizer = load(file, source_format, allow, **options)
    if not as_json:
        click.echo(" ".join(map(str, tokenizer.encode(data, add_special, parse_special))))
        return
    pieces = tokenizer.pieces(data, add_special, parse_special)
    emit_json(
        {
            "schema": "tokpack.encode/1",
            "reference": tokenizer.reference,
            "ids": [piece.id for piece in pieces],
            "pieces": [
                {"id": p.id, "text": p.text, "bytes": p.bytes.hex(), "start": p.start, "end": p.end} for p in pieces
            ],
        }
    )
