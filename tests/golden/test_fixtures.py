"""Every fixture equals the ids recorded from llama.cpp, from the .gguf and from converted packs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES, read_texts
from tests.golden.test_llamacpp import variants

MODES = ((False, False), (False, True), (True, False), (True, True))
NAMES = sorted(path.stem for path in (FIXTURES / "golden").glob("*.npz") if path.stem != "pre-names")
NOTHING_TO_ENCODE = {"none", "no-vocab"}  # llama.cpp loads them and aborts on use; we refuse to load


def golden(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(FIXTURES / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
    return meta, arrays


def parts(flat: Any, lens: Any) -> list[Any]:
    return np.split(flat, np.cumsum(lens.reshape(-1).astype(np.int64))[:-1])


LOADED = [name for name in NAMES if not golden(name)[0]["refused"] and name not in NOTHING_TO_ENCODE]
REFUSED = [name for name in NAMES if golden(name)[0]["refused"] and "twin" not in golden(name)[0]]


class Aborts:
    """On which (mode, text) llama.cpp aborts."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self._texts = {key: entry["texts"] for key, entry in entries.items()}

    def has(self, key: str, text: int) -> bool:
        texts = self._texts.get(key, [])
        return texts == "all" or text in texts


def encoded(tokenizer: tokpack.Tokenizer, text: str | bytes, add: bool, parse: bool) -> list[int] | str:
    try:
        return tokenizer.encode(text, add, parse)
    except tokpack.EncodeError:
        return "abort"


def decoded_as(tokenizer: tokpack.Tokenizer, ids: list[int], remove: bool, unparse: bool) -> bytes | str:
    try:
        return tokenizer.detokenize(ids, remove, unparse)
    except tokpack.EncodeError:
        return "abort"


def test_there_are_fixtures_of_both_kinds() -> None:
    assert len(LOADED) >= 25
    assert len(REFUSED) >= 8


@pytest.mark.parametrize("name", LOADED)
def test_ids_and_text(name: str, tmp_path: Path) -> None:
    meta, arrays = golden(name)
    texts = read_texts(FIXTURES / "texts.jsonl")
    ids = [part.tolist() for part in parts(arrays["ids"], arrays["lens"])]
    decoded = [part.tobytes() for part in parts(arrays["decoded"], arrays["decoded_lens"])]
    aborts, decode_aborts = Aborts(meta.get("aborts", {})), Aborts(meta.get("decode_aborts", {}))
    keys = ("00", "01", "10", "11")
    for label, tokenizer in variants(FIXTURES / f"{name}.gguf", tmp_path):
        wrong: list[Any] = []
        for t, text in enumerate(texts):
            for m, (add, parse) in enumerate(MODES):
                expected: Any = "abort" if aborts.has(keys[m], t) else ids[4 * t + m]
                got = encoded(tokenizer, text, add, parse)
                if got != expected:
                    wrong.append((text, add, parse, got, expected))
            for k, mode in enumerate((0, 3)):
                if aborts.has(keys[mode], t):
                    continue  # there are no ids to decode
                for m, (remove, unparse) in enumerate(MODES):
                    expected = decoded[8 * t + 4 * k + m]
                    if decode_aborts.has(f"{keys[mode]}-{keys[m]}", t):
                        expected = "abort"
                    got_text = decoded_as(tokenizer, ids[4 * t + mode], remove, unparse)
                    if got_text != expected:
                        wrong.append((text, "detokenize", remove, unparse, got_text, expected))
        assert not wrong, f"{label}: {len(wrong)} differences, first: {wrong[:3]}"


@pytest.mark.parametrize("name", sorted(NOTHING_TO_ENCODE))
def test_a_file_without_a_vocabulary(name: str, tmp_path: Path) -> None:
    """llama.cpp loads it for the model's sake; here it can be looked at, but not used."""
    source = FIXTURES / f"{name}.gguf"
    with pytest.raises(tokpack.RefusedError, match="no vocabulary"):
        tokpack.load(source)
    for ending in (".mtok", ".tokpack"):
        with pytest.raises(tokpack.RefusedError, match="no vocabulary"):
            tokpack.convert(source, tmp_path / f"out{ending}")
    assert list(tmp_path.iterdir()) == []
    assert len(tokpack.read(source).vocab) == golden(name)[0]["n_tokens"]


@pytest.mark.parametrize("name", LOADED)
def test_pieces_attributes_and_special_ids(name: str, tmp_path: Path) -> None:
    meta, arrays = golden(name)
    pieces = [part.tobytes() for part in parts(arrays["pieces"], arrays["piece_lens"])]
    for label, tokenizer in variants(FIXTURES / f"{name}.gguf", tmp_path):
        assert tokenizer.vocab_size == meta["n_tokens"], label
        for i in range(tokenizer.vocab_size):
            assert tokenizer.attr(i) == arrays["attrs"][i], (label, i)
            assert tokenizer.id_to_piece(i, special=True) == pieces[2 * i], (label, i)
            assert tokenizer.id_to_piece(i, special=False) == pieces[2 * i + 1], (label, i)
        assert sorted(tokenizer.eog_ids) == meta["eog"], label
        for role, expected in meta["special_ids"].items():
            if role != "nl":
                assert tokenizer.special_id(role) == (None if expected < 0 else expected), (label, role)
        post = tokenizer.view.meta["post_processor"]
        for flag in ("add_bos", "add_eos", "add_sep"):
            assert post[flag] == meta["flags"][flag], (label, flag)


@pytest.mark.parametrize("name", REFUSED)
def test_what_llamacpp_refuses_is_refused(name: str, tmp_path: Path) -> None:
    source = FIXTURES / f"{name}.gguf"
    with pytest.raises(tokpack.RefusedError) as caught:
        tokpack.load(source)
    assert str(source) in str(caught.value)
    target = tmp_path / "out.tokpack"
    with pytest.raises(tokpack.RefusedError):
        tokpack.convert(source, target)
    assert not target.exists()


def test_big_endian_file_equals_its_twin() -> None:
    meta, _ = golden("big-endian")
    ours = tokpack.load(FIXTURES / "big-endian.gguf")
    twin = tokpack.load(FIXTURES / f"{meta['twin']}.gguf")
    texts = read_texts(FIXTURES / "texts.jsonl")
    assert ours.encode_batch(texts) == twin.encode_batch(texts)


def test_every_byte_level_pre_tokenizer_name() -> None:
    """87 names on one vocabulary whose merges cross every boundary, so that each pre-tokenizer shows."""
    meta, arrays = golden("pre-names")
    texts = read_texts(FIXTURES / "texts.jsonl")
    names = [name for group in meta["groups"] for name in group]
    assert len(names) == 87
    ids, lens = arrays["ids"], arrays["lens"]
    split = parts(ids, lens)
    for g, group in enumerate(meta["groups"]):
        for name in group[:1] if len(group) > 3 else group:
            ir = tokpack.read(FIXTURES / "boundaries.gguf", pre=name)
            post = ir.post_processor
            for flag in ("add_bos", "add_eos", "add_sep"):
                assert getattr(post, flag) == meta["flags"][name][flag], (name, flag)
            tokenizer = tokpack.load(FIXTURES / "boundaries.gguf", pre=name)
            for t, text in enumerate(texts):
                assert tokenizer.encode(text, False, False) == split[t * len(meta["groups"]) + g].tolist(), (name, text)
