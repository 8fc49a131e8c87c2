"""``tokpack convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tokpack.api import convert
from tokpack.cli.common import FILE, emit_json, report, source_options

__all__ = ["command"]


@click.command("convert", short_help="Write a tokenizer in another format.")
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@source_options
@click.option("--to", "target_format", metavar="FORMAT", help="Format of the output; default: by its ending.")
@click.option(
    "--index",
    type=click.Choice(["inline", "sidecar", "none"]),
    metavar="PLACE",
    help="Of an .mtok: inline (default), sidecar or none.",
)
@click.option(
    "--mnn-version",
    type=click.Choice(["3.5.0", "3.6.0", "3.6.1", "head"]),
    metavar="VERSION",
    help="Engine of an .mtok: 3.5.0, 3.6.0, 3.6.1 or head.",
)
@click.option("--drop", multiple=True, metavar="PART", help="Leave a part out: chat-template (.mtok).")
@click.option("--vectors", type=FILE, metavar="FILE", help="Write texts with the ids that MNN will give.")
@click.option("--strict", is_flag=True, help="Refuse when anything is lost or doubtful.")
@click.option("-f", "--force", is_flag=True, help="Overwrite the output.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written and found as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless it fails.")
@click.option("-v", "--verbose", is_flag=True, help="Show remarks, too.")
def command(
    source: str,
    target: str,
    source_format: str | None,
    allow: tuple[str, ...],
    options: dict[str, Any],
    target_format: str | None,
    index: str | None,
    mnn_version: str | None,
    drop: tuple[str, ...],
    vectors: str | None,
    strict: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Read the tokenizer in SOURCE and write it to TARGET.

    What TARGET cannot hold is printed. Losses of ids refuse, unless an index keeps our own runtime exact.

    \b
    tokpack convert model.gguf out.mtok
    """
    writer = {"index": index, "mnn_version": mnn_version, "drop": drop or None, "vectors": vectors}
    findings = convert(
        source,
        target,
        source_format=source_format,
        target_format=target_format,
        allow=allow,
        strict=strict,
        force=force,
        read_options=options,
        write_options={name: value for name, value in writer.items() if value is not None},
    )
    if as_json:
        emit_json(
            {
                "schema": "tokpack.convert/1",
                "source": source,
                "target": target,
                "bytes": Path(target).stat().st_size,
                "findings": [finding.as_dict() for finding in findings],
            }
        )
        return
    report(findings, quiet=quiet, verbose=verbose)
    if not quiet:
        click.echo(f"{target}: {Path(target).stat().st_size:,} bytes", err=True)
