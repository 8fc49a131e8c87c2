"""Unreachable pieces: by brute force, by the reference programs' models, and never one that a recording shows."""

from __future__ import annotations

import io
import json
import lzma
import os
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import FIXTURES, SHARED, SharedData, read_texts
from tokpack.analysis import Vocabulary, open_vocabulary, round_trip, unreachable, without_merges
from tokpack.analysis.reach import REASONS
from tokpack.errors import TokpackError, UsageError
from tokpack.formats.gguf.header import read_header
from tokpack.unicode import byte_level

ALL = os.environ.get("TOKPACK_GOLDEN") == "all"
BPE_GGUF = ["demo", "llama-bpe", "gpt-2", "kimi-k2", "tekken", "superbpe", "odd-merges", "gemma4", "qwen2"]


def merged(text: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """Byte-pair merging as it is defined: again and again the neighbouring pair of lowest rank, the leftmost first."""
    parts = list(text)
    while len(parts) > 1:
        pairs = [ranks.get(pair, 1 << 60) for pair in pairwise(parts)]
        best = min(pairs)
        if best == 1 << 60:
            break
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def gguf_merges(path: Path) -> tuple[list[str], dict[tuple[str, str], int]]:
    entries = read_header(path.read_bytes()).entries
    ranks: dict[tuple[str, str], int] = {}
    for rank, line in enumerate(entries["tokenizer.ggml.merges"].value):
        text = line.split(b"\0")[0].decode()
        cut = text.find(" ", 1)
        ranks.setdefault((text[:cut], text[cut + 1 :]), rank)
    return [token.decode("utf-8", "replace") for token in entries["tokenizer.ggml.tokens"].value], ranks


def ordinary(vocabulary: Vocabulary) -> list[int]:
    normal = ((vocabulary.attrs & (1 | 4 | 8)) == 4) & ~vocabulary.holes
    return [token for token in np.flatnonzero(normal).tolist() if not vocabulary.is_byte(token)]


@pytest.mark.parametrize("name", BPE_GGUF)
def test_pieces_without_a_merge_path_by_brute_force(name: str) -> None:
    path = FIXTURES / f"{name}.gguf"
    vocabulary = open_vocabulary(path)
    texts, ranks = gguf_merges(path)
    last = {text: index for index, text in enumerate(texts)}
    inside = set(byte_level.CHARS)
    spelled = vocabulary.pieces.byte_level
    expected = [
        token
        for token in ordinary(vocabulary)
        if merged(texts[token], ranks) != [texts[token]]
        or last[texts[token]] != token
        or (spelled and not inside.issuperset(texts[token]))
    ]
    assert without_merges(vocabulary).tolist() == expected
    found = unreachable(vocabulary)
    model = vocabulary.view.meta["model"]
    if not model["ignore_merges"]:
        whole = [t for t in expected if model["whole_newlines"] and not texts[t].strip("\n")]
        assert sorted(set(found.ids.tolist()) & set(ordinary(vocabulary))) == sorted(set(expected) - set(whole))
    else:
        assert set(found.ids.tolist()) <= set(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [("llama-bpe", 588), ("gpt-2", 0), ("deepseek-llm", None), ("falcon", None)]
)
def test_pieces_without_a_merge_path_in_known_files(shared_data: SharedData, name: str, count: int | None) -> None:
    path = shared_data(f"data/gguf/ggml-vocab-{name}.gguf")
    vocabulary = open_vocabulary(path)
    texts, ranks = gguf_merges(path)
    found = set(without_merges(vocabulary).tolist())
    if count is not None:
        assert len(found) == count
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    tokens = ordinary(vocabulary)
    sample = tokens if ALL else sorted({*random.Random(seed).sample(tokens, 3000), *found})
    for token in sample:
        assert (merged(texts[token], ranks) != [texts[token]]) == (token in found), (token, texts[token])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("llama-bpe", {}),
        ("gpt-2", {}),
        ("llama-spm", {"byte": 110}),
        ("phi-3", {"byte": 110}),
        ("bert-bge", {}),
        ("gemma-4", {"byte": 125, "merges": 6302}),
    ],
)
def test_unreachable_pieces_of_known_files(shared_data: SharedData, name: str, counts: dict[str, int]) -> None:
    """All of llama-bpe's 588 pieces without a merge path are reached as whole words."""
    found = unreachable(open_vocabulary(shared_data(f"data/gguf/ggml-vocab-{name}.gguf")))
    assert Counter(found.reasons) == counts


def spm_best(text: str, scores: dict[str, float]) -> list[str]:
    """llama.cpp's SPM as it is defined: merge the pair whose joined text has the highest score, the leftmost first."""
    parts = list(text)
    while len(parts) > 1:
        joined = [scores.get(a + b, -np.inf) if a + b in scores else None for a, b in pairwise(parts)]
        usable = [score for score in joined if score is not None]
        if not usable:
            break
        at = joined.index(max(usable))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


@pytest.mark.parametrize("name", ["spm", "spm-phi-3", "spm-no-prefix"])
def test_score_merge_by_brute_force(name: str) -> None:
    path = FIXTURES / f"{name}.gguf"
    vocabulary = open_vocabulary(path)
    entries = read_header(path.read_bytes()).entries
    texts = [text.decode() for text in entries["tokenizer.ggml.tokens"].value]
    scores = dict(zip(texts, entries["tokenizer.ggml.scores"].value.tolist(), strict=True))
    expected = [token for token in ordinary(vocabulary) if spm_best(texts[token], scores) != [texts[token]]]
    found = unreachable(vocabulary)
    assert sorted(set(found.ids.tolist()) & set(ordinary(vocabulary))) == expected


def model_alone(data: dict[str, Any]) -> Any:
    """The library's tokenizer with nothing but its model."""
    tokenizers = pytest.importorskip("tokenizers")
    bare = {**data, "added_tokens": [], "truncation": None, "padding": None}
    bare |= dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    return tokenizers.Tokenizer.from_str(json.dumps(bare))


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("hf/*.json")), ids=lambda path: path.stem)
def test_tokenizers_library_agrees_about_models(path: Path) -> None:
    if path.stem.startswith("refused-"):
        pytest.skip("not loaded")
    data = json.loads(path.read_bytes())
    kind = data["model"].get("type")
    if kind not in ("BPE", "Unigram", "WordLevel", None):
        pytest.skip("pieces inside words need words")
    vocabulary = open_vocabulary(path)
    if vocabulary.view.meta["model"].get("continuing_subword_prefix") or vocabulary.view.meta["model"].get(
        "end_of_word_suffix"
    ):
        pytest.skip("pieces inside words need words")
    strict = "ignore_merges" in data["model"]
    if strict:
        data["model"] |= {"ignore_merges": False}
    library = model_alone(data)
    found = set(without_merges(vocabulary).tolist()) if strict else set(unreachable(vocabulary).ids.tolist())
    for token in ordinary(vocabulary):
        text = vocabulary.texts[token].decode()
        if token in vocabulary.added or not text:
            continue
        try:
            ids = library.encode(text, add_special_tokens=False).ids
        except Exception:
            ids = []
        assert (ids != [token]) == (token in found), (token, text, ids)


def recorded_fixture(golden: Path) -> set[int]:
    """Ids that llama.cpp gave for the texts that are Unicode."""
    texts = read_texts(FIXTURES / "texts.jsonl")
    with np.load(golden) as data:
        if "lens" not in data.files:
            return set()  # one of several files with the same ids
        lens = data["lens"].reshape(-1).astype(np.int64)
        parts = np.split(data["ids"], np.cumsum(lens)[:-1])
    modes, rest = divmod(len(parts), len(texts))
    assert not rest
    return {int(t) for i, part in enumerate(parts) if _unicode(texts[i // modes]) for t in part}


def _unicode(text: str | bytes) -> bool:
    try:
        return bool(text.encode() if isinstance(text, str) else text.decode()) or True
    except UnicodeError:
        return False


def recorded(golden: Path) -> set[int]:
    raw = golden.read_bytes()
    with np.load(io.BytesIO(lzma.decompress(raw) if golden.suffix == ".xz" else raw)) as data:
        seen: set[int] = set()
        for name in data.files:
            if name.startswith("ids"):
                seen |= set(data[name].tolist())
    return seen


def test_no_piece_that_a_recording_of_llamacpp_shows_is_called_unreachable() -> None:
    checked = 0
    for path in sorted(FIXTURES.glob("*.gguf")):
        golden = FIXTURES / "golden" / f"{path.stem}.npz"
        if path.stem.startswith("refused-") or not golden.exists():
            continue
        vocabulary = open_vocabulary(path)
        if vocabulary.tokenizer is None:
            continue
        found = unreachable(vocabulary)
        assert not recorded_fixture(golden) & set(found.ids.tolist()), path.name
        assert set(found.reasons) <= set(REASONS)
        checked += 1
    assert checked > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama-bpe", "llama-spm", "bert-bge", "gpt-2", "qwen2", "baichuan", "gemma-4"])
def test_no_piece_that_the_corpus_shows_is_called_unreachable(shared_data: SharedData, name: str) -> None:
    found = unreachable(open_vocabulary(shared_data(f"data/gguf/ggml-vocab-{name}.gguf")))
    assert not recorded(shared_data(f"golden/gguf/{name}.npz")) & set(found.ids.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((SHARED / "golden" / "hf").glob("*.npz.xz")), ids=lambda p: p.name[:-7])
def test_no_piece_that_the_tokenizers_library_gave_is_called_unreachable(path: Path, shared_data: SharedData) -> None:
    name = path.name[: -len(".npz.xz")]
    if name.startswith("spm_"):
        file = shared_data(f"data/spm/{name[4:]}")
    elif name.startswith("tik_"):
        pytest.skip("needs the pattern of the file")
    else:
        file = shared_data(f"data/hf/{name}/tokenizer.json")
    if not ALL and file.stat().st_size > 3_000_000:
        pytest.skip("large; TOKPACK_GOLDEN=all runs it")
    try:
        found = unreachable(open_vocabulary(file))
    except TokpackError as error:
        pytest.skip(str(error))
    assert not recorded(path) & set(found.ids.tolist())


def test_round_trip_by_its_definition() -> None:
    for name in ("demo.gguf", "spm.gguf", "rwkv.gguf", "hf/bert-uncased.json", "hf/llama2.json"):
        vocabulary = open_vocabulary(FIXTURES / name)
        tokenizer = vocabulary.tokenizer
        assert tokenizer is not None
        expected = []
        for token in range(vocabulary.size):
            if vocabulary.holes[token]:
                continue
            raw = tokenizer.decode_bytes([token], False)
            try:
                try:
                    text: str | bytes = raw.decode()
                except UnicodeDecodeError:
                    text = raw
                if tokenizer.encode(text, False, True) != [token]:
                    expected.append(token)
            except TokpackError:
                expected.append(token)
        assert round_trip(vocabulary).tolist() == expected
        assert round_trip(vocabulary, range(50)).tolist() == [token for token in expected if token < 50]


def test_every_byte_level_piece_alone_is_never_unreachable() -> None:
    vocabulary = open_vocabulary(FIXTURES / "demo.gguf")
    assert not set(range(256)) & set(unreachable(vocabulary).ids.tolist())


def test_a_vocabulary_that_encodes_nothing_says_so() -> None:
    with pytest.raises(UsageError, match="nothing can be encoded"):
        unreachable(open_vocabulary(FIXTURES / "no-vocab.gguf"))
