"""``tokpack report`` as a stranger uses it: the file it writes, every flag, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.cli.test_explain_command import Result, in_process
from tests.conftest import FIXTURES

DEMO = str(FIXTURES / "demo.gguf")

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*args: str) -> Result:
        return in_process(capsys, monkeypatch, "report", *args)

    return call


def data_of(path: Path) -> dict[str, Any]:
    match = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found


def test_writes_a_page(run: Run, tmp_path: Path) -> None:
    done = run(DEMO, "-o", "report.html")
    size = (tmp_path / "report.html").stat().st_size
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"report.html: {size:,} bytes\n")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert data_of(tmp_path / "report.html")["size"] == tokpack.load(DEMO).vocab_size


def test_samples_and_flags(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("first line\nsecond <|im_end|>\n", encoding="utf-8")
    name = str(FIXTURES / "spm-phi-3.gguf")
    tokenizer = tokpack.load(name)
    for add, parse in ((True, True), (False, False)):
        flags = [f"--{'' if add else 'no-'}add-special", f"--{'' if parse else 'no-'}parse-special", "-f", "-q"]
        done = run(name, "--output", "r.html", "--sample", "x<|end|>", "--sample", "y", "--samples", "texts", *flags)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        samples = data_of(tmp_path / "r.html")["samples"]
        assert [one["text"] for one in samples[:4]] == ["x<|end|>", "y", "first line", "second <|im_end|>"]
        for sample in samples[:4]:
            assert [token[0] for token in sample["tokens"]] == tokenizer.encode(sample["text"], add, parse)


def test_options_of_readers_and_packs(run: Run, tmp_path: Path) -> None:
    assert run(DEMO, "-o", "a.html", "--from", "gguf", "--pre", "llama-bpe").returncode == 0
    tokpack.convert(DEMO, tmp_path / "out.tokpack")
    assert run("out.tokpack", "-o", "b.html").returncode == 0
    refused = str(FIXTURES / "refused-duplicate-tokens.gguf")
    assert run(refused, "-o", "c.html", "--allow", "anything").returncode == 0  # what is refused can be looked at
    assert "severity refuse" in (tmp_path / "c.html").read_text(encoding="utf-8")


def test_nothing_is_overwritten_or_left_behind(run: Run, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    done = run(DEMO, "-o", "report.html")
    assert (done.returncode, (tmp_path / "report.html").read_text()) == (2, "mine")
    assert "--force overwrites it" in done.stderr
    assert run(DEMO, "-o", "report.html", "--force").returncode == 0
    copy = tmp_path / "demo.gguf"
    copy.write_bytes(Path(DEMO).read_bytes())
    assert run("demo.gguf", "-o", "demo.gguf", "-f").returncode == 2
    assert copy.read_bytes() == Path(DEMO).read_bytes()
    assert run(DEMO, "-o", "no/such/folder.html").returncode == 3
    assert run("missing", "-o", "x.html").returncode == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.gguf", "report.html"]


@pytest.mark.parametrize(
    ("args", "code"), [((DEMO,), 2), ((DEMO, "-o", "x.html", "--samples", "missing"), 3), (("-o", "x.html"), 2)]
)
def test_errors(run: Run, args: tuple[str, ...], code: int) -> None:
    assert run(*args).returncode == code
