"""Each regex list of llama.cpp's pre-tokenizer table, split by the real MNN engine and by llama.cpp."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.formats.mnn.parts import Bpe, ByteLevel, Metaspace, PreTokenizer, Split
from tokpack.formats.mnn.patterns import lower_split, uses_wregex
from tokpack.ir.steps import Dialect, ScannerSplit
from tokpack.ir.steps import Split as SplitStep
from tokpack.unicode import byte_level

SharedData = Callable[[str], Path]
Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

MARK = 256  # an id that shows where a word begins

# Characters that MNN's matcher puts into other classes than llama.cpp does (finding mtok-char-classes); the last two
# ranges are Han to llama.cpp's scanner for Kimi K2 although nothing is assigned there.
OTHER_CLASS = re.compile("[\x01-\x07\x85\u2028\u2029\u2ffc-\u2fff\u31ef\U0002ebf0-\U0002ee5d\ufa6e\ufa6f\ufada-\ufaff]")


def _splits(row: dict[str, Any]) -> list[Split]:
    splits: list[Split] = []
    for rule in row["regexes"]:
        engine, pattern = rule["engine"], rule["regex"]
        step: ScannerSplit | SplitStep
        if engine.startswith("custom:"):
            step = ScannerSplit(engine.removeprefix("custom:"), pattern)
        else:
            step = SplitStep(pattern, Dialect(engine.replace("_", "-")))
        splits += lower_split(step, "test")
    return splits


def _revealing_body(splits: list[Split]) -> bytes:
    """A tokenizer whose ids are the bytes, with MARK before each word.

    Behind ByteLevel no word begins with a space, so Metaspace puts its replacement before each of them.
    """
    pieces = (*(char.encode() for char in byte_level.CHARS), "▁".encode())
    pre: tuple[PreTokenizer, ...] = (*splits, ByteLevel(), Metaspace("▁", add_prefix_space=True))
    return serialize(MtokBody(Bpe(pieces, np.zeros((0, 3), np.uint32)), pre_tokenizer=pre))


def _words(ids: list[int]) -> list[bytes]:
    words: list[bytearray] = []
    for number in ids:
        if number == MARK:
            words.append(bytearray())
        else:
            words[-1].append(number)
    return [bytes(word) for word in words]


def _recorded(text: str, lengths: list[int]) -> list[bytes]:
    words = []
    for length in lengths:
        if length:  # zero-length words give no ids
            words.append(text[:length].encode("utf-8", "surrogatepass"))
        text = text[length:]
    return words


@pytest.mark.parametrize("number", range(31))
def test_same_words(number: int, shared_data: SharedData, ask: Ask) -> None:
    golden = np.load(io.BytesIO(shared_data("golden/gguf/presplit.npz").read_bytes()))
    table = json.loads(shared_data("tables/pre-types.json").read_text(encoding="utf-8"))
    name = json.loads(bytes(golden["meta"]))["lists"][str(number)]["pre_types"][0]
    splits = _splits(table["pre_types"][name])
    lines = shared_data("data/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    ends = np.cumsum(golden[f"n_{number}"].astype(np.int64))
    lengths = np.split(golden[f"w_{number}"], ends[:-1])

    exact = all(uses_wregex(split.pattern) for split in splits)  # on code points: no exceptions
    chosen = [i for i, text in enumerate(texts) if "\0" not in text and (exact or not OTHER_CLASS.search(text))]
    answers = ask(_revealing_body(splits), "encode", [texts[i] for i in chosen])

    assert len(answers) == len(chosen) > 2600
    wrong = [
        (texts[i], _words(answer))
        for i, answer in zip(chosen, answers, strict=True)
        if _words(answer) != _recorded(texts[i], lengths[i].tolist())
    ]
    assert not wrong, f"{name}: {len(wrong)} texts, such as {wrong[0]!r}"


@pytest.mark.parametrize("text", ["中", "a", "É", " ", "\u3000", "1", "!", "ア", "가"])
@pytest.mark.parametrize("name", ["DEEPSEEK_LLM", "DEEPSEEK3_LLM", "PORO", "KIMI_K2", "AFMOE", "YOUTU"])
def test_long_runs_do_not_overflow_the_stack(name: str, text: str, shared_data: SharedData, ask: Ask) -> None:
    table = json.loads(shared_data("tables/pre-types.json").read_text(encoding="utf-8"))
    splits = _splits(table["pre_types"][name])
    run = text * 60_000
    if name == "AFMOE" and text == "1":
        run = text * 20_000  # its lookahead over digits takes time that grows with the square of the run
    (ids,) = ask(_revealing_body(splits), "encode", [run])
    assert b"".join(_words(ids)) == run.encode()
