"""tokenizer.txt as we write it, in the real MNN engine."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES, read_texts
from tokpack.errors import LossError, UnsupportedError
from tokpack.findings import Severity
from tokpack.formats.mnn.write_text import render
from tokpack.ir import AlphabetKind, TokenizerIR

SharedData = Callable[[str], Path]
Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

# vocabulary → (type, least share of texts in per cent, codes of what may differ)
SHARED = {
    "llama-spm": (0, 100, set[str]()),
    "baichuan": (0, 100, set[str]()),
    "phi-3": (0, 99, {"mnn-txt-strip"}),
    "gpt-2": (3, 70, {"mnn-txt-pattern", "mnn-txt-long-runs"}),
    "qwen2": (3, 90, {"mnn-txt-pattern", "mnn-txt-long-runs"}),
    "rwkv-mini": (1, 100, set[str]()),
}


def _type(data: bytes) -> int:
    return int(data.split(b"\n", 1)[0].split()[1])


@pytest.mark.parametrize("name", SHARED)
def test_agreement_with_llama_cpp(name: str, shared_data: SharedData, ask: Ask) -> None:
    kind, least, codes = SHARED[name]
    small = name.endswith("-mini")
    source = f"data/gguf-small/{name}.gguf" if small else f"data/gguf/ggml-vocab-{name}.gguf"
    golden = np.load(io.BytesIO(shared_data(f"golden/gguf/{'synth-' if small else ''}{name}.npz").read_bytes()))
    ends = np.cumsum(golden["lens_11"].astype(np.int64))
    expected = [part.tolist() for part in np.split(golden["ids_11"], ends[:-1])]
    lines = shared_data("data/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = list(zip((json.loads(line)["text"] for line in lines), expected, strict=True))
    # a C string ends at NUL; std::regex overflows the stack on long runs
    pairs = [(text, ids) for text, ids in pairs if "\0" not in text and len(text) < 3000][::3]
    rendered = render(tokpack.read(str(shared_data(source))))
    data = rendered.files[0][1]
    assert _type(data) == kind
    losses = {loss.code for loss in rendered.losses if loss.severity in (Severity.IDS, Severity.REFUSE)}
    assert codes <= losses
    answers = ask(data, "encode", [text for text, _ in pairs])
    different = [text for (text, ids), answer in zip(pairs, answers, strict=True) if answer != ids]
    share = 100 * (1 - len(different) / len(pairs))
    print(f"\nMNN agrees with llama.cpp on {share:.2f} % of {len(pairs)} texts: {name}.txt")
    assert share >= least, different[:5]
    assert not different or losses


@pytest.mark.parametrize(
    ("name", "kind", "least"), [("rwkv", 1, 97), ("rwkv-no-unk", 1, 70), ("rwkv-unk", 1, 70), ("spm", 0, 80)]
)
def test_agreement_on_fixtures(name: str, kind: int, least: float, ask: Ask) -> None:
    golden = np.load(FIXTURES / "golden" / f"{name}.npz")
    parts = np.split(golden["ids"].astype(np.int64), np.cumsum(golden["lens"].reshape(-1).astype(np.int64))[:-1])
    texts = read_texts(FIXTURES / "texts.jsonl")
    chosen = [at for at, text in enumerate(texts) if isinstance(text, str) and "\0" not in text]
    rendered = render(tokpack.read(str(FIXTURES / f"{name}.gguf")))
    assert _type(rendered.files[0][1]) == kind
    prefix, *answers = ask(rendered.files[0][1], "encode", ["", *(texts[at] for at in chosen)])
    prefix = prefix[: rendered.files[0][1].split(b"\n")[1].split()[2] != b"0"]  # type 0 encodes the empty text too
    different = [
        texts[at]
        for at, answer in zip(chosen, answers, strict=True)
        if answer != [*prefix, *parts[4 * at + 1].tolist()]
    ]
    share = 100 * (1 - len(different) / len(chosen))
    print(f"\nMNN agrees with llama.cpp on {share:.2f} % of {len(chosen)} texts: fixture {name}.txt")
    assert share >= least, different[:5]
    assert not different or any(loss.severity is Severity.IDS for loss in rendered.losses)


def test_a_model_that_no_type_comes_near_is_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        render(tokpack.read(str(FIXTURES / "plamo2.gguf")))
    assert caught.value.code == "mnn-txt-family"


def _replace_piece(ir: TokenizerIR, number: int, text: bytes) -> TokenizerIR:
    pieces = list(ir.vocab.pieces)
    pieces[number] = text
    return dataclasses.replace(ir, vocab=dataclasses.replace(ir.vocab, pieces=tuple(pieces)))


def test_type_3_refuses_what_would_shift_or_end_the_program() -> None:
    ir = tokpack.read(str(FIXTURES / "gpt-2.gguf"))
    assert ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
    with pytest.raises(LossError) as caught:
        render(_replace_piece(ir, len(ir.vocab) - 1, b"a\nb"))
    assert caught.value.code == "mnn-txt-line-end"
    first = ir.vocab.pieces.index(b"!")
    with pytest.raises(LossError) as caught:
        render(_replace_piece(ir, first, b"no byte"))
    assert caught.value.code == "mnn-txt-byte-pieces"


def test_equal_input_gives_equal_bytes() -> None:
    ir = tokpack.read(str(FIXTURES / "spm.gguf"))
    assert render(ir).files == render(ir).files
