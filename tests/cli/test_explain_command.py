"""``tokpack explain`` as a stranger uses it: every flag, both outputs, colours, widths, errors."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.cli.main import main

DEMO = str(FIXTURES / "demo.gguf")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Run = Callable[..., "Result"]


def environment(**values: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(FIXTURES.parent), "LC_ALL": "C.UTF-8", **values}


@dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


def in_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str, stdin: bytes = b""
) -> Result:
    """The command line without a new process; what needs one (terminals, pipes) is tested with one."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    out, err = capsys.readouterr()
    return Result(int(str(ended.value.code)), out, err)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*args: str, stdin: bytes = b"") -> Result:
        return in_process(capsys, monkeypatch, "explain", *args, stdin=stdin)

    return call


def on_a_terminal(*args: str, columns: int = 60, **env: str) -> str:
    """What the command prints on a terminal of that width."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "tokpack", "explain", *args]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment(TERM="xterm-256color", **env)
    )
    os.close(slave)
    out = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:  # closed at the other end
            break
        if not part:
            break
        out += part
    os.close(master)
    assert process.wait(60) == 0
    return out.decode().replace("\r\n", "\n")


def document(run: Run, *args: str, stdin: bytes = b"") -> dict[str, Any]:
    done = run(*args, "--json", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == "tokpack.explain/1"
    return found


def test_text_file_and_standard_input_are_the_same(run: Run, tmp_path: Path) -> None:
    text = "Ärger\n no end"
    (tmp_path / "text").write_bytes(text.encode())
    one = document(run, DEMO, "--text", text)
    other, third = document(run, DEMO, "--file", "text"), document(run, DEMO, "-", stdin=text.encode())
    assert one["ids"] == other["ids"] == third["ids"] == tokpack.load(DEMO).encode(text)
    assert one["parts"] == other["parts"] == third["parts"]


def test_flags(run: Run) -> None:
    name = str(FIXTURES / "spm-phi-3.gguf")
    tokenizer = tokpack.load(name)
    text = "a<|end|>b"
    for add in (True, False):
        for parse in (True, False):
            flags = [f"--{'' if add else 'no-'}add-special", f"--{'' if parse else 'no-'}parse-special"]
            found = document(run, name, "--text", text, *flags)
            assert found["ids"] == tokenizer.encode(text, add, parse)
            assert (found["add_special"], found["parse_special"]) == (add, parse)


def test_options_of_readers(run: Run) -> None:
    found = document(run, DEMO, "--text", "a 1234", "--pre", "llama-bpe", "--from", "gguf")
    assert found["ids"] == tokpack.load(DEMO, pre="llama-bpe").encode("a 1234")
    refused = str(FIXTURES / "refused-duplicate-tokens.gguf")
    done = run(refused, "--text", "a")
    assert done.returncode == 4
    code = re.search(r"--allow (\S+)", done.stderr)
    if code:
        assert run(refused, "--text", "a", "--allow", code[1]).returncode in (0, 4)
    ranks = str(FIXTURES / "tiktoken/plain.tiktoken")
    done = run(ranks, "--text", "a b", "--pattern", r"\w+|\s", "--from", "tiktoken", "--json")
    assert json.loads(done.stdout)["reference"] == "tiktoken"


def test_packs(run: Run, tmp_path: Path) -> None:
    tokpack.convert(DEMO, tmp_path / "out.mtok")
    one, other = document(run, DEMO, "--text", "Hello world"), document(run, "out.mtok", "--text", "Hello world")
    assert one | {"file": None} == other | {"file": None}


def test_screen_is_the_recorded_one(run: Run) -> None:
    golden = FIXTURES.parent / "tests/analysis/explain/golden/gguf-bpe.txt"
    done = run(DEMO, "--text", "Hello world<|im_end|>naïve\n")
    lines, expected = done.stdout.splitlines(), golden.read_text(encoding="utf-8").splitlines()
    assert lines[-len(expected) + 1 :] == expected[1:]  # the first line names the file
    assert (done.returncode, done.stderr) == (0, "")


def test_verbose_shows_all(run: Run) -> None:
    text = "the end " * 50
    assert re.search(r"and \d+ more words; --verbose shows all", run(DEMO, "--text", text).stdout)
    full = run(DEMO, "--text", text, "-v").stdout
    assert "more" not in full
    assert full.count("word ") > 100


def test_colours_on_a_terminal_only(run: Run) -> None:
    args = (DEMO, "--text", "Hello world")
    assert "\x1b" not in run(*args).stdout
    screen = on_a_terminal(*args)
    assert COLOUR.search(screen)
    plain = on_a_terminal(*args, NO_COLOR="1")
    assert not re.search(r"\x1b\[(3|4|9)[0-9]", plain)
    seen, unpainted = ([line.rstrip() for line in COLOUR.sub("", text).split("\n")] for text in (screen, plain))
    assert seen == unpainted


@pytest.mark.parametrize("columns", [30, 100])
def test_fits_the_terminal(columns: int) -> None:
    screen = COLOUR.sub("", on_a_terminal(DEMO, "--text", "Hello world 12345 Grüße", columns=columns))
    assert all(len(line) <= columns for line in screen.splitlines())


def test_nothing_moves_the_cursor() -> None:
    text = "\u202egnp\x07\x1b]0;title\x1b\\\u200b\u2028"
    screen = COLOUR.sub("", on_a_terminal(DEMO, "--text", text, columns=100))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", screen)
    assert "\\u202egnp\\u0007" in screen


def test_json_is_harmless_on_a_terminal_and_reads_back(run: Run) -> None:
    text = "\u202egnp\x07\x9b\u200b\u2028</script>\ufeff\U000e0041\ue000"
    done = run(DEMO, "--text", text, "--json")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff\ue000]", done.stdout)
    assert json.loads(done.stdout)["text"] == text
    assert document(run, DEMO, "-", stdin=b"a\xff\xed\xa0\x80")["text"] == {"bytes": "61ffeda080"}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((DEMO,), 2, "exactly one way"),
        ((DEMO, "--text", "a", "--file", "b"), 2, "exactly one way"),
        ((DEMO, "word"), 2, "unexpected argument"),
        ((DEMO, "--file", "missing"), 3, "cannot open"),
        (("missing.gguf", "--text", "a"), 3, "cannot open"),
        ((DEMO, "--text", "a" * 70_000), 2, "explain a part of it"),
        ((str(FIXTURES / "none.gguf"), "--text", "a"), 4, "no vocabulary"),
    ],
)
def test_errors_are_one_line(run: Run, args: tuple[str, ...], code: int, message: str) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m tokpack explain {DEMO} --text '{'a b ' * 2000}' --verbose | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, env=environment())
    assert (done.returncode, done.stderr) == (0, b"")


def test_other_commands_do_not_import_rich() -> None:
    code = "import sys, tokpack.cli.main, tokpack.cli.encode, tokpack.cli.convert; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0
    code = "import sys, tokpack.analysis as a; a.explain, a.render_report; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0
