"""Unigram and WordPiece behind all kinds of steps: the bulk path gives the ids of the scalar one, and of the library.

The vocabulary has pieces with equal sums, and unknown characters whose run is a piece.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES
from tests.property.pairs import budget, outcome
from tests.property.strategies import texts
from tests.runtime.bulk.forcing import force

HERE = FIXTURES / "hf"
LIMITS = st.tuples(st.integers(1, 64), st.sampled_from([0, 1 << 20]), st.sampled_from([1, 50, 1 << 19]))

PRECOMPILED = json.loads((HERE / "t5.json").read_text())["normalizer"]
LIGATURES: dict[str, Any] = {"type": "Replace", "pattern": {"String": "fi"}, "content": "ﬁ"}
QUOTES = [
    {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
    {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
]
COLLAPSE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
MARKS = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
LOWER, ACCENTS, NFKD, NFC, NFKC, NMT = (
    {"type": kind} for kind in ("Lowercase", "StripAccents", "NFKD", "NFC", "NFKC", "Nmt")
)
RIGHT = {"type": "Strip", "strip_left": False, "strip_right": True}
BOTH = {"type": "Strip", "strip_left": True, "strip_right": True}
HIDDEN = {"type": "Replace", "pattern": {"Regex": r"[\u00AD\u200B\u200C\u200D\u2060\uFEFF]"}, "content": ""}
ZS = {"type": "Replace", "pattern": {"Regex": r"\p{Zs}"}, "content": " "}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SPLIT = [{"type": "WhitespaceSplit"}, METASPACE]
BERT = [{"type": "BertPreTokenizer"}]


def bert(**changes: bool | None) -> dict[str, Any]:
    step = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    return {**step, "lowercase": True, **changes}


UNIGRAM: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "t5": ([PRECOMPILED], SPLIT),
    "plain": ([], SPLIT),
    "t5-later": ([PRECOMPILED, COLLAPSE], [METASPACE]),
    "pegasus": ([PRECOMPILED, COLLAPSE], SPLIT),
    "albert": ([*QUOTES, NFKD, ACCENTS, LOWER, COLLAPSE, NFKD, ACCENTS, LOWER, COLLAPSE], SPLIT),
    "albert-later": ([*QUOTES, NFKD, ACCENTS, LOWER, PRECOMPILED, COLLAPSE], [METASPACE]),
    "marian": ([PRECOMPILED, RIGHT, MARKS], [METASPACE]),
    "deberta": ([BOTH, PRECOMPILED, COLLAPSE], [METASPACE]),
    "spaces": ([HIDDEN, ZS, NFC], [METASPACE]),
    "nmt": ([NMT, NFKC, COLLAPSE], [METASPACE]),
    "ligatures": ([LIGATURES, NFKC], SPLIT),
    "bare": ([], [METASPACE]),
    "gone": ([{**LIGATURES, "content": ""}, NFKD], SPLIT),
    "apart": ([{**LIGATURES, "content": "f i"}, NFKD, COLLAPSE], [METASPACE]),
}
WORD_PIECE: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "uncased": ([bert()], BERT),
    "cased": ([bert(lowercase=False)], BERT),
    "accents": ([bert(strip_accents=False)], BERT),
    "chinese": ([bert(handle_chinese_chars=False, clean_text=False)], BERT),
    "folded": ([*QUOTES, NFKD, ACCENTS, LOWER], BERT),
    "composed": ([NFKC], BERT),
}
PIECES = ["a", "b", "aa", "ab", "bb", "aab", "abb", "ÞÐ", "中", "中文", "文中", "-", "--", "---", "\n", "▁▁", "ﬁ", "한"]


def model(kind: str, shift: float, unknown: bool, falls_back: bool) -> dict[str, Any]:
    if kind == "WordPiece":
        vocab: list[str] = list(json.loads((HERE / "bert-uncased.json").read_text())["model"]["vocab"])
        vocab += [piece for text in PIECES for piece in (text, "##" + text) if piece not in vocab]
        longest = 7 if shift else 100
        return {
            "type": kind,
            "unk_token": "[UNK]" if unknown else "[GONE]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": longest,
            "vocab": {text: token for token, text in enumerate(vocab)},
        }
    rows = dict(json.loads((HERE / "t5.json").read_text())["model"]["vocab"])
    rows |= {piece: -2.0 * len(piece) for piece in PIECES}
    if falls_back:
        rows |= {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    scored = [[text, score + shift] for text, score in rows.items()]
    return {"type": kind, "unk_id": 2 if unknown else None, "byte_fallback": falls_back, "vocab": scored}


@cache
def source(folder: Path, kind: str, name: str, shift: float, unknown: bool, falls_back: bool) -> Path:
    steps, words = (UNIGRAM if kind == "Unigram" else WORD_PIECE)[name]
    file = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": words},
        "post_processor": None,
        "decoder": None,
        "model": model(kind, shift, unknown, falls_back),
    }
    target = folder / f"{kind}-{name}-{shift}-{unknown}-{falls_back}.json"
    target.write_text(json.dumps(file))
    return target


@cache
def loaded(path: Path, copy: str) -> tokpack.Tokenizer:
    return tokpack.load(path)


@cache
def library(path: Path) -> Any:
    if importlib.util.find_spec("tokenizers") is None:
        return None
    import tokenizers

    return tokenizers.Tokenizer.from_file(str(path))


PARTS = [*"ab- \n中文", "  ", "aab", "ÞÐ", "ÐÞ", "``", "''", "fi", "▁", "é", "e\u0301", "\u0301", "\u3000", "\u200b"]
PARTS += [
    " \u0301",
    "\r\n",
    " \r",
    "한국",
    "\x85",
    "क्षि",
    "ไทย",
    "👩\u200d👩",
    "ﬁ",
    "½",
    "\xad",
    "-----",
    "ab, ",
    ". ",
    "\t",
]
PARTS += [". ", "\t", "\u094d", "Å", "ſ", "İ", "the ", "ЖЕ", "\ufdfa", "\u1ebf\u0323", "豈", "\U0002f800", "\U0002a700"]
TEXTS = st.one_of(
    texts((), 40).map(lambda text: text.encode("utf-8", "ignore").decode()),
    st.lists(st.sampled_from(PARTS), max_size=40).map("".join),
)


def check(path: Path, text: str, limits: tuple[int, int, int]) -> None:
    bulk = loaded(path, "bulk")
    assert force(bulk, *limits), "there is no bulk path"
    expected = outcome(lambda: loaded(path, "scalar").encode(text))
    for _ in ("cold", "warm"):
        assert outcome(lambda: bulk.encode_array(text).tolist()) == expected, (text, limits)
    peer = library(path)
    if peer is not None and expected != "EncodeError":
        assert peer.encode(text).ids == expected, text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fields")


@pytest.mark.parametrize("name", UNIGRAM)
def test_unigram(name: str, folder: Path) -> None:
    kinds = st.sampled_from([(0.0, True, False), (60.0, True, False), (0.0, True, True), (0.0, False, False)])

    @budget(1.5)
    @given(TEXTS, kinds, LIMITS)
    def run(text: str, kind: tuple[float, bool, bool], limits: tuple[int, int, int]) -> None:
        check(source(folder, "Unigram", name, *kind), text, limits)

    run()


@pytest.mark.parametrize("name", WORD_PIECE)
def test_word_piece(name: str, folder: Path) -> None:
    @budget(1.5)
    @given(TEXTS, st.sampled_from([(0.0, True), (1.0, True), (0.0, False)]), LIMITS)
    def run(text: str, kind: tuple[float, bool], limits: tuple[int, int, int]) -> None:
        check(source(folder, "WordPiece", name, *kind, False), text, limits)

    run()
