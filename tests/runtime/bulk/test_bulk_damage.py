"""A damaged index gives an error of ours or other ids by the bulk path, never a crash or another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.runtime.bulk.forcing import force
from tests.seeds import run_seed
from tokpack.pack.view import PackView

TEXT = "Hello world, it's 12345 caf\u00e9 \u4e2d\u6587\u6c49\u5b57 !!\n  \n the quick brown fox <|im_end|> x\u0301 " * 3
TEXT += "``x'' \uac00\uac01 " + "".join(map(chr, range(0x4E00, 0x4E40)))
SECTIONS = ("bulk.", "merge.", "piece.offset", "piece.blob", "byte.", "class.", "onig.", "char.")
# of models whose words are not merged
SECTIONS += ("trie.", "piece.scores64", "piece.attrs", "hf.", "charsmap", "lookup.")


@pytest.mark.parametrize(
    "name",
    [
        "demo.gguf",
        "sarvam-moe.gguf",
        "gemma4.gguf",
        "spm.gguf",
        "wpm.gguf",
        "hf/t5.json",
        "hf/unigram-bytes.json",
        "hf/bert-uncased.json",
    ],
)
def test_damaged_sections(name: str, tmp_path: Path) -> None:
    target = tmp_path / "x.tokpack"
    tokpack.convert(FIXTURES / name, target)
    whole = target.read_bytes()
    places = PackView(whole).sections
    source = random.Random(run_seed())
    for section, (offset, size) in places.items():
        if not section.startswith(SECTIONS) or not size:
            continue
        for _ in range(3):
            data = bytearray(whole)
            for _ in range(source.choice([1, 4, 64])):
                data[offset + source.randrange(size)] = source.choice([0, 1, 0x7F, 0x80, 0xFF])
            try:
                tokenizer = tokpack.Tokenizer(PackView(bytes(data)))
                force(tokenizer, source.choice([5, 1 << 16]))
                ids = tokenizer.encode_array(TEXT)
                tokenizer.decode_bytes(ids)
            except tokpack.TokpackError:
                continue
            assert str(ids.dtype) == "int32"
