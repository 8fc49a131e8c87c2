"""Normalizers against recorded answers of ``tokenizers`` 0.23.3, and what holds without the library."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, SharedData, read_texts
from tests.runtime.hf.test_normalizers_cases import (
    CASES,
    POOLS,
    build,
    charsmap,
    edited,
    nasty_texts,
    plain,
    read_golden,
    run,
    small_map,
    view_of,
)
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.ir.normalizers import (
    BertNormalizer,
    Lowercase,
    Nmt,
    NormalizerStep,
    Precompiled,
    Replace,
    SpacePrefix,
    StripAccents,
    UnicodeNormalization,
)
from tokpack.ir.patterns import Dialect
from tokpack.pack.hf_tables import normalizer_sections
from tokpack.runtime.hf.normalize_charsmap import Charsmap
from tokpack.runtime.hf.normalize_tables import Numbers, Texts
from tokpack.runtime.hf.normalizers import Normalizer, make_normalizers
from tokpack.unicode import huggingface

MODULES = [*(ROOT / "tokpack/runtime/hf").glob("normal*.py"), ROOT / "tokpack/runtime/hf/graphemes.py"]
DEPENDENT = {
    *("lower", "upper", "title", "casefold", "capitalize", "swapcase", "isalpha", "isalnum", "isdecimal", "isdigit"),
    *("isnumeric", "isspace", "islower", "isupper", "istitle", "isidentifier", "isprintable", "split", "splitlines"),
}


@cache
def build_once(name: str) -> list[Normalizer]:
    return build(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    texts, results = read_golden()
    normalizers = build(CASES[name])
    for _ in range(2):  # the second time from the caches
        for at, text in enumerate(texts):
            expected = results[name].get(at, text)
            if expected is not None:
                assert run(normalizers, text) == expected, ascii(text)


@pytest.mark.parametrize("name", CASES)
def test_edits_make_the_same_text(name: str) -> None:
    for text in nasty_texts(400, seed=7):
        at = text
        for normalizer in build_once(name):
            result = normalizer.apply(at)
            assert edited(at, normalizer.edits(at)) == result, ascii(at)
            at = result


@pytest.mark.parametrize("name", CASES)
def test_same_object_when_nothing_changes(name: str) -> None:
    for normalizer in build(CASES[name]):
        for text in ("", "abc", "ça", "日本", "\u0301", "e\u0301\u0323", "한국", "a b", "\r\n", "\u0915\u093c\u094d"):
            for _ in range(2):
                result = normalizer.apply(text)
                if result == text:
                    assert result is text


def test_facts() -> None:
    """One for each rule that is easily got wrong."""

    def one(step: NormalizerStep, text: str) -> str:
        return run(build([step]), text)

    assert one(Lowercase(), "ΟΔΟΣ İ \ua7cb") == "οδοσ i\u0307 \u0264"  # no final sigma; 17.0
    assert one(StripAccents(), "é e\u0301 \u0903 \u07fd") == "é e  \u07fd"  # composed ones stay; 9.0
    assert one(UnicodeNormalization("NFKC"), "㋿") == "㋿"  # U+32FF is of 12.1
    assert one(UnicodeNormalization("NFC"), "\U00011935\U00011930") == "\U00011935\U00011930"  # of 13.0
    assert one(UnicodeNormalization("NFC"), "\u1100\u1161\u11a8") == "각"
    assert one(UnicodeNormalization("NFC"), "가\u11a7") == "가\u11a7"
    assert one(UnicodeNormalization("NFD"), "e\u0301\u0323") == "e\u0323\u0301"
    assert one(Nmt(), "a\u200bb\x7f\x85\xa0") == "a b\x85\xa0"
    assert one(Replace("", "-"), "ab") == "-a-b-"
    assert one(Replace("", "-"), "") == ""
    bert = BertNormalizer()
    assert one(bert, "\x85\x0bÉ\t\u1734日\U0002b820") == "e  日 \U0002b820"  # U+1734 is no Mn any more
    assert one(bert, "x\u08d4\u0301") == "x\u08d4"  # of 9.0
    assert one(BertNormalizer(lowercase=False), "É") == "É"
    assert one(BertNormalizer(lowercase=False, strip_accents=True), "É") == "E"


def test_precompiled_takes_the_shortest_entry_for_a_whole_cluster() -> None:
    step = Precompiled(small_map())
    normalizer = build([step])[0]
    assert normalizer.apply("ab") == "Ab"  # not x
    assert normalizer.apply("a\u0301") == "A"  # the accent is lost
    assert normalizer.apply("a\u0301\u0302\u0302") == "A'\u0302\u0302"  # 7 bytes: by character
    assert normalizer.apply("\r\n") == "|"
    assert normalizer.edits("xa\u0301b ") == [(1, 3, "A"), (4, 5, "")]


def test_replace_by_a_matcher() -> None:
    pattern = re.compile("x*")
    step = Replace("x*", "<>", Dialect.ONIG)
    normalizer = build([step], [lambda text: (found.span() for found in pattern.finditer(text))])[0]
    assert normalizer.apply("axb") == "<>a<><>b<>"
    assert edited("axb", normalizer.edits("axb")) == "<>a<><>b<>"
    assert normalizer.apply("") == ""
    with pytest.raises(FormatError):
        build([step])


def test_only_what_the_steps_need() -> None:
    assert normalizer_sections([Nmt()]) == {}
    assert set(normalizer_sections([Lowercase()])) == {"hf.lowercase.start", "hf.lowercase.value", "hf.lowercase.text"}
    assert "hf.compose.key" not in normalizer_sections([UnicodeNormalization("NFD")])
    steps: list[NormalizerStep] = [
        step for case in CASES.values() for step in case if not isinstance(step, Precompiled)
    ]
    sizes = {name: len(raw) for name, raw in normalizer_sections(steps).items()}
    assert sum(sizes.values()) < 200_000, sizes
    with pytest.raises(UnsupportedError):
        normalizer_sections([Precompiled(charsmap({b"a": "b"})), Precompiled(charsmap({b"a": "c"}))])


@pytest.mark.parametrize("name", ["canonical", "compatible", "lowercase"])
def test_texts_survive_the_pack(name: str) -> None:
    steps: list[NormalizerStep] = [UnicodeNormalization("NFD"), UnicodeNormalization("NFKD"), Lowercase()]
    table = Texts(view_of(normalizer_sections(steps)), name)
    expected = getattr(huggingface, name)()
    assert {code: new for code in range(0x110000) if (new := table.text(chr(code))) != chr(code)} == expected


def test_numbers_survive_the_pack() -> None:
    table = Numbers(view_of(normalizer_sections([UnicodeNormalization("NFD")])), "combining")
    starts, values = huggingface.combining()
    ends = np.append(starts[1:], 0x110000)
    for start, end, value in zip(starts.tolist(), ends.tolist(), values.tolist(), strict=True):
        assert table.number(chr(start)) == table.number(chr(end - 1)) == value


def test_damage_is_told() -> None:
    """Whatever the tables hold: an error of ours, or an answer."""
    source = random.Random(3)
    steps: list[NormalizerStep] = [
        UnicodeNormalization("NFKC"),
        BertNormalizer(),
        StripAccents(),
        Precompiled(small_map()),
        Lowercase(),
    ]
    good = normalizer_sections(steps)
    told = 0
    for _ in range(150):
        parts = dict(good)
        name = source.choice(sorted(parts))
        raw = bytearray(parts[name])
        if source.random() < 0.3:
            del raw[source.randrange(len(raw)) :]
        for _ in range(source.choice((1, 100))):
            if raw:
                raw[source.randrange(len(raw))] = source.randrange(256)
        parts[name] = bytes(raw)
        try:
            normalizers = make_normalizers(plain(steps), view_of(parts), [])
            for text in POOLS:
                for normalizer in normalizers:
                    assert edited(text, normalizer.edits(text)) is not None
                    normalizer.apply(text)
        except TokpackError:
            told += 1
    assert told


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"kind": 3},
        {"kind": "prepend"},
        {"kind": "prepend", "content": 3},
        {"kind": "strip", "left": 1, "right": True},
        {"kind": "unicode-normalization", "form": "NFX"},
        {"kind": "replace", "pattern": "a", "content": "b", "dialect": "onig"},
        {"kind": "lowercase"},  # and no table
        {"kind": "map-chars", "table": []},
    ],
)
def test_damaged_steps(step: dict[str, Any]) -> None:
    with pytest.raises(TokpackError):
        make_normalizers([step], view_of({}), [])


def test_steps_of_other_libraries() -> None:
    with pytest.raises(UnsupportedError):
        build([SpacePrefix()])


def test_charsmap_bounds() -> None:
    for blob in (b"", b"\0", b"\x04\0\0\0", b"\xff\xff\xff\xff" + b"\xff" * 40, charsmap({b"a": "b"})[:600]):
        with pytest.raises(TokpackError):
            Charsmap(memoryview(blob)).shortest(b"a")


def test_long_runs_are_linear() -> None:
    """Runs without any boundary: marks, jamo, what waits for a consonant."""
    texts = ["e" + "\u0301\u0323" * 20_000, "\u1100" * 20_000 + "\u1161" * 20_000, "\u0915" + "\u094d\u0301" * 20_000]
    texts += ["\u0600" * 40_000 + "\n", "©" + "\u0301" * 40_000, "\u0915" + "\u094d\u0915" * 20_000, "🇩" * 40_001]
    for name in ("NFC", "NFKD", "Precompiled", "Bert 11None1"):
        for text in texts:
            run(build_once(name), text)


def test_no_method_of_str_that_knows_unicode() -> None:
    assert len(MODULES) > 5
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert node.attr not in DEPENDENT, (path.name, node.lineno, node.attr)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                stripped = node.func.attr in ("strip", "lstrip", "rstrip")
                assert not stripped or node.args, (path.name, node.lineno)  # without arguments: white space of Python
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None)]
                assert not {"unicodedata", "numpy", "regex"} & set(names), path.name


def test_imports_without_numpy_or_unicodedata(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['unicodedata'] = sys.modules['numpy'] = None\n"
        "from tokpack.runtime.hf.normalizers import make_normalizers\n"
        "print(make_normalizers([{'kind': 'nmt'}], None, [])[0].apply('a\\u200bb'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.stdout == "a b\n"


@pytest.mark.parametrize("name", CASES)
def test_corpus_edits(name: str, shared_data: SharedData) -> None:
    normalizers = build(CASES[name])
    for text in read_texts(shared_data("data/corpus_hf.jsonl"))[::5]:
        if isinstance(text, str):
            assert edited(text, normalizers[0].edits(text)) == normalizers[0].apply(text)
