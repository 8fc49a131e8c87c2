"""README and docs: every shown command runs and prints what is shown; every link and named file exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# blocks of kind `sh` set things up and are run by .ci/run on a clean clone, not here
SET_UP = re.compile(r"(pip install|python -m venv|pytest|ruff|git clone)\b")


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (page.name, text)
        for page in PAGES
        for name, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if name == kind
    ]


def run(command: str, folder: Path) -> str:
    """Run a command line as a shell would, with the console script that belongs to this interpreter first in PATH."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={"PATH": path, "LC_ALL": "C.UTF-8"}, capture_output=True, timeout=60
    )
    return (done.stdout + done.stderr).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_is_shown(page: Path, folder: Path) -> None:
    shown = [text for name, text in BLOCK.findall(page.read_text(encoding="utf-8")) if name == "console"]
    for text in shown:
        steps = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert steps[0] == "", f"a console block starts with a command: {text!r}"
        for step in steps[1:]:
            command, _, expected = step.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = command[:-1] + more.lstrip("> ")
            assert run(command, folder) == expected, command


def test_python_examples(folder: Path) -> None:
    found = blocks("python")
    assert found, "the README shows the Python API"
    run("tokpack convert -q fixtures/demo.gguf out.mtok", folder)
    for name, text in found:
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, (name, text, done.stderr)
        shown = [line.split("# ", 1)[1] for line in text.splitlines() if line.startswith("print(") and "# " in line]
        assert done.stdout.splitlines() == shown, (name, text)


def test_set_up_blocks_hold_known_commands_only() -> None:
    for name, text in blocks("sh"):
        for line in text.splitlines():
            assert SET_UP.search(line) or line.startswith("tokpack convert fixtures/"), (name, line)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:fixtures|docs|tokpack|formats|tests)/[\w./-]+)`", text):
        assert (ROOT / target).exists(), target


def test_every_finding_code_is_documented_and_every_documented_one_exists() -> None:
    sources = [*(ROOT / "tokpack").rglob("*.py"), *(ROOT / "formats").rglob("*.py")]
    code = re.compile(r'"((?:gguf|hf|mtok|ir)-[a-z0-9-]+)"')
    used = {match for path in sources for match in code.findall(path.read_text(encoding="utf-8"))}
    used |= {"gguf-bos-default", "gguf-eos-default", "mtok-padding", "mtok-truncation"}  # put together from a name
    documented = set(
        re.findall(r"`((?:gguf|hf|mtok|ir)-[a-z0-9-]+)`", (ROOT / "docs/findings.md").read_text(encoding="utf-8"))
    )
    assert used == documented


def test_exit_codes_are_documented() -> None:
    from tokpack.cli.main import EXIT_CODES

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for number, meaning in EXIT_CODES.items():
        assert f"| {number} | {meaning} |" in text


def test_every_section_of_the_index_is_documented() -> None:
    from tokpack.pack.layout import SECTIONS

    text = (ROOT / "docs/index-format.md").read_text(encoding="utf-8")
    assert set(SECTIONS) <= set(re.findall(r"`([a-z0-9]+(?:\.[a-z0-9_]+)*)`", text))
