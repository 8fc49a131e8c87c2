"""What happened to a text on its way to ids: every stage of every reference, as data, as a tree, as JSON."""

from __future__ import annotations

from tokpack.analysis.explanation.build import TEXT_LIMIT, explain
from tokpack.analysis.explanation.document import SCHEMA, as_document
from tokpack.analysis.explanation.trace import Action, Choice, Explanation, Match, Merge, Part, Post, Step, Token, Word

__all__ = [
    "SCHEMA",
    "TEXT_LIMIT",
    "Action",
    "Choice",
    "Explanation",
    "Match",
    "Merge",
    "Part",
    "Post",
    "Step",
    "Token",
    "Word",
    "as_document",
    "explain",
]
