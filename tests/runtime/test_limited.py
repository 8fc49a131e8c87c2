"""Patterns from files: known ones are fast, others stop after a time, and both engines find the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokpack
from tests.conftest import ROOT
from tokpack.errors import EncodeError, FormatError, UnsupportedError
from tokpack.onig import FLAGS, translate
from tokpack.runtime import limited
from tokpack.runtime.limited import _Limited, compile_pattern, is_linear, nesting

EXPONENTIAL = r"(?:ab|ba|a|b)+c"


def _tokenizer(tmp_path: Path, pattern: str) -> Path:
    vocab = {"a": 0, "b": 1, "aa": 2}
    document = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "a"]]},
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_pattern_that_backtracks_without_bound_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "PATTERN_SECONDS", 0.3)
    path = _tokenizer(tmp_path, EXPONENTIAL)
    for tokenizer in (tokpack.load(path), _packed(path, tmp_path)):
        assert tokenizer.encode("aab") == [2, 1]
        start = time.monotonic()
        with pytest.raises(EncodeError) as caught:
            tokenizer.encode("ab" * 40 + "dc")
        assert time.monotonic() - start < 5
        assert EXPONENTIAL in str(caught.value)
        assert tokenizer.encode("aab") == [2, 1]


def _packed(path: Path, folder: Path) -> tokpack.Tokenizer:
    tokpack.convert(path, folder / "out.tokpack", force=True)
    return tokpack.load(folder / "out.tokpack")


@pytest.mark.parametrize(
    ("pattern", "depth"),
    [
        ("", 0),
        ("ab(c|d)", 0),
        ("a+b*c?", 1),
        ("(?:a+)*", 2),
        ("(?:a+){2,3}?(?:b)", 2),
        (r"(?:\(+\))(?:[(+*]+x)", 1),
        ("[]+*(]", 0),
        (r"[\])+]+", 1),
        ("(?:(?:(?:x)+)+|y+)+", 3),
    ],
)
def test_how_deep_quantifiers_are_nested(pattern: str, depth: int) -> None:
    assert nesting(pattern) == depth


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?:a" * 30 + ")+" * 30, "nests 30 quantifiers"),  # compiling takes time that doubles with each
        ("(?:" * 30 + "ab" + "){3,7}" * 30, "nests 30 quantifiers"),
    ],
)
def test_patterns_that_would_take_long_to_compile(tmp_path: Path, pattern: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(UnsupportedError, match=message):
        tokpack.load(_tokenizer(tmp_path, pattern)).encode("xx")
    assert time.process_time() - start < 2


def test_the_patterns_of_published_tokenizers_are_known() -> None:
    entries = json.loads((ROOT / "tokpack" / "onig" / "linear_patterns.json").read_text("ascii"))["sets"]
    patterns = [entry["patterns"] for entry in entries if entry["dialect"] == "onig"]
    assert len(patterns) > 8
    for sources in patterns:
        for source, translated in zip(sources, translate(sources).patterns, strict=True):
            assert isinstance(compile_pattern(source, translated, "here"), re.Pattern)
    assert not is_linear(translate([EXPONENTIAL]).patterns[0])


def test_the_table_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "-m", "tokpack.onig.make_linear", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0


ATOMS = st.sampled_from(
    ["a", "b", r"\s", r"\p{L}", r"\p{N}", r"[^\s\p{L}]", ".", "(?:ab|a)", r"(?!\S)", r"(?=b)", "c?"]
)
TAILS = st.sampled_from(["", "+", "*", "?", "{1,3}", "+?", "++"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    branches = draw(st.lists(st.lists(st.tuples(ATOMS, TAILS), min_size=1, max_size=3), min_size=1, max_size=3))
    return "|".join("".join(a + ("" if a.startswith(("(?!", "(?=")) else t) for a, t in b) for b in branches)


@settings(max_examples=300, deadline=None)
@given(patterns(), st.text("ab c1\n.\u00e9\u00a0", max_size=12))
def test_both_engines_find_the_same(pattern: str, text: str) -> None:
    try:
        translated = translate([pattern])
    except tokpack.TokpackError:
        return
    classes = translated.blocks[translated.index].reshape(-1)
    mapped = "".join(chr(classes[ord(char)]) for char in text)
    plain = re.compile(translated.patterns[0], FLAGS)
    other = _Limited(pattern, translated.patterns[0], "here")
    assert [m.span() for m in plain.finditer(mapped)] == [m.span() for m in other.finditer(mapped)]
    for at in range(len(mapped) + 1):
        one, two = plain.search(mapped, at), other.search(mapped, at)
        assert (one and one.span()) == (two and two.span())


def test_a_damaged_pattern_is_a_damaged_pack(tmp_path: Path) -> None:
    from tokpack.runtime.errors import meta_errors

    for broken in ("(", "[", "(?P<a>x)(?P<a>y)", "a{2,1}"):
        with pytest.raises(FormatError), meta_errors("x"):
            compile_pattern("x", broken, "here")
