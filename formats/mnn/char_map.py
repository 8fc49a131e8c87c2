"""Maps from one character to a text, as MNN normalizers.

MNN 3.6.1 has two normalizers with a table (``tokenizer.cpp``). Each takes something of its own with it:

* ``BertNormalizer`` with strip_accents (type 7) drops every mark from what the table gives;
* ``NFKCNormalizer`` (type 6) turns certain control and format characters into a space and never looks them up. They
  are taken out of its sight by Replace steps before the table, and put back after it if they shall stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .parts import BertNormalizer, Normalizer, Replace, TableNormalizer

__all__ = ["SPACED", "WHITE_SPACE", "lower_case", "map_and_drop_marks", "map_chars"]

# The characters that NFKCNormalizer::normalize turns into a space; NUL is not among them.
SPACED = tuple(
    map(
        chr,
        (
            *(code for code in range(1, 0x20) if code not in (0x09, 0x0A, 0x0D)),
            *range(0x7F, 0xA0),
            *range(0x200B, 0x2010),
            *range(0x202A, 0x202F),
            *range(0x2060, 0x206A),
            0xFEFF,
            *range(0xFFF0, 0xFFF9),
        ),
    )
)
# White_Space but for the space itself
WHITE_SPACE = tuple(
    map(chr, (*range(9, 14), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
)
_STAND_INS = range(0x10FFFD, 0x10FF00, -1)  # private use; no text has them by accident


def map_and_drop_marks(mapping: Mapping[str, str]) -> tuple[Normalizer, ...]:
    """Steps that replace the keys of ``mapping`` and drop marks; no value may rely on a mark."""
    table = tuple((ord(char), text) for char, text in sorted(mapping.items()))
    return (BertNormalizer(False, False, True, False, table),) if table else ()


def map_chars(mapping: Mapping[str, str], known: Collection[str]) -> tuple[Normalizer, ...]:
    """Steps that replace the keys of ``mapping`` and nothing else.

    Args:
        mapping: character → text.
        known: the characters of the vocabulary. What the model does not know need not be put back.
    """
    if not mapping:
        return ()
    free = (char for char in map(chr, _STAND_INS) if char not in known and char not in mapping)
    unknown = next(free)
    before: list[Normalizer] = []
    after: list[Normalizer] = []
    for char in SPACED:
        wanted = mapping.get(char, char)
        if wanted == " ":
            continue
        if not wanted:
            before.append(Replace(char, ""))
        elif wanted == char and char not in known:
            before.append(Replace(char, unknown))
        else:
            stand_in = next(free)
            before.append(Replace(char, stand_in))
            after.append(Replace(stand_in, wanted))
    table = tuple((ord(char), text) for char, text in sorted(mapping.items()) if char not in SPACED)
    return (*before, TableNormalizer(table), *after)


def lower_case() -> tuple[Normalizer, ...]:
    """Unicode's simple lower-case map: MNN's lacks one character of it, U+0130."""
    return Replace("\u0130", "i"), BertNormalizer(False, False, False, True)
