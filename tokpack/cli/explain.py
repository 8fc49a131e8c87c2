"""``tokpack explain``."""

from __future__ import annotations

from typing import Any

import click

from tokpack.analysis.explanation import as_document, explain
from tokpack.analysis.json_text import json_text
from tokpack.api import load
from tokpack.cli.common import FILE, read_data, source_options

__all__ = ["command"]


@click.command("explain", short_help="Show how a text becomes ids.")
@click.argument("file", type=FILE)
@click.argument("dash", metavar="[-]", required=False)
@click.option("--text", help="The text.")
@click.option("--file", "text_file", type=FILE, metavar="FILE", help="Take the text from this file, byte for byte.")
@click.option("--add-special/--no-add-special", default=True, help="Add what the tokenizer says, such as BOS.")
@click.option("--parse-special/--no-parse-special", default=True, help="Read control tokens in the text, or as text.")
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Do not cut long lists and texts.")
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
    verbose: bool,
) -> None:
    """Show every stage between a text and its ids with the tokenizer in FILE: special tokens, normalizer,
    pre-tokenizer, each word's merges (or best path, or matches), what is added.

    \b
    tokpack explain out.mtok --text "Hello world"
    """
    data = read_data(text, text_file, dash, "the text")
    tokenizer = load(file, source_format, allow, **options)
    found = explain(tokenizer, data, add_special, parse_special)
    if as_json:
        click.echo(json_text(as_document(found), indent=1))
        return
    from tokpack.analysis.explanation.tree import as_tree
    from tokpack.analysis.screen import render

    click.echo(render(as_tree(found, verbose=verbose)))
