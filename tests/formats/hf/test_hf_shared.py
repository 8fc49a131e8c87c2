"""Real files: everything that the library reads is read and has its ids; what it refuses is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED, SharedData
from tokpack.errors import FormatError
from tokpack.formats import hf
from tokpack.ir import BPE


def names(folder: str) -> list[str]:
    """Names in a folder of shared data; one that cannot be found when there is none, so that the tests are skipped."""
    place = SHARED / "data" / folder
    return sorted(path.name for path in place.iterdir() if path.is_dir()) if place.is_dir() else ["absent"]


def document_of(shared_data: SharedData, folder: str, name: str) -> Path:
    return shared_data(f"data/{folder}/{name}/tokenizer.json")


def marked(name: str) -> Any:
    """The trained ones are small; the real ones take a minute together."""
    return name if name.startswith("syn_") else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [marked(name) for name in names("hf")])
def test_ids_are_those_of_the_library(shared_data: SharedData, name: str) -> None:
    path = document_of(shared_data, "hf", name)
    ir = hf.read(path)
    assert not ir.validate()
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(path))
    pieces = ir.vocab.pieces
    assert sum(piece is not None for piece in pieces) == library.get_vocab_size(with_added_tokens=True)
    vocabulary = library.get_vocab(with_added_tokens=True)
    wrong = [token for token, token_id in vocabulary.items() if pieces[token_id] != token.encode()]
    assert not wrong
    assert len(pieces) == 1 + max(vocabulary.values())
    normalized = {token.id for token in ir.added_tokens if token.normalized}  # shown in their normal form
    for token_id, piece in enumerate(pieces):
        if piece is not None and token_id not in normalized:
            assert library.id_to_token(token_id) == piece.decode()
    flags = ("special", "normalized", "single_word", "lstrip", "rstrip")
    expected = {
        token_id: (token.content.encode(), *(getattr(token, flag) for flag in flags))
        for token_id, token in library.get_added_tokens_decoder().items()
    }
    found = {token.id: (token.content, *(getattr(token, flag) for flag in flags)) for token in ir.added_tokens}
    assert found == expected
    compare_model(ir, json.loads(library.to_str())["model"])


def compare_model(ir: Any, model: Any) -> None:
    """Merges and scores, as the library writes them."""
    assert ir.model.kind == model["type"]
    if isinstance(ir.model, BPE):
        merges = [[left.decode(), right.decode()] for left, right in ir.model.merges]
        assert merges == model["merges"]
    if ir.vocab.scores is not None:
        size = len(model["vocab"])
        assert ir.vocab.scores[:size].tolist() == [score for _, score in model["vocab"]]


REASONS = {
    "llama2_ort": ("model.merges[18917]", "Merges text file invalid at line 18918"),
    "ort_added_tokens": ("model.merges", "data did not match any variant of untagged enum MergeType"),
    "pt_hf_tiny": ("model.merges[0]", "Token `He` out of vocabulary"),
}


@pytest.mark.parametrize("name", names("hf-rejected"))
def test_what_the_library_refuses(shared_data: SharedData, name: str) -> None:
    path = document_of(shared_data, "hf-rejected", name)
    with pytest.raises(FormatError) as caught:
        hf.read(path)
    where, reason = REASONS[name]
    assert caught.value.location.path == where
    assert reason in caught.value.what
    tokenizers = pytest.importorskip("tokenizers")
    with pytest.raises(Exception, match=reason):
        tokenizers.Tokenizer.from_file(str(path))


def test_wrong_ids_in_the_file(shared_data: SharedData) -> None:
    path = document_of(shared_data, "hf", "syn_added_wrong_ids")
    ir = hf.read(path)
    given = {token["content"].encode(): token["id"] for token in json.loads(path.read_bytes())["added_tokens"]}
    assert any(given[token.content] != token.id for token in ir.added_tokens)
    assert [finding.code for finding in ir.findings] == ["hf-added-id"]


SCRIPT = """
import sys, time
import numpy
from tokpack.formats import hf
import tokpack.formats.hf.reader
start = time.process_time()
ir = hf.read(sys.argv[1])
seconds = time.process_time() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))  # ru_maxrss counts the parent's memory too
print(seconds, status["VmHWM"].split()[0], len(ir.vocab))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_eleven_megabytes_are_read_in_time(shared_data: SharedData) -> None:
    path = document_of(shared_data, "hf", "qwen3")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True)
    seconds, peak, size = done.stdout.split()
    assert int(size) == 151_669
    assert float(seconds) < 1.5
    assert int(peak) < 400 * 1024


def test_companions_of_real_folders(shared_data: SharedData, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(shared_data(f"data/hf/phi3_mini/{name}"), tmp_path)
    ir = hf.read(tmp_path)
    assert {role: entry.id for role, entry in ir.specials.roles.items()} == {
        "bos": 1,
        "eos": 32_000,
        "pad": 32_000,
        "unk": 0,
    }
    assert ir.specials.eog == (32_000,)
    assert set(ir.chat_templates) == {"default"}
