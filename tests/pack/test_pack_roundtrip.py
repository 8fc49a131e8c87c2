"""IR → pack → IR: nothing is lost, and equal tokenizers give equal bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.hostile.gguf_builder import Key, gguf, vocabulary
from tests.pack.helpers import FIXTURES, fixture_ir, pack_of, small_ir
from tokpack.errors import FormatError, TokpackError, UsageError
from tokpack.formats.gguf import read_bytes
from tokpack.ir import TokenizerIR
from tokpack.pack.build import build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView, open_pack

TEXTS = ("Hello world 123", "l'été à 東京 <|endoftext|>\n\n  x", "", "don't 12345 ...")


def readable(path: Path) -> bool:
    try:
        return not any(item.severity.value == "refuse" for item in tokpack.read(path).findings)
    except TokpackError:
        return False


NAMES = sorted(path.stem for path in FIXTURES.glob("*.gguf") if readable(path))


def differences(a: Any, b: Any, where: str = "ir") -> list[str]:
    """Fields in which two IRs differ."""
    if hasattr(a, "__dataclass_fields__") and type(a) is type(b):
        return [d for f in fields(a) for d in differences(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")]
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        same = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype
        same = same and a.tobytes() == b.tobytes()  # not by value: a score may be NaN
        return [] if same else [f"{where}: arrays differ"]
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            return [f"{where}: keys {list(a)} and {list(b)}"]
        return [d for key in a for d in differences(a[key], b[key], f"{where}[{key!r}]")]
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{where}[{i}]")]
    return [] if type(a) is type(b) and a == b else [f"{where}: {a!r:.80} and {b!r:.80}"]


def test_there_are_fixtures() -> None:
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_restores_to_the_ir_that_it_was_built_from(name: str) -> None:
    ir = fixture_ir(name)
    assert differences(ir, restore(PackView(build_pack(ir)))) == []


@pytest.mark.parametrize("target", ["out.tokpack", "out.mtok"])
@pytest.mark.parametrize("name", ["demo", "llama-bpe", "odd-tokens", "odd-merges", "sarvam-moe"])
def test_through_a_file(tmp_path: Path, name: str, target: str) -> None:
    path = tmp_path / target
    tokpack.convert(FIXTURES / f"{name}.gguf", path)
    assert differences(fixture_ir(name), tokpack.read(path)) == []
    assert differences(fixture_ir(name), restore(open_pack(os.fspath(path)))) == []


def test_a_vocabulary_with_something_in_every_field() -> None:
    ir = small_ir()
    assert differences(ir, restore(PackView(build_pack(ir)))) == []
    full = replace(ir, specials=replace(ir.specials, suppress=(3, 5)))
    assert differences(full, restore(PackView(build_pack(full)))) == []


@pytest.mark.parametrize("kind", ["[[str]]", "[[u16]]", "[[[i8]]]"])
def test_nested_extras_come_back_as_they_were(kind: str) -> None:
    value: Any = [["a"], []] if "str" in kind else [[1, 2], []] if kind == "[[u16]]" else [[[1], []], []]
    ir = read_bytes(gguf(vocabulary(change=[Key("tokenizer.x.nest", kind, value)])))
    assert differences(ir, restore(PackView(build_pack(ir)))) == []


def test_holes_and_duplicates_come_back() -> None:
    """Pieces of an IR may be absent, or equal: no GGUF has holes, other formats do."""
    ir = small_ir()
    pieces = list(ir.vocab.pieces)
    pieces[5] = None
    pieces[271] = pieces[270]
    changed = replace(ir, vocab=replace(ir.vocab, pieces=tuple(pieces)))
    back = restore(PackView(build_pack(changed)))
    assert back.vocab.pieces == tuple(pieces)


# --- equal bytes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["demo", "llama-bpe", "fim-candidates", "odd-merges", "overlapping-specials"])
def test_two_builds_give_equal_bytes(tmp_path: Path, name: str) -> None:
    assert build_pack(tokpack.read(FIXTURES / f"{name}.gguf")) == build_pack(tokpack.read(FIXTURES / f"{name}.gguf"))
    for ending in ("tokpack", "mtok"):
        for turn in ("a", "b"):
            tokpack.convert(FIXTURES / f"{name}.gguf", tmp_path / f"{turn}.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_a_pack_of_a_restored_ir_is_the_same_pack() -> None:
    for name in ("small", "demo", "odd-merges"):
        data = pack_of(name)
        assert build_pack(restore(PackView(data))) == data


SCRIPT = """
import hashlib, sys, tokpack
source, target = sys.argv[1:]
tokpack.convert(source, target)
print(hashlib.sha256(open(target, 'rb').read()).hexdigest())
"""


@pytest.mark.parametrize("ending", ["tokpack", "mtok"])
def test_the_seed_of_hashes_does_not_matter(tmp_path: Path, ending: str) -> None:
    digests = set()
    for seed in ("1", "77"):
        command = [sys.executable, "-c", SCRIPT, str(FIXTURES / "demo.gguf"), str(tmp_path / f"{seed}.{ending}")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
        digests.add(done.stdout.strip())
    tokpack.convert(FIXTURES / "demo.gguf", tmp_path / f"here.{ending}")
    digests.add(hashlib.sha256((tmp_path / f"here.{ending}").read_bytes()).hexdigest())
    assert len(digests) == 1


def test_the_name_of_the_source_does_not_matter(tmp_path: Path) -> None:
    raw = (FIXTURES / "demo.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(raw)
    (tmp_path / "b.bin").write_bytes(raw)
    assert build_pack(tokpack.read(tmp_path / "a.gguf")) == build_pack(tokpack.read(tmp_path / "b.bin"))


# --- where the index is ----------------------------------------------------------------------------------------------


def written(folder: Path, ir: TokenizerIR, index: str) -> Path:
    path = folder / f"{index}.mtok"
    allow = {item.code for item in _losses(ir)} if index == "none" else set()
    tokpack.write(ir, path, index=index, allow=allow)
    return path


def _losses(ir: TokenizerIR) -> list[tokpack.Finding]:
    from tokpack.formats.mnn import write_body

    return list(write_body(ir)[1])


@pytest.mark.parametrize("name", ["demo", "llama-bpe"])
def test_inline_sidecar_and_none(tmp_path: Path, name: str) -> None:
    ir = fixture_ir(name)
    inline, sidecar, none = (written(tmp_path, ir, index) for index in ("inline", "sidecar", "none"))
    assert sidecar.read_bytes() == none.read_bytes()
    assert inline.read_bytes().startswith(none.read_bytes())
    beside = Path(f"{sidecar}.index")
    assert beside.exists()
    assert not Path(f"{inline}.index").exists()
    assert not Path(f"{none}.index").exists()
    expected = tokpack.load(FIXTURES / f"{name}.gguf")
    for path in (inline, sidecar):
        tokenizer = tokpack.load(path)
        assert [tokenizer.encode(text) for text in TEXTS] == [expected.encode(text) for text in TEXTS]
        assert differences(ir, tokpack.read(path)) == []
    assert tokpack.load(none).reference == "mnn"


def test_a_sidecar_alone_names_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, fixture_ir("default"), "sidecar")
    with pytest.raises(FormatError, match="beside"):
        tokpack.load(f"{path}.index")
    path.unlink()
    with pytest.raises(FormatError):
        tokpack.load(f"{path}.index")


def test_a_sidecar_of_another_body_is_noticed(tmp_path: Path) -> None:
    one, two = tmp_path / "one.mtok", tmp_path / "two.mtok"
    for path, name in ((one, "default"), (two, "gpt-2")):
        tokpack.write(fixture_ir(name), path, index="sidecar")
    Path(f"{one}.index").write_bytes(Path(f"{two}.index").read_bytes())
    tokenizer = tokpack.load(one)
    assert tokenizer.reference == "mnn"
    assert "mtok-stale-index" in {finding.code for finding in tokenizer.findings}


@pytest.mark.parametrize("content", [b"", b"index of something else\n", bytes(5000)])
def test_a_file_that_happens_to_be_called_index_does_not_matter(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes((FIXTURES / "default.gguf").read_bytes())
    (tmp_path / "model.gguf.index").write_bytes(content)
    assert tokpack.load(path).encode("Hello")
    tokpack.convert(path, tmp_path / "inline.mtok")
    (tmp_path / "inline.mtok.index").write_bytes(content)
    assert tokpack.load(tmp_path / "inline.mtok").encode("Hello")


def test_another_place_for_the_index_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="elsewhere"):
        tokpack.write(fixture_ir("default"), tmp_path / "x.mtok", index="elsewhere")
    assert list(tmp_path.iterdir()) == []


def test_a_pack_takes_no_reader_options(tmp_path: Path) -> None:
    tokpack.convert(FIXTURES / "default.gguf", tmp_path / "x.tokpack")
    with pytest.raises(UsageError, match="pre"):
        tokpack.load(tmp_path / "x.tokpack", pre="qwen2")
