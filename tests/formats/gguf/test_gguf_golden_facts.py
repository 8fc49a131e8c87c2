"""Attributes, special ids, end-of-generation ids and flags of every fixture equal those recorded from llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.hostile.gguf_builder import gguf as gguf_bytes
from tests.hostile.gguf_builder import vocabulary
from tokpack.formats.gguf import read_bytes
from tokpack.formats.gguf.rules import pre_names
from tokpack.ir import BPE, TokenizerIR
from tokpack.ir.steps import BosEos, LlamaDetokenize, Replace

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.gguf"))
NOTHING_TO_ENCODE = {"none", "no-vocab"}  # loaded there and refused here, because there is nothing to use


def golden(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(FIXTURES / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
    if "twin" in meta:
        return golden(meta["twin"])
    return meta, arrays


LOADED = [name for name in NAMES if not golden(name)[0]["refused"] and name not in NOTHING_TO_ENCODE]
REFUSED = [name for name in NAMES if golden(name)[0]["refused"]]


def read(name: str) -> TokenizerIR:
    return tokpack.read(FIXTURES / f"{name}.gguf")


def flags(ir: TokenizerIR) -> dict[str, bool]:
    assert isinstance(ir.post_processor, BosEos)
    (decoder,) = ir.decoder
    assert isinstance(decoder, LlamaDetokenize)
    found = {
        "add_bos": ir.post_processor.add_bos,
        "add_eos": ir.post_processor.add_eos,
        "add_sep": ir.post_processor.add_sep,
        "clean_spaces": decoder.clean_spaces,
        "add_space_prefix": decoder.strip_space,
    }
    if isinstance(ir.model, BPE):  # the others do not look at these two
        found["ignore_merges"] = ir.model.ignore_merges
        found["escape_whitespaces"] = any(isinstance(step, Replace) for step in ir.normalizer)
    return found


def test_there_are_fixtures_of_both_kinds() -> None:
    assert len(LOADED) >= 30
    assert len(REFUSED) >= 8


@pytest.mark.parametrize("name", LOADED)
def test_sizes_and_attributes(name: str) -> None:
    meta, arrays = golden(name)
    ir = read(name)
    assert len(ir.vocab) == meta["n_tokens"]
    wrong = np.flatnonzero(ir.vocab.attrs != arrays["attrs"]).tolist()
    assert not wrong, [(i, ir.vocab.pieces[i], int(ir.vocab.attrs[i]), int(arrays["attrs"][i])) for i in wrong[:5]]


@pytest.mark.parametrize("name", LOADED)
def test_special_ids(name: str) -> None:
    expected = dict(golden(name)[0]["special_ids"])
    ir = read(name)
    del expected["nl"]  # the id of a newline; no role of the vocabulary
    assert {role: ir.specials.get(role) for role in expected} == {
        role: None if token < 0 else token for role, token in expected.items()
    }
    assert set(ir.specials.roles) <= set(expected)


@pytest.mark.parametrize("name", LOADED)
def test_end_of_generation_ids(name: str) -> None:
    assert list(read(name).specials.eog) == golden(name)[0]["eog"]


@pytest.mark.parametrize("name", LOADED)
def test_flags(name: str) -> None:
    found = flags(read(name))
    assert found == {key: value for key, value in golden(name)[0]["flags"].items() if key in found}


@pytest.mark.parametrize("name", LOADED)
def test_nothing_that_llama_cpp_loads_is_refused(name: str) -> None:
    ir = read(name)
    assert [item for item in (*ir.findings, *ir.validate()) if item.severity.value == "refuse"] == []


@pytest.mark.parametrize("name", LOADED)
def test_tokenizers_report_the_same(name: str) -> None:
    """Through the runtime: from the .gguf itself."""
    read(name)
    meta, arrays = golden(name)
    tokenizer = tokpack.load(FIXTURES / f"{name}.gguf")
    assert tokenizer.vocab_size == meta["n_tokens"]
    assert [tokenizer.attr(token) for token in range(tokenizer.vocab_size)] == arrays["attrs"].tolist()
    assert sorted(tokenizer.eog_ids) == meta["eog"]
    for role, token in meta["special_ids"].items():
        if role != "nl":
            assert tokenizer.special_id(role) == (None if token < 0 else token), role
    ends = np.cumsum(arrays["piece_lens"].reshape(-1).astype(np.int64)).tolist()
    blob = arrays["pieces"].tobytes()
    expected = [blob[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    for token in range(tokenizer.vocab_size):
        for place, special in enumerate((True, False)):
            assert tokenizer.id_to_piece(token, special) == expected[2 * token + place], (token, special)


@pytest.mark.parametrize("name", REFUSED)
def test_what_llama_cpp_refuses_is_refused(name: str) -> None:
    with pytest.raises(tokpack.RefusedError) as caught:
        tokpack.load(FIXTURES / f"{name}.gguf")
    assert caught.value.location.file == str(FIXTURES / f"{name}.gguf")


PRE = json.loads(np.load(FIXTURES / "golden" / "pre-names.npz")["meta"].tobytes())


def test_every_recorded_pre_tokenizer_is_known() -> None:
    assert set(PRE["flags"]) <= set(pre_names())
    assert len(pre_names()) >= 91


@pytest.mark.parametrize("name", sorted(PRE["flags"]))
def test_flags_of_every_pre_tokenizer(name: str) -> None:
    assert flags(read_bytes(gguf_bytes(vocabulary(pre=name)))) == PRE["flags"][name]


@pytest.mark.parametrize("group", PRE["groups"], ids=lambda group: group[0])
def test_pre_tokenizers_that_gave_equal_ids_split_alike(group: list[str]) -> None:
    """Names of one group gave equal ids on all texts: names with equal steps have to be of one group."""
    steps = {name: read_bytes(gguf_bytes(vocabulary(pre=name))).pre_tokenizer for name in PRE["flags"]}
    for name in group:
        same = [other for other in steps if steps[other] == steps[name]]
        alike = [n for n in same if PRE["flags"][n]["ignore_merges"] == PRE["flags"][name]["ignore_merges"]]
        assert set(alike) <= set(group), name
