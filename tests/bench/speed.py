"""The tables of docs/performance.md: our runtime beside each peer that is installed, interleaved in one run.

    python tests/bench/speed.py [--mb N] NAME=SOURCE[,tiktoken=FILE][,sentencepiece=FILE] ...

SOURCE is a tokenizer.json or a .gguf; tokenizer.json is also run by ``tokenizers``, a .gguf by llama.cpp, a rank file
by ``tiktoken`` and a .model by ``sentencepiece``. Before anything is timed, ids are compared on the whole text; a peer
whose ids differ is named and not timed. Throughput is process CPU time: *unseen* is the second half of a text after the
first half, *again* the second half once more. The rest is wall time. Texts: 5 MB of ../shared (code, prose, scripts
without spaces) and the standard library's sources.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tokpack

ROOT = Path(__file__).resolve().parents[2]
MIXED = ROOT.parent / "shared/data/bench_mixed.txt.xz"
PROMPT = "The quick brown fox jumps over the lazy dog; it costs 1,234.50 (or so), doesn't it? Yes: they said so!"
O200K = r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""  # noqa: E501
CL100K = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""  # noqa: E501
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
PATTERNS = {"o200k": O200K, "qwen": CL100K.replace(r"\p{N}{1,3}", r"\p{N}"), "r50k": GPT2, "gpt2": GPT2}


@dataclass
class Peer:
    """A program: how to make it, to encode, to decode."""

    name: str
    load: Callable[[], Any]
    encode: Callable[[Any, str], Any]
    decode: Callable[[Any, Any], Any] | None = None


def texts(limit: int) -> Iterator[tuple[str, str]]:
    if MIXED.exists():
        yield "mixed", lzma.decompress(MIXED.read_bytes()).decode()[:limit]
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    yield "code", "".join(source.read_text(encoding="utf-8") for source in sources)[:limit]


def cpu(action: Callable[..., object], *arguments: object) -> float:
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start


def wall(runs: int, action: Callable[..., object], *arguments: object) -> float:
    """Median."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action(*arguments)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def halves(text: str) -> tuple[str, str]:
    middle = text.index("\n", len(text) // 2)
    return text[:middle], text[middle:]


def whole(tokenizer: Any) -> Any:
    """Without the truncation and padding that some files ask for."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def peers(source: Path, others: dict[str, str]) -> Iterator[Peer]:
    if source.suffix == ".json":
        import tokenizers

        def fast(tokenizer: Any, text: str) -> Any:
            return tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids

        yield Peer(
            "tokenizers",
            lambda: whole(tokenizers.Tokenizer.from_file(str(source))),
            lambda t, text: t.encode(text, add_special_tokens=False).ids,
            lambda t, ids: t.decode(ids),
        )
        yield Peer("batch_fast", lambda: whole(tokenizers.Tokenizer.from_file(str(source))), fast)
    if source.suffix == ".gguf":
        sys.path.insert(0, str(ROOT / "fixtures"))
        from llama_api import LlamaVocab

        yield Peer("llama.cpp", lambda: LlamaVocab(source), lambda v, text: v.encode(text.encode(), False, False))
    if "tiktoken" in others:
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe

        file = others["tiktoken"]
        pattern = next((found for key, found in PATTERNS.items() if Path(file).name.startswith(key)), CL100K)
        yield Peer(
            "tiktoken",
            lambda: tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=load_tiktoken_bpe(file), special_tokens={}),
            lambda e, text: e.encode_ordinary(text),
            lambda e, ids: e.decode_bytes(ids),
        )
    if "sentencepiece" in others:
        import sentencepiece

        model = others["sentencepiece"]
        yield Peer(
            "sentencepiece",
            lambda: sentencepiece.SentencePieceProcessor(model_file=model),
            lambda s, text: s.encode(text),
        )


def fresh(code: str) -> tuple[float, float]:
    """(median seconds, kB resident) of a new process that runs ``code``."""
    ends = "\nprint(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"
    sizes: list[int] = []

    def run() -> None:
        done = subprocess.run([sys.executable, "-c", code + ends], check=True, capture_output=True, text=True)
        sizes.append(int(done.stdout.split()[-1]))

    return wall(9, run), statistics.median(sizes)


def same(ours: Any, theirs: Any) -> bool:
    return np.array_equal(np.asarray(ours), np.asarray(theirs))


def throughput(pack: Path, found: list[Peer], made: dict[str, Any], limit: int) -> None:
    for name, text in texts(limit):
        first, second = halves(text)
        size = len(second.encode()) / 1e6
        ids = tokpack.load(pack).encode_array(second, False, False)
        line = []
        equal = []
        for peer in found:
            if same(ids, peer.encode(made[peer.name], second)):
                equal.append(peer)
            else:
                line.append(f"{peer.name}: other ids")
        unseen, again, theirs = [], [], {peer.name: [] for peer in equal}
        back: dict[str, list[float]] = {peer.name: [] for peer in equal if peer.decode}
        ours_back = []
        for _ in range(3):
            tokenizer = tokpack.load(pack)
            tokenizer.encode_array(first, False, False)
            unseen.append(cpu(tokenizer.encode_array, second, False, False))
            again.append(cpu(tokenizer.encode_array, second, False, False))
            tokenizer.decode_bytes(ids)
            ours_back.append(cpu(tokenizer.decode_bytes, ids))
            listed = ids.tolist()
            for peer in equal:
                theirs[peer.name].append(cpu(peer.encode, made[peer.name], second))
                if peer.decode:
                    back[peer.name].append(cpu(peer.decode, made[peer.name], listed))
        cold = cpu(tokpack.load(pack).encode_array, second, False, False)
        mine = statistics.median(unseen)
        line += [
            f"{n} {size / statistics.median(t):.1f} ({statistics.median(t) / mine:.1f}x)" for n, t in theirs.items()
        ]
        print(
            f"  {name:6} unseen {size / mine:5.1f}  again {size / statistics.median(again):5.1f}  "
            f"new object {size / cold:5.1f} MB/s | " + ", ".join(line)
        )
        decoded = statistics.median(ours_back)
        shown = [f"{n} ({statistics.median(t) / decoded:.1f}x)" for n, t in back.items()]
        print(f"         decode {size / decoded:5.0f} MB/s | " + ", ".join(shown), flush=True)


def rest(pack: Path, found: list[Peer], made: dict[str, Any]) -> None:
    load = wall(101, tokpack.load, pack)
    loads = [f"{peer.name} {wall(3, peer.load) * 1e3:.0f} ms ({wall(3, peer.load) / load:.0f}x)" for peer in found]
    print(f"  load {load * 1e3:.3f} ms | " + ", ".join(loads))
    tokenizer = tokpack.load(pack)
    tokenizer.encode(PROMPT, False, False)
    prompt = wall(2001, tokenizer.encode, PROMPT, False, False)
    others = []
    for peer in found:
        other = wall(501, peer.encode, made[peer.name], PROMPT)
        others.append(f"{peer.name} {other * 1e6:.0f} ({other / prompt:.1f}x)")
    print(f"  prompt of {len(PROMPT)} characters {prompt * 1e6:.1f} µs | " + ", ".join(others))
    bare, bare_size = fresh("pass")
    cold, cold_size = fresh(f"import tokpack; tokpack.load({str(pack)!r}).encode({PROMPT!r})")
    print(
        f"  new process to first ids: {(cold - bare) * 1e3:.1f} ms and {(cold_size - bare_size) / 1e3:.1f} MB over"
        f" a bare interpreter ({bare * 1e3:.1f} ms, {bare_size / 1e3:.1f} MB)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=6)
    parser.add_argument("tokenizers", nargs="+")
    arguments = parser.parse_args()
    print(json.dumps({"python": sys.version.split()[0], "numpy": np.__version__, "load": os.getloadavg()[0]}))
    with tempfile.TemporaryDirectory() as folder:
        for entry in arguments.tokenizers:
            name, _, files = entry.partition("=")
            source, *more = files.split(",")
            others = dict(other.split("=", 1) for other in more)
            pack = Path(folder) / f"{name}.tokpack"
            start = time.perf_counter()
            tokpack.convert(source, pack)
            took = time.perf_counter() - start
            found = list(peers(Path(source), others))
            made = {peer.name: peer.load() for peer in found}
            print(
                f"{name}: {tokpack.load(pack).vocab_size:,} pieces, {pack.stat().st_size / 1e6:.1f} MB,"
                f" convert {took:.1f} s"
            )
            throughput(pack, found, made, int(arguments.mb * 1e6))
            rest(pack, found, made)


if __name__ == "__main__":
    main()
