"""The intermediate representation: frozen dataclasses without behaviour, between every reader and every writer."""

from tokpack.ir.model import (
    BPE,
    GreedyTrie,
    LongestMatch,
    MinCost,
    Model,
    NoModel,
    ScoreMerge,
    Unigram,
    WordLevel,
    WordPiece,
    WordPieceGreedy,
)
from tokpack.ir.tokenizer import Reference, Source, SpecialId, Specials, TokenizerIR
from tokpack.ir.vocab import (
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Vocab,
)

__all__ = [
    "BPE",
    "AddedToken",
    "Alphabet",
    "AlphabetKind",
    "GreedyTrie",
    "LongestMatch",
    "Matching",
    "MatchingRule",
    "MinCost",
    "Model",
    "NoModel",
    "PieceAttr",
    "PieceType",
    "Reference",
    "ScoreMerge",
    "Source",
    "SpecialId",
    "Specials",
    "TokenizerIR",
    "Unigram",
    "Vocab",
    "WordLevel",
    "WordPiece",
    "WordPieceGreedy",
]
