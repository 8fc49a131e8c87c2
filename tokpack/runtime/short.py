"""Short texts of llama.cpp's vocabularies part by part (:mod:`tokpack.runtime.spaced`): for which files, and how.

* Patterns: one of the splits matches everywhere, and none matches a plain character with a space behind it. A match
  then ends before the space, whatever is right of it: lookaheads only see white space and digits.
* A text that is merged as a whole, with marks for spaces: where no symbol holds a character and the mark behind it, no
  merge crosses. The same goes for any other two characters, so that parts fall into smaller ones.
* WPM: spaces are taken out, and all else is done character by character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.chars import BREAK, DROP
from tokpack.runtime.pairs import SymbolPairs
from tokpack.runtime.partition import Partition
from tokpack.runtime.scanners import SCANNERS
from tokpack.runtime.spaced import SpacedParts, Words
from tokpack.runtime.whole import ScoreMergeFragments, WordPieceFragments
from tokpack.runtime.words import WordFragments
from tokpack.typed import Any
from tokpack.unicode.utf8 import has_surrogates

__all__ = ["short_fragments"]

_MARK = "▁"
_TAILS = (r"|\s+(?!\S)|\s+", r"|\s{1}")  # with "anything but white space" before: what matches everywhere


def short_fragments(
    view: PackView, pieces: PieceTable, fragments: Any, partition: Partition | None
) -> SpacedParts | None:
    """What encodes texts without special tokens; None if such a space is no boundary.

    Without a partition the texts have been cut at special tokens before.
    """
    if partition is not None and partition.crosses_spaces:
        return None

    def refuses(part: str) -> bool:
        return (partition is not None and partition.may_hold(part)) or has_surrogates(part)

    if isinstance(fragments, WordFragments):
        return _words(view, pieces, fragments, refuses)
    if isinstance(fragments, ScoreMergeFragments):
        return _score_merge(view, pieces, fragments, refuses)
    return _word_pieces(fragments, refuses) if isinstance(fragments, WordPieceFragments) else None


def _words(
    view: PackView, pieces: PieceTable, fragments: WordFragments, refuses: Callable[[str], bool]
) -> SpacedParts | None:
    steps = view.meta["pre_tokenizer"]
    words = fragments.encode_words
    if fragments.plain and any(map(_matches_all, steps)) and all(map(_keeps_spaces_first, steps)):
        return SpacedParts(words, lambda text: words(" " + text), refuses)
    newlines = [(step["kind"], step.get("scanner")) for step in steps] == [("scanner-split", "newlines")]
    if not fragments.escaping or not newlines or pieces.byte_level or view.meta["model"].get("ignore_merges"):
        return None
    pairs = _pairs(view, pieces)
    if pairs is None:
        return None
    known = Words(lambda word: fragments.model.encode(word.encode())).__getitem__

    def encode(escaped: str) -> Iterable[int]:
        for word in fragments.splitter.words(escaped):
            if word[0] == "\n":  # a run of them is looked up as a whole
                yield from known(word)
            else:
                yield from chain.from_iterable(map(known, pairs.cut(word)))

    return SpacedParts(
        lambda text: encode(text.replace(" ", _MARK)),
        lambda text: encode(_MARK + text.replace(" ", _MARK)),
        refuses,
        lambda char: pairs[char + _MARK],
    )


def _matches_all(step: Mapping[str, Any]) -> bool:
    if step["kind"] == "scanner-split":
        return step["scanner"] in SCANNERS and step["scanner"] != "newlines"
    pattern = str(step.get("pattern"))
    return pattern.endswith(_TAILS) and r"[^\s" in pattern


def _keeps_spaces_first(step: Mapping[str, Any]) -> bool:
    """Whether nothing that matches goes on with a space."""
    if step["kind"] == "scanner-split":
        return step["scanner"] in SCANNERS
    return step["kind"] == "split" and "(?: " not in step["pattern"]


def _pairs(view: PackView, pieces: PieceTable) -> SymbolPairs | None:
    def known(char: str) -> bool:
        return pieces.find_raw(char.encode(), False) >= 0

    return SymbolPairs.of(view, known) if known(_MARK) else None


def _score_merge(
    view: PackView, pieces: PieceTable, fragments: ScoreMergeFragments, refuses: Callable[[str], bool]
) -> SpacedParts | None:
    pairs = _pairs(view, pieces)
    if pairs is None or pieces.byte_level or view.meta["model"].get("ignore_merges"):
        return None
    known = Words(lambda word: fragments.model.encode(word.encode())).__getitem__
    cut, prefix = pairs.cut, _MARK if fragments.prefix else ""

    def first(text: str) -> Iterable[int]:
        if not text:  # no fragment at all
            return ()
        return chain.from_iterable(map(known, cut(prefix + text.replace(" ", _MARK))))

    def later(text: str) -> Iterable[int]:
        return chain.from_iterable(map(known, cut(_MARK + text.replace(" ", _MARK))))

    return SpacedParts(first, later, refuses, lambda char: pairs[char + _MARK])


def _word_pieces(fragments: WordPieceFragments, refuses: Callable[[str], bool]) -> SpacedParts | None:
    actions = fragments.actions
    gaps = "".join(char for char in " \t\n\r\v\f" if actions.action(char) & (BREAK | DROP) == BREAK)
    if " " not in gaps:
        return None
    known = Words(fragments.encode_word).__getitem__

    def encode(text: str) -> Iterable[int]:
        return chain.from_iterable(known(word) for word, _ in actions.words(text))

    return SpacedParts(encode, encode, refuses, gaps=gaps)
