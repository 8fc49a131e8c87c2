"""Vocabulary parts of the intermediate representation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["AddedToken", "Alphabet", "AlphabetKind", "Matching", "MatchingRule", "PieceAttr", "PieceType", "Vocab"]


class PieceType(IntEnum):
    """Type of a piece as GGUF, SentencePiece and MNN number it; files may hold other numbers, which are kept."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class PieceAttr(IntFlag):
    """What a piece effectively is after the reference's own overrides; the bits of ``enum llama_token_attr``."""

    UNKNOWN = 1
    UNUSED = 2
    NORMAL = 4
    CONTROL = 8
    USER_DEFINED = 16
    BYTE = 32
    NORMALIZED = 64
    LSTRIP = 128
    RSTRIP = 256
    SINGLE_WORD = 512


@dataclass(frozen=True, slots=True, eq=False)
class Vocab:
    """The pieces, by id.

    Attributes:
        pieces: text of each piece as bytes, spelled as in the source; index = id. None is a hole in the ids.
            Equal texts under two ids are legal here.
        types: uint8 ``[len(pieces)]``, the source's own type numbers (:class:`PieceType` where it is one of those).
        attrs: uint16 ``[len(pieces)]``, :class:`PieceAttr` bits in effect.
        scores: float32 ``[len(pieces)]`` (float64 where the source has doubles), or None when it has none.
    """

    pieces: tuple[bytes | None, ...]
    types: NDArray[np.uint8]
    attrs: NDArray[np.uint16]
    scores: NDArray[np.float32] | NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.pieces)


class AlphabetKind(str, Enum):
    """How the text of a piece stands for bytes."""

    BYTE_LEVEL = "byte-level"  # GPT-2's 256 printable characters
    UTF8 = "utf-8"  # the text itself, spaces usually written U+2581
    RAW_BYTES = "raw-bytes"  # the bytes themselves, not necessarily UTF-8
    ESCAPED = "escaped"  # Python-repr escapes (RWKV)


@dataclass(frozen=True, slots=True)
class Alphabet:
    """Spelling of the pieces.

    Attributes:
        kind: see :class:`AlphabetKind`.
        byte_fallback: characters without a piece become ``<0xXX>`` pieces, one per byte.
    """

    kind: AlphabetKind
    byte_fallback: bool = False


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is matched in the text itself, before the model sees it.

    Attributes are those of ``tokenizers.AddedToken``; a GGUF special token has ``normalized=False``.
    """

    id: int
    content: bytes
    special: bool = True
    normalized: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False


class MatchingRule(str, Enum):
    """How added tokens are found in a text."""

    PASS_PER_TOKEN = "pass-per-token"  # llama.cpp: one pass over the raw fragments per token, in the given order
    LEFTMOST_LONGEST = "leftmost-longest"  # tokenizers: two automata, before and after normalization
    HEADER_ORDER = "header-order"  # MNN stage 1: at each position the first of the list
    LEFTMOST = "leftmost"  # tiktoken: of several at one place any, so that place is an error
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Matching:
    """The matching rule and, where the rule needs one, the order of the ids (``added_tokens`` is in that order)."""

    rule: MatchingRule
