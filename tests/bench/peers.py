"""Other programs that encode: each as the code that loads it and uses it, in this process or in a new one.

In the code ``F`` is the file, ``t`` what was loaded, ``x`` a text, ``i`` a list of ids, ``b`` a list of texts. A peer
that is not installed is left out. Their authors' own figures are for all cores; here one core is used but for batches.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_O200K = r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""  # noqa: E501
_CL100K = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""  # noqa: E501
_GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
_PATTERNS = {"o200k": _O200K, "qwen": _CL100K.replace(r"\p{N}{1,3}", r"\p{N}"), "r50k": _GPT2, "gpt2": _GPT2}


@dataclass(frozen=True)
class Peer:
    """One program on one file."""

    name: str
    file: Path
    setup: str
    load: str
    encode: str
    decode: str | None = None
    batch: str | None = None
    stream: str | None = None
    starts: bool = True  # whether a new process is worth timing: not for a second way of the same program

    @cached_property
    def _space(self) -> dict[str, Any]:
        space: dict[str, Any] = {"F": str(self.file)}
        exec(self.setup, space)
        return space

    def make(self) -> Any:
        """What is loaded from the file."""
        return eval(self.load, self._space)

    def function(self, part: str, names: str) -> Callable[..., Any] | None:
        """The code called ``part`` (encode, decode, batch, stream) as a function of ``names``."""
        code = getattr(self, part)
        return eval(f"lambda {names}: {code}", self._space) if code else None

    def script(self, text: str) -> str:
        """A program that loads the file and encodes ``text``."""
        return f"F = {str(self.file)!r}\nx = {text!r}\n{self.setup}\nt = {self.load}\n{self.encode}"


_HF_SETUP = """import tokenizers
def whole(t):
    t.no_truncation()
    t.no_padding()
    return t
def stream(t, i):
    s = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
    for one in i: s.step(t, one)"""
_HF_LOAD = "whole(tokenizers.Tokenizer.from_file(F))"
_TIKTOKEN_LOAD = (
    "tiktoken.Encoding('x', pat_str=P, mergeable_ranks=tiktoken.load.load_tiktoken_bpe(F), special_tokens={})"
)


def peers(source: Path, pack: Path, others: dict[str, Path]) -> Iterator[Peer]:
    """The programs for a vocabulary: those of its own format, and those for ``others``, its files for them."""
    for peer in (*_of_source(source), *_of_others(others), *_mnn(pack)):
        package = peer.setup.split()[1].split(".")[0].rstrip(",")
        if importlib.util.find_spec("xllamacpp" if peer.name == "llama.cpp" else package):
            yield peer


def _of_source(source: Path) -> Iterator[Peer]:
    if source.suffix == ".json":
        encode = "t.encode(x, add_special_tokens=False).ids"
        batch = "[e.ids for e in t.encode_batch_fast(b, add_special_tokens=False)]"
        decode = "t.decode(i, skip_special_tokens=False)"
        yield Peer("tokenizers", source, _HF_SETUP, _HF_LOAD, encode, decode, batch, "stream(t, i)")
        fast = "t.encode_batch_fast([x], add_special_tokens=False)[0].ids"
        yield Peer("batch_fast", source, _HF_SETUP, _HF_LOAD, fast, starts=False)
        yield Peer("gigatoken", source, "import gigatoken", "gigatoken.Tokenizer(F)", "t.encode(x)", "t.decode(i)")
        load = "fastokens.Tokenizer.from_file(F)"
        encode = "t.encode(x, add_special_tokens=False)"
        encode = f"(lambda r: getattr(r, 'ids', r))({encode})"
        yield Peer("fastokens", source, "import fastokens", load, encode, "t.decode(i)")
        yield Peer("tokie", source, "import tokie", "tokie.Tokenizer.from_json(F)", encode, "t.decode(i)")
        load = "kitoken.Kitoken.from_tokenizers_file(F)"
        yield Peer("kitoken", source, "import kitoken", load, "t.encode(x, True)", "t.decode(i)")
    if source.suffix == ".gguf":
        setup = f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'fixtures')!r}); from llama_api import LlamaVocab"
        load = "LlamaVocab(pathlib.Path(F))"
        yield Peer("llama.cpp", source, setup, load, "t.encode(x.encode(), False, False)", "t.decode(i, False, True)")


def _of_others(others: dict[str, Path]) -> Iterator[Peer]:
    if "tiktoken" in others:
        file = others["tiktoken"]
        pattern = next((found for key, found in _PATTERNS.items() if file.name.startswith(key)), _CL100K)
        setup = f"import tiktoken, tiktoken.load; P = {pattern!r}"
        batch = "t.encode_ordinary_batch(b, num_threads=2)"
        yield Peer("tiktoken", file, setup, _TIKTOKEN_LOAD, "t.encode_ordinary(x)", "t.decode_bytes(i)", batch)
    if "sentencepiece" in others:
        load = "sentencepiece.SentencePieceProcessor(model_file=F)"
        batch = "t.encode(b, num_threads=2)"
        file = others["sentencepiece"]
        yield Peer("sentencepiece", file, "import sentencepiece", load, "t.encode(x)", "t.decode(i)", batch)


def _mnn(pack: Path) -> Iterator[Peer]:
    """The engine on our .mtok: its ids are its own, so that it is timed where they are the same only."""
    if pack.suffix == ".mtok":
        setup = (
            f"import MNN, sys; sys.path.insert(0, {str(ROOT / 'tests/oracles')!r}); from mnn_engine import open_engine"
        )
        yield Peer("MNN", pack, setup, "open_engine(F)", "t.tokenizer_encode(x)")
