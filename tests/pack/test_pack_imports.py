"""What is imported when: a small program should not pay for what it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tokpack
from tests.conftest import ROOT
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


# what the first ids of a process may import besides tokpack: regular expressions and what they need, and C modules
ALLOWED = {"re", "sre_compile", "sre_constants", "sre_parse", "enum", "types", "functools", "collections", "operator"}
ALLOWED |= {"keyword", "reprlib", "itertools", "copyreg", "bisect", "heapq", "struct", "mmap", "zlib", "array", "math"}
ALLOWED |= {"__future__", "os", "posixpath", "ntpath", "genericpath", "stat"}  # the latter by site, too
FIRST_IDS = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
import tokpack
tokpack.load(sys.argv[2]).encode("Hello world 123, don't\\n  <s> \\u00e9")
print("\\n".join(set(sys.modules) - before))
"""


def sources() -> list[Path]:
    """One file of each kind of model."""
    folders = [FIXTURES, FIXTURES / "hf", FIXTURES / "sentencepiece", FIXTURES / "tiktoken"]
    files = [
        path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in (".gguf", ".json", ".model")
    ]
    chosen: dict[tuple[str, ...], Path] = {}
    for path in files:
        if "refused" not in path.name and "golden" not in path.name and path.stat().st_size < 200_000:
            try:
                ir = tokpack.read(path)
                tokpack.load(path)
            except tokpack.TokpackError:
                continue
            kinds = (
                ir.reference.value,
                type(ir.model).__name__,
                *(type(step).__name__ for step in ir.pre_tokenizer[:1]),
            )
            chosen.setdefault(kinds, path)
    return list(chosen.values())


def test_the_first_ids_of_a_process_import_little(tmp_path: Path) -> None:
    """Each of these takes longer to import than a pack to open: typing, dataclasses, pathlib, json, msgpack."""
    found: dict[str, set[str]] = {}
    for number, path in enumerate(sources()):
        pack = tmp_path / f"{number}.tokpack"
        tokpack.convert(path, pack)
        # without site, whose own imports depend on what is installed
        command = [sys.executable, "-S", "-c", FIRST_IDS, str(ROOT), str(pack)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        names = {name.split(".", 1)[0] for name in done.stdout.split()}
        found[path.name] = {name for name in names - ALLOWED - {"tokpack"} if not name.startswith("_")}
        if path.suffix == ".gguf":
            found[path.name] -= {"json"}  # the list of llama.cpp's patterns
    assert len(found) >= 15
    assert {name: modules for name, modules in found.items() if modules} == {}
