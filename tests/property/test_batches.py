"""Batches: joined, in several processes, as arrays: always the ids of the texts one by one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, ROOT, read_texts
from tests.property.pairs import FIXTURE_NAMES, budget
from tests.property.strategies import texts
from tokpack.runtime import batch, joined
from tokpack.runtime.joined import Joiner

TEXTS = read_texts(FIXTURES / "texts.jsonl")[::3]
HF_NAMES = sorted(path.stem for path in (FIXTURES / "hf").glob("*.json") if not path.stem.startswith("refused-"))
FILES = [FIXTURES / f"{name}.gguf" for name in FIXTURE_NAMES] + [FIXTURES / "hf" / f"{name}.json" for name in HF_NAMES]


@cache
def joiner_of(path: Path) -> tuple[tokpack.Tokenizer, Joiner | None]:
    tokenizer = tokpack.load(path)
    return tokenizer, Joiner.of(tokenizer._pipeline, tokenizer.view, always=True)


def added_of(tokenizer: tokpack.Tokenizer) -> list[bytes]:
    view = tokenizer.view
    blob, offset = bytes(view.raw("added.blob")), view.array("added.offset").tolist()
    return [blob[a:b] for a, b in pairwise(offset)]


def outcome(tokenizer: tokpack.Tokenizer, text: str | bytes, add: bool) -> list[int] | None:
    try:
        return tokenizer.encode(text, add)
    except tokpack.EncodeError:
        return None


def test_many_vocabularies_can_be_joined() -> None:
    assert sum(joiner_of(path)[1] is not None for path in FILES) >= 10
    assert any(joiner_of(path)[0]._pipeline.bulk.in_one_go for path in FILES if path.suffix == ".json")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_joined_texts_are_texts_one_by_one(path: Path) -> None:
    tokenizer, joiner = joiner_of(path)
    if joiner is None:
        pytest.skip("no added token separates texts here")

    @budget(0.3)
    @given(st.lists(texts(added_of(tokenizer), 6), min_size=1, max_size=6), st.booleans())
    def check(items: list[str], add: bool) -> None:
        taken = [item for item in items if joiner.takes(item)]
        expected = [outcome(tokenizer, item, add) for item in taken]
        found = joiner.encode(taken, add) if taken else []
        if found is None:
            assert None in expected or any(joiner._token in ids for ids in expected if ids is not None)
        else:
            assert [ids.tolist() for ids in found] == expected

    check()


def test_a_large_batch_is_joined_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(
        p for p in FILES if p.suffix == ".json" and joiner_of(p)[0]._pipeline.bulk.in_one_go and joiner_of(p)[1]
    )
    tokenizer = tokpack.load(path)
    separator = joiner_of(path)[1]._separator  # type: ignore[union-attr]
    items = [text for text in TEXTS if outcome(tokenizer, text, True) is not None]
    items += [separator, f"a{separator}b", "", "x" * (joined.LONG + 1), b"bytes", "", " "]
    monkeypatch.setattr(batch, "_WORTH", 0)
    monkeypatch.setattr(joined, "_GROUP", 300)
    for add in (False, True):
        expected = [tokenizer.encode(text, add) for text in items]
        assert tokenizer.encode_batch(items, add) == expected
        assert lists(tokenizer.encode_batch_array(items, add)) == expected
    assert isinstance(tokenizer._joiner, Joiner)


def lists(arrays: tuple[Any, Any]) -> list[list[int]]:
    ids, offsets = arrays
    assert ids.dtype == np.int32
    assert offsets.dtype == np.int64
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    return [ids[a:b].tolist() for a, b in pairwise(offsets)]


@pytest.mark.parametrize("workers", [None, 1, 2, 5])
@pytest.mark.parametrize("kind", ["empty", "empty texts", "one", "few", "one huge text among small ones", "many"])
def test_shapes(kind: str, workers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_LEAST", 1000)  # so that small batches are several parts
    items: list[str | bytes] = {
        "empty": [],
        "empty texts": ["", b"", ""] * 400,
        "one": ["Hello world"],
        "few": TEXTS[:40],
        "one huge text among small ones": [*TEXTS[:20], "huge text " * 20_000, *TEXTS[20:40]],
        "many": TEXTS * 3,
    }[kind]
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    expected = [tokenizer.encode(text) for text in items]
    assert tokenizer.encode_batch(iter(items), workers=workers) == expected
    assert lists(tokenizer.encode_batch_array(iter(items), workers=workers)) == expected


@pytest.mark.parametrize("workers", [None, 2])
def test_an_error_names_the_text(workers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_LEAST", 10)
    tokenizer = tokpack.load(next(path for path in FILES if path.suffix == ".json"))
    items = [*["fine"] * 30, "\ud800", *["fine"] * 30]
    for call in (tokenizer.encode_batch, tokenizer.encode_batch_array):
        with pytest.raises(tokpack.EncodeError, match="text 30 of the batch"):
            call(items, workers=workers)


SCRIPT = """
import multiprocessing, sys, time
import tokpack
from tokpack.runtime import batch

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    tokenizer = tokpack.load(sys.argv[2])
    batch._LEAST = 100
    items = ["Hello world", "a b c" * 30, ""] * int(sys.argv[3])
    print("begun", flush=True)
    try:
        found = tokenizer.encode_batch(items, workers=2)
    except KeyboardInterrupt:
        print("interrupted")
    else:
        print(found == [tokenizer.encode(text) for text in items])
"""


def script(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(SCRIPT)
    tokpack.convert(FIXTURES / "demo.gguf", folder / "x.tokpack", force=True)
    command = [sys.executable, str(path), arguments[0], str(folder / "x.tokpack"), *arguments[1:]]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, start_new_session=True)


@pytest.mark.skipif(sys.platform == "win32", reason="start methods of Unix")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(method: str, tmp_path: Path) -> None:
    with script(tmp_path, method, "20") as process:
        output, errors = process.communicate(timeout=60)
    assert output.split() == ["begun", "True"], errors


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    import os

    with script(tmp_path, "fork", "1000000") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of them get it
        output, errors = process.communicate(timeout=60)
    assert (output, errors) == ("interrupted\n", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_LEAST", 10)
    monkeypatch.setattr(batch, "_start", _die)
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    with pytest.raises(tokpack.TokpackError, match="ended before its work"):
        tokenizer.encode_batch(["some text"] * 50, workers=2)


def _die(tokenizer: object) -> None:
    import os

    os._exit(1)
