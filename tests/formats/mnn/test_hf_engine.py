"""Converted tokenizer.json files in the real MNN engine, compared with ids recorded from the library ``tokenizers``."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import SHARED
from tokpack.findings import Severity
from tokpack.formats.mnn import write_body

pytestmark = pytest.mark.slow

SharedData = Callable[[str], Path]
Ask = Callable[[bytes, str, Iterable[object]], list[Any]]

NAMES = sorted(path.name for path in (SHARED / "data" / "hf").glob("*") if path.is_dir())
SAMPLE = 100
LONGEST = 20_000  # characters: MNN's merging takes time that grows with the square of a word's length

# file → least share of texts (per cent) with the library's ids, without what MNN 3.6.1 does not add at the end
SHARES = {
    "albert": 95,  # composition, ties between paths
    "all_minilm_l6_v2": 97,
    "anthropic_pypi": 95,  # the order of combining marks
    "bart_florence": 99,
    "bert_base_cased": 97,  # BERT: texts of characters chosen at random
    "bert_base_chinese": 97,
    "bert_base_uncased": 97,
    "bert_multilingual_cased": 97,
    "bge_small_en": 97,
    "clip": 92,  # a word suffix, by marks; NFC
    "deepseek_v4": 99,
    "gemma3": 99,
    "gpt2": 99,
    "gpt35turbo": 99,
    "gpt_neox_20b": 95,  # the order of combining marks
    "gptoss": 98,  # case of letters beyond ASCII
    "llama2": 99,
    "llama3": 98,  # ignore_merges
    "minimind": 99,
    "mpt_gguf": 95,
    "phi2_codegen": 99,
    "phi3_mini": 99,
    "phi3_vision": 99,
    "qwen3": 95,
    "roberta_base": 99,
    "starcoder_gguf": 99,
    "syn_bpe_prefix": 85,
    "syn_charbpe_eow": 82,  # characters without a piece for the end of a word
    "syn_no_unk": 98,  # characters without a piece are replaced before the model sees them
    "syn_nobytefb_fuse": 97,
    "syn_nobytefb_nofuse": 96,
    "syn_norm_bytelevel": 60,  # a pattern over GPT-2's characters
    "syn_partial_bytefb": 78,  # tokenizers keeps an unknown token back behind byte pieces
    "t5_small": 95,
    "tt_gemma_cropped": 96,
    "whisper_tiny": 99,
    "xlm_roberta": 95,
}


def _sample(shared_data: SharedData) -> list[tuple[int, str]]:
    """Texts with their index among all; the binding hands a text over as a C string."""
    texts: list[str] = []
    for name in ("corpus", "corpus_hf"):
        lines = shared_data(f"data/{name}.jsonl").read_text(encoding="utf-8").splitlines()
        texts += [json.loads(line)["text"] for line in lines]
    possible = [(at, text) for at, text in enumerate(texts) if "\0" not in text and len(text) < LONGEST]
    return sorted(random.Random(4).sample(possible, SAMPLE))


def _expected(path: Path) -> tuple[list[list[int]], set[int]]:
    """Ids with what stands before them, and the texts on which the library fails."""
    golden = np.load(io.BytesIO(path.read_bytes()))
    ends = np.cumsum(golden["lens"].astype(np.int64))
    prefix = golden["prefix"].tolist()
    errors = golden["errors"]
    failed = json.loads(errors.tobytes() if errors.dtype == np.uint8 else str(errors))
    return [[*prefix, *part.tolist()] for part in np.split(golden["ids"], ends[:-1])], {at for at, _ in failed}


@pytest.mark.parametrize("name", NAMES)
def test_agreement_with_tokenizers(
    name: str, shared_data: SharedData, ask: Ask, record_property: Callable[[str, object], None]
) -> None:
    """Each file is written, and loaded by the engine, which gives ids for every text of the sample."""
    ir = tokpack.read(str(shared_data(f"data/hf/{name}/tokenizer.json")))
    data, findings = write_body(ir)
    chosen = _sample(shared_data)
    answers = ask(data, "encode", [text for _, text in chosen])
    assert len(answers) == len(chosen)
    if not (SHARED / f"golden/hf/{name}.npz.xz").exists():
        return  # the library itself gives other ids from one process to the next
    expected, failed = _expected(shared_data(f"golden/hf/{name}.npz"))
    pairs = [
        (text, expected[at], answer) for (at, text), answer in zip(chosen, answers, strict=True) if at not in failed
    ]
    different = [text for text, right, answer in pairs if answer != right]
    share = 100 * (1 - len(different) / len(pairs))
    record_property("agreement", share)
    print(f"\nMNN agrees with tokenizers on {share:.1f} % of {len(pairs)} texts: {name}")
    assert share >= SHARES.get(name, 0), different[:5]
    assert not different or any(finding.severity is Severity.IDS for finding in findings)
