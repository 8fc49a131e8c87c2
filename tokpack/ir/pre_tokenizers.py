"""Steps that cut a text into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tokpack.ir.patterns import Behavior, Dialect

__all__ = [
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "DnaTags",
    "FixedLength",
    "Metaspace",
    "PreTokenizerStep",
    "Punctuation",
    "ScannerSplit",
    "Split",
    "UnicodeScripts",
    "WhitespaceSplit",
    "WhitespaceWords",
]


@dataclass(frozen=True, slots=True)
class Split:
    """Split at the matches of a pattern; each segment of the steps before is split on its own."""

    kind: ClassVar[str] = "split"
    pattern: str
    dialect: Dialect
    behavior: Behavior = Behavior.ISOLATED
    invert: bool = False


@dataclass(frozen=True, slots=True)
class ScannerSplit:
    """One of llama.cpp's hand-written splitters, by name; ``pattern`` is the regex that it stands for."""

    kind: ClassVar[str] = "scanner-split"
    scanner: str
    pattern: str


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """``tokenizers``' ByteLevel: optional GPT-2 split, then bytes to characters."""

    kind: ClassVar[str] = "byte-level"
    add_prefix_space: bool = False
    use_regex: bool = True


@dataclass(frozen=True, slots=True)
class Metaspace:
    """Spaces to ``replacement``; ``prepend_scheme`` is always, first or never."""

    kind: ClassVar[str] = "metaspace"
    replacement: str = "▁"
    prepend_scheme: str = "always"
    split: bool = True


@dataclass(frozen=True, slots=True)
class WhitespaceWords:
    r"""``\w+|[^\w\s]+``, whitespace removed."""

    kind: ClassVar[str] = "whitespace"


@dataclass(frozen=True, slots=True)
class WhitespaceSplit:
    """Split at White_Space, removed. ``lowercase``: of llama.cpp's model ``whitespace``."""

    kind: ClassVar[str] = "whitespace-split"
    lowercase: bool = False


@dataclass(frozen=True, slots=True)
class BertPreTokenizer:
    """White_Space removed, punctuation isolated."""

    kind: ClassVar[str] = "bert-pre-tokenizer"


@dataclass(frozen=True, slots=True)
class DnaTags:
    """llama.cpp's hybriddna: what stands between two tags is cut into k-mers, which are looked up as they are.

    Attributes:
        open_id, close_id, oov_id: ids of ``<dna>``, ``</dna>`` and of an unknown k-mer.
        size: letters of a k-mer; the last one is filled up with ``A``.
        kmers: (k-mer, id).
    """

    kind: ClassVar[str] = "dna-tags"
    open_id: int
    close_id: int
    oov_id: int
    size: int
    kmers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Split at punctuation."""

    kind: ClassVar[str] = "punctuation"
    behavior: Behavior = Behavior.ISOLATED


@dataclass(frozen=True, slots=True)
class Digits:
    """Split at numeric characters, one by one or by runs."""

    kind: ClassVar[str] = "digits"
    individual_digits: bool = False


@dataclass(frozen=True, slots=True)
class CharDelimiterSplit:
    """Split at one character, removed."""

    kind: ClassVar[str] = "char-delimiter-split"
    delimiter: str


@dataclass(frozen=True, slots=True)
class UnicodeScripts:
    """Split where the script changes."""

    kind: ClassVar[str] = "unicode-scripts"


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Chunks of ``length`` characters."""

    kind: ClassVar[str] = "fixed-length"
    length: int = 5


PreTokenizerStep = (
    Split
    | ScannerSplit
    | DnaTags
    | ByteLevel
    | Metaspace
    | WhitespaceWords
    | WhitespaceSplit
    | BertPreTokenizer
    | Punctuation
    | Digits
    | CharDelimiterSplit
    | UnicodeScripts
    | FixedLength
)
