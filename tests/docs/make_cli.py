"""docs/cli.md from the commands themselves: ``python -m tests.docs.make_cli`` writes it, a test compares it."""

from __future__ import annotations

from tests.conftest import ROOT
from tests.docs.commands import Command, commands
from tokpack.cli.main import EXIT_CODES

PAGE = ROOT / "docs" / "cli.md"
_HEAD = """\
# The command line

<!-- made by `python -m tests.docs.make_cli`; a test compares it -->

Ids, texts and JSON go to standard output, everything else to standard error. JSON documents have a key `schema`; those
of `inspect`, `vocab` and `explain` have JSON schemas in `tokpack/analysis/schemas`. Screens are told in
[inspect.md](inspect.md), [explain.md](explain.md) and [report.md](report.md); shell completion and the man page at
[the end](#shell-completion).
"""
_TAIL = """\
## Exit codes

| code | meaning |
|---|---|
{codes}

## Shell completion

The program prints the script for a shell; it completes commands, options, choices and file names.

| shell | put this into | line |
|---|---|---|
| bash (4.4 or later) | `~/.bashrc` | `eval "$(_TOKPACK_COMPLETE=bash_source tokpack)"` |
| zsh | `~/.zshrc` | `eval "$(_TOKPACK_COMPLETE=zsh_source tokpack)"` |
| fish | `~/.config/fish/completions/tokpack.fish` | `_TOKPACK_COMPLETE=fish_source tokpack \\| source` |

## Man page

`docs/tokpack.1` is made from the same source (`python -m tests.docs.make_man`): `man ./docs/tokpack.1`.
"""


def escape(text: str) -> str:
    """For a cell of a table."""
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


def section(command: Command) -> str:
    """A command."""
    parts = [f"## tokpack {command.name}".rstrip(), f"```text\n{command.usage}\n```"]
    for text, example in command.paragraphs:
        parts.append(f"```text\n{text}\n```" if example else escape(text))
    rows = [f"| `{name.replace('|', chr(92) + '|')}` | {escape(text)} |" for name, text in command.options]
    parts.append("\n".join(["| option | what it does |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """The whole page."""
    codes = "\n".join(f"| {number} | {meaning} |" for number, meaning in EXIT_CODES.items())
    return "\n".join([_HEAD, *map(section, commands()), _TAIL.format(codes=codes)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
