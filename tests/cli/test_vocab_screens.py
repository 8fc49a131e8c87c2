"""``tokpack vocab`` on the fixtures; ``python -m tests.cli.test_inspect_screens`` records these screens, too."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import tokpack
from tests.cli.test_inspect_screens import DEMO, call, compare
from tests.conftest import ROOT
from tokpack.cli.vocab import command

SPM, LLAMA, BERT = "fixtures/spm.gguf", "fixtures/llama-bpe.gguf", "fixtures/hf/bert-uncased.json"
VOCAB = {
    "vocab-demo.txt": [DEMO],
    "vocab-demo-page.json": [DEMO, "--limit", "3", "--offset", "1986", "--json"],
    "vocab-demo.csv": [DEMO, "--limit", "12", "--offset", "186", "--csv"],
    "vocab-search.txt": [SPM, "--search", " th"],
    "vocab-regex.txt": [DEMO, "--regex", r"^\s+$"],
    "vocab-bytes.txt": [DEMO, "--bytes", "e4b8", "--limit", "5"],
    "vocab-type.txt": [DEMO, "--type", "control"],
    "vocab-range.txt": [BERT, "--range", "100-103"],
    "vocab-script.txt": [DEMO, "--script", "Thai", "--limit", "4"],
    "vocab-duplicates.txt": ["fixtures/refused-duplicate-tokens.gguf", "--duplicates"],
    "vocab-unused.txt": [LLAMA, "--unused"],
    "vocab-unreachable.txt": [LLAMA, "--unreachable"],
    "vocab-unreachable.json": [SPM, "--unreachable", "--limit", "4", "--json"],
    "vocab-unreachable.csv": ["fixtures/ugm.gguf", "--unreachable", "--csv", "--range", "-300"],
    "vocab-no-merge-path.txt": [LLAMA, "--no-merge-path"],
    "vocab-no-roundtrip.txt": ["fixtures/rwkv.gguf", "--no-roundtrip"],
    "vocab-stats.txt": [DEMO, "--stats"],
    "vocab-stats.json": [SPM, "--stats", "--json"],
    "vocab-stats-rwkv.txt": ["fixtures/rwkv.gguf", "--stats"],
    "vocab-pre.txt": ["fixtures/refused-unknown-pre.gguf", "--pre", "qwen2", "--limit", "2"],
    "vocab-none.txt": [DEMO, "--search", "no such piece"],
    "vocab-holes.txt": ["fixtures/no-vocab.gguf", "--type", "hole", "--limit", "2"],
}


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", VOCAB)
def test_output(name: str) -> None:
    compare(name, ["vocab", *VOCAB[name]])


def test_every_flag_is_exercised() -> None:
    used = {flag for args in VOCAB.values() for flag in args if flag.startswith("--")}
    known = {flag for option in command.params for flag in option.opts if flag.startswith("--")}
    elsewhere = {"--from", "--allow", "--pattern", "--special-tokens", "--engine", "--max"}
    assert known - used <= elsewhere


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([DEMO, "--type", "contrl"], 2, "did you mean control"),
        ([DEMO, "--script", "Hann"], 2, "did you mean Han"),
        ([DEMO, "--range", "x"], 2, "not a range"),
        ([DEMO, "--bytes", "x"], 2, "hexadecimal"),
        ([DEMO, "--regex", "("], 2, "regular expression"),
        ([DEMO, "--json", "--csv"], 2, "--json and --csv do not go together"),
        ([DEMO, "--stats", "--csv"], 2, "do not go together"),
        ([DEMO, "--stats", "--search", "a"], 2, "do not go together"),
        (["fixtures/no-vocab.gguf", "--unreachable"], 2, "nothing can be encoded"),
        (["fixtures/no-vocab.gguf", "--no-roundtrip"], 2, "nothing can be encoded"),
        (["missing.gguf"], 3, "cannot open"),
        ([DEMO, "--from", "nonsense"], 2, "unknown format"),
    ],
)
def test_one_clear_line(args: list[str], code: int, words: str) -> None:
    got, out, err = call(["vocab", *args])
    assert (got, out) == (code, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_csv_reads_back_as_it_was() -> None:
    code, out, _ = call(["vocab", DEMO, "--csv"])
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    tokenizer = tokpack.load(DEMO)
    assert [int(row["id"]) for row in rows] == list(range(tokenizer.vocab_size))
    for row in rows:
        assert bytes.fromhex(row["bytes"]) == tokenizer.id_to_bytes(int(row["id"]))
    assert len(out.splitlines()) == tokenizer.vocab_size + 1  # nothing in a piece breaks a row


def test_json_is_whole_without_a_limit() -> None:
    document = json.loads(call(["vocab", SPM, "--json"])[1])
    assert document["matched"] == document["size"] == len(document["pieces"])


def test_a_pack_lists_what_its_source_lists(tmp_path: Path) -> None:
    tokpack.convert(DEMO, tmp_path / "out.mtok")
    for args in (["--csv"], ["--unreachable", "--csv"], ["--no-roundtrip", "--limit", "30", "--csv"]):
        assert call(["vocab", str(tmp_path / "out.mtok"), *args]) == call(["vocab", DEMO, *args])


def test_control_bidi_and_zero_width_characters_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    texts = ["[UNK]", "\x1b[2J", "\u202eabc", "a\u200bb", "\x85", "a\nb", "\u2028", "\ud7ff\ue000", 'a"b,c']
    model = {"type": "WordLevel", "vocab": {text: i for i, text in enumerate(texts)}, "unk_token": "[UNK]"}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    path.write_text(json.dumps({"version": "1.0", "added_tokens": [], **empty, "model": model}))
    for args in ([], ["--csv"], ["--stats"], ["--no-roundtrip"], ["--unreachable"]):
        code, out, _ = call(["vocab", str(path), *args])
        assert code == 0
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e\ue000]", out)
    assert '"\\u001b[2J"' in call(["vocab", str(path)])[1]


@pytest.mark.parametrize(
    ("folder", "pattern"), [("sentencepiece", "*.model"), ("tiktoken", "*tekken*.json"), ("tiktoken", "*.txt")]
)
def test_other_formats_are_listed(folder: str, pattern: str) -> None:
    files = sorted((ROOT / "fixtures" / folder).glob(pattern))
    if not files:
        pytest.skip(f"there are no fixtures/{folder}/{pattern}")
    shown = 0
    for path in files[:6]:
        try:
            tokpack.read(path)
        except tokpack.TokpackError:
            continue
        for args in ([], ["--stats"], ["--unreachable"], ["--no-roundtrip"]):
            code, out, err = call(["vocab", str(path), *args])
            assert (code, err) == (0, ""), (path, args)
            assert max(map(len, out.splitlines())) <= 80
        shown += 1
    assert shown
