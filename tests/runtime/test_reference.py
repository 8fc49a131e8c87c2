"""The reference runtime gives the ids, texts and words that were recorded from llama.cpp."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES, SHARED, SharedData, read_texts
from tests.golden.test_fixtures import Aborts
from tests.property.pairs import FIXTURE_NAMES, pair

MODES = ((False, False), (False, True), (True, False), (True, True))
STEP = 1 if os.environ.get("TOKPACK_GOLDEN") == "all" else 5  # every fifth text in the quick suite
TEXTS = read_texts(FIXTURES / "texts.jsonl")


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except tokpack.EncodeError:
        return "abort"


def recorded(name: str) -> dict[str, Any]:
    with np.load(FIXTURES / "golden" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    meta = json.loads(arrays["meta"].tobytes())
    return recorded(meta["twin"]) if "twin" in meta else arrays


def cut(flat: Any, lens: Any) -> list[Any]:
    return np.split(flat, np.cumsum(lens.reshape(-1).astype(np.int64))[:-1])


@pytest.mark.parametrize("name", FIXTURE_NAMES)
def test_fixtures(name: str) -> None:
    slow, arrays = pair(name).slow, recorded(name)
    assert slow.attrs == arrays["attrs"].tolist()
    ids = [part.tolist() for part in cut(arrays["ids"], arrays["lens"])]
    decoded = [part.tobytes() for part in cut(arrays["decoded"], arrays["decoded_lens"])]
    aborts = Aborts(json.loads(arrays["meta"].tobytes()).get("aborts", {}))
    for t in range(0, len(TEXTS), STEP):
        stops = [aborts.has(key, t) for key in ("00", "01", "10", "11")]
        expected = ["abort" if stop else part for stop, part in zip(stops, ids[4 * t : 4 * t + 4], strict=True)]
        assert [outcome(slow.encode, TEXTS[t], *mode) for mode in MODES] == expected, TEXTS[t]
        if stops[0] or stops[3]:
            continue  # there are no ids to decode
        texts = [slow.detokenize(ids[4 * t + which], *mode) for which in (0, 3) for mode in MODES]
        assert texts == decoded[8 * t : 8 * t + 8], TEXTS[t]
    pieces = [part.tobytes() for part in cut(arrays["pieces"], arrays["piece_lens"])]
    assert [slow.piece(i, special) for i in range(len(slow.attrs)) for special in (True, False)] == pieces


def test_pre_tokenizer_names() -> None:
    arrays = recorded("pre-names")
    groups = json.loads(arrays["meta"].tobytes())["groups"]
    ids = [part.tolist() for part in cut(arrays["ids"], arrays["lens"])]
    for g, names in enumerate(groups):
        slow = pair("boundaries", names[0]).slow
        for t in range(g % STEP, len(TEXTS), STEP):
            assert slow.encode(TEXTS[t], False, False) == ids[t * len(groups) + g], (names[0], TEXTS[t])


def test_words_of_every_regex_list(shared_data: SharedData) -> None:
    from tokpack.formats.gguf.rules import pre_names, pre_type

    by_type = {kind.type_name: name for name in pre_names() if (kind := pre_type(name)) is not None}
    with np.load(shared_data("golden/gguf/presplit.npz")) as data:
        arrays = {key: data[key] for key in data.files}
    lines = (SHARED / "data/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    lists = json.loads(arrays["meta"].tobytes())["lists"]
    assert len(lists) == 31
    for k, entry in lists.items():
        name = next(by_type[type_name] for type_name in entry["pre_types"] if type_name in by_type)
        slow = pair("boundaries", name).slow
        lengths = cut(arrays[f"w_{k}"], arrays[f"n_{k}"])
        for t in range(int(k) % STEP, len(texts), STEP):
            words = slow.words(texts[t])
            assert "".join(words) == texts[t]
            assert [len(word) for word in words] == lengths[t].tolist(), (name, texts[t])
