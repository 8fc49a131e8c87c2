"""Texts and vocabularies for the timings: where they come from, and how they are cut.

English is Django's documentation, code the standard library of the running interpreter, multi Django's catalogues of
all languages. ``fetch`` downloads Django's source archive with pip; nothing of it is part of the project.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared/data"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokpack-bench"
NAMES = ("english", "code", "multi")
DJANGO = "Django==5.2"
PARTS = 16


def fetch(folder: Path) -> None:
    """Make the three texts in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            name,
            DJANGO,
        ]
        subprocess.run(command, check=True)
        with tarfile.open(next(Path(name).glob("*.tar.gz"))) as archive:
            archive.extractall(name, filter="data")
        docs = sorted(Path(name).glob("*/docs/**/*.txt"))
        catalogues = sorted(Path(name).glob("*/django/**/locale/*/LC_MESSAGES/*.po"))
        (folder / "english.txt").write_text(_joined(docs), encoding="utf-8")
        (folder / "multi.txt").write_text(_joined(catalogues), encoding="utf-8")
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = [p for p in sorted(library.rglob("*.py")) if not {"site-packages", "test", "tests"} & set(p.parts)]
    (folder / "code.txt").write_text(_joined(sources), encoding="utf-8")


def _joined(files: list[Path]) -> str:
    return "".join(file.read_bytes().decode("utf-8", "ignore") for file in files)


def found_texts(given: list[str], limit: int) -> dict[str, str]:
    """Name → text: those given as NAME=FILE, else those in the cache folder; each cut to ``limit`` bytes."""
    files = dict(entry.split("=", 1) for entry in given) or {name: str(CACHE / f"{name}.txt") for name in NAMES}
    missing = [file for file in files.values() if not Path(file).is_file()]
    if missing:
        raise SystemExit(f"there is no {missing[0]}: --fetch makes the texts, --text NAME=FILE gives others")
    return {name: cut(Path(file).read_text(encoding="utf-8"), limit) for name, file in files.items()}


def cut(text: str, limit: int) -> str:
    """At most about ``limit`` bytes: parts from all over the text, of whole lines, in their order."""
    size = len(text.encode())
    if size <= limit:
        return text
    length = len(text) * limit // size // PARTS
    parts = []
    for part in range(PARTS):
        start = text.find("\n", len(text) * part // PARTS) + 1
        parts.append(text[start : text.find("\n", start + length) + 1])
    return "".join(parts)


def halves(text: str) -> tuple[str, str]:
    """Every other line block: both halves are of one kind, and neither has seen the other's words."""
    step = max(1, len(text) // (2 * PARTS))
    edges = [0]
    while edges[-1] < len(text):
        edges.append(text.find("\n", min(edges[-1] + step, len(text) - 1)) + 1 or len(text))
    parts = [text[a:b] for a, b in pairwise(edges)]
    return "".join(parts[::2]), "".join(parts[1::2])


# name → (source, its options of ``tokpack.convert``, files of peers); paths are below DATA
VOCABULARIES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "qwen3": ("hf/qwen3/tokenizer.json", {}, {"tiktoken": "tiktoken/qwen.tiktoken"}),
    "llama3": ("hf/llama3/tokenizer.json", {}, {"tiktoken": "tiktoken/llama3.tiktoken"}),
    "gptoss": ("hf/gptoss/tokenizer.json", {}, {"tiktoken": "tiktoken/o200k_base.tiktoken"}),
    "gpt2": ("hf/gpt2/tokenizer.json", {}, {"tiktoken": "tiktoken/r50k_base.tiktoken"}),
    "gemma3": ("hf/gemma3/tokenizer.json", {}, {}),
    "llama2": ("hf/llama2/tokenizer.json", {}, {}),
    "bert": ("hf/bert_base_uncased/tokenizer.json", {}, {}),
    "t5": ("hf/t5_small/tokenizer.json", {}, {}),
    "xlm-r": ("hf/xlm_roberta/tokenizer.json", {}, {}),
    "gguf qwen2": ("gguf/ggml-vocab-qwen2.gguf", {}, {}),
    "gguf llama-spm": ("gguf/ggml-vocab-llama-spm.gguf", {}, {}),
    "gguf bert-bge": ("gguf/ggml-vocab-bert-bge.gguf", {}, {}),
    "cl100k": (
        "tiktoken/cl100k_base.tiktoken",
        {"pattern": "cl100k_base"},
        {"tiktoken": "tiktoken/cl100k_base.tiktoken"},
    ),
    "o200k": ("tiktoken/o200k_base.tiktoken", {"pattern": "o200k_base"}, {"tiktoken": "tiktoken/o200k_base.tiktoken"}),
    "spm llama2": ("spm/llama2.model", {}, {"sentencepiece": "spm/llama2.model"}),
    "spm t5": ("spm/t5_torchtune.model", {}, {"sentencepiece": "spm/t5_torchtune.model"}),
}
QUICK = ("qwen3", "llama2", "bert", "spm t5")


def unpacked(relative: str, folder: Path) -> Path | None:
    """A file of the data beside the project, unpacked into ``folder`` if need be; None when there is none."""
    plain, packed, target = DATA / relative, DATA / f"{relative}.xz", folder / relative
    if plain.is_file():
        return plain
    if not target.is_file() and packed.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lzma.decompress(packed.read_bytes()))
    return target if target.is_file() else None
