"""Run every command block of README.md and docs/ again and write what it prints now, and make the generated pages:
``python -m tests.refresh_docs [PAGE ...]``.

For after a change that is meant to change output; read the diff before it is committed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.docs import make_api, make_cli, make_man
from tests.test_docs import BLOCK, PAGES, run


def refreshed(text: str, folder: Path) -> str:
    """``text`` with the output of each console block replaced."""

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        commands = [step.partition("\n")[0] for step in re.split(r"^\$ ", match[2], flags=re.MULTILINE)[1:]]
        return "```console\n" + "".join(f"$ {command}\n{run(command, folder)}" for command in commands) + "```"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for maker in (make_cli, make_man, make_api):
        maker.PAGE.write_text(maker.page(), encoding="utf-8")
    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "fixtures").symlink_to(ROOT / "fixtures")
            page.write_text(refreshed(page.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
