"""Compare ids and text with those recorded from the reference programs, and write the table of docs/exactness.md.

    python -m tests.docs.make_exactness [--sample N | --all] [--seed S] [--write]

Needs the data beside the project (../shared). Without ``--write`` the table is only printed. Each file is
read, and runs from a pack in memory; that a written pack is the same bytes is a test of its own (tests/golden).
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tokpack
from tests.conftest import ROOT, SHARED
from tests.golden import test_huggingface, test_llamacpp, test_mnn, test_sentencepiece, test_tiktoken

PAGE = ROOT / "docs" / "exactness.md"
BEGIN, END = "<!-- table by tests/docs/make_exactness.py -->", "<!-- end -->"


@dataclass
class Row:
    """Result of one file: how many encodings and decodings were compared, and how many differed."""

    group: str
    name: str
    ids: int = 0
    text: int = 0
    wrong_ids: int = 0
    wrong_text: int = 0

    def take(self, ids_equal: bool | None, text_equal: bool | None = None) -> None:
        """Count one comparison; None was not compared."""
        if ids_equal is not None:
            self.ids += 1
            self.wrong_ids += not ids_equal
        if text_equal is not None:
            self.text += 1
            self.wrong_text += not text_equal


Choose = Callable[[int], list[int]]


class Data:
    """Files of ../shared, unpacked when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, relative: str) -> Path:
        plain, target = SHARED / relative, self._folder / relative
        if plain.exists():
            return plain
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lzma.decompress((SHARED / f"{relative}.xz").read_bytes()))
        return target


def llamacpp(data: Data, choose: Choose) -> Iterator[Row]:
    """Modes 00 and 11, with invalid bytes."""
    small = [(f"synth-{name}", f"data/gguf-small/{name}.gguf") for name in test_llamacpp.SMALL]
    for name, source in [(n, f"data/gguf/ggml-vocab-{n}.gguf") for n in test_llamacpp.VOCABULARIES] + small:
        golden, row = test_llamacpp.load_golden(data, name), Row("llama.cpp", name)
        tokenizer, indices = tokpack.load(data(source)), choose(len(golden.texts))
        for key, flag in (("00", False), ("11", True)):
            lists, texts = golden.lists("ids_" + key, "lens_" + key), golden.byte_strings(key)
            for i in indices:
                valid = [token for token in lists[i] if token >= 0]
                same = tokenizer.encode(golden.texts[i], flag, flag) == lists[i]
                row.take(same, tokenizer.detokenize(valid, flag, flag) == texts[i])
            invalid = golden.lists("bids_" + key, "blens_" + key)
            for raw, expected in zip(test_llamacpp.byte_corpus(), invalid, strict=True):
                row.take(tokenizer.encode(raw, flag, flag) == expected)
        yield row


def huggingface(data: Data, choose: Choose) -> Iterator[Row]:
    """With and without special tokens."""
    texts = test_huggingface.corpus()
    for name in test_huggingface.NAMES:
        golden, row = test_huggingface.load_golden(name), Row("tokenizers", name)
        tokenizer = tokpack.load(data(f"data/hf/{name}/tokenizer.json"))
        for i in choose(len(texts)):
            if i in golden.failed:
                continue
            full = [*golden.prefix, *golden.ids[i], *golden.suffix]
            skip = texts[i] if golden.decode_skip[i] == 0 else golden.decode_skip[i]
            row.take(
                tokenizer.encode(texts[i], False) == golden.ids[i] and tokenizer.encode(texts[i]) == full,
                None if skip is None else tokenizer.decode(full) == skip,
            )
        yield row


def _recorded(kind: str, name: str) -> tuple[list[list[int]], list[Any]]:
    path = SHARED / "golden/hf" / f"{kind}_{name}.npz.xz"
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
        return test_sentencepiece.parts(arrays["ids"], arrays["lens"]), json.loads(arrays["decode"].tobytes())


def sentencepiece(data: Data, choose: Choose) -> Iterator[Row]:
    """``encode`` and ``decode``."""
    texts = test_sentencepiece.corpus()
    for name in test_sentencepiece.REAL:
        (ids, decoded), row = _recorded("spm", name), Row("sentencepiece", name)
        tokenizer = tokpack.load(data(f"data/spm/{name}"))
        for i in choose(len(texts)):
            expected = texts[i] if decoded[i] == 0 else decoded[i]
            row.take(tokenizer.encode(texts[i]) == ids[i], tokenizer.decode(ids[i]) == expected)
        yield row


def tiktoken(data: Data, choose: Choose) -> Iterator[Row]:
    """``encode_ordinary`` and ``decode``."""
    texts = test_huggingface.corpus()
    for name, options in test_tiktoken.OPTIONS.items():
        (ids, decoded), row = test_tiktoken.load_golden(name), Row("tiktoken", name)
        tokenizer = tokpack.load(data(f"data/tiktoken/{name}"), **options)
        for i in choose(len(texts)):
            expected = texts[i] if decoded[i] == 0 else decoded[i]
            same = tokenizer.encode(texts[i], parse_special=False) == ids[i]
            row.take(same, tokenizer.decode(ids[i], False) == expected)
        yield row


def mnn(data: Data, choose: Choose) -> Iterator[Row]:
    """Files that MNN's exporter wrote, with the engines 3.6.1 and head."""
    texts = test_mnn.texts()
    for name in test_mnn.NAMES:
        row = Row("MNN", name)
        for engine in ("v361", "head"):
            ids, decoded = test_mnn.load_golden(name, engine)
            allow = test_mnn.ALLOWED.get(name, ())
            tokenizer = tokpack.load(data(f"data/mnn/{name}"), engine=engine, allow=allow)
            for i in choose(len(texts)):
                row.take(tokenizer.encode(texts[i]) == ids[i], tokenizer.decode_bytes(ids[i]) == decoded[i])
        yield row


def table(rows: list[Row], how: str) -> str:
    """The part of the page between the marks."""
    lines = [how, ""]
    lines += [
        "| reference | files | encodings | with other ids | decodings | with another text |",
        "|---|---|---|---|---|---|",
    ]
    for group in dict.fromkeys(row.group for row in rows):
        some = [row for row in rows if row.group == group]
        sums = [sum(getattr(row, key) for row in some) for key in ("ids", "wrong_ids", "text", "wrong_text")]
        lines.append(f"| {group} | {len(some)} | " + " | ".join(f"{value:,}" for value in sums) + " |")
    lines += [
        "",
        "| reference | file | encodings | with other ids | decodings | with another text |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = (row.ids, row.wrong_ids, row.text, row.wrong_text)
        lines.append(f"| {row.group} | {row.name} | " + " | ".join(f"{value:,}" for value in figures) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--sample", type=int, default=100, metavar="N", help="texts of each file (default 100)")
    amount.add_argument("--all", action="store_true", help="all texts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the table into docs/exactness.md")
    options = parser.parse_args()
    source = random.Random(options.seed)

    def choose(count: int) -> list[int]:
        return list(range(count)) if options.all else sorted(source.sample(range(count), min(options.sample, count)))

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for group in (llamacpp, huggingface, sentencepiece, tiktoken, mnn):
            for row in group(Data(Path(folder)), choose):
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
    how = "A whole run: every recorded text."
    if not options.all:
        size = f"{options.sample} texts of each file, in each of its modes"
        how = f"A sampled run: {size}, chosen with the seed {options.seed}."
    made = table(rows, how)
    print(made)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
        PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{made}\n\n{END}", page), encoding="utf-8")
    sys.exit(any(row.wrong_ids or row.wrong_text for row in rows))


if __name__ == "__main__":
    main()
