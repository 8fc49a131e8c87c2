"""Steps before pre-tokenization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tokpack.ir.mnn import MnnBertNormalizer, MnnTableNormalizer
from tokpack.ir.patterns import Dialect

__all__ = [
    "BertNormalizer",
    "ByteLevelNormalizer",
    "Lowercase",
    "MapChars",
    "Nmt",
    "NormalizerStep",
    "Precompiled",
    "Prepend",
    "Replace",
    "SentencePieceNormalizer",
    "SpacePrefix",
    "StripAccents",
    "StripNormalizer",
    "UnicodeNormalization",
]


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace every match of ``pattern`` by the literal ``content`` (a normalizer and a decoder)."""

    kind: ClassVar[str] = "replace"
    pattern: str
    content: str
    dialect: Dialect = Dialect.LITERAL


@dataclass(frozen=True, slots=True)
class Prepend:
    """Put ``content`` before a text that is not empty."""

    kind: ClassVar[str] = "prepend"
    content: str


@dataclass(frozen=True, slots=True)
class SpacePrefix:
    """llama.cpp's add_space_prefix: one space before the first fragment and those after a special token."""

    kind: ClassVar[str] = "space-prefix"


@dataclass(frozen=True, slots=True)
class UnicodeNormalization:
    """NFC, NFD, NFKC or NFKD under the tables of ``unicode``."""

    kind: ClassVar[str] = "unicode-normalization"
    form: str


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Per character, never by context."""

    kind: ClassVar[str] = "lowercase"


@dataclass(frozen=True, slots=True)
class StripAccents:
    """Drop marks; does not decompose."""

    kind: ClassVar[str] = "strip-accents"


@dataclass(frozen=True, slots=True)
class StripNormalizer:
    """Remove White_Space at the ends."""

    kind: ClassVar[str] = "strip"
    left: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Nmt:
    """The control and space rules of sentencepiece's nmt."""

    kind: ClassVar[str] = "nmt"


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A sentencepiece charsmap: u32 trie size, double array, NUL-terminated replacements.

    The two flags are llama.cpp's: it merges and prepends spaces in the same pass.
    """

    kind: ClassVar[str] = "precompiled"
    charsmap: bytes
    remove_extra_whitespaces: bool = False
    add_space_prefix: bool = False


@dataclass(frozen=True, slots=True)
class SentencePieceNormalizer:
    """The whole of sentencepiece's ``Normalizer``: user-defined pieces are taken over as they are, other text goes
    through the charsmap, and spaces are treated in the same pass.

    Attributes:
        charsmap: as in :class:`Precompiled`; empty leaves the text as it is.
        add_dummy_prefix: a space before the text, or behind it with ``treat_whitespace_as_suffix``.
        remove_extra_whitespaces: spaces at the ends are removed, inner runs become one.
        escape_whitespaces: spaces become U+2581.
        treat_whitespace_as_suffix: of the trainer: spaces belong to the word before.
    """

    kind: ClassVar[str] = "sentencepiece-normalizer"
    charsmap: bytes
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False


@dataclass(frozen=True, slots=True)
class BertNormalizer:
    """Clean, space out CJK, strip accents, lowercase; ``strip_accents`` None follows ``lowercase``."""

    kind: ClassVar[str] = "bert-normalizer"
    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True


@dataclass(frozen=True, slots=True)
class ByteLevelNormalizer:
    """Bytes to GPT-2's characters."""

    kind: ClassVar[str] = "byte-level-normalizer"


@dataclass(frozen=True, slots=True)
class MapChars:
    """One code point to a string, by table: pairs (code point, replacement)."""

    kind: ClassVar[str] = "map-chars"
    table: tuple[tuple[int, str], ...]


NormalizerStep = (
    Replace
    | Prepend
    | SpacePrefix
    | UnicodeNormalization
    | Lowercase
    | StripAccents
    | StripNormalizer
    | Nmt
    | Precompiled
    | SentencePieceNormalizer
    | BertNormalizer
    | ByteLevelNormalizer
    | MapChars
    | MnnTableNormalizer
    | MnnBertNormalizer
)
