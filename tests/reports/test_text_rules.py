"""Normalizers and pre-tokenizers: what happens to a text before the model sees it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES, SharedData
from tests.hostile.gguf_builder import CONTROL
from tests.reports.asking import HF, LLAMA, SPM, Ask, Case, each, texts
from tests.reports.small import (
    BYTE_LEVEL,
    added,
    byte_bpe,
    char_bpe,
    charsmap,
    file_of,
    gguf_bpe,
    gguf_char_bpe,
    gguf_spm,
    gguf_ugm,
    gguf_wpm,
    hf,
    metaspace,
    precompiled,
    spm_model,
    unigram,
    word_pieces,
)  # fmt: skip

LINES = ["\n\n", "\n\n\n\n", "Hello", " Hello", "\r\n"]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@each(
    *(
        Case(
            f"B072 {pre}",
            LLAMA,
            lambda pre=pre: file_of(gguf_bpe(pre, LINES)),
            tuple(Ask(text, pieces=pieces) for text, pieces in wanted.items()) + texts("a\n\n b", "\n \n\nHello"),
            note="" if wanted else "gpt-2's pattern leaves the last newline of a run to the word",
        )
        for pre, wanted in (
            ("llama-bpe", {"\n\n": "ĊĊ", "\n\n\n\n": "ĊĊĊĊ", "\n\nHello": "ĊĊ Hello", "\n\n\n\n Hello": "ĊĊĊĊ ĠHello"}),
            ("qwen2", {"\n\n": "ĊĊ", "\n\n\n\n": "ĊĊĊĊ", "\n\nHello": "ĊĊ Hello"}),
            ("gpt-2", {"\n\n": "ĊĊ"}),
        )
    )
)
def test_runs_of_newlines(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_runs_of_newlines_in_llama_3(shared_data: SharedData) -> None:
    """B072, B132: the ids in the reports."""
    tokenizer = tokpack.load(shared_data("data/gguf/ggml-vocab-llama-bpe.gguf"))
    assert tokenizer.encode("\n\n", False) == [271]
    assert tokenizer.encode("\n\n\n\n", False) == [1038]
    assert tokenizer.encode(" Việt", False) == [101798]


CODE = "def f(x1):\n  return 12345 中文。\t// αβ１２ ！？"


@each(
    *(
        Case(
            f"B073 {pre}",
            LLAMA,
            lambda pre=pre: file_of(
                gguf_bpe(pre, ["12345", "123", "中文", "return", " return", "。", "x1", "):", "αβ"])
            ),
            texts(CODE, "12345", "中文return12", "a中文。b"),
        )
        for pre in ("deepseek-llm", "deepseek-coder", "deepseek-v3")
    )
)
def test_several_patterns_one_after_the_other(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B076 lone spaces",
        LLAMA,
        lambda: file_of(gguf_char_bpe("sarvam-moe", ["▁", "▁▁", "▁▁▁▁", "▁Hello", "Hello", "ab"])),
        texts(" ", "  ", "a  b", "   Hello", "Hello ", " Hello\n "),
    ),
    Case(
        "B077 spaces of SPM in a BPE",
        LLAMA,
        lambda: file_of(gguf_char_bpe("gemma4", ["▁Hello", "Hello", "▁▁", "▁▁▁▁", "ab"], model="gemma4")),
        (Ask("Hello  Hello", pieces="Hello ▁ ▁Hello"), *texts(" ", "  Hello", "a    b", "Hello\n\n Hello")),
    ),
)
def test_spaces_of_a_character_level_bpe(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_accents_in_gemma_4(shared_data: SharedData) -> None:
    """B075: which ids are right is contested; ours are those of the program whose file it is."""
    tokenizer = tokpack.load(shared_data("data/gguf/ggml-vocab-gemma-4.gguf"))
    ids = tokenizer.encode("Hello world! Café déjà vu — 123 😊", add_special_tokens=False)
    assert ids[2:5] == [236888, 62367, 29234]


# --- Unicode ---------------------------------------------------------------------------------------------------------

MARKS = ("a\u0323\u0307", "a\u0307\u0323", "\u1e69", "e\u0301", "é", "가", "ﬁ", "Å", "각", "\u0344")


@each(
    *(
        Case(
            f"B078 B081 {form}",
            HF,
            lambda form=form: hf(
                byte_bpe(["é", "e\u0301", "ạ", "a\u0323"]), normalizer={"type": form}, pre_tokenizer=BYTE_LEVEL
            ),
            texts(*MARKS),
        )
        for form in FORMS
    ),
    Case(
        "B081 the GGUF of an NFC model",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", ["é", "e\u0301"])),
        texts("e\u0301", "é"),
        note="llama.cpp has no NFC for byte-level BPE, tokenizers has: the ids follow the program whose file it is",
    ),
)
def test_normal_forms_across_characters(case: Case, tmp_path: Path) -> None:
    tokenizer = case.check(tmp_path)
    assert tokenizer is not None
    composed, apart = tokenizer.encode("é"), tokenizer.encode("e\u0301")
    assert (composed == apart) == (case.reference == HF)
    if case.reference == HF:  # marks of different classes come in one order
        assert tokenizer.encode("a\u0323\u0307") == tokenizer.encode("a\u0307\u0323")
        assert unicodedata.normalize("NFD", "a\u0307\u0323") == "a\u0323\u0307"


BERT = (
    "▁go",
    "spić",
    "spic",
    "sp",
    "ic",
    "i",
    "c",
    "▁fi",
    "lip",
    "ovic",
    "ović",
    "▁uber",
    "▁Uber",
    "▁Über",
    "▁über",
    "▁o",
)
PIECES = ("go", "##spić", "##spic", "##ic", "fi", "##lip", "##ovic", "uber", "Uber", "Über", "über", "##ć", "##c")
ACCENTS = texts("gospić", "filipović", "Über", "über", "UBER", "gosp\u0131")


@each(
    Case("B079 accents", LLAMA, lambda: gguf_wpm(BERT), (Ask("gospić", pieces="▁go spic"), *ACCENTS)),
    *(
        Case(
            f"B079 B080 lowercase {lower} strip {strip}",
            HF,
            lambda lower=lower, strip=strip: hf(
                word_pieces(*PIECES),
                normalizer={
                    "type": "BertNormalizer",
                    "clean_text": True,
                    "handle_chinese_chars": True,
                    "strip_accents": strip,
                    "lowercase": lower,
                },
                pre_tokenizer={"type": "BertPreTokenizer"},
            ),
            (Ask("Über", pieces=wanted), *ACCENTS),
        )
        for lower, strip, wanted in (
            (False, None, "Über"),
            (False, False, "Über"),
            (False, True, "Uber"),
            (True, None, "uber"),
            (True, False, "über"),
            (True, True, "uber"),
        )
    ),
)
def test_case_and_accents_of_word_piece(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_accents_of_bert_are_the_same_in_both_formats(shared_data: SharedData) -> None:
    """B079: the two words of the report."""
    gguf = tokpack.load(shared_data("data/gguf/ggml-vocab-bert-bge.gguf"))
    other = tokpack.load(shared_data("data/hf/bge_small_en/tokenizer.json"))
    for text in ("gospić", "filipović"):
        assert gguf.encode(text) == other.encode(text)


RULES = {
    "a\u0306": "ă",
    "a\u0306\u0301": "ắ",
    "ᄀ\u1161": "가",
    "ᄀ\u1161\u11a8": "각",
    "…": "...",
    "㎏": "kg",
    "\u3000": " ",
}
RULED = [
    (text, -2.0 - at / 8) for at, text in enumerate(["▁", "ă", "ắ", "가", "각", ".", "...", "k", "g", "kg", "a", "b"])
]
CHARSMAP_TEXTS = texts(
    "a\u0306\u0301", "a\u0306", "각", "\u1100\u1161\u11a8", "\u1100\u1161", "…", "㎏", "a\u3000b", "ï¼¿ï¼\x8fâ\x94"
)


@each(
    Case(
        "B083 B085 B089 tokenizer.json",
        HF,
        lambda: hf(unigram(*RULED), normalizer=precompiled(RULES), pre_tokenizer=metaspace()),
        CHARSMAP_TEXTS,
        note="tokenizers looks up a grapheme cluster, and then each character, but no prefix between the two",
    ),
    Case(
        "B083 B085 B089 model",
        SPM,
        lambda: spm_model(
            RULED,
            1,
            normalizer={
                "name": "x",
                "precompiled_charsmap": charsmap({key.encode(): text.encode() for key, text in RULES.items()}),
            },
        ),
        (Ask("a\u0306\u0301", pieces="▁ ắ"), Ask("\u1100\u1161\u11a8", pieces="▁ 각"), *CHARSMAP_TEXTS),
    ),
    Case("B083 B085 B089 GGUF", LLAMA, lambda: gguf_ugm(RULED, RULES), CHARSMAP_TEXTS),
)
def test_the_longest_entry_of_a_charsmap(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5_small", "xlm_roberta"])
def test_odd_characters_before_a_real_charsmap(name: str, shared_data: SharedData) -> None:
    """B083, B085: the texts of the reports, answered by the library itself."""
    tokenizers = pytest.importorskip("tokenizers", reason="asks the library itself")
    path = shared_data(f"data/hf/{name}/tokenizer.json")
    theirs, ours = tokenizers.Tokenizer.from_file(str(path)), tokpack.load(path)
    for text in ("a\u0306\u0301", "\u1100\u1161\u11a8", "ï¼¿ï¼\x8fâ\x94", "…"):
        assert ours.encode(text) == theirs.encode(text).ids


def test_the_step_that_expands_an_ellipsis_is_shown(tmp_path: Path) -> None:
    """B089: ``explain`` shows the text behind the charsmap."""
    from click.testing import CliRunner

    from tokpack.cli.main import cli

    path = tmp_path / "case.json"
    path.write_bytes(hf(unigram(*RULED), normalizer=precompiled(RULES), pre_tokenizer=metaspace()))
    shown = CliRunner().invoke(cli, ["explain", str(path), "--text", "a…"])
    assert shown.exit_code == 0, shown.output
    assert "..." in shown.output
    assert "…" in shown.output


@each(
    Case(
        "B086 both ends",
        HF,
        lambda: hf(
            char_bpe(["你好", "asa"], ["<unk>", " ", "\n"], unk_token="<unk>"),
            normalizer={"type": "Strip", "strip_left": True, "strip_right": True},
        ),
        (Ask("  你好asa \n", pieces="你好 asa"), Ask(" \u3000你好\u00a0"), Ask("\n \n")),
    ),
    *(
        Case(
            f"B090 remove_extra_whitespaces {remove}",
            SPM,
            lambda remove=remove: spm_model(
                [(text, -2.0 - at / 8) for at, text in enumerate(["▁", "▁a", "▁b", "▁▁", "a", "b"])],
                1,
                normalizer={"remove_extra_whitespaces": remove},
            ),
            (Ask("a  b", pieces="▁a ▁b" if remove else "▁a ▁ ▁b"), *texts("  a b  ", "a   b", " ")),
        )
        for remove in (True, False)
    ),
    *(
        Case(
            f"B167 add_dummy_prefix {prefix}",
            SPM,
            lambda prefix=prefix: spm_model(
                [(text, -2.0 - at / 8) for at, text in enumerate(["▁", "▁a", "▁b", "a", "b"])],
                1,
                normalizer={"add_dummy_prefix": prefix, "remove_extra_whitespaces": False},
            ),
            (
                Ask("a b", pieces="▁a ▁b" if prefix else "a ▁b"),
                Ask(ids=(4, 5), back="a b" if prefix else " a b"),
                Ask(ids=(6, 5), back="a b"),
                *texts(" a", ""),
            ),
        )
        for prefix in (True, False)
    ),
)
def test_white_space_at_the_ends_and_between(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B091 two spellings of one letter",
        HF,
        lambda: hf(char_bpe([], ["<unk>", "à", "a\u0300", "a", "\u0300"], merges=[["a", "\u0300"]], unk_token="<unk>")),
        (Ask("à", pieces="à"), Ask("a\u0300", pieces="a\u0300"), Ask("àa\u0300à")),
    ),
)
def test_equivalent_pieces_keep_their_ids(case: Case, tmp_path: Path) -> None:
    tokenizer = case.check(tmp_path)
    assert tokenizer is not None
    assert tokenizer.token_to_id("à") == 1
    assert tokenizer.token_to_id("a\u0300") == 2


# --- patterns --------------------------------------------------------------------------------------------------------

LOOK_AHEAD = r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern: dict[str, str], behavior: str = "Isolated") -> dict[str, object]:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}


def splits(*steps: object) -> dict[str, object]:
    bytes_only = BYTE_LEVEL | {"use_regex": False}
    return {"type": "Sequence", "pretokenizers": [*steps, bytes_only]}


@each(
    Case(
        "B094 look-ahead",
        HF,
        lambda: hf(byte_bpe(["  ", " ab", "ab", "   "]), pre_tokenizer=splits(split({"Regex": LOOK_AHEAD}))),
        (Ask("ab   ab", pieces="ab ĠĠ Ġab"), Ask("ab   ", pieces="ab ĠĠĠ"), *texts(" \n ab", "ab's 1234")),
    ),
    Case(
        "C19 look-behind",
        HF,
        lambda: hf(byte_bpe(["ab", "bc", "abc"]), pre_tokenizer=splits(split({"Regex": r"(?<=a)b|c"}))),
        (Ask("abc", pieces="a b c"), *texts("bbc", "cab")),
    ),
    Case(
        "B095 a text for a pattern",
        HF,
        lambda: hf(
            char_bpe(["a▁b", "▁b", "ab"], ["<unk>", "▁"], unk_token="<unk>"),
            normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            pre_tokenizer=split({"String": " "}, "MergedWithPrevious"),
        ),
        texts("a b", "ab ab", " "),
    ),
    Case(
        "B095 a text with the signs of a pattern",
        HF,
        lambda: hf(byte_bpe(["a.b", "axb"]), pre_tokenizer=splits(split({"String": "."}))),
        (Ask("a.b", pieces="a . b"), Ask("axb", pieces="axb")),
    ),
    Case(
        "B068 B038 a pattern that nobody knows",
        HF,
        lambda: hf(
            byte_bpe(["abab", "ab"], ["<|probe|>"]),
            pre_tokenizer=splits(split({"Regex": r"ab|[^ab]+|[ab]"})),
            added_tokens=[added(260, "🦙"), added(261, "3333")],
        ),
        (Ask("abab", pieces="ab ab"), *texts("🦙.cpp 3333 abab", "\n \n\n 🚀 (normal) 3333")),
        note="patterns are read from the file, not guessed from a probe text, so added tokens cannot mislead",
    ),
    Case(
        "B098 a control character",
        HF,
        lambda: hf(byte_bpe(["ju"]), pre_tokenizer=splits(split({"Regex": LOOK_AHEAD}))),
        (Ask("ju\x16", pieces="ju Ė"), *texts("\x16ju", "\x16\x16 a", "\x00")),
    ),
    Case(
        "B098 a control character in tekken",
        LLAMA,
        lambda: file_of(gguf_bpe("tekken", ["ju"])),
        (Ask("ju\x16", pieces="ju Ė"), *texts("\x16ju", "\x16\x16 a")),
    ),
    Case(
        "B186 characters at the edges",
        HF,
        lambda: hf(byte_bpe(), pre_tokenizer=splits(split({"Regex": LOOK_AHEAD}))),
        texts("\U0010ffff", "\ufdd0", "\U000e0001", "\u0378", "\U0001fae8", "\ufffe"),
    ),
    Case(
        "B186 characters at the edges, GGUF",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe")),
        texts("\U0010ffff", "\ufdd0", "\U000e0001", "\u0378", "\U0001fae8", "\ufffe"),
    ),
)
def test_patterns(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B097 metaspace keeps spaces",
        HF,
        lambda: hf(
            char_bpe(["▁hello", "▁world", "▁we", "▁9"], ["<unk>", "▁"], unk_token="<unk>"),
            pre_tokenizer=metaspace(),
            decoder=metaspace(),
        ),
        (Ask("hello world", pieces="▁hello ▁world"), Ask(ids=(1, 7), special=True), Ask("we 9", pieces="▁we ▁9")),
    ),
)
def test_spaces_come_back(case: Case, tmp_path: Path) -> None:
    tokenizer = case.check(tmp_path)
    assert tokenizer is not None
    for text in ("hello world", "we 9"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


# --- the pre-tokenizer that a GGUF names ------------------------------------------------------------------------------


def test_a_gguf_without_a_pre_tokenizer_says_so(tmp_path: Path) -> None:
    """B034, B040: the reference goes on with ``default``; so do we, but not in silence, and not when strict."""
    path = tmp_path / "case.gguf"
    path.write_bytes(file_of(gguf_bpe("llama-bpe", LINES, bos_token_id=0, eos_token_id=0), without=("pre",)))
    assert "gguf-pre-missing" in {found.code for found in tokpack.read(path).findings}
    with pytest.raises(tokpack.RefusedError):
        tokpack.convert(path, tmp_path / "strict.tokpack", strict=True)
    named = tmp_path / "named.tokpack"
    tokpack.convert(path, named, strict=True, read_options={"pre": "llama-bpe"})
    tokenizer = tokpack.load(named)
    assert [tokenizer.id_to_token(token) for token in tokenizer.encode("\n\n\n\n", False)] == ["ĊĊĊĊ"]


@each(
    Case(
        "B034 B040 no pre-tokenizer",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", LINES), without=("pre",)),
        texts("\n\n\n\n", "Hello Hello", "12345"),
        code="gguf-pre-missing",
    ),
    Case(
        "B035 C27 llama-bpe is not gpt-2",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", ["\n\n", "123", "4567"])),
        (Ask("\n\n", pieces="ĊĊ"), Ask("1234567", pieces="123 456 7"), *texts("a\n\nb")),
    ),
)
def test_the_pre_tokenizer_that_a_gguf_names(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    *(
        Case(
            f"B041 spm with pre {pre}",
            LLAMA,
            lambda pre=pre: gguf_spm(["▁Hello"], pre=pre),
            (Ask("Hello", pieces="▁Hello"),),
        )
        for pre in (None, "default", "nobody-knows-this")
    )
)
def test_a_pre_tokenizer_name_does_not_matter_to_spm(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_an_unknown_pre_tokenizer_name_is_refused_with_advice(tmp_path: Path) -> None:
    """B035: the error says which names there are, the nearest one, and which option overrides it."""
    path = tmp_path / "case.gguf"
    path.write_bytes(file_of(gguf_bpe("deepseek-r1-qwenn", [], [("<|end|>", CONTROL)])))
    with pytest.raises(tokpack.UnsupportedError) as caught:
        tokpack.load(path)
    assert "--pre" in str(caught.value)
    assert "names are known" in str(caught.value) or "deepseek-r1-qwen" in str(caught.value)
    assert tokpack.load(path, pre="qwen2").encode("a")


def test_fixtures_cover_every_name(tmp_path: Path) -> None:
    """B035, B068: all names that the reference knows are known here."""
    from tokpack.formats.gguf.rules import pre_names

    assert len(list(pre_names())) == 91
    assert "llama4" in pre_names()
    assert (FIXTURES / "golden/pre-names.npz").exists()
