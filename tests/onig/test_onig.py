"""The translated patterns against recorded and live results of the reference library."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.conftest import SharedData
from tests.onig import generate
from tests.onig.cases import CONSTRUCTS, UNSUPPORTED
from tests.onig.oracle import Library, isolated, mapped, matches, ours, ours_alone
from tokpack.errors import RefusedError, UnsupportedError
from tokpack.onig import FLAGS, quote, translate

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
CASES = [(construct, pattern) for construct, patterns in CONSTRUCTS.items() for pattern in patterns]
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(pytest.importorskip("tokenizers", reason="the live comparison needs the library tokenizers"))


@pytest.mark.parametrize(("construct", "pattern"), CASES, ids=[f"{c}-{p!a}" for c, p in CASES])
def test_golden(construct: str, pattern: str) -> None:
    expected = GOLDEN["ends"][pattern]
    assert (expected is None) == (construct == "refused")
    if expected is None:
        with pytest.raises(RefusedError) as caught:
            translate([pattern])
        assert not isinstance(caught.value, UnsupportedError)
        return
    made = translate([pattern])
    for text, ends in zip(GOLDEN["texts"], expected, strict=True):
        assert [end for _, end in ours(made, 0, text)] == ends, text


@pytest.mark.parametrize("pattern", UNSUPPORTED)
def test_unsupported(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=r"is not translated: .*, at character \d+ of the regular expression"):
        translate([pattern])


def test_unsupported_patterns_are_taken_by_the_library(library: Library) -> None:
    for pattern in UNSUPPORTED:
        assert library.compile(pattern) is not None, pattern


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_random_patterns(library: Library, rnd: Random, depth: int) -> None:
    pattern = generate.pattern(rnd, depth)
    split = library.compile(pattern)
    try:
        made = translate([pattern])
    except UnsupportedError:
        assume(False)
    except RefusedError:
        assert split is None
        return
    assert split is not None
    compiled = re.compile(made.patterns[0], FLAGS)
    for _ in range(6):
        text = generate.text(rnd, 10)
        assert isolated(matches(compiled, mapped(made, text)), len(text)) == library.pieces(split, text), (
            pattern,
            text,
        )


def _patterns(node: Any) -> list[str]:
    """Every ``{"Regex": …}`` and, quoted, every ``{"String": …}``."""
    if isinstance(node, list):
        return [p for item in node for p in _patterns(item)]
    if not isinstance(node, dict):
        return []
    if set(node) == {"Regex"}:
        return [node["Regex"]]
    if set(node) == {"String"}:
        return [quote(node["String"])]
    return [p for value in node.values() for p in _patterns(value)]


def _real_patterns(shared_data: SharedData) -> list[str]:
    found: set[str] = set()
    for kind in ("hf", "hf-rejected"):
        for folder in sorted(shared_data(f"data/{kind}").iterdir()):
            for packed in sorted(folder.glob("tokenizer.json*")):
                path = shared_data(f"data/{kind}/{folder.name}/{packed.name.removesuffix('.xz')}")
                try:
                    whole = json.loads(path.read_text(encoding="utf-8"))
                except ValueError:  # some of the rejected ones are no JSON
                    continue
                if isinstance(whole, dict):
                    parts = [whole.get(k) for k in ("normalizer", "pre_tokenizer", "decoder")]
                    found.update(_patterns(parts))
    return sorted(found)


@pytest.mark.slow
def test_real_patterns_on_the_corpora(library: Library, shared_data: SharedData) -> None:
    patterns = _real_patterns(shared_data)
    assert len(patterns) > 15
    texts = []
    for name in ("corpus.jsonl", "corpus_hf.jsonl"):
        lines = shared_data(f"data/{name}").read_text(encoding="utf-8").splitlines()
        texts += [item["text"] for item in map(json.loads, lines) if "text" in item]
    made = translate(patterns)
    compiled = made.compile()
    splits = [library.compile(p) for p in patterns]
    for text in texts:
        classes = mapped(made, text)
        for pattern, split, regex in zip(patterns, splits, compiled, strict=True):
            assert isolated(matches(regex, classes), len(text)) == library.pieces(split, text), (pattern, text)


@pytest.mark.slow
def test_every_code_point_of_every_set(library: Library) -> None:
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    text = "".join(map(chr, codes))
    for pattern in (
        r"\w+",
        r"\p{L}+",
        r"\p{N}+",
        r"[\p{P}\p{S}]+",
        r"\s+",
        r"\p{M}+",
        r"(?i:[\p{Lu}])+",
        r"[[:graph:]]+",
    ):
        split = library.compile(pattern)
        made = translate([pattern])
        assert isolated(matches(made.compile()[0], mapped(made, text)), len(text)) == library.pieces(split, text)


def test_one_table_serves_all_patterns() -> None:
    made = translate([r"\p{L}+", r"\p{Han}", r"(?i:ss)", ""])
    assert made.index.shape == (4352,)
    assert made.index.dtype == made.blocks.dtype == np.uint16
    assert made.blocks.shape[1] == 256
    assert np.array_equal(made.blocks[made.index[0]][:128], np.arange(128))
    assert made.can_be_empty == (False, False, False, True)
    assert ours_alone(r"\p{Han}", "a中") == [(0, 1), (1, 2)]


def test_no_pattern_depends_on_the_tables_of_python() -> None:
    for _, pattern in CASES:
        try:
            made = translate([pattern]).patterns[0]
        except RefusedError:
            continue
        assert re.search(r"(?<!\\)(?:\\\\)*\\[wWdDsSbB]", made) is None, made
        assert "(?i" not in made


def test_quote() -> None:
    text = "a.b*c[^$]#&-~\n中|{}()?+\\/'\" "
    assert ours_alone(quote(text), f"x{text}y") == [(0, 1), (1, 1 + len(text)), (1 + len(text), 2 + len(text))]


@pytest.mark.parametrize(
    "pattern", [GPT4, r"(?:a|b|[c-z])+", r"(?i:[\p{L}]+)", r"a++b|.", r"\p{L}{1,3}+", r"(?:a{1,3})*"]
)
def test_long_runs(pattern: str) -> None:
    text = "a" * 1_000_000
    start = time.perf_counter()
    found = matches(translate([pattern]).compile()[0], text) if pattern != r"a++b|." else None
    assert found in (None, [(0, len(text))])
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    "pattern", ["(" * 5000 + ")" * 5000, "[" * 5000, "a{" + "0" * 10000 + "1}", "a{" + "9" * 10000 + "}"]
)
def test_absurd_patterns_are_refused_in_time(pattern: str) -> None:
    if pattern.startswith("a{0"):
        assert ours_alone(pattern, "aa") == [(0, 1), (1, 2)]
        return
    with pytest.raises(RefusedError):
        translate([pattern])


def test_compiling_is_quick() -> None:
    translate([GPT4])
    start = time.perf_counter()
    for _ in range(5):
        translate([GPT4])
    assert (time.perf_counter() - start) / 5 < 0.25  # a few milliseconds on an idle machine
