"""What the command line says about itself: the one source of docs/cli.md and of the man page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import click

from tokpack.cli.main import cli


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        name: its name; empty for the program itself.
        usage: the line behind "Usage:".
        summary: one line.
        paragraphs: of its description; an example is (lines, True).
        options: (how it is written, what it does).
    """

    name: str
    usage: str
    summary: str
    paragraphs: tuple[tuple[str, bool], ...]
    options: tuple[tuple[str, str], ...]


def commands() -> Iterator[Command]:
    """The program, then each command in its own order."""
    context = click.Context(cli, info_name="tokpack", help_option_names=cli.context_settings["help_option_names"])
    yield _command("", cli, context)
    for name in cli.list_commands(context):
        found = cli.get_command(context, name)
        assert found is not None
        yield _command(name, found, click.Context(found, info_name=name, parent=context))


def _command(name: str, command: click.Command, context: click.Context) -> Command:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    blocks = inspect.cleandoc(command.help or "").split("\n\n")
    paragraphs = []
    for block in blocks:
        example = block.startswith("\b\n")
        paragraphs.append((block[2:] if example else " ".join(block.split()), example))
    options = [_option(each) for each in command.get_params(context) if isinstance(each, click.Option)]
    return Command(name, usage, command.get_short_help_str(80), tuple(paragraphs), tuple(options))


def _option(option: click.Option) -> tuple[str, str]:
    """(names and value, what it does); not by click's own words for it, which differ between its releases."""
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(option.secondary_opts)
    if not option.is_flag and not option.count:
        names += f" {option.metavar or option.type.name.upper()}"
    text = " ".join((option.help or "").split())
    return names, f"{text} Required." if option.required else text
