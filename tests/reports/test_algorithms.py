"""Merging, best paths and bytes: which pieces a word is cut into."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES, SharedData
from tests.hostile.gguf_builder import BYTE, CONTROL, NORMAL, Key
from tests.hostile.guard import limit
from tests.reports.asking import HF, LLAMA, SPM, TIK, Ask, Case, each, texts
from tests.reports.small import (
    BYTE_LEVEL,
    G,
    byte_bpe,
    char_bpe,
    file_of,
    gguf_bpe,
    gguf_spm,
    gguf_ugm,
    hf,
    merges_for,
    metaspace,
    ranks,
    spm_keys,
    spm_model,
    unigram,
)  # fmt: skip

WHOLE = [(text, NORMAL) for text in ("ĠViá»ĩt", "ĠVi", "á»ĩt", "á»ĩ")]  # " Việt", " Vi", "ệt", "ệ"


@each(
    Case(
        "B132 B133 a whole word without merges",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", [" Vi"], WHOLE[:1])),
        (Ask(" Việt", pieces="ĠViá»ĩt"), Ask("a Việt Vi")),
    ),
    Case(
        "B132 other pre-tokenizers merge",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", [" Vi"], WHOLE[:1])),
        (Ask(" Việt"),),
    ),
    *(
        Case(
            f"B132 C11 ignore_merges {ignore}",
            HF,
            lambda ignore=ignore: hf(byte_bpe([" Vi"], ["ĠViá»ĩt"], ignore_merges=ignore), pre_tokenizer=BYTE_LEVEL),
            (Ask(" Việt", pieces="ĠViá»ĩt" if ignore else "ĠVi á » ĩ t"), Ask("a Việt")),
        )
        for ignore in (True, False)
    ),
)
def test_a_word_that_is_a_piece_but_cannot_be_merged(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_llama_3_reaches_pieces_beyond_its_merges(shared_data: SharedData) -> None:
    """B133: some hundred pieces of Llama 3 come out only because whole words are looked up first."""
    tokenizer = tokpack.load(shared_data("data/hf/llama3/tokenizer.json"))
    assert tokenizer.encode(" Việt", add_special_tokens=False) == [101798]


# "brutalist" with merges in the order of their rank: al, ist, br, ut; from the left it would be "bru" …
RANKED = [
    ("a", "l"),
    ("i", "s"),
    ("is", "t"),
    ("b", "r"),
    ("u", "t"),
    ("al", "ist"),
    ("br", "u"),
    ("br", "ut"),
    ("bru", "t"),
]


@each(
    Case(
        "B134 by rank",
        LLAMA,
        lambda: file_of(
            gguf_bpe("qwen2", [], [(left + right, NORMAL) for left, right in RANKED]),
            Key(f"{G}merges", "[str]", [f"{left} {right}" for left, right in RANKED]),
        ),
        (Ask("alist", pieces="alist"), Ask("bru", pieces="bru"), *texts("brutalist", "brut")),
    ),
    Case(
        "B144 words of a character-level BPE",
        HF,
        lambda: hf(
            char_bpe(["▁one", "▁two", "▁three", "one"], ["<unk>", "▁"], unk_token="<unk>"),
            pre_tokenizer=metaspace(),
            decoder=metaspace(),
        ),
        (Ask("one two three", pieces="▁one ▁two ▁three"), *texts("one  two", "onetwo", " one")),
    ),
)
def test_merges_apply_by_rank(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_brutalist(shared_data: SharedData) -> None:
    """B134: the word of the report."""
    tokenizer = tokpack.load(shared_data("data/gguf/ggml-vocab-qwen2.gguf"))
    assert [tokenizer.id_to_token(token) for token in tokenizer.encode("brutalist")] == ["br", "ut", "alist"]


TIES = [("▁", -3.0), ("!", -1.0), ("!!", -2.0), ("!!!", -3.0), ("!!!!!", -5.0), ("▁!", -4.0), ("a", -1.0), ("aa", -2.0)]


@each(
    Case("B139 equal paths, model", SPM, lambda: spm_model(TIES, 1), texts("!!!!!!", "!!!", "aaaa", "!a!aa")),
    Case(
        "B139 equal paths, tokenizer.json",
        HF,
        lambda: hf(unigram(*TIES), pre_tokenizer=metaspace()),
        texts("!!!!!!", "!!!", "aaaa", "!a!aa"),
    ),
    Case("B139 equal paths, GGUF", LLAMA, lambda: gguf_ugm(TIES), texts("!!!!!!", "!!!", "aaaa", "!a!aa")),
)
def test_paths_of_equal_score(case: Case, tmp_path: Path) -> None:
    """Each program has its own order, and a file follows the program that it is made for."""
    case.check(tmp_path)


UNIGRAM = [("▁", -2.0), ("▁this", -3.0), ("▁is", -3.0), (".", -2.0), ("c", -2.0), ("p", -2.0)]


@each(
    Case(
        "B137 bytes, tokenizer.json",
        HF,
        lambda: hf(unigram(*UNIGRAM, bytes_too=True), pre_tokenizer=metaspace()),
        (Ask(" this is 🦙.cpp"), Ask("🦙", pieces="▁ <0xF0> <0x9F> <0xA6> <0x99>")),
    ),
    Case(
        "B137 bytes, model",
        SPM,
        lambda: spm_model(UNIGRAM, 1, bytes=True),
        (Ask(" this is 🦙.cpp"), Ask("🦙", pieces="▁ <0xF0> <0x9F> <0xA6> <0x99>")),
    ),
    Case(
        "B137 GGUF",
        LLAMA,
        lambda: gguf_ugm(UNIGRAM),
        (Ask(" this is 🦙.cpp"), Ask("a🦙", pieces="<unk>")),
        note="llama.cpp's Unigram has no byte fallback: a GGUF of such a model gives the unknown piece there and here",
    ),
    Case(
        "B100 bytes of SPM",
        LLAMA,
        lambda: gguf_spm(["▁This", "▁is", "▁"]),
        (Ask("This is 🦙", pieces="▁This ▁is ▁ <0xF0> <0x9F> <0xA6> <0x99>"),),
    ),
    Case(
        "C11 no bytes, unknown",
        HF,
        lambda: hf(char_bpe(["ab"], ["<unk>"], unk_token="<unk>")),
        (Ask("aéb", pieces="a <unk> b"), Ask("éé", pieces="<unk> <unk>")),
    ),
    Case(
        "C11 no bytes, fused",
        HF,
        lambda: hf(char_bpe(["ab"], ["<unk>"], unk_token="<unk>", fuse_unk=True)),
        (Ask("aéb", pieces="a <unk> b"), Ask("éé", pieces="<unk>")),
    ),
    Case("C11 no bytes, no unknown", HF, lambda: hf(char_bpe(["ab"])), (Ask("aéb", pieces="ab"), Ask("ab"))),
)
def test_characters_without_a_piece(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B049 scores, no merges",
        LLAMA,
        lambda: gguf_spm(["▁Hello", "▁He", "llo", "lo"], [("<|user|>", CONTROL)], arch="phi3"),
        (Ask("Hello", pieces="▁Hello"), *texts("Helo llo", "<|user|>Hello")),
    ),
    Case(
        "B048 one vocabulary",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", ["Hello", " world", "12"], [("<|im_end|>", CONTROL)])),
        texts("Hello world 12345", "don't\n\n a", "<|im_end|>"),
    ),
)
def test_models_of_gguf(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def test_gguf_and_tokenizer_json_of_one_vocabulary(tmp_path: Path) -> None:
    """B048: the same ids, on text that NFC does not change."""
    words = ["Hello", " world", "12", "\n\n"]
    step = {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False}
    pre = {"type": "Sequence", "pretokenizers": [step, BYTE_LEVEL | {"use_regex": False}]}
    (tmp_path / "a.gguf").write_bytes(file_of(gguf_bpe("qwen2", words)))
    (tmp_path / "a.json").write_bytes(hf(byte_bpe(words), normalizer={"type": "NFC"}, pre_tokenizer=pre))
    gguf, other = tokpack.load(tmp_path / "a.gguf"), tokpack.load(tmp_path / "a.json")
    for text in ("Hello world 12345", "don't DON'T\n\n  a", "日本語 été \u3000x", "🦙.cpp\t\r\n"):
        assert gguf.encode(text, False) == other.encode(text, False)


# --- bytes that are no text ------------------------------------------------------------------------------------------


@each(
    Case(
        "B149 incomplete UTF-8, BPE",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", ["\ufffd"])),
        texts(b"\xe6\xad", b"\xe2\x80", b"a\xe2\x80b", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\xa6"),
    ),
    Case(
        "B149 incomplete UTF-8, SPM",
        LLAMA,
        lambda: gguf_spm(["▁a", "▁"]),
        texts(b"\xe6\xad", b"\xe2\x80", b"a\xe2\x80b", b"\xff"),
    ),
    Case(
        "B149 incomplete UTF-8, model",
        SPM,
        lambda: spm_model(UNIGRAM, 1, bytes=True),
        texts(b"\xe6\xad", b"this\xe2\x80", b"\xff"),
    ),
    Case(
        "B152 a lone surrogate",
        TIK,
        lambda: ranks([b"ab"]),
        texts("\ud83d", "a\ud83db", "\udc00\ud83d", "\ud83d\ude00"),
        options=(("pattern", r"\w+|[^\w\s]+|\s+"),),
    ),
)
def test_text_that_is_not_unicode(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_text_that_is_not_unicode_for_tokenizer_json(tmp_path: Path) -> None:
    """B149, B152: the library takes Unicode alone, so there is an EncodeError and nothing else."""
    (tmp_path / "a.json").write_bytes(hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL))
    tokenizer = tokpack.load(tmp_path / "a.json")
    for text in (b"\xe6\xad", "\ud83d"):
        with pytest.raises(tokpack.EncodeError):
            tokenizer.encode(text)


@each(
    Case(
        "B150 a piece with NUL",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["ab"], [(b"x\0y", NORMAL), (b"\0", NORMAL)])),
        texts("ab\0x", "x"),
        code="gguf-piece-nul",
        note="llama.cpp reads C strings: the piece ends at NUL, and an empty one gets a made-up name",
    ),
)
def test_a_piece_with_nul(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


# --- long runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["a", " ", *(pytest.param(char, marks=pytest.mark.slow) for char in ("^", "\n", "é", "1", "字"))]
)
@pytest.mark.parametrize("kind", ["o200k", "tiktoken", "spm", "unigram", "hf"])
def test_one_long_run(kind: str, text: str, tmp_path: Path) -> None:
    """B019, B148: no deep recursion, no time that grows with the square; 100,000 characters of one kind.

    The whole text comes back; the ids of shorter runs are compared with the references below.
    """
    files: dict[str, tuple[str, bytes, dict[str, str]]] = {
        "o200k": ("a.gguf", file_of(gguf_bpe("gpt-4o", ["aaaa", "^^^^", "    ", "\n\n"])), {}),
        "tiktoken": ("a.tiktoken", ranks([b"aaaa", b"^^^^", b"    "]), {"pattern": LONG}),
        "spm": ("a.gguf", gguf_spm(["aaaa", "^^", "▁▁"], add_space_prefix=False), {}),
        "unigram": ("a.model", spm_model([("▁", -2.0), ("aa", -2.5), ("a", -2.0), ("^", -2.0)], 1, bytes=True), {}),
        "hf": ("a.json", hf(byte_bpe(["aaaa", "^^^^", "    "]), pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL), {}),
    }
    name, data, options = files[kind]
    (tmp_path / name).write_bytes(data)
    tokenizer = tokpack.load(tmp_path / name, **options)
    count = 100_000
    with limit(20):
        ids = tokenizer.encode(text * count, add_special_tokens=False)
        got = tokenizer.decode(ids)
    if kind == "unigram" and text in " \n":  # white space is folded there
        assert got.strip() == ""
        return
    assert got == text * count


LONG = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@each(
    Case(
        "B019 a run, o200k",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-4o", ["aaaa", "^^^^", "    ", "\n\n"])),
        texts("a" * 999, "^" * 999, " " * 999, "\n" * 999, "1" * 999),
    ),
    Case(
        "B148 a run, tiktoken",
        TIK,
        lambda: ranks([b"aaaa", b"^^^^", b"    "]),
        texts("a" * 999, "^" * 999, " " * 999, "é" * 999),
        options=(("pattern", LONG),),
    ),
    Case(
        "B148 a run, tokenizer.json",
        HF,
        lambda: hf(byte_bpe(["aaaa", "^^^^", "    "]), pre_tokenizer=BYTE_LEVEL),
        texts("a" * 999, "^" * 999, " " * 999, "é" * 999),
    ),
    Case("B148 a run, SPM", LLAMA, lambda: gguf_spm(["aaaa", "^^", "▁▁"]), texts("a" * 999, "^" * 999, " " * 999)),
)
def test_one_run_of_moderate_length(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_a_run_costs_time_in_proportion(tmp_path: Path) -> None:
    """B148: ten times the text takes about ten times as long."""
    (tmp_path / "a.tiktoken").write_bytes(ranks([b"aaaa"]))
    tokenizer = tokpack.load(tmp_path / "a.tiktoken", pattern=LONG)
    spent = []
    for count in (100_000, 1_000_000):
        start = time.process_time()
        tokenizer.encode("a" * count)
        spent.append(time.process_time() - start)
    assert spent[1] < 30 * spent[0]


def test_encoding_in_two_halves_is_another_thing(tmp_path: Path) -> None:
    """B154: encode(a) + encode(b) is not encode(a + b), for any program; nothing here pretends that it is."""
    (tmp_path / "a.gguf").write_bytes(file_of(gguf_bpe("llama-bpe", ["yes"])))
    tokenizer = tokpack.load(tmp_path / "a.gguf")
    whole = tokenizer.encode("yes", False)
    assert len(whole) == 1
    assert tokenizer.encode("ye", False) + tokenizer.encode("s", False) != whole


# --- byte pieces -----------------------------------------------------------------------------------------------------


@each(
    *(
        Case(
            f"B017 byte piece {text}",
            LLAMA,
            lambda text=text: gguf_spm(["▁a"], [(text, BYTE)]),
            texts("a", "ab"),
        )
        for text in ("<0x-1>", "<0xZZ>", "<0x+1>", "<0x 1>", "<0x1>", "<0x100>", "<0x", "")
    ),
    Case(
        "B062 a byte piece typed as text",
        LLAMA,
        lambda: file_of(
            [
                Key(key.name, key.kind, [NORMAL if kind == BYTE else kind for kind in key.value])
                if str(key.name).endswith("token_type")
                else key
                for key in spm_keys(["▁a"])
            ]
        ),
        (Ask("a", pieces="▁a"), Ask(ids=(13,), back="<0x0A>"), Ask("a\n")),
        note="the id stays what it is; the text of such a piece is its spelling, as in llama.cpp",
    ),
)
def test_byte_pieces(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_corpora_are_compared_in_full(shared_data: SharedData) -> None:
    """B141, B143: texts by the thousand with recorded ids of every reference are part of the tests."""
    for name in ("golden/gguf/llama-bpe.npz", "data/corpus.jsonl"):
        assert shared_data(name).exists()
    assert (FIXTURES / "texts.jsonl").exists()
    assert merges_for(["ab"]) == [("a", "b")]
