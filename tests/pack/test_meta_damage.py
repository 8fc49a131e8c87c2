"""A meta section without a key, or with another value there: one error of ours, whatever the rules of the pack are."""

from __future__ import annotations

from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.guard import Trouble, exercise, limit
from tokpack.errors import TokpackError
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

SOURCES: dict[str, dict[str, Any]] = {
    "demo.gguf": {},
    "ugm.gguf": {},
    "wpm.gguf": {},
    "hf/gpt2.json": {},
    "hf/llama2.json": {},
    "hf/t5.json": {},
    "hf/bert-uncased.json": {},
    "hf/normalizers.json": {},
    "sentencepiece/bpe.model": {},
    "sentencepiece/unigram.model": {},
    "tiktoken/tekken-v3.json": {},
    "mnn/unigram.mtok": {"format": "mnn"},
    "mnn/sentencepiece.txt": {},
}
assert all((FIXTURES / name).exists() for name in SOURCES)
OTHERS: tuple[Any, ...] = (None, 0, -1, "x", [], {}, [None], {"kind": "x"}, [{"kind": "x"}], True, 1 << 40)


@pytest.mark.parametrize("name", SOURCES)
def test_every_key(name: str) -> None:
    pack = build_pack(tokpack.read(FIXTURES / name, **SOURCES[name]))
    trouble = Trouble()
    for number, key in enumerate(PackView(pack).meta):
        for other in ("absent", *OTHERS[number % 3 :: 3], None):
            view = PackView(pack)
            meta = {k: v for k, v in view.meta.items() if k != key}
            view.meta = meta if other == "absent" else {**meta, key: other}
            with trouble.note(f"{key} = {other!r}"), limit(10):
                try:
                    exercise(Tokenizer(view))
                except TokpackError:
                    continue
    trouble.report()
