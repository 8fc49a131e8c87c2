"""Shell completion: the scripts that the program prints, and what they are answered."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT

PROGRAM = Path(sys.executable).parent / "tokpack"
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason="tokpack is not installed beside the interpreter")


def call(args: list[str], folder: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    return subprocess.run(
        args,
        cwd=folder,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_program
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_a_shell(shell: str) -> None:
    done = call([str(PROGRAM)], _TOKPACK_COMPLETE=f"{shell}_source")
    if shell == "bash" and "bash" in done.stderr:
        pytest.skip(f"click wants another bash: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert f"_TOKPACK_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


@needs_program
@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [
        ("tokpack con", 1, {"plain,convert"}),
        ("tokpack e", 1, {"plain,encode", "plain,explain"}),
        ("tokpack convert --mnn", 2, {"plain,--mnn-version"}),
        ("tokpack convert --index ", 3, {"plain,inline", "plain,sidecar", "plain,none"}),
        ("tokpack inspect fixt", 2, {"file,fixt"}),
    ],
)
def test_answers(words: str, place: int, expected: set[str]) -> None:
    done = call([str(PROGRAM)], _TOKPACK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(place))
    assert done.returncode == 0
    assert set(done.stdout.splitlines()) == expected
    assert done.stderr == ""


@needs_program
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_in_a_real_shell() -> None:
    """As the page says it: the line of ~/.bashrc, then what the tabulator key does."""
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    line = re.search(r"^\| bash .*\| `(eval .*)` \|$", text, re.MULTILINE)
    assert line is not None
    script = (
        f"shopt -s progcomp; {line[1]}\n"
        "COMP_WORDS=(tokpack ver); COMP_CWORD=1; _tokpack_completion tokpack\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = call(["bash", "-c", script], FIXTURES)
    assert done.stdout == "verify\n", done.stderr
