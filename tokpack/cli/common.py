"""What the commands share: options that mean the same everywhere, input, output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from tokpack.analysis.show import readable
from tokpack.errors import Location, ReadError, UsageError
from tokpack.findings import Finding, Severity

__all__ = [
    "FILE",
    "emit_json",
    "read_data",
    "reader_options",
    "report",
    "source_options",
]

FILE = click.Path(path_type=str)  # existence is checked by the library, which says more

_Function = TypeVar("_Function", bound=Callable[..., Any])


def source_options(function: _Function) -> _Function:
    """``--from``, ``--allow`` and ``--pre``: how to read the source."""
    for option in (
        click.option("--pre", metavar="NAME", help="Pre-tokenizer name to use instead of the file's (GGUF)."),
        click.option(
            "--allow", multiple=True, metavar="CODE", help="Put up with findings of this code; may be repeated."
        ),
        click.option("--from", "source_format", metavar="FORMAT", help="Format of the source; default: by content."),
    ):
        function = option(function)
    return function


def reader_options(pre: str | None) -> dict[str, Any]:
    """Options for the reader: only those that were given."""
    return {} if pre is None else {"pre": pre}


def read_data(text: str | None, file: str | None, dash: str | None, what: str) -> str | bytes:
    """The one input that was named: ``--text``, ``--file`` or ``-`` for standard input.

    Raises UsageError when none or several are named.
    """
    if dash is not None and dash != "-":
        raise UsageError(f"unexpected argument {dash!r}", hint=f"give {what} with --text, --file or -")
    if sum(source is not None for source in (text, file, dash)) != 1:
        raise UsageError(f"give {what} in exactly one way", hint="--text TEXT, --file FILE, or - for standard input")
    if text is not None:
        return text
    if dash is not None:
        return sys.stdin.buffer.read()
    assert file is not None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ReadError(f"cannot open: {error.strerror or error}", location=Location(file)) from error


def emit_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=1, default=_plain))


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)


def report(findings: Iterable[Finding], *, quiet: bool, verbose: bool) -> None:
    """Findings on standard error, one line each; ``info`` ones only when verbose."""
    for finding in findings:
        if not quiet and (verbose or finding.severity is not Severity.INFO):
            click.echo(readable(str(finding), backslash=False), err=True)
