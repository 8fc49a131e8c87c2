"""Pre-tokenizers of ``tokenizers`` as MNN pre-tokenizers (``tokenizers/src/pre_tokenizers``, ``pattern.rs``).

Both run one step after the other on the pieces of the step before, and MNN's matcher finds what Oniguruma finds once a
pattern is folded (:mod:`tokpack.formats.mnn.hf_patterns`). MNN has the behaviours Isolated and Removed;
MergedWithPrevious, MergedWithNext and Contiguous are written as patterns that take the gap with the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import steps as ir_steps
from tokpack.ir.patterns import Behavior, Dialect
from tokpack.onig.nodes import Node, Repeat, Seq, Set
from tokpack.onig.sets import CharSet, named

from .hf_patterns import ANY, fold, fold_set, readable, wide_class
from .parts import BertPreTokenizer, ByteLevel, Metaspace, Normalizer, PreTokenizer, Replace, Split
from .patterns import runs

__all__ = ["GPT2", "Words", "lower_pre_tokenizer", "punctuation", "stripped"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORDS = r"[\p{L}\p{M}\p{N}_]+|[^\s\p{L}\p{M}\p{N}_]+"
_ODD_SPACES = "\u0085\u2028\u2029"  # White_Space, but not to MNN
_LONGEST_FIXED = 1 << 16  # of the characters of a FixedLength


@dataclass(slots=True)
class Words:
    """Result of :func:`lower_pre_tokenizer`.

    Attributes:
        normalizer: further normalizers, behind all others.
        steps: pre-tokenizers.
        findings: what differs.
    """

    normalizer: list[Normalizer] = field(default_factory=list)
    steps: list[PreTokenizer] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def lose(self, code: str, message: str, at: int, severity: Severity = Severity.IDS) -> None:
        """A finding about the step number ``at``."""
        self.findings.append(Finding(code, severity, message, Location(None, f"pre_tokenizer[{at}]")))

    def spaces(self) -> None:
        """White space that MNN does not know, as spaces; for words that end at any white space."""
        self.normalizer += [Replace(char, " ") for char in _ODD_SPACES]


def lower_pre_tokenizer(steps: Sequence[ir_steps.PreTokenizerStep], *, no_spaces: bool) -> Words:
    """MNN pre-tokenizers for ``steps``; ``no_spaces``: the normalizers leave no space in a text."""
    words = Words()
    for at, step in enumerate(steps):
        if isinstance(step, ir_steps.Split):
            if not (no_spaces and step.dialect is Dialect.LITERAL and " " in step.pattern):
                _split(step, at, words)
        elif isinstance(step, ir_steps.ByteLevel):
            if step.add_prefix_space:
                words.steps.append(Metaspace(" ", add_prefix_space=True))
            if step.use_regex:
                words.steps.append(Split(GPT2))
            words.steps.append(ByteLevel(use_regex=False))
        elif isinstance(step, ir_steps.Metaspace):
            _metaspace(step, at, words)
        else:
            _class_step(step, at, words)
    return words


def stripped(*, left: bool, right: bool) -> Split:
    """What is left of a text without white space at its ends; MNN's own Strip leaves the right end as it is."""
    pattern = rf"\S{ANY}*\S|\S" if left and right else rf"\S{ANY}*" if left else rf"{ANY}*\S"
    return Split(pattern, invert=True, behavior="removed")


def _class_step(step: ir_steps.PreTokenizerStep, at: int, words: Words) -> None:
    """Steps that look at kinds of characters."""
    if isinstance(step, (ir_steps.WhitespaceSplit, ir_steps.BertPreTokenizer)):
        if at == 0:
            words.spaces()
        blank = isinstance(step, ir_steps.WhitespaceSplit)
        words.steps.append(Split(r"\s+", behavior="removed") if blank else BertPreTokenizer())
    elif isinstance(step, ir_steps.WhitespaceWords):
        if at == 0:
            words.spaces()
        words.steps.append(Split(_WORDS, invert=True, behavior="removed"))
    elif isinstance(step, ir_steps.Punctuation):
        _by_set(punctuation(), step.behavior, False, at, words)
    elif isinstance(step, ir_steps.Digits):
        number = named("n")
        assert number is not None
        _by_set(number, Behavior.ISOLATED if step.individual_digits else Behavior.CONTIGUOUS, False, at, words)
    elif isinstance(step, ir_steps.CharDelimiterSplit):
        _by_set(CharSet.of((ord(step.delimiter),)), Behavior.REMOVED, False, at, words)
    elif isinstance(step, ir_steps.FixedLength) and 0 < step.length < _LONGEST_FIXED:
        words.steps.append(Split(f"{ANY}{{{step.length}}}"))
    else:
        message = f"the pre-tokenizer {step.kind} has no MNN form and is left out: words are longer"
        words.lose("mtok-pre-tokenizer", message, at)


def punctuation() -> CharSet:
    """ASCII punctuation and the general category P (``is_punc`` of pre_tokenizers/punctuation.rs)."""
    category = named("p")
    assert category is not None
    return category | CharSet.of_ranges(((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)))


def _metaspace(step: ir_steps.Metaspace, at: int, words: Words) -> None:
    """The prefix, then the split in front of every space, then the replacement."""
    if at == 0:
        words.normalizer.append(Replace(step.replacement, " "))
    if step.prepend_scheme != "never":
        words.steps.append(Metaspace(" ", add_prefix_space=True))
    if step.prepend_scheme == "first":
        message = "MNN puts a space before the text behind each added token too, not only at the beginning"
        words.lose("mtok-prefix-space", message, at)
    if step.split:
        words.steps.append(Split(" [^ ]*"))
    words.steps.append(Metaspace(step.replacement, add_prefix_space=False))


# --- Split ------------------------------------------------------------------------------------------------------


def _split(step: ir_steps.Split, at: int, words: Words) -> None:
    tree = readable(step.pattern, step.dialect)
    if tree is None:
        _differs(["it cannot be read exactly"], step.pattern, at, words)
        return
    if isinstance(tree, Set):
        _by_set(tree.chars, step.behavior, step.invert, at, words)
        return
    if _wide(tree, step, words):
        return
    folded = fold(tree)
    if folded.reasons:
        _differs(folded.reasons, step.pattern, at, words)
    if not folded.pattern:
        return
    match = folded.pattern
    group = f"(?:{match})"
    before = rf"(?:(?!{match}){ANY})*{group}|(?:(?!{match}){ANY})+"
    after = rf"{group}(?:(?!{match}){ANY})*"
    _write(step.behavior, step.invert, (match, group + "+", before, after), words)


def _by_set(chars: CharSet, behavior: Behavior, invert: bool, at: int, words: Words) -> None:
    """A Split whose matches are single characters."""
    symbols, exact = fold_set(chars)
    if not exact:
        wide = wide_class(chars)
        if wide is not None and behavior is Behavior.CONTIGUOUS:
            words.steps += runs(wide, None)
            return
        if wide is not None and behavior in (Behavior.ISOLATED, Behavior.REMOVED):
            _write(behavior, invert, (f"[{wide}]",) * 4, words)
            return
        _differs(["a set is a part of a general category"], "[…]", at, words)
        if not symbols:
            return
    inside, outside = fold(Set(chars)).pattern, fold(Set(~chars)).pattern
    forms = (inside, inside + "+", f"{outside}*{inside}|{outside}+", f"{inside}{outside}*")
    _write(behavior, invert, forms, words)


def _write(behavior: Behavior, invert: bool, forms: tuple[str, str, str, str], words: Words) -> None:
    """One Split; ``forms``: the match, a run of matches, gap and match, match and gap.

    With ``invert`` matches and gaps change places before they are merged, so that what was merged with the one before
    is merged with the one behind it (``NormalizedString::split``).
    """
    match, run, before, after = forms
    if behavior is Behavior.REMOVED:
        words.steps.append(Split(match, invert=invert, behavior="removed"))
    elif behavior is Behavior.ISOLATED:
        words.steps.append(Split(match))
    elif behavior is Behavior.CONTIGUOUS:
        words.steps.append(Split(run))
    else:
        previous = (behavior is Behavior.MERGED_WITH_PREVIOUS) != invert
        words.steps.append(Split(before if previous else after))


def _wide(tree: Node, step: ir_steps.Split, words: Words) -> bool:
    """``[set]+`` and `` ?[set]+`` for sets that only code points tell from others: on ``std::wregex``."""
    lead: str | None = None
    if isinstance(tree, Seq) and len(tree.items) == 2:
        first, tree = tree.items
        optional = isinstance(first, Repeat) and (first.low, first.high, first.greedy) == (0, 1, True)
        if not (optional and isinstance(first, Repeat) and isinstance(first.body, Set)):
            return False
        if first.body.chars.key() != CharSet.of((0x20,)).key():
            return False
        lead = " "
    if not isinstance(tree, Repeat) or (tree.low, tree.high, tree.greedy) != (1, None, True):
        return False
    if not isinstance(tree.body, Set) or fold_set(tree.body.chars)[1]:
        return False
    chars = tree.body.chars
    inside = wide_class(chars)
    if inside is None or (lead and chars.has(np.array([0x20]))[0]):
        return False
    if step.behavior is Behavior.REMOVED:
        if lead:
            return False
        words.steps.append(Split(f"[{'^' if step.invert else ''}{inside}]", behavior="removed"))
        return True
    if step.behavior not in (Behavior.ISOLATED, Behavior.CONTIGUOUS):
        return False
    words.steps += runs(inside, lead)
    return True


def _differs(reasons: Sequence[str], pattern: str, at: int, words: Words) -> None:
    message = (
        f"the pattern {pattern[:60]!r} is not the same to MNN's matcher: {'; '.join(dict.fromkeys(reasons))}; what "
        "comes nearest is written"
    )
    words.lose("mtok-pattern-differs", message, at)
