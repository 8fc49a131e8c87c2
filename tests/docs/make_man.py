"""docs/tokpack.1, the man page, from the commands themselves: ``python -m tests.docs.make_man``."""

from __future__ import annotations

import tokpack
from tests.conftest import ROOT
from tests.docs.commands import commands
from tokpack.cli.main import EXIT_CODES

PAGE = ROOT / "docs" / "tokpack.1"


def escape(text: str) -> str:
    """Text for roff: no escapes, no requests, hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in escaped.splitlines())


def page() -> str:
    """The whole page."""
    first, *others = commands()
    lines = [
        '.\\" made by python -m tests.docs.make_man; a test compares it',
        f'.TH TOKPACK 1 "" "tokpack {tokpack.__version__}" "User Commands"',
        ".SH NAME",
        "tokpack \\- " + escape(first.paragraphs[0][0].rstrip(".").lower()),
        ".SH SYNOPSIS",
        f".B {escape(first.usage)}",
        ".SH DESCRIPTION",
    ]
    for command in (first, *others):
        if command.name:
            lines += [f".SH {escape(command.name.upper())}", f".B {escape(command.usage)}", ".PP"]
        for text, example in command.paragraphs:
            lines += [".PP", ".nf", escape(text), ".fi"] if example else [".PP", escape(text)]
        for name, text in command.options:
            lines += [".TP", f".B {escape(name)}", escape(text)]
    lines.append(".SH EXIT STATUS")
    for number, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {number}", escape(meaning)]
    lines += [".SH ENVIRONMENT", ".TP", ".B _TOKPACK_COMPLETE"]
    lines += [escape("bash_source, zsh_source or fish_source prints the completion script of that shell.")]
    lines += [".TP", ".B NO_COLOR", "no colours, also on a terminal."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
