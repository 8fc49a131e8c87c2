"""Steps before and after the model: one dataclass per component that exists in a known format.

``kind`` is the name under which a step is stored in a pack. A step carries its own tables and patterns; a pattern
carries the dialect it is written in, because the same text means different things to different engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

__all__ = [
    "Behavior",
    "BertNormalizer",
    "BertPreTokenizer",
    "BosEos",
    "BpeDecoder",
    "ByteFallbackDecoder",
    "ByteLevel",
    "ByteLevelDecoder",
    "ByteLevelNormalizer",
    "CharDelimiterSplit",
    "CtcDecoder",
    "Dialect",
    "Digits",
    "DnaTags",
    "FixedLength",
    "FuseDecoder",
    "LlamaDetokenize",
    "Lowercase",
    "MapChars",
    "Metaspace",
    "MetaspaceDecoder",
    "Nmt",
    "Precompiled",
    "Prepend",
    "Punctuation",
    "Replace",
    "ScannerSplit",
    "SpacePrefix",
    "Split",
    "StripAccents",
    "StripDecoder",
    "StripNormalizer",
    "Template",
    "TemplateItem",
    "UnicodeNormalization",
    "UnicodeScripts",
    "WhitespaceSplit",
    "WhitespaceWords",
    "WordPieceDecoder",
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


# --- normalizers ------------------------------------------------------------------------------------------------


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


# --- pre-tokenizers ---------------------------------------------------------------------------------------------


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


# --- decoders ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LlamaDetokenize:
    """llama.cpp's llama_detokenize.

    Attributes:
        clean_spaces: the three passes that remove spaces before ``?!.,``, around ``'`` and before ``'s 'm 're 've``.
        unescape_spaces: U+2581 in normal pieces becomes a space.
        plain: every piece is its text, or the byte that a byte piece names, whatever its type (PLaMo2).
        strip_space: one leading space of the first piece is removed (add_space_prefix).
    """

    kind: ClassVar[str] = "llama-detokenize"
    clean_spaces: bool
    unescape_spaces: bool = False
    strip_space: bool = False
    plain: bool = False


@dataclass(frozen=True, slots=True)
class ByteLevelDecoder:
    """GPT-2's characters to bytes."""

    kind: ClassVar[str] = "byte-level-decoder"


@dataclass(frozen=True, slots=True)
class ByteFallbackDecoder:
    """Runs of ``<0xXX>`` to text."""

    kind: ClassVar[str] = "byte-fallback-decoder"


@dataclass(frozen=True, slots=True)
class FuseDecoder:
    """Join all tokens."""

    kind: ClassVar[str] = "fuse-decoder"


@dataclass(frozen=True, slots=True)
class MetaspaceDecoder:
    """``replacement`` to space; dropped in the first token unless the scheme is never."""

    kind: ClassVar[str] = "metaspace-decoder"
    replacement: str = "▁"
    prepend_scheme: str = "always"


@dataclass(frozen=True, slots=True)
class WordPieceDecoder:
    """Join ``prefix`` pieces, space the others, optionally clean up."""

    kind: ClassVar[str] = "wordpiece-decoder"
    prefix: str = "##"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class BpeDecoder:
    """``suffix`` to space."""

    kind: ClassVar[str] = "bpe-decoder"
    suffix: str = "</w>"


@dataclass(frozen=True, slots=True)
class CtcDecoder:
    """Drop repeats and pads."""

    kind: ClassVar[str] = "ctc-decoder"
    pad_token: str = "<pad>"
    word_delimiter_token: str = "|"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class StripDecoder:
    """Remove up to ``start`` and ``stop`` copies of ``content`` at the ends of each token."""

    kind: ClassVar[str] = "strip-decoder"
    content: str
    start: int
    stop: int


# --- post-processors --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BosEos:
    """llama.cpp: what is added when special ids are asked for.

    Attributes:
        add_bos, add_eos: the flags; ``add_sep`` is reported, never applied.
        rule: ``flags`` adds BOS before and EOS after by the flags; ``cls-sep`` always adds BOS (CLS) and SEP; with
            ``never`` the flags are reported only.
    """

    kind: ClassVar[str] = "bos-eos"
    add_bos: bool
    add_eos: bool
    add_sep: bool = False
    rule: str = "flags"


@dataclass(frozen=True, slots=True)
class TemplateItem:
    """A sequence (``"A"`` or ``"B"``) or the ids of a special token, with its type id."""

    kind: ClassVar[str] = "template-item"
    sequence: str | None
    ids: tuple[int, ...] = ()
    type_id: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """What surrounds one sequence, and two."""

    kind: ClassVar[str] = "template"
    single: tuple[TemplateItem, ...]
    pair: tuple[TemplateItem, ...] = ()


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
    | BertNormalizer
    | ByteLevelNormalizer
    | MapChars
)
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
DecoderStep = (
    LlamaDetokenize
    | ByteLevelDecoder
    | ByteFallbackDecoder
    | FuseDecoder
    | MetaspaceDecoder
    | WordPieceDecoder
    | BpeDecoder
    | CtcDecoder
    | StripDecoder
    | Replace
)
PostProcessor = BosEos | Template
