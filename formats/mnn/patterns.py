r"""From llama.cpp's text splitters to MNN Splits.

MNN runs a pattern on one of two engines (``use_wregex`` in ``transformers/llm/engine/src/tokenizer/unicode.cpp`` of
MNN tag 3.6.1):

* its own matcher, on a text folded to one byte per code point (ASCII itself, others by first letter of their general
  category). It knows classes, groups, greedy quantifiers and the negative lookahead, never recurses over the text, and
  groups repeat 10,000 times at most. ``(?!(?!x))`` is the positive lookahead that it lacks.
* ``std::wregex`` on the code points, when the pattern holds a non-ASCII character and no ``\p{``. libstdc++ recurses
  for every repetition, so ``[...]+`` on a long run overflows the stack. Here such a pattern never repeats anything:
  runs of a class are isolated by two Splits whose matches are one character long, the last one before a run and the
  last one of a run, each with behaviour MergedWithPrevious, which ends a segment after every match.

``patterns.json`` holds, for every splitter of the pre-tokenizer table of llama.cpp (``llm_tokenizer_bpe`` in
``src/llama-vocab.cpp``, commit 0c1e570), the Splits that cut at the same places. On llama.cpp's own "collapsed" text a
non-ASCII letter has no case and other White_Space is U+000B; the patterns written here say the same without
``\p{Lu}``, which is any letter to MNN.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from tokpack.errors import Location, UnsupportedError
from tokpack.ir.steps import ScannerSplit
from tokpack.ir.steps import Split as SplitStep

from .parts import Split

__all__ = ["GROUP_LIMIT", "lower_split", "repeats_group", "runs", "uses_wregex"]

GROUP_LIMIT = 10_000  # match_seq: repetitions of a group


@cache
def _table() -> dict[tuple[str, str], tuple[Split, ...]]:
    text = (resources.files(__package__) / "patterns.json").read_text("ascii")
    table: dict[tuple[str, str], tuple[Split, ...]] = {}
    for row in json.loads(text)["splits"]:
        steps: list[Split] = []
        for rule in row.get("mnn", [{"split": row["pattern"]}]):
            if "split" in rule:
                steps.append(Split(rule["split"]))
            elif "cut_after" in rule:
                steps.append(_cut_after(rule["cut_after"]))
            else:
                steps += runs(rule["runs"], rule.get("lead"))
        table[row["engine"], row["pattern"]] = tuple(steps)
    return table


def lower_split(step: SplitStep | ScannerSplit, where: str) -> tuple[Split, ...]:
    """The MNN Splits for one splitter of llama.cpp.

    Raises:
        UnsupportedError: a pattern that is not in the table; how MNN would read it is not known.
    """
    engine = f"scanner:{step.scanner}" if isinstance(step, ScannerSplit) else step.dialect.value
    found = _table().get((engine, step.pattern))
    plain = isinstance(step, ScannerSplit) or (step.behavior.value == "isolated" and not step.invert)
    if found is None or not plain:
        raise UnsupportedError(
            f"no MNN Split is known for the pattern {step.pattern[:60]!r} ({engine})",
            location=Location(None, where),
            hint="write a .tokpack, which needs no MNN body",
            code="mtok-pattern",
        )
    return found


def uses_wregex(pattern: str) -> bool:
    """Whether MNN gives ``pattern`` to ``std::wregex``."""
    return not pattern.isascii() and "\\p{" not in pattern and "\\P{" not in pattern


def repeats_group(pattern: str) -> bool:
    """Whether ``pattern`` has a group that is repeated without a bound (``)*`` or ``)+``)."""
    return ")*" in pattern or ")+" in pattern


def _cut_after(pattern: str) -> Split:
    return Split(pattern, behavior="merged-with-previous")


def runs(members: str, lead: str | None) -> list[Split]:
    """Isolate runs of ``[members]``, each with one optional character of ``[lead]`` before it.

    No character of ``lead`` may be in the class. No two matches of one Split are neighbours: neighbours would be
    merged with each other.
    """
    inside = f"[{members}]"
    outside = f"[{members[1:]}]" if members.startswith("^") else f"[^{members}]"
    before = f"{outside}(?={inside})"
    if lead is not None:
        before = f"{outside}(?=[{lead}]{inside})|(?![{lead}]){outside}(?={inside})"
    return [_cut_after(before), _cut_after(f"{inside}(?!{inside})")]
