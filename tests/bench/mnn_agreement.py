"""On how many texts the MNN engine is right: with our .mtok, and with the one that MNN's own exporter wrote.

    python tests/bench/mnn_agreement.py [-n TEXTS] [--all] [NAME ...]

Needs the data beside the project (../shared) and the PyPI package MNN; prints a table. "Right" is: the ids recorded
from the source's reference, without what stands behind the text, which MNN 3.6.1 never adds; of what stands before it,
for each file the better of with and without counts.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tokpack
from tokpack.errors import TokpackError
from tokpack.findings import Severity
from tokpack.formats.mnn import write_body

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
ENGINE = ROOT / "tests" / "oracles" / "mnn_engine.py"
LONGEST = 20_000  # characters: MNN's merging takes time that grows with the square of a word's length

# file of MNN's exporter → source with the same vocabulary; golden ids of the source lie under golden/
PAIRS = {
    "albert.mtok": "hf/albert",
    "bert.txt": "hf/bert_base_uncased",
    "claude.mtok": "hf/anthropic_pypi",
    "clip.mtok": "hf/clip",
    "deepseek_v3.mtok": "hf/deepseek_v4",
    "falcon.mtok": "gguf/falcon",
    "florence.mtok": "hf/bart_florence",
    "gpt4o.mtok": "hf/gptoss",
    "llama2.mtok": "hf/llama2",
    "llama2_spm.txt": "spm/llama2.model",
    "llama3.mtok": "hf/llama3",
    "minilm.mtok": "hf/all_minilm_l6_v2",
    "mon.mtok": "hf/mon_unigram_bytefallback",
    "nmt.mtok": "hf/marian_nmt",
    "phi2.mtok": "hf/phi2_codegen",
    "phi3mini.mtok": "hf/phi3_mini",
    "qwen3.mtok": "hf/qwen3",
    "qwen_tiktoken.txt": "tiktoken/qwen.tiktoken",
    "roberta.mtok": "hf/roberta_base",
    "roberta.txt": "hf/roberta_base",
    "t5.mtok": "hf/t5_small",
    "t5small.mtok": "hf/t5_small",
    "t5_spm.txt": "spm/t5_torchtune.model",
}


def unpacked(relative: str, folder: Path) -> Path:
    """A file of the shared data, unpacked if need be."""
    plain = SHARED / relative
    if plain.exists():
        return plain
    target = folder / relative
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.decompress((SHARED / f"{relative}.xz").read_bytes()))
    return target


def texts() -> list[str]:
    """corpus.jsonl, then corpus_hf.jsonl."""
    lines: list[str] = []
    for name in ("corpus", "corpus_hf"):
        lines += (SHARED / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def golden(source: str, folder: Path) -> tuple[list[list[int]], set[int], list[int]]:
    """Ids by text, the texts on which the reference fails, and the ids that stand before a text."""
    kind, name = source.split("/")
    if kind == "gguf":
        with np.load(SHARED / "golden" / "gguf" / f"{name}.npz") as data:
            return [part.tolist() for part in _parts(data["ids_11"], data["lens_11"])], set(), []
    prefix = {"hf": "", "spm": "spm_", "tiktoken": "tik_"}[kind]
    with np.load(io.BytesIO(unpacked(f"golden/hf/{prefix}{name}.npz", folder).read_bytes())) as data:
        before = data["prefix"].tolist() if "prefix" in data else []
        failed = {at for at, _ in json.loads(data["errors"].tobytes())} if "errors" in data else set()
        return [part.tolist() for part in _parts(data["ids"], data["lens"])], failed, before


def _parts(ids: Any, lens: Any) -> list[Any]:
    return list(np.split(ids, np.cumsum(lens.astype(np.int64))[:-1]))


def source_file(source: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The file of a source, and the options that its reader needs."""
    kind, name = source.split("/")
    if kind == "gguf":
        return unpacked(f"data/gguf/ggml-vocab-{name}.gguf", folder), {}
    if kind == "hf":
        return unpacked(f"data/hf/{name}/tokenizer.json", folder), {}
    options = {"pattern": name.split(".")[0]} if kind == "tiktoken" else {}
    return unpacked(f"data/{kind}/{name}", folder), options


def ask(path: Path, chosen: Sequence[str]) -> list[list[int]] | None:
    """The engine's ids; None when it dies."""
    lines = "".join(json.dumps(text) + "\n" for text in chosen).encode()
    command = [sys.executable, str(ENGINE), str(path), "encode"]
    done = subprocess.run(command, input=lines, capture_output=True, check=False)
    return None if done.returncode else [json.loads(line) for line in done.stdout.splitlines()]


def share(answers: list[list[int]] | None, expected: list[list[int]], before: list[int]) -> float:
    """Per cent of texts that are right; -1 when the engine died."""
    if answers is None:
        return -1.0
    with_it = sum(a == [*before, *b] for a, b in zip(answers, expected, strict=True))
    return 100 * max(with_it, sum(a == b for a, b in zip(answers, expected, strict=True))) / len(expected)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=300, help="texts of each tokenizer")
    parser.add_argument("--all", action="store_true", help="all texts")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("names", nargs="*", default=list(PAIRS))
    arguments = parser.parse_args()
    everything = texts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for exported in arguments.names:
            source = PAIRS[exported]
            expected, failed, before = golden(source, folder)
            usable = [
                at
                for at in range(len(expected))
                if at not in failed and "\0" not in everything[at] and len(everything[at]) < LONGEST
            ]
            if not arguments.all:
                usable = sorted(random.Random(arguments.seed).sample(usable, min(arguments.n, len(usable))))
            chosen, right = [everything[at] for at in usable], [expected[at] for at in usable]
            theirs = share(ask(unpacked(f"data/mnn/{exported}", folder), chosen), right, before)
            path, options = source_file(source, folder)
            try:
                body, findings = write_body(tokpack.read(path, **options))
            except TokpackError as error:
                print(f"{exported:20} {source:28} theirs {theirs:6.2f}  ours refused: {error.code}", flush=True)
                continue
            target = folder / "ours.mtok"
            target.write_bytes(body)
            ours = share(ask(target, chosen), right, before)
            reasons = sorted({f.code.removeprefix("mtok-") for f in findings if f.severity is Severity.IDS})
            mark = "  WORSE" if ours < theirs else ""
            print(
                f"{exported:20} {source:28} theirs {theirs:6.2f}  ours {ours:6.2f}{mark}  {', '.join(reasons)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
