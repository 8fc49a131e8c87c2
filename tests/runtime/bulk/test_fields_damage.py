"""A damaged index of a Unigram or WordPiece model: an error of ours or other ids by the bulk path, nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.runtime.bulk.forcing import force
from tests.seeds import run_seed
from tokpack.pack.view import PackView

TEXT = (
    "Hello world, it's 12345 caf\u00e9 \u4e2d\u6587\u6c49\u5b57\uac00\uac01 !!\n  \n ``x'' \u0416 x\u0301 \u3042\u3044 "
    * 3
)
TEXT += "".join(map(chr, range(0x4E00, 0x4E40)))
SECTIONS = ("trie.", "piece.scores64", "piece.attrs", "hf.", "char.", "charsmap", "lookup.")


@pytest.mark.parametrize("name", ["hf/t5.json", "hf/unigram-bytes.json", "hf/bert-uncased.json", "wpm.gguf"])
def test_damaged_sections(name: str, tmp_path: Path) -> None:
    target = tmp_path / "x.tokpack"
    tokpack.convert(FIXTURES / name, target)
    whole = target.read_bytes()
    source = random.Random(run_seed())
    for section, (offset, size) in PackView(whole).sections.items():
        if not section.startswith(SECTIONS) or not size:
            continue
        for _ in range(2):
            data = bytearray(whole)
            for _ in range(source.choice([1, 4, 64])):
                data[offset + source.randrange(size)] = source.choice([0, 1, 0x7F, 0x80, 0xFF])
            try:
                tokenizer = tokpack.Tokenizer(PackView(bytes(data)))
                force(tokenizer, source.choice([5, 1 << 16]))
                found = tokenizer.encode_array(TEXT)
            except tokpack.TokpackError:
                continue
            assert found.dtype == np.int32
