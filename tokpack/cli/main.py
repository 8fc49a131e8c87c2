"""``tokpack``: the group of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from tokpack.analysis.show import readable
from tokpack.errors import EncodeError, ReadError, RefusedError, TokpackError, UsageError

__all__ = ["EXIT_CODES", "cli", "main"]

EXIT_CODES = {
    0: "done",
    1: "a check found something",
    2: "the command line is wrong, or the output exists",
    3: "a file is missing or malformed",
    4: "refused: not supported, or the ids would not be the reference's",
    5: "internal fault",
    130: "interrupted",
}
_COMMANDS = ("convert", "inspect", "vocab", "encode", "decode", "explain", "report", "verify", "formats")


class _Commands(click.Group):
    """Imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"tokpack.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(name, _COMMANDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"commands: {', '.join(_COMMANDS)}"
            raise UsageError(f"no command {name!r}", hint=hint)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.version_option(package_name="tokpack")
def cli(debug: bool) -> None:
    """Convert, inspect and run the tokenizers of language models.

    \b
    tokpack convert model.gguf out.mtok
    tokpack encode out.mtok --text "Hello world"
    """


def _exit_code(error: TokpackError) -> int:
    for kind, code in ((UsageError, 2), (EncodeError, 4), (RefusedError, 4), (ReadError, 3)):
        if isinstance(error, kind):
            return code
    return 5


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    argv = sys.argv[1:] if args is None else args
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in argv[:1]
    try:
        code = _run(argv, debug)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has seen enough; nothing more can be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run(argv: list[str], debug: bool) -> int:
    try:
        result = cli.main(argv, prog_name="tokpack", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TokpackError as error:
        if debug:
            raise
        _complain(str(error))
        return _exit_code(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        if debug:
            raise
        _complain(f"internal fault: {type(error).__name__}: {error} (run `tokpack --debug …` and report what it shows)")
        return 5


def _complain(message: str) -> None:
    click.echo(f"tokpack: {readable(message, backslash=False)}", err=True)
