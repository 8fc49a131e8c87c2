"""``tokpack inspect`` on the fixtures: screens as text at 80 columns, documents as data, every flag, wrong names.

The recorded outputs lie in ``screens/``; after a change that is meant to change them,
``python -m tests.cli.test_inspect_screens`` writes them again: read the diff.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import tokpack
from tests.analysis.sparse import make_sparse
from tests.analysis.test_subject import validator
from tests.conftest import ROOT, SharedData
from tokpack.cli.main import main

SCREENS = Path(__file__).with_name("screens")
DEMO = "fixtures/demo.gguf"
INSPECT = {
    "inspect-demo.txt": [DEMO],
    "inspect-demo.json": [DEMO, "--json"],
    "inspect-demo-verbose.txt": [DEMO, "-v"],
    "inspect-demo-layout.txt": [DEMO, "--layout"],
    "inspect-demo-layout.json": [DEMO, "--layout", "--json"],
    "inspect-demo-section.txt": [DEMO, "--section", "header"],
    "inspect-demo-section.json": [DEMO, "--section", "key-values/tokenizer.ggml.merges", "--json"],
    "inspect-demo-key.txt": [DEMO, "--key", "tokenizer.chat_template"],
    "inspect-demo-key.json": [DEMO, "--key", "tokenizer.ggml.eos_token_id", "--json"],
    "inspect-demo-key-list.txt": [DEMO, "--key", "tokenizer.ggml.merges"],
    "inspect-demo-fact.txt": [DEMO, "--key", "vocabulary.types"],
    "inspect-spm.txt": ["fixtures/spm.gguf"],
    "inspect-wpm.txt": ["fixtures/wpm.gguf"],
    "inspect-refused.txt": ["fixtures/refused-duplicate-tokens.gguf"],
    "inspect-pre.txt": ["fixtures/refused-unknown-pre.gguf", "--pre", "qwen2"],
    "inspect-no-vocab.txt": ["fixtures/no-vocab.gguf"],
    "inspect-t5.txt": ["fixtures/hf/t5.json"],
    "inspect-bert.txt": ["fixtures/hf/bert-uncased.json", "--from", "tokenizer.json"],
    "inspect-folder.txt": ["fixtures/hf/chat"],
}
CUT: dict[str, list[str]] = {
    "inspect-cut.txt": [],
    "inspect-cut.json": ["--json"],
    "inspect-cut-layout.txt": ["--layout"],
}


def call(args: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(args)
        except SystemExit as done:
            code = done.code
    assert isinstance(code, int)
    return code, out.getvalue(), err.getvalue()


def compare(name: str, args: list[str]) -> None:
    code, out, err = call(args)
    assert (code, err) == (0, "")
    expected = (SCREENS / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        assert json.loads(out) == json.loads(expected)
        schema = json.loads(out)["schema"]
        validator(re.fullmatch(r"tokpack\.([a-z-]+)/1", schema)[1]).validate(json.loads(out))  # type: ignore[index]
    else:
        assert out == expected
        if "--key" not in args:
            assert max(map(len, out.splitlines())) <= 80


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", INSPECT)
def test_output(name: str) -> None:
    compare(name, ["inspect", *INSPECT[name]])


def test_packs_are_inspected_by_their_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokpack.convert(DEMO, tmp_path / "out.mtok")
    tokpack.convert(DEMO, tmp_path / "out.tokpack")
    monkeypatch.chdir(tmp_path)
    demo = json.loads((SCREENS / "inspect-demo.json").read_text())
    for name, sections in (("out.mtok", "body/model/merges"), ("out.tokpack", "index/merge.key")):
        code, out, _ = call(["inspect", name, "--json"])
        facts = json.loads(out)
        validator("inspect").validate(facts)
        assert code == 0
        assert (facts["vocabulary"], facts["model"]) == (demo["vocabulary"], demo["model"])
        assert facts["size"] == (tmp_path / name).stat().st_size
        code, out, _ = call(["inspect", name, "--section", sections])
        assert code == 0
        assert sections in out
        assert len(call(["inspect", name])[1].splitlines()) <= 40
    assert "piece.blob" in call(["inspect", "out.mtok", "--layout"])[1]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([DEMO, "--key", "tokenizer.ggml.pr"], 2, "did you mean tokenizer.ggml.pre"),
        ([DEMO, "--key", "vocabulary.piece"], 2, "did you mean vocabulary.pieces"),
        ([DEMO, "--key", "pre"], 2, "did you mean"),
        ([DEMO, "--section", "heder"], 2, "did you mean header"),
        ([DEMO, "--section", "merge"], 2, "did you mean key-values/tokenizer.ggml.merges"),
        ([DEMO, "--layout", "--key", "a"], 2, "--key and --layout do not go together"),
        ([DEMO, "--layout", "--section", "a"], 2, "do not go together"),
        (["fixtures/hf/t5.json", "--layout"], 4, "has no layout to show"),
        (["missing.gguf"], 3, "cannot open"),
        (["missing.gguf", "--layout"], 3, "cannot open"),
        (["fixtures/refused-unknown-pre.gguf"], 4, "unknown pre-tokenizer"),
        ([DEMO, "--from", "nonsense"], 2, "unknown format"),
    ],
)
def test_one_clear_line(args: list[str], code: int, words: str) -> None:
    got, out, err = call(["inspect", *args])
    assert (got, out) == (code, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_file_that_is_cut_off_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.gguf").write_bytes((ROOT / DEMO).read_bytes()[:40_000])
    for name, args in (
        ("inspect-cut.txt", []),
        ("inspect-cut.json", ["--json"]),
        ("inspect-cut-layout.txt", ["--layout"]),
    ):
        compare(name, ["inspect", "cut.gguf", *args])
    assert call(["inspect", "cut.gguf", "--key", "general.name"])[1] == "tokpack demo\n"
    assert "2,001 elements, not read" in call(["inspect", "cut.gguf", "--key", "tokenizer.ggml.token_type"])[1]
    assert call(["encode", "cut.gguf", "--text", "a"])[0] == 3


def test_nothing_from_a_file_acts_on_the_terminal(tmp_path: Path) -> None:
    raw = (ROOT / DEMO).read_bytes()
    evil = "t\x1b[2J\u202e\u200bx".encode()
    assert len(evil) == 12
    path = tmp_path / "evil.gguf"
    path.write_bytes(raw.replace(b"tokpack demo", evil).replace(b"tokenizer.ggml.pre", b"tokenizer.ggml.\x1bre"))
    for args in (
        [],
        ["-v"],
        ["--key", "general.name"],
        ["--layout"],
        ["--section", "key-values"],
        ["--key", "general.nam"],
    ):
        _, out, err = call(["inspect", str(path), *args])
        assert not set(out + err) & {"\x1b", "\u202e", "\u200b"}


def on_terminal(args: list[str], **env: str) -> str:
    """What a terminal of 100 columns gets."""
    leader, follower = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    done = subprocess.Popen(
        [sys.executable, "-m", "tokpack", *args],
        stdout=follower,
        stderr=follower,
        cwd=ROOT,
        env={**clean, "TERM": "xterm-256color", **env},
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert done.wait(60) == 0
    return seen.decode()


def test_colours_only_on_a_terminal_and_its_width() -> None:
    shown = on_terminal(["inspect", DEMO])
    assert "\x1b[1m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert 80 < max(map(len, plain.splitlines())) <= 100
    quiet = on_terminal(["inspect", DEMO], NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", quiet)
    vocab = on_terminal(["vocab", DEMO, "--limit", "3"])
    assert "\x1b[1m" in vocab


MEASURED = """
import resource, sys
from tokpack.cli.main import main
try:
    main(sys.argv[1:])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # not ru_maxrss, which begins with that of the process that started this one
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(used.ru_utime + used.ru_stime, peak, file=sys.stderr)
"""


@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_model_of_20_gb_answers_at_once(tmp_path: Path, shared_data: SharedData, real: bool) -> None:
    source = shared_data("data/gguf/ggml-vocab-qwen2.gguf") if real else ROOT / DEMO
    path = tmp_path / "model.gguf"
    make_sparse(source, path, 20 * 10**9)
    assert path.stat().st_size > 19 * 10**9
    for args in (["inspect", str(path), "--json"], ["inspect", str(path), "--layout"]):
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *args], capture_output=True, text=True, timeout=60, check=True
        )
        seconds, kilobytes = map(float, done.stderr.split())
        print(f"{time.monotonic() - started:.2f} s, {seconds:.2f} s of them working, {kilobytes / 1024:.0f} MB")
        assert seconds < (1.5 if real else 1.0)
        # numpy, msgpack, click and rich take 45 MB; the vocabulary of 150,000 pieces 90 MB
        assert kilobytes < (200_000 if real else 100_000)


def test_help_fits_a_screen() -> None:
    for command in ("inspect", "vocab"):
        code, out, _ = call([command, "--help"])
        assert code == 0
        assert len(out.splitlines()) <= 45
        assert max(map(len, out.splitlines())) <= 80
        assert f"  tokpack {command} model.gguf" in out


def record() -> None:
    """Write all screens again."""
    from tests.cli.test_vocab_screens import VOCAB

    os.chdir(ROOT)
    SCREENS.mkdir(exist_ok=True)
    for command, screens in (("inspect", INSPECT), ("vocab", VOCAB)):
        for name, args in screens.items():
            (SCREENS / name).write_text(call([command, *args])[1], encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cut.gguf").write_bytes((ROOT / DEMO).read_bytes()[:40_000])
        os.chdir(folder)
        for name, args in CUT.items():
            (SCREENS / name).write_text(call(["inspect", "cut.gguf", *args])[1], encoding="utf-8")
        os.chdir(ROOT)


if __name__ == "__main__":
    record()
