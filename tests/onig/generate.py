"""Random patterns in Oniguruma's dialect and texts on which engines disagree; deterministic given the Random."""

from __future__ import annotations

from random import Random


def _words(text: str) -> list[str]:
    return text.split()


CHARS = [*"abcsStTkKfFiIlnN01_-'. ,ßſKσé中ﬀŉʼİΐᾳ", *_words(r"\n \r \t \u0307 \x{1f600} \x41")]
SETS = _words(
    r". \w \W \d \D \s \S \h \H \N \O \R \p{L} \p{Lu} \P{L} \p{^N} \p{Ll} \p{M} \p{N} \p{Han} \p{Punct} \p{P} \p{S}"
    r" \p{Zs} \p{Emoji} \p{Hiragana} \p{Greek} \p{Cn}"
)
CLASS_ITEMS = _words(
    r"a-c s S f i k A-Z 0-9 \w \W \d \s \S \h \p{L} \p{^L} \P{Lu} \p{Lu} ß é ŉ İ ﬀ-ﬆ α-ω 一-龥 \x{80}-\x{7ff} \n \- \]"
    r" \b '"
    r" [:alpha:] [:^alpha:] [:punct:] [:space:] [:upper:]"
)
ANCHORS = _words(r"^ $ \A \z \Z \b \B")
QUANTIFIERS = _words("? * + ?? *? +? ?+ *+ ++ {2} {1,2} {0,2} {,2} {2,} {1,}? {1,2}? {2}? {1,2}+ {2}+ {3,1} {1} {0}")
OPENINGS = _words("(?: (?: (?: ( (?> (?i: (?i: (?i)(?: (?m: (?= (?! (?<= (?<! (?<n> (?#c)(?: (?x: (?-i:")
TEXT = [
    *"aabbccsssSStkKffiiIln01_-'. ,AZ\n\tßẞſKσςΣéE中あア한٣½Ⅷﬀﬃﬆŉʼİıΐᾳᾼ😀ǆ",
    *"\u0301\u0307\u1fd3\u0345\u200d\x85\u2028\xa0\x00\ue000\U0010ffff",
    *["\r\n", "\n\n", "ʼn", "i\u0307", "αι"],
]


def text(rnd: Random, most: int = 14) -> str:
    """A short text."""
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
    if kind < 0.45 or (depth == 0 and kind < 0.6):
        return "".join(rnd.choice(CHARS) for _ in range(rnd.choice((1, 1, 1, 2, 2, 3))))
    if kind < 0.6 or (depth == 0 and kind < 0.8):
        return rnd.choice(SETS)
    if kind < 0.72 or depth == 0:
        return _bracket(rnd, 2)
    if kind < 0.77:
        return rnd.choice(ANCHORS)
    opening = rnd.choice(OPENINGS)
    return f"{opening}{pattern(rnd, depth - 1)}{' ' if opening == '(?x:' else ''})"


def pattern(rnd: Random, depth: int = 3) -> str:
    """A pattern; most compile."""
    branches = []
    for _ in range(rnd.choice((1, 1, 1, 2, 2, 3))):
        parts = []
        for _ in range(rnd.choice((0, 1, 1, 2, 2, 3))):
            parts.append(_atom(rnd, depth))
            while rnd.random() < 0.3:
                parts.append(rnd.choice(QUANTIFIERS))
        branches.append("".join(parts))
    return "|".join(branches)
