"""The vectorised splitters cut where the patterns themselves cut."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.property.strategies import GROUPS
from tests.seeds import run_seed
from tokpack.onig import FLAGS, translate
from tokpack.runtime.bulk.classes import CharCodes
from tokpack.runtime.bulk.known import COLLAPSED, DEEPSEEK, HAN_RANGES, PATTERNS, SCANNER_RULES, Rules, rules_of_pattern
from tokpack.runtime.bulk.split import WordStarts, chunks
from tokpack.runtime.scanners import SCANNERS
from tokpack.runtime.split import compile_collapsed
from tokpack.unicode import llamacpp

COUNT = 60 * int(os.environ.get("TOKPACK_EXAMPLES", "20"))
ATOMS = [
    *"aBzstSéÉ中ªʰǅ1²٣Ⅷ \t\n\r\0\x1c\x7f_(!/-。“👍",
    *("'s", "'", "'ll", "'LL", "'lL", "'re", "'ſ", "ſ", "\u0301", "ा", "12", "1234567", "  ", "\r\n", "\u00a0"),
    *("\u3000", "\x85", "//", "\u200d", ". ", "'d", "'m", "'ve", "'VE", "don't", "A中", "中A", "\n/", "!\n/", " '"),
    *("(a", "(é", "a\u0301", "(a\u0301b", "\u200b", "\u200b\u200b", "\ue000a", "かな", "・", "“a", " \u200d", "é("),
]


def pieces() -> Sequence[str]:
    return [atom for group in GROUPS for atom in group if not any("\ud800" <= char <= "\udfff" for char in atom)]


def texts(count: int) -> Sequence[str]:
    seed = run_seed()
    print(f"texts with seed {seed}")
    source, hostile = random.Random(seed), pieces()
    kinds = (ATOMS, ATOMS, hostile)
    return ["".join(source.choices(source.choice(kinds), k=source.randint(1, 14))) for _ in range(count)]


class Classes(dict[int, int]):
    def __init__(self, table: NDArray[np.generic]) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, code: int) -> int:
        return int(self._table[code])


def expected(pattern: re.Pattern[str], text: str, *, alone: bool) -> list[int]:
    """Where words begin; numbers are cut out first if they stand alone."""
    numbers = [match.span() for match in re.finditer("[\xd10-9]", text)] if alone else []
    out, last = [], 0
    for start, end in [*numbers, (len(text), len(text))]:
        out += [last + match.start() for match in pattern.finditer(text[last:start])]
        if start < end:
            out.append(start)
        last = end
    return out


def check(rules: Rules, pattern: re.Pattern[str], index: NDArray[np.uint16], blocks: NDArray[np.generic]) -> None:
    table = blocks.reshape(-1, 256)[index].reshape(-1)
    alone = None
    if rules.alone:
        alone = table == 0xD1
        alone[0x30:0x3A] = True
    starts = WordStarts(rules, CharCodes(index, blocks, pattern, rules.family, alone))
    classes, left = Classes(table), 0
    for text in texts(COUNT):
        found = starts.starts(text)
        if found is None:
            left += 1
        else:
            assert found.tolist() == expected(pattern, text.translate(classes), alone=rules.alone), repr(text)
    assert left < COUNT / 4, "most texts are left to the scalar splitter"


@pytest.mark.parametrize("source", PATTERNS, ids=range(len(PATTERNS)))
def test_patterns_of_the_library(source: str) -> None:
    translated = translate([source])
    (pattern,) = translated.compile()
    assert pattern.flags & FLAGS == FLAGS
    rules = rules_of_pattern(source, onig=True)
    assert rules is not None
    check(rules, pattern, translated.index, translated.blocks)


@pytest.mark.parametrize("name", [*SCANNER_RULES, "numbers alone"])
def test_scanners(name: str) -> None:
    index, blocks = llamacpp.class_table(han=False)
    rules = SCANNER_RULES.get(name, Rules("gpt2", alone=True))
    check(rules, re.compile(SCANNERS.get(name, SCANNERS["gpt2"]), re.ASCII), index, blocks)


@pytest.mark.parametrize("source", COLLAPSED, ids=range(len(COLLAPSED)))
def test_patterns_of_llamacpp(source: str) -> None:
    index, blocks = llamacpp.class_table(han=False)
    check(COLLAPSED[source], compile_collapsed(source), index, blocks)


def test_three_steps_of_llamacpp() -> None:
    index, blocks = llamacpp.class_table(han=False)
    numbers, last = compile_collapsed(DEEPSEEK[0]), compile_collapsed(DEEPSEEK[2])
    han = np.zeros(0x110000, dtype=np.bool_)
    for start, end in HAN_RANGES:
        han[start : end + 1] = True
    starts = WordStarts(Rules("deepseek", digits=3), CharCodes(index, blocks, last, "deepseek", None, [numbers], han))
    classes, left = Classes(blocks.reshape(-1, 256)[index].reshape(-1)), 0
    for text in texts(2 * COUNT):
        found = starts.starts(text)
        if found is None:
            left += 1
            continue
        whole = text.translate(classes)
        cuts = {0, *one_after_the_other([numbers], whole)}
        cuts |= {at for match in re.finditer(DEEPSEEK[1], text) for at in match.span()} - {len(text)}
        borders = [*sorted(cuts), len(text)]
        begins = [
            start + at for start, end in pairwise(borders) for at in one_after_the_other([last], whole[start:end])
        ]
        assert found.tolist() == begins, repr(text)
    assert left < COUNT / 4, "most texts are left to the scalar splitter"


def one_after_the_other(patterns: Sequence[re.Pattern[str]], text: str) -> list[int]:
    """Where words begin, if each pattern cuts out its matches in what those before it left together."""
    words = [(0, len(text))] if text else []
    for pattern in patterns:
        cut = []
        for start, end in words:
            last = start
            for match in pattern.finditer(text[start:end]):
                spans = (last, start + match.start()), (start + match.start(), start + match.end())
                cut += [span for span in spans if span[0] < span[1]]
                last = start + match.end()
            if last < end:
                cut.append((last, end))
        words = cut
    return [start for start, _ in words]


@pytest.mark.parametrize("few", [0, 200])
def test_three_steps(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokpack.runtime.bulk.split._FEW", few)
    translated = translate(DEEPSEEK)
    patterns = translated.compile()
    *before, last = patterns
    codes = CharCodes(translated.index, translated.blocks, last, "deepseek", None, before)
    starts = WordStarts(Rules("deepseek", digits=3), codes)
    classes = Classes(translated.blocks.reshape(-1, 256)[translated.index].reshape(-1))
    for text in texts(4 * COUNT):
        found = starts.starts(text)
        if found is None:
            assert any(char in text for char in "\u3040\u3097\u3098"), repr(text)
            continue
        assert found.tolist() == one_after_the_other(patterns, text.translate(classes)), repr(text)


@pytest.mark.parametrize("few", [0, 200])
def test_blanks_before_line_ends(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at one by one or all together."""
    monkeypatch.setattr("tokpack.runtime.bulk.split._FEW", few)
    translated = translate([next(source for source, rules in PATTERNS.items() if rules.family == "o200k")])
    (pattern,) = translated.compile()
    source = random.Random(run_seed())
    starts = WordStarts(
        Rules("o200k", digits=3), CharCodes(translated.index, translated.blocks, pattern, "o200k", None)
    )
    for _ in range(COUNT):
        text = "".join(
            source.choices(["a", "!", " ", "\t", "\n", "\r\n", "1", "  \n", "\n \n"], k=source.randint(1, 20))
        )
        found = starts.starts(text)
        assert found is not None
        assert found.tolist() == expected(pattern, text, alone=False), repr(text)


@pytest.mark.parametrize("name", SCANNER_RULES)
def test_chunks_are_cut_where_words_end(name: str) -> None:
    pattern = re.compile(SCANNERS[name], re.ASCII)
    index, blocks = llamacpp.class_table(han=False)
    classes = Classes(blocks.reshape(-1, 256)[index].reshape(-1))
    for text in texts(COUNT // 4):
        longer = f"{text} or {text}, so. {text}中，{text}"
        parts = list(chunks(longer, 3))
        assert "".join(parts) == longer
        whole = [match.group() for match in pattern.finditer(longer.translate(classes))]
        assert whole == [match.group() for part in parts for match in pattern.finditer(part.translate(classes))]
