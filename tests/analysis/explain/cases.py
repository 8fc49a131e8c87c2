"""What is recorded: a text for each model of each reference, and each kind of stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import FIXTURES

__all__ = ["CASES", "GOLDEN", "Case"]

GOLDEN = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Case:
    """One explanation; the golden files are called ``name``."""

    name: str
    file: str
    text: str | bytes
    add_special: bool = True
    parse_special: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FIXTURES / self.file


RANKS = {"pattern": r"\p{L}+|\p{N}{1,3}|\s+|[^\s\p{L}\p{N}]+", "format": "tiktoken"}

CASES = [
    # llama.cpp
    Case("gguf-bpe", "demo.gguf", "Hello world<|im_end|>naïve\n"),
    Case("gguf-bpe-as-text", "demo.gguf", "a<|im_end|>", parse_special=False),
    Case("gguf-bpe-whole-words", "llama-bpe.gguf", "Hello world 12345"),
    Case("gguf-bpe-steps", "falcon.gguf", "It's 1234!"),
    Case("gguf-bpe-escaped", "gemma4.gguf", "Hi  all\n\nyou"),
    Case("gguf-runs", "whitespace.gguf", "Hello  World"),
    Case("gguf-dna", "hybriddna.gguf", "see <dna>GATTACAGAT</dna> now"),
    Case("gguf-score-merge", "spm.gguf", "Hello world"),
    Case("gguf-score-merge-bytes", "spm.gguf", "é\u4e00", add_special=False),
    Case("gguf-dropped-spaces", "spm-phi-3.gguf", "a <|end|>  b"),
    Case("gguf-unigram", "ugm.gguf", "Hello  wörld \U0001f44d"),
    Case("gguf-word-piece", "wpm.gguf", "Hello, Wörld \U0001f44d"),
    Case("gguf-greedy", "rwkv.gguf", "Hello world"),
    Case("gguf-min-cost", "plamo2.gguf", "Hello 世界"),
    Case("gguf-invalid", "demo.gguf", b"ok \xff\xfe\xc3"),
    # tokenizers
    Case("hf-byte-level", "hf/llama3.json", "Hello world 123"),
    Case("hf-normalized-tokens", "hf/added-lower.json", "a CAFÉ I b"),
    Case("hf-normalizers", "hf/normalizers.json", "Über—aa"),
    Case("hf-metaspace", "hf/llama2.json", "Hello é"),
    Case("hf-word-ends", "hf/word-ends.json", "Hello  World"),
    Case("hf-unigram", "hf/t5.json", "Hello world \U0001f44d"),
    Case("hf-word-piece", "hf/bert-uncased.json", "Hello, Wörld"),
    Case("hf-word-level", "hf/word-level.json", "the cat zzz"),
    # sentencepiece
    Case("spm-bpe", "sentencepiece/bpe.model", "Hello world"),
    Case("spm-unused", "sentencepiece/unused.model", "Hello world"),
    Case("spm-unigram", "sentencepiece/unigram.model", "Hello  world \U0001f44d"),
    Case("spm-char", "sentencepiece/char.model", "Hi \U0001f44d\U0001f44d"),
    Case("spm-word", "sentencepiece/word.model", "Hello world"),
    # tiktoken
    Case("tiktoken", "tiktoken/plain.tiktoken", "the cat, 12<|endoftext|>", options=RANKS),
    Case("tiktoken-invalid", "tiktoken/plain.tiktoken", b"the  \xff\xfe", options=RANKS),
    Case("tekken", "tiktoken/tekken-v3.json", "the cat"),
    # MNN
    Case("mnn-bpe", "mnn/byte-level-regex.mtok", "Hello world 12"),
    Case("mnn-unigram", "mnn/unigram.mtok", "Hello world \U0001f44d"),
    Case("mnn-word-piece", "mnn/word-piece.mtok", "Hello, Wörld"),
    Case("mnn-text-sentencepiece", "mnn/sentencepiece.txt", "Hello é"),
    Case("mnn-text-tiktoken", "mnn/tiktoken.txt", "Hello world"),
    Case("mnn-text-bert", "mnn/bert.txt", "Hello, wörld"),
    Case("mnn-text-huggingface", "mnn/huggingface.txt", "Hello world"),
    # what must not reach a terminal as it is
    Case("hostile", "demo.gguf", "a\u202eb\u200bc\x1b[31md\x00\u2028</script>"),
]
