"""The parts of a MNN ``.mtok`` body: one dataclass per component that the loader of MNN 3.6.1 knows.

Names and fields are those of the format (``load_vocab_binary`` in
``transformers/llm/engine/src/tokenizer/tokenizer.cpp``); "type" is the number that stands before each in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "AddedToken",
    "BertNormalizer",
    "BertPreTokenizer",
    "Bpe",
    "ByteFallbackDecoder",
    "ByteLevel",
    "ByteLevelDecoder",
    "Decoder",
    "Digits",
    "FuseDecoder",
    "Metaspace",
    "MetaspaceDecoder",
    "Model",
    "Normalizer",
    "PreTokenizer",
    "Prepend",
    "Replace",
    "ReplaceDecoder",
    "Split",
    "Strip",
    "StripDecoder",
    "TableNormalizer",
    "Unigram",
    "WordPiece",
    "WordPieceDecoder",
]


# --- normalizers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepend:
    """Type 2."""

    content: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Type 3: literal, every occurrence."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class BertNormalizer:
    """Types 5 and 7: 7 when there is a table for the accents."""

    clean_text: bool
    chinese_chars: bool
    strip_accents: bool
    lowercase: bool
    table: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TableNormalizer:
    """Type 6: per code point; control and format characters become spaces first."""

    table: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """Type 8, read since MNN 3.6.0."""

    left: bool
    right: bool


Normalizer = Prepend | Replace | BertNormalizer | TableNormalizer | Strip


# --- pre-tokenizers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByteLevel:
    """Type 1."""

    use_regex: bool = False


@dataclass(frozen=True, slots=True)
class Digits:
    """Type 2."""

    individual_digits: bool


@dataclass(frozen=True, slots=True)
class Metaspace:
    """Type 3."""

    replacement: str
    add_prefix_space: bool


@dataclass(frozen=True, slots=True)
class Split:
    """Type 4; ``behavior`` is isolated, removed or merged-with-previous."""

    pattern: str
    invert: bool = False
    behavior: str = "isolated"


@dataclass(frozen=True, slots=True)
class BertPreTokenizer:
    """Type 5."""


PreTokenizer = ByteLevel | Digits | Metaspace | Split | BertPreTokenizer


# --- models -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Bpe:
    """Type 0.

    Attributes:
        pieces: text by id; no holes, no duplicates.
        merges: uint32 ``[n, 3]``: left id, right id, rank, in any order.
        byte_level: the model itself maps bytes to GPT-2's characters.
        byte_fallback: written for other readers; MNN ignores it.
        aliases: (text, id): further texts that are looked up as an id below ``len(pieces) + len(aliases)``. MNN prints
            and merges an id with the last of its texts in byte order. Ids from ``len(pieces)`` on have no other text.
    """

    pieces: tuple[bytes, ...]
    merges: NDArray[np.uint32]
    byte_level: bool = False
    byte_fallback: bool = False
    aliases: tuple[tuple[bytes, int], ...] = ()

    def text_of(self) -> list[bytes]:
        """The text that MNN prints and merges for each id; empty for an id without one."""
        texts = [*self.pieces, *[b""] * len(self.aliases)]
        for text, number in self.aliases:
            texts[number] = max(texts[number], text)
        return texts


@dataclass(frozen=True, slots=True, eq=False)
class WordPiece:
    """Type 1."""

    pieces: tuple[bytes, ...]
    unk_piece: bytes
    prefix: bytes
    max_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Unigram:
    """Type 2; duplicate texts are legal, the first of the sorted order wins."""

    pieces: tuple[bytes, ...]
    scores: tuple[float, ...]
    unk_id: int
    byte_fallback: bool


Model = Bpe | WordPiece | Unigram


# --- decoders ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByteLevelDecoder:
    """Type 0, which the exporter also writes for "none"."""


@dataclass(frozen=True, slots=True)
class ByteFallbackDecoder:
    """Type 1."""


@dataclass(frozen=True, slots=True)
class MetaspaceDecoder:
    """Type 2."""

    replacement: str
    add_prefix_space: bool


@dataclass(frozen=True, slots=True)
class WordPieceDecoder:
    """Type 3."""

    prefix: str
    cleanup: bool


@dataclass(frozen=True, slots=True)
class FuseDecoder:
    """Type 4."""


@dataclass(frozen=True, slots=True)
class ReplaceDecoder:
    """Type 5: literal."""

    pattern: str
    content: str


@dataclass(frozen=True, slots=True)
class StripDecoder:
    """Type 6."""

    content: str
    start: int
    stop: int


Decoder = (
    ByteLevelDecoder
    | ByteFallbackDecoder
    | MetaspaceDecoder
    | WordPieceDecoder
    | FuseDecoder
    | ReplaceDecoder
    | StripDecoder
)


# --- added tokens -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddedToken:
    """An entry of the added-token list (stage 2 of encoding)."""

    id: int
    content: bytes
    special: bool = False
    lstrip: bool = False
    rstrip: bool = False
