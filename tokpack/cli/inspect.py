"""``tokpack inspect``."""

from __future__ import annotations

from typing import Any

import click

from tokpack.analysis import layout, open_subject, render_layout, render_summary, summarize
from tokpack.cli.common import FILE, emit_json, source_options

__all__ = ["command"]


@click.command("inspect", short_help="Show what a tokenizer is, on one screen.")
@click.argument("file", type=FILE)
@source_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--key", metavar="NAME", help="Print one key of the file, or one fact by its path in the JSON.")
@click.option("--layout", "places", is_flag=True, help="Show what is where in a binary file.")
@click.option("--section", metavar="NAME", help="Show one section of the layout, with its first bytes.")
@click.option("-v", "--verbose", is_flag=True, help="Do not cut long lines.")
def command(
    file: str,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    as_json: bool,
    key: str | None,
    places: bool,
    section: str | None,
    verbose: bool,
) -> None:
    """Show format, sizes, model, pre-tokenizer, special tokens, chat templates and findings of FILE.

    Only the header of a GGUF is read; of one that is cut off, what is there.

    \b
    tokpack inspect model.gguf
    tokpack inspect model.gguf --key tokenizer.ggml.pre
    tokpack inspect out.mtok --layout
    """
    from tokpack.analysis.lookup import find_key, find_section, one_of, render_key, render_section

    one_of({"--key": key is not None, "--layout": places, "--section": section is not None})
    if places:
        sections, total = layout(file, source_format)
        if as_json:
            rows = [part.as_dict(total) for part in sections]
            emit_json({"schema": "tokpack.layout/1", "file": file, "size": total, "sections": rows})
        else:
            click.echo(render_layout(sections, total))
        return
    if section is not None:
        found = find_section(file, section, source_format)
        if as_json:
            emit_json(found)
        else:
            click.echo(render_section(found))
        return
    subject = open_subject(file, source_format, **options)
    if key is not None:
        value = find_key(subject, key)
        if as_json:
            emit_json(value)
        else:
            click.echo(render_key(value, verbose=verbose))
        return
    facts = summarize(subject)
    if as_json:
        emit_json(facts)
    else:
        click.echo(render_summary(facts, verbose=verbose))
