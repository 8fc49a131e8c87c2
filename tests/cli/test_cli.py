"""The command line as a stranger uses it: output, exit codes, wrong input, files left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES

DEMO = str(FIXTURES / "demo.gguf")


@dataclass
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*args: str, stdin: bytes = b"", **env: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "tokpack", *args],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(FIXTURES.parent), **env},
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


def one_line(result: Result) -> str:
    """The single line of an error."""
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert "Traceback" not in result.err
    assert lines[0].startswith("tokpack: ")
    return lines[0]


def test_main_job(run: Run, tmp_path: Path) -> None:
    done = run("convert", DEMO, "out.mtok")
    assert (done.code, done.out) == (0, "")
    ids = run("encode", "out.mtok", "--text", "Hello world")
    expected = tokpack.load(DEMO).encode("Hello world")
    assert ids == Result(0, " ".join(map(str, expected)) + "\n", "")
    assert run("decode", "out.mtok", *map(str, expected)) == Result(0, "Hello world\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mtok"]


def test_text_from_file_and_standard_input(run: Run, tmp_path: Path) -> None:
    text = "Ärger\r\n\t no newline at the end"
    (tmp_path / "text").write_bytes(text.encode())
    expected = " ".join(map(str, tokpack.load(DEMO).encode(text))) + "\n"
    assert run("encode", DEMO, "--file", "text").out == expected
    assert run("encode", DEMO, "-", stdin=text.encode()).out == expected
    assert run("encode", DEMO, "-", stdin=b"").out == "\n"
    assert run("encode", DEMO, "--text", "").out == "\n"


def test_dash_is_never_a_path_and_text_never_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "Hello").write_text("other")
    assert run("encode", DEMO, "--text", "Hello").out == run("encode", DEMO, "-", stdin=b"Hello").out
    result = run("encode", DEMO, "Hello")
    assert result.code == 2
    assert "--text" in one_line(result)


@pytest.mark.parametrize("args", [(), ("--text", "a", "-"), ("--text", "a", "--file", "b")])
def test_exactly_one_text(run: Run, args: tuple[str, ...]) -> None:
    result = run("encode", DEMO, *args)
    assert result.code == 2
    assert "exactly one way" in one_line(result)


def test_special_flags(run: Run) -> None:
    llama = str(FIXTURES / "llama-bpe.gguf")
    tokenizer = tokpack.load(llama)
    assert tokenizer.bos_id is not None
    text = "a<|eot_id|>"
    for add in (True, False):
        for parse in (True, False):
            flags = [f"--{'' if add else 'no-'}add-special", f"--{'' if parse else 'no-'}parse-special"]
            ids = [int(part) for part in run("encode", llama, "--text", text, *flags).out.split()]
            assert ids == tokenizer.encode(text, add, parse)
            assert (ids[0] == tokenizer.bos_id) == add
            assert (ids[-1] == tokenizer.token_to_id("<|eot_id|>")) == parse
    shown = run("decode", llama, str(tokenizer.bos_id), "--no-skip-special").out
    assert shown == tokenizer.id_to_token(tokenizer.bos_id) + "\n"
    assert run("decode", llama, str(tokenizer.bos_id)).out == "\n"


def test_json_documents(run: Run) -> None:
    encoded = json.loads(run("encode", DEMO, "--json", "--text", "hé!").out)
    assert encoded["schema"] == "tokpack.encode/1"
    assert encoded["ids"] == tokpack.load(DEMO).encode("hé!")
    assert [p["id"] for p in encoded["pieces"]] == encoded["ids"]
    assert bytes.fromhex("".join(p["bytes"] for p in encoded["pieces"])).decode() == "hé!"
    decoded = json.loads(run("decode", DEMO, "--json", *map(str, encoded["ids"])).out)
    assert decoded == {"schema": "tokpack.decode/1", "text": "hé!", "bytes": "hé!".encode().hex()}
    facts = json.loads(run("inspect", DEMO, "--json").out)
    assert (facts["schema"], facts["vocabulary"]["pieces"]) == ("tokpack.inspect/1", 2001)
    formats = json.loads(run("formats", "--json").out)
    assert {"gguf", "mtok", "tokpack"} <= {entry["name"] for entry in formats["formats"] if entry["reads"]}
    done = json.loads(run("convert", DEMO, "out.tokpack", "--json").out)
    assert (done["schema"], done["target"]) == ("tokpack.convert/1", "out.tokpack")


def test_decode_takes_ids_in_every_usual_form(run: Run, tmp_path: Path) -> None:
    ids = tokpack.load(DEMO).encode("one two")
    (tmp_path / "ids").write_text(json.dumps(ids))
    assert run("decode", DEMO, "--file", "ids").out == "one two\n"
    assert run("decode", DEMO, "-", stdin="\n".join(map(str, ids)).encode()).out == "one two\n"
    assert run("decode", DEMO, "-n", ",".join(map(str, ids))).out == "one two"


def test_decode_refuses_what_is_no_id(run: Run) -> None:
    bad = run("decode", DEMO, "12", "x7")
    assert bad.code == 2
    assert "'x7' is not an id" in one_line(bad)
    far = run("decode", DEMO, "2001")
    assert far.code == 4
    assert "0..2000" in one_line(far)


def test_inspect_shows_a_file_that_cannot_be_used(run: Run) -> None:
    shown = run("inspect", str(FIXTURES / "refused-duplicate-tokens.gguf"))
    assert shown.code == 0
    assert "gguf-duplicate-pieces" in shown.out
    refused = run("encode", str(FIXTURES / "refused-duplicate-tokens.gguf"), "--text", "a")
    assert refused.code == 4
    assert "--allow gguf-duplicate-pieces" in one_line(refused)
    assert (
        run(
            "encode", str(FIXTURES / "refused-duplicate-tokens.gguf"), "--text", "a", "--allow", "gguf-duplicate-pieces"
        ).code
        == 0
    )


def test_inspect_escapes_what_could_act_on_the_screen(run: Run, tmp_path: Path) -> None:
    raw = Path(DEMO).read_bytes()
    assert b"tokpack demo" in raw
    (tmp_path / "evil.gguf").write_bytes(raw.replace(b"tokpack demo", b"tok\x1b[2J\xe2\x80\xaedemo"[:14][:12]))
    shown = run("inspect", "evil.gguf", "-v").out
    assert "\x1b" not in shown
    assert "\\u001b" in shown


def test_inspect_fits_a_screen(run: Run) -> None:
    lines = run("inspect", DEMO).out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("encode", "missing.gguf", "--text", "a"), 3, "missing.gguf: cannot open"),
        (("inspect", "."), 3, ": "),
        (("encode", str(FIXTURES / "corpus.txt"), "--text", "a"), 3, "not recognised"),
        (("encode", "empty", "--text", "a"), 3, "empty"),
        (("encode", DEMO, "--from", "nonsense", "--text", "a"), 2, "unknown format"),
        (("encode", DEMO, "--from", "sentencepiece", "--text", "a"), 3, "SentencePiece model"),
        (("convert", DEMO, "out.bin"), 2, "--to"),
        (("convert", DEMO, "out.gguf"), 2, "out.gguf"),
        (("convert", DEMO, "no/such/folder.tokpack"), 3, "cannot write"),
        (("encode", DEMO, "--pre", "qwen", "--text", "a"), 4, "qwen2"),
        (("encod", DEMO), 2, "encode"),
    ],
)
def test_one_clear_line(run: Run, tmp_path: Path, args: tuple[str, ...], code: int, words: str) -> None:
    (tmp_path / "empty").touch()
    result = run(*args)
    assert result.code == code, result
    assert words in one_line(result)
    assert result.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_unknown_option_is_a_usage_error(run: Run) -> None:
    result = run("encode", DEMO, "--txt", "a")
    assert result.code == 2
    assert "--txt" in result.err
    assert "--text" in result.err  # the nearest one is named


def test_no_overwrite_without_force_and_never_the_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out.tokpack").write_text("precious")
    assert run("convert", DEMO, "out.tokpack").code == 2
    assert (tmp_path / "out.tokpack").read_text() == "precious"
    assert run("convert", DEMO, "out.tokpack", "--force", "-q") == Result(0, "", "")
    before = (tmp_path / "out.tokpack").read_bytes()
    same = run("convert", "out.tokpack", "out.tokpack", "--force")
    assert same.code == 2
    assert "the output is the input" in one_line(same)
    assert (tmp_path / "out.tokpack").read_bytes() == before


def test_strict_refuses_any_loss(run: Run, tmp_path: Path) -> None:
    result = run("convert", DEMO, "out.mtok", "--strict")
    assert result.code == 4
    assert "--allow mtok-" in one_line(result)
    assert list(tmp_path.iterdir()) == []
    assert run("convert", DEMO, "out.tokpack", "--strict").code == 0


def test_plain_body_is_refused_unless_each_loss_is_allowed(run: Run, tmp_path: Path) -> None:
    result = run("convert", DEMO, "out.mtok", "--index", "none")
    assert result.code == 4
    assert not (tmp_path / "out.mtok").exists()
    codes = {
        finding["code"]
        for finding in json.loads(run("convert", DEMO, "with.mtok", "--json").out)["findings"]
        if finding["severity"] == "ids"
    }
    allowed = [part for code in sorted(codes) for part in ("--allow", code)]
    assert run("convert", DEMO, "out.mtok", "--index", "none", *allowed).code == 0
    plain = run("inspect", "out.mtok", "--json")
    assert plain.code == 0
    assert '"mnn"' in plain.out


def test_sidecar(run: Run, tmp_path: Path) -> None:
    assert run("convert", DEMO, "out.mtok", "--index", "sidecar").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mtok", "out.mtok.index"]
    assert run("decode", "out.mtok", "39").out == run("decode", DEMO, "39").out
    (tmp_path / "out.mtok").write_bytes((tmp_path / "out.mtok").read_bytes() + b"x")
    assert run("decode", "out.mtok", "39").code == 0  # a plain .mtok now
    assert "mtok-stale-index" in run("inspect", "out.mtok", "--json").out


def test_pack_to_pack_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    assert run("convert", DEMO, "a.tokpack").code == 0
    assert run("convert", DEMO, "a.mtok").code == 0
    assert run("convert", "a.mtok", "b.tokpack").code == 0
    assert (tmp_path / "a.tokpack").read_bytes() == (tmp_path / "b.tokpack").read_bytes()


def test_pipe_closed_early() -> None:
    """`tokpack inspect … | head -1` says nothing on standard error."""
    command = f"'{sys.executable}' -m tokpack encode '{DEMO}' - | head -c 5"
    done = subprocess.run(
        ["bash", "-c", command],
        input=b"some text " * 400_000,
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(FIXTURES.parent)},
    )
    assert len(done.stdout) == 5
    assert done.stderr == b""


def test_help_fits_a_screen_and_shows_an_example(run: Run) -> None:
    for args in ((), ("convert",), ("inspect",), ("encode",), ("decode",), ("formats",)):
        shown = run(*args, "--help")
        assert shown.code == 0
        lines = shown.out.splitlines()
        assert len(lines) <= 45
        assert any(line.strip().startswith("tokpack ") for line in lines)
    assert run("--version").out == f"tokpack, version {tokpack.__version__}\n"


def test_debug_shows_the_traceback(run: Run) -> None:
    result = run("--debug", "encode", "missing.gguf", "--text", "a")
    assert result.code != 0
    assert "Traceback" in result.err
