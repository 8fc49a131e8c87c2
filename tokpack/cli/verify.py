"""``tokpack verify``."""

from __future__ import annotations

import click

from tokpack.analysis.show import readable
from tokpack.cli.common import FILE, emit_json
from tokpack.pack.verify import verify

__all__ = ["command"]


@click.command("verify", short_help="Check a pack.")
@click.argument("file", type=FILE)
@click.option("--deep", is_flag=True, help="Compare every value of the index, and the body, with what they should be.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; the exit code tells.")
@click.pass_context
def command(ctx: click.Context, file: str, deep: bool, as_json: bool, quiet: bool) -> None:
    """Check that the pack FILE (.mtok with an index, or .tokpack) can be used; exit code 1 when something is wrong.

    Opening a pack checks its outline only. --deep compares the hashes of index and body, builds the index again and
    compares every section, and writes the body again and compares every byte.

    \b
    tokpack verify --deep out.mtok
    """
    found = verify(file, deep)
    if as_json:
        emit_json({"schema": "tokpack.verify/1", "file": file, "deep": deep, "findings": [f.as_dict() for f in found]})
    elif not quiet:
        for finding in found:
            click.echo(readable(str(finding), backslash=False))
        if not found:
            click.echo(f"{readable(file)}: nothing wrong{' (deep)' if deep else ''}")
    if found:
        ctx.exit(1)
