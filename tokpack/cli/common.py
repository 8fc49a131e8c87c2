"""What the commands share: options that mean the same everywhere, input, output."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from tokpack.analysis.json_text import json_text
from tokpack.analysis.show import readable
from tokpack.errors import Location, ReadError, UsageError
from tokpack.findings import Finding, Severity

__all__ = [
    "FILE",
    "emit_json",
    "read_data",
    "report",
    "source_options",
]

FILE = click.Path(path_type=str)  # existence is checked by the library, which says more

_Function = TypeVar("_Function", bound=Callable[..., Any])


# option of a reader → its command-line option
_READER_OPTIONS = {
    "pre": click.option("--pre", metavar="NAME", help="Pre-tokenizer, instead of the file's (GGUF)."),
    "pattern": click.option("--pattern", metavar="NAME|REGEX", help="Encoding or pattern of a .tiktoken file."),
    "special_tokens": click.option("--special-tokens", metavar="FILE|NAME", help="Special tokens of a .tiktoken file."),
    "engine": click.option("--engine", metavar="NAME", help="MNN engine: v361 (default) or head."),
}


def source_options(function: _Function) -> _Function:
    """``--from``, ``--allow`` and what readers take: how to read the source.

    The command gets ``source_format``, ``allow``, and ``options``: those for the reader that were given.
    """

    @functools.wraps(function)
    def gathered(**values: Any) -> Any:
        given = {name: values.pop(name) for name in _READER_OPTIONS}
        given["limits"] = _limits(values.pop("limits"))
        return function(options={name: value for name, value in given.items() if value is not None}, **values)

    wrapped: Any = gathered
    for option in (
        click.option(
            "--max", "limits", multiple=True, metavar="NAME=NUMBER", help="Another limit for the source (repeatable)."
        ),
        *reversed(_READER_OPTIONS.values()),
        click.option("--allow", multiple=True, metavar="CODE", help="Put up with findings of this code (repeatable)."),
        click.option("--from", "source_format", metavar="FORMAT", help="Format of the source; default: by content."),
    ):
        wrapped = option(wrapped)
    return cast("_Function", wrapped)


def _limits(given: tuple[str, ...]) -> dict[str, int] | None:
    """What ``--max`` says, by name; UsageError for what is not ``NAME=NUMBER``. Names are the library's business."""
    found = {}
    for item in given:
        name, sign, number = item.partition("=")
        digits = number.replace("_", "").replace(",", "")
        if not sign or not digits.isascii() or not digits.isdigit() or len(digits) > 18:
            raise UsageError(f"--max {item[:60]!r} is not NAME=NUMBER", hint="such as --max pieces=1000000")
        found[name] = int(digits)
    return found or None


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
    click.echo(json_text(_plain(document), indent=1))


def _plain(value: Any) -> Any:
    """``value`` with bytes as hexadecimal text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def report(findings: Iterable[Finding], *, quiet: bool, verbose: bool) -> None:
    """Findings on standard error, one line each; ``info`` ones only when verbose."""
    for finding in findings:
        if not quiet and (verbose or finding.severity is not Severity.INFO):
            click.echo(readable(str(finding), backslash=False), err=True)
