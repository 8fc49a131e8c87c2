"""Ids, text, attributes and special ids equal llama.cpp's recorded ones: from the .gguf and from converted packs."""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import SHARED, SharedData
from tests.runtime.bulk.forcing import forced_at_random
from tests.seeds import run_seed

VOCABULARIES = (
    *("llama-bpe", "qwen2", "qwen35", "gpt-2", "falcon", "mpt", "refact", "deepseek-llm"),
    *("llama-spm", "phi-3", "baichuan", "bert-bge", "gemma-4"),
)
SMALL = ("sarvam-mini", "ties-mini", "gemma4-mini", "plamo2-mini", "rwkv-mini", "whitespace-mini")
WITHOUT_CASES = {"baichuan"}
SAMPLE = 400  # texts of each vocabulary in the quick suite; TOKPACK_GOLDEN=all runs all of them


@dataclass
class Golden:
    texts: list[str | bytes]
    arrays: dict[str, Any]
    info: dict[str, Any]

    def lists(self, ids: str, lens: str) -> list[list[int]]:
        return [part.tolist() for part in np.split(self.arrays[ids], np.cumsum(self.arrays[lens])[:-1])]

    def byte_strings(self, key: str) -> list[bytes]:
        parts = np.split(self.arrays["dbytes_" + key], np.cumsum(self.arrays["dlens_" + key])[:-1])
        return [part.tobytes() for part in parts]


def corpus() -> list[str | bytes]:
    lines = (SHARED / "data/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def byte_corpus() -> list[bytes]:
    lines = (SHARED / "data/corpus_bytes.jsonl").read_text(encoding="utf-8").splitlines()
    return [base64.b64decode(json.loads(line)["b64"]) for line in lines]


def load_golden(shared_data: SharedData, name: str) -> Golden:
    with np.load(shared_data(f"golden/gguf/{name}.npz")) as data:
        arrays = {key: data[key] for key in data.files}
    return Golden(corpus(), arrays, json.loads(arrays["meta"].tobytes())["info"])


def chosen(count: int) -> list[int]:
    if os.environ.get("TOKPACK_GOLDEN") == "all" or count <= SAMPLE:
        return list(range(count))
    seed = run_seed()
    print(f"golden sample with seed {seed}")
    return random.Random(seed).sample(range(count), SAMPLE)


def variants(source: Path, folder: Path) -> Iterator[tuple[str, tokpack.Tokenizer]]:
    """The tokenizer from the source, from an .mtok where one can be written, and from a .tokpack."""
    yield source.name, tokpack.load(source)
    for ending in (".mtok", ".tokpack"):
        target = folder / (source.stem + ending)
        try:
            tokpack.convert(source, target)
        except tokpack.UnsupportedError:
            assert ending == ".mtok"
            continue
        yield target.name, tokpack.load(target)


def compare(tokenizer: tokpack.Tokenizer, golden: Golden, label: str) -> None:
    wrong = []
    indices = chosen(len(golden.texts))
    for key, flag in (("00", False), ("11", True)):
        lists, texts = golden.lists("ids_" + key, "lens_" + key), golden.byte_strings(key)
        for i in indices:
            ids = tokenizer.encode(golden.texts[i], flag, flag)
            if ids != lists[i]:
                wrong.append((key, i, golden.texts[i], ids, lists[i]))
            valid = [token for token in lists[i] if token >= 0]
            if tokenizer.detokenize(valid, flag, flag) != texts[i]:
                wrong.append((key, i, "detokenize", valid, texts[i]))
        for raw, expected in zip(byte_corpus(), golden.lists("bids_" + key, "blens_" + key), strict=True):
            if tokenizer.encode(raw, flag, flag) != expected:
                wrong.append((key, -1, raw, tokenizer.encode(raw, flag, flag), expected))
    assert not wrong, f"{label}: {len(wrong)} differences, first: {wrong[0]}"


def compare_facts(tokenizer: tokpack.Tokenizer, golden: Golden) -> None:
    info = golden.info
    attrs = [tokenizer.attr(i) for i in range(tokenizer.vocab_size)]
    assert attrs == golden.arrays["attrs"].tolist()
    assert sorted(tokenizer.eog_ids) == info["eog"]
    for role, expected in info["special_ids"].items():
        if role != "nl":  # not a role: the id of a line feed
            assert tokenizer.special_id(role) == (None if expected < 0 else expected), role
    post = tokenizer.view.meta["post_processor"]
    for flag in ("add_bos", "add_eos", "add_sep"):
        assert post[flag] == info["flags"][flag], flag


@pytest.mark.parametrize("name", VOCABULARIES)
def test_real_vocabulary(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    golden = load_golden(shared_data, name)
    for label, tokenizer in variants(shared_data(f"data/gguf/ggml-vocab-{name}.gguf"), tmp_path):
        compare(tokenizer, golden, label)
        compare_facts(tokenizer, golden)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_bulk(name: str, shared_data: SharedData) -> None:
    """The same ids by the bulk path, at chunks of any size."""
    golden, wrong = load_golden(shared_data, name), []
    tokenizer = tokpack.load(shared_data(f"data/gguf/ggml-vocab-{name}.gguf"))
    seed = run_seed()
    print(f"bulk limits with seed {seed}")
    limits = random.Random(seed)
    for key, flag in (("00", False), ("11", True)):
        lists, raw_lists = golden.lists("ids_" + key, "lens_" + key), golden.lists("bids_" + key, "blens_" + key)
        texts = [(golden.texts[i], lists[i]) for i in chosen(len(golden.texts))]
        for at, (text, expected) in enumerate([*texts, *zip(byte_corpus(), raw_lists, strict=True)]):
            if at % 20 == 0:
                assert forced_at_random(tokenizer, limits)
            if tokenizer.encode_array(text, flag, flag).tolist() != expected:
                wrong.append((key, text))
    assert not wrong, f"{name}: {len(wrong)} differences, first: {wrong[0]}"


@pytest.mark.parametrize("name", SMALL)
def test_small_vocabulary(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    golden = load_golden(shared_data, f"synth-{name}")
    for label, tokenizer in variants(shared_data(f"data/gguf-small/{name}.gguf"), tmp_path):
        compare(tokenizer, golden, label)
        compare_facts(tokenizer, golden)


@pytest.mark.parametrize("name", [name for name in VOCABULARIES if name not in WITHOUT_CASES])
def test_llamacpp_own_cases(name: str, shared_data: SharedData, tmp_path: Path) -> None:
    """The .inp/.out pairs of llama.cpp's test suite."""
    separator = "\n__ggml_vocab_test__\n"
    texts = shared_data(f"data/gguf/ggml-vocab-{name}.gguf.inp").read_text(encoding="utf-8").split(separator)
    lines = shared_data(f"data/gguf/ggml-vocab-{name}.gguf.out").read_text().splitlines()
    expected = [[int(number) for number in line.split()] for line in lines]
    if texts[-1] == "":
        texts.pop()  # the file ends with a separator
    assert len(texts) == len(expected) > 40
    for label, tokenizer in variants(shared_data(f"data/gguf/ggml-vocab-{name}.gguf"), tmp_path):
        assert tokenizer.encode_batch(texts, add_special_tokens=False, parse_special=False) == expected, label


def test_presplit(shared_data: SharedData) -> None:
    """All regex lists cut all texts where llama.cpp cuts them, empty words included."""
    from tokpack.formats.gguf.rules import pre_names, pre_type
    from tokpack.ir.codec import to_plain
    from tokpack.runtime.split import ClassMap, Splitter
    from tokpack.unicode import llamacpp

    with np.load(shared_data("golden/gguf/presplit.npz")) as data:
        arrays = {key: data[key] for key in data.files}
    lists = json.loads(arrays["meta"].tobytes())["lists"]
    assert len(lists) == 31
    kinds = {kind.type_name: kind for kind in map(pre_type, pre_names()) if kind is not None}
    spaces = {int(c): 0x0B for c in llamacpp.whitespace() if c > 127}
    texts = corpus()
    for key, entry in lists.items():
        kind = next(kinds[name] for name in entry["pre_types"] if name in kinds)
        han = any(getattr(step, "scanner", "") == "kimi_k2" for step in kind.steps)
        index, blocks = llamacpp.class_table(han=han)
        classes = ClassMap(index.tolist(), blocks.reshape(-1).tolist())
        splitter = Splitter([to_plain(step) for step in kind.steps], classes, spaces)
        counts = arrays["n_" + key]
        parts = np.split(arrays["w_" + key], np.cumsum(counts)[:-1])
        for text, sizes in zip(texts, parts, strict=True):
            assert isinstance(text, str)
            assert splitter.bounds(text) == np.cumsum(sizes).tolist(), (entry["pre_types"], text)
