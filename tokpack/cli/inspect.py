"""``tokpack inspect``."""

from __future__ import annotations

from typing import Any

import click

from tokpack.analysis.summary import render_summary, summarize
from tokpack.api import open_view
from tokpack.cli.common import FILE, emit_json, source_options

__all__ = ["command"]


@click.command("inspect", short_help="Show what a tokenizer is, on one screen.")
@click.argument("file", type=FILE)
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Do not cut long lines.")
def command(
    file: str, source_format: str | None, allow: tuple[str, ...], options: dict[str, Any], as_json: bool, verbose: bool
) -> None:
    """Show format, sizes, model, pre-tokenizer, special tokens, chat templates and findings of FILE.

    \b
    tokpack inspect out.mtok
    """
    view, packed = open_view(file, source_format, **options)
    facts = summarize(view, packed=packed)
    if as_json:
        emit_json(facts)
    else:
        click.echo(render_summary(facts, verbose=verbose))
