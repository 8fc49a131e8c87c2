"""Random patterns in the dialect of fancy-regex and texts on which engines disagree; deterministic given the Random."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from tokpack.onig import FLAGS, Translated


def _words(text: str) -> list[str]:
    return text.split()


CHARS = [*"abcsStTkKiI01_-'. ,ßſKσé中ﬀİ/", *_words(r"\n \r \t \x{1f600} \x41 \u0073 \. \-")]
SETS = _words(
    r". \w \W \d \D \s \S \h \H \O \N \p{L} \p{Lu} \P{L} \p{^N} \pL \PN \p{Ll} \p{M} \p{N} \p{Han} \p{P} \p{S} \p{Zs}"
    r" \p{Greek} \p{Cn} \p{Lt} \p{Uppercase}"
)
CLASS_ITEMS = _words(
    r"a-c s S k A-Z 0-9 \w \W \d \s \S \h \p{L} \p{^L} \P{Lu} \p{Lu} ß é İ ﬀ-ﬆ α-ω 一-龥 \x{80}-\x{7ff} \n \- \] \b '"
    r" [:alpha:] [:^alpha:] [:punct:] [:space:] [:upper:] / \r \x53 & ~ . ^"
)
ANCHORS = _words(r"^ $ \A \z \b \B")
QUANTIFIERS = [
    "?",
    "*",
    "+",
    "??",
    "*?",
    "+?",
    "?+",
    "*+",
    "++",
    "{2}",
    "{1,2}",
    "{0,2}",
    "{,2}",
    "{2,}",
    "{1,}?",
    "{1,2}?",
    "{2}?",
    "{1,2}+",
    "{2}+",
    "{1}",
    "{0}",
]
OPENINGS = ["(?:", "(?:", "(?:", "(", "(?>", "(?i:", "(?i:", "(?s:", "(?m:", "(?=", "(?!", "(?<=", "(?<!", "(?#c)(?:"]
TEXT = [
    *"aabbccsssSStkKiiI01_-'. ,/AZ\n\tßẞſKσςΣéE中あア한٣½Ⅷﬀﬃﬆİıǆǅ😀&~^",
    *"\u0301\u0345\x85\u2028\xa0\x00\ue000\U0010ffff",
    *["\r\n", "\n\n", "  ", "   "],
]


def text(rnd: Random, most: int = 14) -> str:
    return "".join(rnd.choice(TEXT) for _ in range(rnd.randint(0, most)))


def _bracket(rnd: Random, depth: int) -> str:
    items = [rnd.choice(CLASS_ITEMS) for _ in range(rnd.randint(1, 3))]
    if depth and rnd.random() < 0.25:
        items.insert(rnd.randint(0, len(items)), _bracket(rnd, depth - 1))
    if rnd.random() < 0.15:
        items.insert(rnd.randint(0, len(items)), "&&")
    if rnd.random() < 0.1:
        items.append("-")
    return "[" + ("^" if rnd.random() < 0.25 else "") + "".join(items) + "]"


def _atom(rnd: Random, depth: int) -> str:
    kind = rnd.random()
    if depth and kind < 0.25:
        return rnd.choice(OPENINGS) + pattern(rnd, depth - 1, lead=False) + ")"
    if kind < 0.55:
        return rnd.choice(CHARS)
    if kind < 0.8:
        return rnd.choice(SETS)
    if kind < 0.93:
        return _bracket(rnd, depth)
    return rnd.choice(ANCHORS)


def pattern(rnd: Random, depth: int, *, lead: bool = True) -> str:
    branches = []
    for _ in range(rnd.choice((1, 1, 2, 3))):
        parts = []
        for _ in range(rnd.randint(0 if rnd.random() < 0.1 else 1, 3)):
            parts.append(_atom(rnd, depth))
            if rnd.random() < 0.35:
                parts.append(rnd.choice(QUANTIFIERS))
        branches.append("".join(parts))
    start = rnd.choice(("", "", "", "", "(?i)", "(?s)", "(?im)")) if lead else ""
    return start + "|".join(branches)


def matches(made: Translated, which: int, text: str) -> list[tuple[int, int]] | None:
    """Matches as find_iter gives them; None if one is empty, on which tiktoken panics."""
    classes = "".join(chr(int(made.blocks[made.index[ord(c) >> 8]][ord(c) & 255])) for c in text)
    compiled = re.compile(made.patterns[which], FLAGS)
    found: list[tuple[int, int]] = []
    at, last = 0, -1
    while at <= len(text):
        match = compiled.search(classes, at)
        if match is None:
            break
        start, end = match.span()
        if start == end:
            if end != last:
                return None
            at = end + 1
            continue
        found.append((start, end))
        at = last = end
    return found


class Oracle:
    """The matches of the real engine, from ids: every substring of the text is a token, so each match is one id."""

    def __init__(self, library: Any) -> None:
        self._encoding = library.Encoding

    def accepts(self, pattern: str) -> bool:
        """The engine compiles it."""
        try:
            self._encoding("probe", pat_str=pattern, mergeable_ranks={b"a": 0}, special_tokens={})
        except ValueError:
            return False
        return True

    def pieces(self, pattern: str, text: str) -> list[str] | None:
        """The texts that match; None if the library panics, as it does on an empty match."""
        parts = {text[a:b].encode() for a in range(len(text)) for b in range(a + 1, len(text) + 1)} or {b"a"}
        ranks = {part: rank for rank, part in enumerate(sorted(parts))}
        encoding = self._encoding("probe", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        try:
            ids = encoding.encode_ordinary(text)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return None
        return [encoding.decode([token]) for token in ids]
