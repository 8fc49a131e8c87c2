"""What is imported when: a small program should not pay for what it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tokpack
from tests.pack.helpers import FIXTURES


def modules_after(code: str, *arguments: str) -> set[str]:
    """Names of the modules that a fresh interpreter has imported after ``code``."""
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return {name.split(".", 1)[0] for name in done.stdout.split()} | set(done.stdout.split())


HEAVY = {"numpy", "click", "gguf", "msgpack", "jinja2", "rich", "regex"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    found = modules_after("import tokpack")
    assert not found & HEAVY
    assert not any(name.startswith("tokpack.formats") for name in found)
    assert "tokpack" in found


def test_the_names_of_the_package_do_not_import_formats() -> None:
    found = modules_after("import tokpack; tokpack.load; tokpack.Tokenizer; tokpack.TokpackError; tokpack.Finding")
    assert not found & HEAVY - {"msgpack"}


USE = """
import tokpack
tokenizer = tokpack.load(sys.argv[1])
text = "Hello world 123 <|endoftext|> l'\\u00e9t\\u00e9 \\u65e5\\u672c"
ids = tokenizer.encode(text)
assert tokenizer.decode(ids, skip_special_tokens=False) == text, tokenizer.decode(ids)
stream = tokenizer.stream()
"".join(stream.push(i) for i in ids)
tokenizer.pieces(text)
tokenizer.findings
"""


@pytest.mark.parametrize("name", ["demo", "llama-bpe", "deepseek-v3", "kimi-k2"])
@pytest.mark.parametrize("ending", ["tokpack", "mtok"])
def test_using_a_pack_imports_no_numpy_and_no_reader(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    tokpack.convert(FIXTURES / f"{name}.gguf", path)
    code = USE if name == "demo" else USE.replace("assert tokenizer.decode", "tokenizer.decode")
    found = modules_after(code, str(path))
    assert not found & (HEAVY - {"msgpack"})
    assert not any(name.startswith("tokpack.formats.") for name in found)
    assert "tokpack.pack.build" not in found


def test_reading_a_gguf_does_not_import_its_slow_reader() -> None:
    found = modules_after("import tokpack; tokpack.load(sys.argv[1])", str(FIXTURES / "demo.gguf"))
    assert not found & {"gguf", "click"}
