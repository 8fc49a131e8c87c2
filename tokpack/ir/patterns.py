"""Pattern dialects and split behaviours."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "Behavior",
    "Dialect",
]


class Dialect(str, Enum):
    """Whose regular expressions a pattern is written in."""

    LITERAL = "literal"
    ONIG = "onig"  # Oniguruma as built into `tokenizers`
    STD_COLLAPSED = "std-regex-collapsed"  # libstdc++ std::regex on llama.cpp's one-byte-per-code-point text
    STD_WREGEX = "std-wregex"  # libstdc++ std::wregex on code points, non-ASCII White_Space as U+000B
    MNN_FOLDED = "mnn-folded"  # MNN's own matcher on folded classes
    PCRE = "pcre"  # tiktoken's fancy-regex


class Behavior(str, Enum):
    """What a split does with its matches; the names of ``tokenizers``."""

    ISOLATED = "isolated"
    REMOVED = "removed"
    MERGED_WITH_PREVIOUS = "merged-with-previous"
    MERGED_WITH_NEXT = "merged-with-next"
    CONTIGUOUS = "contiguous"
