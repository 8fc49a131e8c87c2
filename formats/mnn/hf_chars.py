"""Normalizers of ``tokenizers`` as MNN normalizers.

Steps that look at one character at a time are composed to one map, which :func:`tokpack.formats.mnn.char_map.map_chars`
turns into MNN's table; what looks at several is written as literal replacements, or left out with a finding. The rules
are those of ``tokenizers`` 0.23.3 (``tokenizers/src/normalizers``); the character tables are
:mod:`tokpack.unicode.huggingface`'s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import steps as ir_steps
from tokpack.ir.normalizers import NormalizerStep
from tokpack.ir.patterns import Dialect
from tokpack.onig.nodes import Group, Node, Repeat, Set
from tokpack.unicode import byte_level, huggingface

from .char_map import SPACED, WHITE_SPACE, map_chars
from .charsmap import entries, pairs
from .hf_patterns import readable
from .parts import BertNormalizer, Normalizer, Prepend, Replace
from .unknown import Unknown, collapse, map_unknown, possible_characters

__all__ = ["CharMap", "Normalized", "composites", "lower_normalizer"]

CharMap = dict[str, str]

_HALVINGS = 32  # of a run; a text of 4 GiB has no longer one
_NMT_DROPPED = (*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F)
_NMT_SPACES = "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"
_S, _L, _V, _T = 0xAC00, 0x1100, 0x1161, 0x11A7
_SHORT = 6  # bytes: only shorter clusters are looked up as a whole (normalizers/precompiled.rs)
_MOST_CHARS = 0x4000  # of a set that is replaced character by character
_RUN = "\U0010fffb"  # stands for the beginning of a run that is replaced; private use


@dataclass(slots=True)
class Normalized:
    """Result of :func:`lower_normalizer`.

    Attributes:
        kept: characters that must not become an unknown one.
        steps: normalizers.
        findings: what differs.
        left, right: white space at this end is to be dropped.
    """

    kept: frozenset[str]
    steps: list[Normalizer] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    left: bool = False
    right: bool = False
    _map: CharMap = field(default_factory=dict)

    def chars(self, step: CharMap) -> None:
        """One more step of single characters."""
        before = self._map
        after = {char: "".join(step.get(c, c) for c in text) for char, text in before.items()}
        after.update((char, text) for char, text in step.items() if char not in before)
        self._map = after

    def flush(self) -> None:
        """Write the map down."""
        mapping = {char: text for char, text in self._map.items() if char != text}
        self._map = {}
        if mapping:
            self.steps += map_chars(mapping, self.kept)

    def lose(self, code: str, message: str, severity: Severity = Severity.IDS) -> None:
        """A finding about the normalizer, once for each code."""
        if all(finding.code != code for finding in self.findings):
            self.findings.append(Finding(code, severity, message, Location(None, "normalizer")))


def lower_normalizer(
    steps: Iterable[NormalizerStep], known: frozenset[str], *, bytes_known: bool, unknown: Unknown | None = None
) -> Normalized:
    """MNN normalizers for ``steps``.

    Args:
        steps: the normalizers, in order.
        known: characters of the vocabulary.
        bytes_known: every character has a piece, by its bytes.
        unknown: what becomes of characters that the model does not know.
    """
    kept = frozenset(SPACED) if bytes_known else known.union("\v\f\x85")
    result = Normalized(kept if unknown is None else known.union(SPACED))
    for step in steps:
        char_map = _char_map(step, known, result)
        if char_map is not None:
            result.chars(char_map)
            if isinstance(step, ir_steps.UnicodeNormalization) and step.form in ("NFC", "NFKC"):
                result.flush()
                result.steps += _compose_pairs()
            continue
        result.flush()
        _several(step, result)
    if unknown is not None:
        result.chars(map_unknown({}, unknown.known, unknown.stand_in))
    result.flush()
    if unknown is not None and unknown.fuse:
        result.steps += collapse(unknown.stand_in)
    return result


# --- one character at a time ------------------------------------------------------------------------------------


def _char_map(step: NormalizerStep, known: frozenset[str], result: Normalized) -> CharMap | None:
    """The map of a step that looks at single characters, or comes close to that; None for others."""
    if isinstance(step, ir_steps.UnicodeNormalization):
        return _form(step.form, result)
    if isinstance(step, ir_steps.Lowercase):
        return {chr(code): text for code, text in huggingface.lowercase().items()}
    if isinstance(step, ir_steps.StripAccents):
        return dict.fromkeys(_members("mark"), "")
    if isinstance(step, ir_steps.ByteLevelNormalizer):
        message = "MNN leaves unassigned characters beyond U+1FFFF as they are, where tokenizers maps their bytes"
        result.lose("mtok-byte-level-normalizer", message)
        return {char: byte_level.encode(char.encode()) for char in possible_characters()}
    if isinstance(step, ir_steps.Nmt):
        return dict.fromkeys(map(chr, _NMT_DROPPED), "") | dict.fromkeys(_NMT_SPACES, " ")
    if isinstance(step, ir_steps.Replace):
        if step.dialect is Dialect.LITERAL:
            return {step.pattern: step.content} if len(step.pattern) == 1 and len(step.content) < 2 else None
        return _set_map(readable(step.pattern, step.dialect), step.content)
    if isinstance(step, ir_steps.Precompiled):
        return _charsmap(step, known, result)
    return None


def _form(form: str, result: Normalized) -> CharMap:
    if form == "NFC":
        message = "MNN composes letters and marks that stand in canonical order, but no conjoining Hangul"
        result.lose("mtok-nfc", message)
        table = huggingface.canonical()
        return {chr(code): new for code, text in table.items() if (new := _composed(text)) != chr(code)}
    message = f"MNN applies {form} to each character alone: it does not order combining characters"
    if form == "NFKC":
        message += ", and composes no conjoining Hangul"
    result.lose("mtok-normalization", message)
    table = huggingface.compatible() if "K" in form else huggingface.canonical()
    if form == "NFKC":
        return {chr(code): _composed(text) for code, text in table.items()}
    return {chr(code): text for code, text in table.items()} | _hangul()


def _hangul() -> CharMap:
    """Decompositions of Hangul syllables (The Unicode Standard 3.12)."""
    texts = {}
    for index in range(11172):
        syllable, tail = divmod(index, 28)
        lead, vowel = divmod(syllable, 21)
        texts[chr(_S + index)] = chr(_L + lead) + chr(_V + vowel) + (chr(_T + tail) if tail else "")
    return texts


@cache
def _compositions() -> dict[tuple[int, int], str]:
    return {(a, b): chr(c) for a, b, c in huggingface.composition().tolist()}


def composites() -> frozenset[str]:
    """Characters that a letter and a mark are composed to."""
    return frozenset(_compositions().values())


@cache
def _compose_pairs() -> tuple[Replace, ...]:
    """A letter and a mark as one character, one pass per pair, what is composed of a composed letter later."""
    pairs = _compositions()
    depth = {char: 0 for a, b in pairs for char in (chr(a), chr(b))}
    waiting = dict(pairs)
    while waiting:
        ready = {pair: char for pair, char in waiting.items() if not {*map(chr, pair)} & {*waiting.values()}}
        for (a, b), char in ready.items():
            depth[char] = 1 + max(depth[chr(a)], depth[chr(b)])
            del waiting[a, b]
    ordered = sorted(pairs.items(), key=lambda item: (depth[item[1]], item[0]))
    return tuple(Replace(chr(a) + chr(b), char) for (a, b), char in ordered)


def _composed(text: str) -> str:
    """Canonical composition of a decomposition, whose characters are in canonical order."""
    starts, values = huggingface.combining()
    limits, numbers = starts.tolist(), values.tolist()
    out: list[str] = []
    starter, last = -1, -1
    for char in text:
        value = numbers[bisect_right(limits, ord(char)) - 1]
        if starter >= 0 and last < value:
            found = _pair(out[starter], char)
            if found is not None:
                out[starter] = found
                continue
        if value:
            last = value
        else:
            starter, last = len(out), -1
        out.append(char)
    return "".join(out)


def _pair(first: str, second: str) -> str | None:
    a, b = ord(first), ord(second)
    if 0 <= a - _L < 19 and 0 <= b - _V < 21:
        return chr(_S + ((a - _L) * 21 + b - _V) * 28)
    if 0 <= a - _S < 11172 and (a - _S) % 28 == 0 and 0 < b - _T < 28:
        return chr(a + b - _T)
    return _compositions().get((a, b))


@cache
def _members(name: str) -> tuple[str, ...]:
    """Characters with a number in one of the tables of flags."""
    starts, values = {
        "mark": huggingface.mark,
        "nonspacing": huggingface.nonspacing,
        "control": huggingface.control,
    }[name]()
    bounds = [*starts.tolist(), 0x110000]
    return tuple(
        chr(code)
        for first, end, value in zip(bounds, bounds[1:], values.tolist(), strict=False)
        if value and end - first < _MOST_CHARS
        for code in range(first, end)
        if code and not 0xD800 <= code < 0xE000
    )


def _set_map(tree: Node | None, content: str) -> CharMap | None:
    """``[set]`` → content, if the set is small."""
    while isinstance(tree, Group):
        tree = tree.body
    if not isinstance(tree, Set):
        return None
    ranges = tree.chars.ranges()
    if sum(last - first + 1 for first, last in ranges) > _MOST_CHARS:
        return None
    codes = (code for first, last in ranges for code in range(max(first, 1), last + 1) if not 0xD800 <= code < 0xE000)
    return dict.fromkeys(map(chr, codes), content)


def _charsmap(step: ir_steps.Precompiled, known: frozenset[str], result: Normalized) -> CharMap:
    table = entries(step.charsmap)
    together = [(key, text) for key, text in pairs(table, known | composites()) if len(key.encode()) < _SHORT]
    left = len(table.several) + table.longer - len(together)
    if left:
        message = (
            f"{left} entries of the charsmap replace several characters together, such as a letter and its accents; "
            "MNN replaces single characters, and the pairs that become a character of the vocabulary"
        )
        result.lose("mtok-charsmap", message)
    if together and not result._map:
        result.steps += [Replace(key, text) for key, text in together]
    return {char: text for char, text in table.single.items() if char != "\0"}


# --- several characters -----------------------------------------------------------------------------------------


def _several(step: NormalizerStep, result: Normalized) -> None:
    if isinstance(step, ir_steps.Prepend):
        if step.content:
            result.steps.append(Prepend(step.content))
    elif isinstance(step, ir_steps.StripNormalizer):
        result.left, result.right = result.left or step.left, result.right or step.right
        message = "MNN strips ASCII white space and Zs at the ends, not U+0085, U+2028, U+2029, after all normalizers"
        result.lose("mtok-strip", message, Severity.IDS)
    elif isinstance(step, ir_steps.BertNormalizer):
        _bert(step, result)
    elif isinstance(step, ir_steps.Replace):
        _replace(step, result)
    else:
        message = f"the normalizer {step.kind} has no MNN form and is left out"
        result.lose("mtok-normalizer", message)


def _bert(step: ir_steps.BertNormalizer, result: Normalized) -> None:
    """The parts that look at single characters as one map, in the order of ``normalizers/bert.rs``."""
    lower = step.lowercase
    if step.clean_text:
        result.chars(dict.fromkeys(WHITE_SPACE, " ") | dict.fromkeys(_members("control"), ""))
    if lower if step.strip_accents is None else step.strip_accents:
        result.chars({chr(code): text for code, text in huggingface.canonical().items()} | _hangul())
        result.chars(dict.fromkeys(_members("nonspacing"), ""))
    if lower:
        result.chars({chr(code): text for code, text in huggingface.lowercase().items()})
    if step.handle_chinese_chars:
        result.flush()
        result.steps.append(BertNormalizer(False, True, False, False))
        message = "MNN puts spaces around U+2B820 to U+2B91F too, and tokenizers around U+2B920 and later only"
        result.lose("mtok-chinese", message, Severity.WARN)


def _replace(step: ir_steps.Replace, result: Normalized) -> None:
    if step.dialect is Dialect.LITERAL:
        if step.pattern:
            result.steps.append(Replace(step.pattern, step.content))
        else:
            result.lose("mtok-replace", "an empty text that is replaced everywhere is left out: MNN would do nothing")
        return
    tree = readable(step.pattern, step.dialect)
    if isinstance(tree, Repeat) and tree.high is None and tree.low in (1, 2) and tree.greedy:
        singles = _set_map(tree.body, _RUN)
        if singles is not None:
            _replace_run(singles, tree.low, step.content, result)
            return
    message = f"MNN replaces literal texts only: the pattern {step.pattern[:60]!r} is left out"
    result.lose("mtok-replace", message)


def _replace_run(singles: CharMap, low: int, content: str, result: Normalized) -> None:
    """A run of ``low`` or more characters of a set → content; the set is a single character if ``low`` is 2."""
    if low == 2:
        if len(singles) != 1:
            result.lose("mtok-replace", "MNN replaces literal texts only: runs of several characters are left out")
            return
        (char,) = singles
        if content == char:
            result.steps += [Replace(char * 2, char)] * _HALVINGS
            return
        result.steps += [Replace(char * 2, _RUN), Replace(_RUN + char, _RUN)]
    else:
        result.steps += [Replace(char, _RUN) for char in singles]
    result.steps += [Replace(_RUN * 2, _RUN)] * _HALVINGS
    result.steps.append(Replace(_RUN, content))
