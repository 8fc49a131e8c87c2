"""Pre-tokenization, scalar path: splits as boundaries on class text, with Python's ``re``.

``std::regex`` (ECMAScript, leftmost alternative first) and ``re`` with ASCII classes give the same matches on the same
characters. llama.cpp runs a pattern on *collapsed* text (one class byte per code point) when it names a category, else
on code points with White_Space outside ASCII as U+000B. Each segment is searched on its own: its end is the end of the
text for lookaheads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from tokpack.errors import UnsupportedError
from tokpack.runtime.scanners import FUNCTIONS, SCANNERS, Bounds

__all__ = ["ClassMap", "Splitter", "compile_collapsed"]

# `\p{X}` → members of a class on collapsed text (src/unicode.cpp, k_ucat_map); case classes are just letters
_COLLAPSED = {
    "N": r"\xd10-9",
    "L": r"\xd2A-Za-z",
    "P": r"\xd3!-#%-*,-/:-;?-@\[-\]_\{\}",
    "M": r"\xd4",
    "S": r"\xd5$+<=>^`|~",
}
_COLLAPSED.update(dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), _COLLAPSED["L"]))
_PROPERTY = re.compile(r"\\p\{(\w+)\}")
# one letter (or mark) that is not a-z (A-Z): a plain class, which needs no stack for long runs
_CASED = re.compile(r"\(\(\?=\[((?:\\p\{[LM]\})+)\]\)\(\[\^(a-z|A-Z)\]\)\)")
_CASED_CLASS = {
    (r"\p{L}", "a-z"): r"[\xd2A-Z]",
    (r"\p{L}", "A-Z"): r"[\xd2a-z]",
    (r"\p{L}\p{M}", "a-z"): r"[\xd2\xd4A-Z]",
    (r"\p{L}\p{M}", "A-Z"): r"[\xd2\xd4a-z]",
}
# nested repetition → the same language with one loop over runs (same reason)
_EQUIVALENT = {
    r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+": r"\p{L}(?:[\p{L}\p{M}]+| \p{L})*",
}


def compile_collapsed(pattern: str) -> re.Pattern[str]:
    """A pattern of the dialect ``std-regex-collapsed`` for ``re`` on collapsed text."""
    for original, simple in _EQUIVALENT.items():
        pattern = pattern.replace(original, simple)
    pattern = _CASED.sub(lambda m: _CASED_CLASS[m[1], m[2]], pattern)
    out: list[str] = []
    inside = False
    index = 0
    while index < len(pattern):
        if pattern[index] == "\\":
            match = _PROPERTY.match(pattern, index)
            if match:
                members = _COLLAPSED.get(match[1])
                if members is None:
                    raise UnsupportedError(f"\\p{{{match[1]}}} has no meaning in a collapsed pattern: {pattern!r}")
                out.append(members if inside else f"[{members}]")
                index = match.end()
            else:
                out.append(pattern[index : index + 2])
                index += 2
            continue
        if pattern[index] == "[":
            inside = True
        elif pattern[index] == "]":
            inside = False
        out.append(pattern[index])
        index += 1
    return re.compile("".join(out), re.ASCII)


@lru_cache(maxsize=1)
def _known() -> frozenset[tuple[object, object]]:
    """(dialect, pattern) of every split that llama.cpp has."""
    import json

    with open(__file__.removesuffix("split.py") + "patterns.json", encoding="utf-8") as handle:
        return frozenset((dialect, pattern) for dialect, pattern in json.load(handle))


class ClassMap(dict[int, int]):
    """Code point → class byte, filled on demand from the pack's two-stage table; for ``str.translate``."""

    def __init__(self, index: Sequence[int], blocks: Sequence[int]) -> None:
        super().__init__()
        self._index = index
        self._blocks = blocks

    def __missing__(self, code_point: int) -> int:
        value = self._blocks[self._index[code_point >> 8] << 8 | code_point & 255]
        self[code_point] = value
        return value


def _by_pattern(pattern: re.Pattern[str]) -> Callable[[str, Bounds], Bounds]:
    def split(text: str, bounds: Bounds) -> Bounds:
        out: Bounds = []
        start = 0
        for end in bounds:
            last = start
            for match in pattern.finditer(text, start, end):
                first, stop = match.span()
                if first > last:
                    out.append(first)
                out.append(stop)
                last = stop
            if last < end:
                out.append(end)
            start = end
        return out

    return split


def _trailing_space(text: str, bounds: Bounds) -> Bounds:
    r"""``\s+$`` in linear time: a backtracking matcher is quadratic on a long run that is not at the end."""
    out: Bounds = []
    start = 0
    for end in bounds:
        cut = start + len(text[start:end].rstrip(" \t\n\r\f\v"))
        if start < cut < end:
            out.append(cut)
        if start < end:
            out.append(end)
        start = end
    return out


_DIGITS = re.compile("[0-9]+")


def _digit_triples(text: str, bounds: Bounds) -> Bounds:
    r"""``(?=(\d{3})+(?!\d))`` in linear time: empty matches wherever a multiple of three digits is left of a run."""
    out: Bounds = []
    start = 0
    for end in bounds:
        last = start
        for match in _DIGITS.finditer(text, start, end):
            first, stop = match.span()
            for at in range(first + (stop - first) % 3, stop, 3):
                if at > last:
                    out.append(at)
                out.append(at)
                last = at
        if last < end:
            out.append(end)
        start = end
    return out


_LINEAR = {r"\s+$": _trailing_space, r"(?=(\d{3})+(?!\d))": _digit_triples}


class Splitter:
    """The pre-tokenizer steps of a pack, compiled.

    ``whole`` is the compiled pattern when there is a single step that leaves no gaps: text without non-ASCII
    characters can then be cut by ``findall`` alone.
    """

    def __init__(self, steps: Iterable[Mapping[str, object]], classes: ClassMap, spaces: Mapping[int, int]) -> None:
        self._classes = classes
        self._spaces = spaces
        self._steps: list[tuple[bool, Callable[[str, Bounds], Bounds]]] = []
        self.whole: re.Pattern[str] | None = None
        patterns: list[re.Pattern[str]] = []
        for step in steps:
            on_classes, function, pattern = _compile_step(step)
            self._steps.append((on_classes, function))
            if pattern is not None:
                patterns.append(pattern)
        if len(self._steps) == 1 and patterns:
            self.whole = patterns[0]

    def bounds(self, text: str) -> Bounds:
        """Ends of the words of ``text``; words of length zero are kept, as in llama.cpp."""
        if not text:
            return []
        if text.isascii():
            classes = wide = text
        else:
            classes = text.translate(self._classes)
            wide = text.translate(self._spaces)
        bounds = [len(text)]
        for on_classes, function in self._steps:
            bounds = function(classes if on_classes else wide, bounds)
        return bounds

    def ends(self, text: str) -> Iterable[int]:
        """As :meth:`bounds`, one by one if that can be done."""
        if self.whole is None:
            return self.bounds(text)
        classes = text if text.isascii() else text.translate(self._classes)
        return (match.end() for match in self.whole.finditer(classes))

    def words(self, text: str) -> list[str]:
        """The words of ``text``, without empty ones."""
        if self.whole is not None:
            if text.isascii():
                return self.whole.findall(text)
            ends = [match.end() for match in self.whole.finditer(text.translate(self._classes))]
        else:
            ends = self.bounds(text)
        start = 0
        out = []
        for end in ends:
            if end > start:
                out.append(text[start:end])
                start = end
        return out


def _compile_step(
    step: Mapping[str, object],
) -> tuple[bool, Callable[[str, Bounds], Bounds], re.Pattern[str] | None]:
    """(works on class text, function, pattern if it is one without groups and gaps)."""
    kind, pattern = step.get("kind"), step.get("pattern")
    if kind == "scanner-split":
        name = str(step.get("scanner"))
        if name in FUNCTIONS:
            return True, FUNCTIONS[name], None
        if name in SCANNERS:
            compiled = re.compile(SCANNERS[name], re.ASCII)
            return True, _by_pattern(compiled), compiled
    elif kind == "split" and isinstance(pattern, str) and step.get("behavior") == "isolated" and not step.get("invert"):
        dialect = step.get("dialect")
        if (dialect, pattern) not in _known():  # a pack is data from outside: another pattern may never end
            raise UnsupportedError(f"the pattern {pattern[:80]!r} is not one of llama.cpp's")
        if dialect == "std-regex-collapsed":
            return True, _by_pattern(compile_collapsed(pattern)), None
        if dialect == "std-wregex":
            linear = _LINEAR.get(pattern)
            return False, linear or _by_pattern(re.compile(pattern, re.ASCII)), None
    raise UnsupportedError(f"pre-tokenizer step {dict(step)!r} is not known to this version of tokpack")
