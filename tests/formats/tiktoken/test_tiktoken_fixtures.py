"""The fixtures give the ids and bytes that tiktoken and mistral-common gave, from the source and from a pack."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import limit
from tests.pack.helpers import survive
from tests.pack.test_pack_hf import damaged
from tests.pack.test_pack_roundtrip import differences
from tests.seeds import run_seed
from tokpack.errors import EncodeError
from tokpack.pack.build import assemble, build_index, build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView

HERE = FIXTURES / "tiktoken"
NAMES = sorted(path.stem for path in (HERE / "golden").glob("*.npz"))
AMBIGUOUS = "<a>b"


def source(name: str) -> tuple[Path, dict[str, Any]]:
    """Path and options of a fixture, as record_tiktoken.py asks for them."""
    if name.startswith("tekken"):
        return HERE / f"{name}.json", {}
    pattern, special = tables()["RANK_FILES"][name]
    return HERE / f"{name}.tiktoken", {
        "pattern": pattern,
        "special_tokens": str(HERE / "specials.json") if special else None,
    }


def form(path: Path) -> str:
    """The format, which content alone does not show for the raw spelling."""
    return "tekken" if path.suffix == ".json" else "tiktoken"


def tables() -> dict[str, Any]:
    """Constants of the recording script, which cannot be imported without tiktoken."""
    text = (HERE / "record_tiktoken.py").read_text(encoding="utf-8")
    start, end = text.index("PATTERN = ("), text.index("\n\n\ndef texts")
    found: dict[str, Any] = {}
    exec(text[start:end], found)
    return found


def texts() -> list[str]:
    items = map(json.loads, (FIXTURES / "texts.jsonl").read_text(encoding="utf-8").splitlines())
    return [item["text"] for item in items if "text" in item][::3] + list(tables()["TEXTS"])


def golden(data: Any, mode: str) -> list[list[int] | None]:
    lens = data[f"lens_{mode}"]
    parts = np.split(data[f"ids_{mode}"], np.cumsum(np.maximum(lens, 0))[:-1])
    return [None if n < 0 else part.tolist() for n, part in zip(lens.tolist(), parts, strict=True)]


def check(tokenizer: tokpack.Tokenizer, name: str) -> None:
    with np.load(HERE / "golden" / f"{name}.npz") as data:
        ordinary, special = golden(data, "ordinary"), golden(data, "special")
        decoded = iter(np.split(data["dbytes"], np.cumsum(data["dlens"])[:-1]))
    asked = texts()
    assert len(asked) == len(ordinary) == len(special)
    for text, plain, parsed in zip(asked, ordinary, special, strict=True):
        for ids, parse in ((plain, False), (parsed, True)):
            if ids is None or (parse and AMBIGUOUS in text and tokenizer.special_id("eos") == 710):
                with pytest.raises(EncodeError):
                    tokenizer.encode(text, parse_special=parse)
            else:
                assert tokenizer.encode(text, parse_special=parse) == ids, text
        if plain is not None:
            assert tokenizer.decode_bytes(plain, False) == next(decoded).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, tmp_path: Path) -> None:
    path, options = source(name)
    check(tokpack.load(path, form(path), **options), name)
    target = tmp_path / "x.tokpack"
    tokpack.convert(path, target, source_format=form(path), read_options=options)
    check(tokpack.load(target), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_restores_to_the_ir_that_it_was_built_from(name: str) -> None:
    path, options = source(name)
    ir = tokpack.read(path, form(path), **options)
    assert ir.validate() == []
    assert differences(ir, restore(PackView(build_pack(ir)))) == []
    assert build_pack(ir) == build_pack(ir)


@pytest.mark.parametrize("name", ["gaps", "missing-bytes", "shuffled", "tekken-v13"])
def test_damaged_sections(name: str) -> None:
    seed = run_seed()
    print(f"seed {seed}")
    rng = random.Random(seed)
    path, options = source(name)
    sections = build_index(tokpack.read(path, form(path), **options))
    for _ in range(40):
        changed = dict(sections)
        section = rng.choice([key for key, raw in sections.items() if raw])
        changed[section] = damaged(sections[section], rng)
        assert survive(assemble(changed), 5.0)


def test_using_a_pack_imports_no_numpy_and_no_reader(tmp_path: Path) -> None:
    path, options = source("plain")
    target = tmp_path / "x.tokpack"
    tokpack.convert(path, target, source_format=form(path), read_options=options)
    code = (
        "import sys, tokpack; t = tokpack.load(sys.argv[1]); t.decode(t.encode('été <a> 中')); t.pieces('é');"
        "t.stream().push(3); print([m for m in sys.modules if m in ('numpy', 'tokpack.onig', 'tokpack.formats')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_scripts_make_what_is_there() -> None:
    done = subprocess.run([sys.executable, str(HERE / "make_tiktoken.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_libraries_still_say_what_was_recorded() -> None:
    if importlib.util.find_spec("tiktoken") and importlib.util.find_spec("mistral_common"):
        script = [sys.executable, str(HERE / "record_tiktoken.py"), "--check"]
        done = subprocess.run(script, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["tekken-v3", "tekken-v13"])
def test_tekken_against_mistral_common(name: str) -> None:
    from tests.runtime.tiktoken.test_tiktoken_live import compare_tekken

    tekken = pytest.importorskip("mistral_common.tokens.tokenizers.tekken", reason="needs mistral-common")
    compare_tekken(tekken, HERE / f"{name}.json", 60)


def test_long_words_take_near_linear_time() -> None:
    path, options = source("bytes-last")
    tokenizer = tokpack.load(path, form(path), **options)
    with limit(60):
        assert len(tokenizer.encode("the quick " * 30_000)) > 1000
