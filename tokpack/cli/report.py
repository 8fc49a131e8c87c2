"""``tokpack report``."""

from __future__ import annotations

from typing import Any

import click

from tokpack.cli.common import FILE, read_data, source_options
from tokpack.output import check_target, write_files

__all__ = ["command"]


@click.command("report", short_help="Write a page about a tokenizer.")
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FILE", required=True, help="The page to write.")
@click.option("--sample", "samples", multiple=True, metavar="TEXT", help="Encode this text, too; may be repeated.")
@click.option("--samples", "samples_file", type=FILE, metavar="FILE", help="Encode each line of this file, too.")
@click.option("--add-special/--no-add-special", default=True, help="Add BOS and EOS as the tokenizer says (default).")
@click.option(
    "--parse-special/--no-parse-special", default=True, help="Read control tokens in the texts (default), or as text."
)
@source_options
@click.option("-f", "--force", is_flag=True, help="Overwrite the output.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless it fails.")
def command(
    file: str,
    output: str,
    samples: tuple[str, ...],
    samples_file: str | None,
    add_special: bool,
    parse_special: bool,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    force: bool,
    quiet: bool,
) -> None:
    """Write one self-contained HTML page about the tokenizer in FILE: facts, findings, charts, special tokens, the
    ids of many texts, and the whole vocabulary to search in.

    \b
    tokpack report out.mtok -o report.html
    """
    from tokpack.analysis.report import render_report

    check_target(output, file, force)
    texts = list(samples)
    if samples_file is not None:
        data = read_data(None, samples_file, None, "the samples")
        assert isinstance(data, bytes)
        texts += [line for line in data.decode("utf-8", "replace").split("\n") if line]
    page = render_report(
        file, source_format, samples=texts, add_special_tokens=add_special, parse_special=parse_special, **options
    ).encode()
    write_files([(output, page)])
    if not quiet:
        click.echo(f"{output}: {len(page):,} bytes", err=True)
