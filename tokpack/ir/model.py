"""The tokenization models: each with every parameter that decides ids, none with behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "BPE",
    "Characters",
    "GreedyTrie",
    "LongestMatch",
    "MinCost",
    "Model",
    "NoModel",
    "RankMerge",
    "ScoreMerge",
    "Unigram",
    "WordLevel",
    "WordPiece",
    "WordPieceGreedy",
]


@dataclass(frozen=True, slots=True, eq=False)
class BPE:
    """Byte-pair encoding.

    Attributes:
        merges: (left, right) texts in merge-rank order, spelled as the pieces are. Parts and results need not be
            pieces. Of equal pairs the first counts for llama.cpp, the last for ``tokenizers``: readers keep only the
            one that counts for their reference, so the position may differ from the source's line number;
            ``ranks`` then holds the source's own numbers.
        ranks: merge rank of each entry, or None when it is the index.
        ignore_merges: a whole word that is a piece becomes that piece.
        whole_newlines: a word of nothing but U+000A that is a piece becomes that piece (llama.cpp, Gemma 4).
        unk_piece: piece for characters without one, or None.
        fuse_unk: neighbouring unknowns become one.
        continuing_subword_prefix: put before every character but the first of a word.
        end_of_word_suffix: put after the last character of a word.
        dropout: training-time merge dropout probability; kept, never applied.
    """

    kind: ClassVar[str] = "BPE"
    merges: tuple[tuple[bytes, bytes], ...]
    ranks: tuple[int, ...] | None = None
    ignore_merges: bool = False
    whole_newlines: bool = False
    unk_piece: bytes | None = None
    fuse_unk: bool = False
    continuing_subword_prefix: bytes = b""
    end_of_word_suffix: bytes = b""
    dropout: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Unigram:
    """Viterbi over piece scores (``vocab.scores``).

    Attributes:
        unk_id: id for characters without a piece, or None (an unknown character is then an error).
        unk_penalty: subtracted from the lowest score to give the score of an unknown character.
    """

    kind: ClassVar[str] = "Unigram"
    unk_id: int | None
    unk_penalty: float = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class WordPiece:
    """Greedy longest prefix per word, as in BERT."""

    kind: ClassVar[str] = "WordPiece"
    unk_piece: bytes
    continuing_subword_prefix: bytes = b"##"
    max_input_chars_per_word: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class WordLevel:
    """A word is a piece or unknown."""

    kind: ClassVar[str] = "WordLevel"
    unk_piece: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMerge:
    """Merge the neighbouring pair whose result has the highest score: llama.cpp's SPM, sentencepiece's BPE.

    What happens to unused pieces, user-defined pieces and characters without a piece depends on the reference.

    Attributes:
        unk_id: id for characters without a piece (sentencepiece); None where the reference finds it elsewhere.
    """

    kind: ClassVar[str] = "ScoreMerge"
    unk_id: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RankMerge:
    """tiktoken's BPE: a word that is a piece is that piece; else the neighbouring pair of bytes or pieces whose joined
    bytes have the lowest rank is merged, the leftmost of equal ones.

    Attributes:
        first_id: id of rank 0; a rank plus this is an id (tekken puts its special tokens first).
        rank_count: number of ranks that the model may use, holes included; a special token may lie in a hole.
    """

    kind: ClassVar[str] = "RankMerge"
    first_id: int
    rank_count: int


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    """sentencepiece's char: every character is a piece or unknown."""

    kind: ClassVar[str] = "Characters"
    unk_id: int | None


@dataclass(frozen=True, slots=True, eq=False)
class WordPieceGreedy:
    """llama.cpp's WPM: greedy longest match over bytes on phantom-space words."""

    kind: ClassVar[str] = "WordPieceGreedy"
    unk_id: int | None


@dataclass(frozen=True, slots=True, eq=False)
class GreedyTrie:
    """RWKV: greedy longest match on bytes."""

    kind: ClassVar[str] = "GreedyTrie"
    unk_id: int | None


@dataclass(frozen=True, slots=True, eq=False)
class MinCost:
    """PLaMo2: least total cost, piece costs from scores, unknown characters as byte pieces."""

    kind: ClassVar[str] = "MinCost"


@dataclass(frozen=True, slots=True, eq=False)
class LongestMatch:
    """MNN .txt type 1: greedy longest match over the raw text."""

    kind: ClassVar[str] = "LongestMatch"


@dataclass(frozen=True, slots=True, eq=False)
class NoModel:
    """The source has a vocabulary at most; nothing can be encoded."""

    kind: ClassVar[str] = "none"


Model = (
    BPE
    | Unigram
    | WordPiece
    | WordLevel
    | ScoreMerge
    | RankMerge
    | Characters
    | WordPieceGreedy
    | GreedyTrie
    | MinCost
    | LongestMatch
    | NoModel
)
