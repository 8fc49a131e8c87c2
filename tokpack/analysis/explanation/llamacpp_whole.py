"""llama.cpp's models that work on a whole fragment, traced (see :mod:`tokpack.runtime.whole`)."""

from __future__ import annotations

from dataclasses import replace

from tokpack.analysis.explanation.common import longest, step, tokens, utf8
from tokpack.analysis.explanation.lattice import Edges, best_path
from tokpack.analysis.explanation.llamacpp_words import MergeWords
from tokpack.analysis.explanation.trace import Choice, Match, Step, Word
from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.chars import CharActions
from tokpack.runtime.min_cost import MinCostFragments
from tokpack.runtime.unigram import UnigramModel
from tokpack.unicode.utf8 import character_length, decode_lenient

__all__ = ["GreedyTracer", "MinCostTracer", "ScoreMergeTracer", "UnigramTracer", "WordPieceTracer"]

_MARK = "▁".encode()
_LOWEST = -1.7976931348623157e308  # -DBL_MAX
_UNKNOWN_COST = 10_000_000

Traced = tuple[list[Step], list[Word]]


class ScoreMergeTracer:
    """SPM: a space in front, spaces as U+2581, merging by score."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._steps = view.meta["normalizer"]
        self._model = MergeWords(view, pieces)

    def fragment(self, raw: bytes, after_special: bool) -> Traced:
        """Steps and words of a fragment between special tokens."""
        steps: list[Step] = []
        text = raw
        for plain in self._steps:
            before = text
            if plain["kind"] == "space-prefix":
                text = b" " + text if after_special else text
            else:
                text = text.replace(b" ", _MARK)
            steps.append(step("normalizer", plain, [before], [text]))
        return steps, [self._model.word(text)] if text else []


class _Scores(UnigramModel):
    """The edges of llama.cpp's Unigram."""

    def edges(self, text: bytes, at: int) -> Edges:
        """See :data:`tokpack.analysis.explanation.lattice.Edges`."""
        length = min(character_length(text[at]), len(text) - at)
        found = [(end - at, self._score(token), token) for end, token in self._trie.prefixes(text, at)]
        if all(size != length for size, _, _ in found):
            found.append((length, self._unk_score, self._unk))
        return length, found


class UnigramTracer:
    """Unigram: charsmap and spaces in one pass, then Viterbi over bytes."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._steps = view.meta["normalizer"]
        first = self._steps[0]
        if first["kind"] != "precompiled":
            raise UnsupportedError(f"a pack with the normalizer step {first['kind']!r}")
        self._pieces, self._unk = pieces, unk
        prefix, merge = bool(first["add_space_prefix"]), bool(first["remove_extra_whitespaces"])
        self._model = _Scores(view, pieces, unk, prefix, merge)

    def fragment(self, raw: bytes, after_special: bool) -> Traced:
        """Steps and words of a fragment between special tokens."""
        text = self._model.normalize(raw)[0]
        # one pass does both; what it looks like between them is not defined
        steps = [step("normalizer", self._steps[0], [raw], [text])]
        if not text:
            return steps, []
        path = best_path(text, lambda at: self._model.edges(text, at), unreached=(self._unk, _LOWEST))
        ids: list[int] = []
        for choice in path:
            if not (ids and choice.id == self._unk == ids[-1]):
                ids.append(choice.id)
        note = "neighbouring unknown characters become one token" if len(ids) < len(path) else None
        return steps, [Word(text, "viterbi", tokens(self._pieces, ids), (), tuple(path), note)]


class WordPieceTracer:
    """WPM: words, then greedy longest matches; a miss makes the whole word unknown."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._steps = view.meta["normalizer"]
        self._pieces, self._unk = pieces, unk
        self._trie = Trie.of(view, "trie")
        self._actions = CharActions(view)

    def fragment(self, raw: bytes, after_special: bool) -> Traced:
        """Steps and words of a fragment between special tokens."""
        words = [utf8(word) for word, _ in self._actions.words(decode_lenient(raw))]
        steps = [step("normalizer", plain, [raw], words) for plain in self._steps[:1]]  # one pass also cuts into words
        return steps, [self._word(_MARK + word) for word in words]

    def _word(self, word: bytes) -> Word:
        matches: list[Match] = []
        at = 0
        while at < len(word):
            match = longest(self._trie, word, at)
            if match.id < 0:
                note = "nothing matches behind that: the whole word is unknown"
                return Word(word, "longest-match", tokens(self._pieces, [self._unk]), (), tuple(matches), note)
            matches.append(match)
            at = match.end
        return Word(word, "longest-match", tokens(self._pieces, (m.id for m in matches)), (), tuple(matches))


class GreedyTracer:
    """RWKV: greedy longest match on bytes."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._pieces, self._unk = pieces, unk
        self._trie = Trie.of(view, "trie")

    def fragment(self, raw: bytes, after_special: bool) -> Traced:
        """Steps and words of a fragment between special tokens."""
        matches: list[Match] = []
        at, size = 0, len(raw)
        text = raw + b"\0"  # the original reads the NUL that ends a C++ string
        while at < size:
            match = longest(self._trie, text, at)
            if match.id < 0:
                match = Match(-1, text[at : at + 1], at, at + 1)
            if match.end > size:
                match = replace(match, text=raw[at:], end=size)
            matches.append(match)
            at = match.end
        ids = [match.id if match.id >= 0 else self._unk for match in matches]
        return [], [Word(raw, "longest-match", tokens(self._pieces, ids), (), tuple(matches))] if matches else []


class MinCostTracer:
    """PLaMo2: the cheapest way to cut, found from the end."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._pieces = pieces
        self._costs = view.array("piece.cost")
        self._emit = view.array("byte.emit")
        self._model = MinCostFragments(view, pieces, unk)

    def fragment(self, raw: bytes, after_special: bool) -> Traced:
        """Steps and words of a fragment between special tokens."""
        path = self._model.path(raw)
        text = b"".join(part for _, part, _, _ in path)
        choices: list[Choice] = []
        ids: list[int] = []
        end, total = len(text), 0
        for token, part, _, _ in reversed(path):
            cost = int(self._costs[token]) if token >= 0 else _UNKNOWN_COST
            total += cost
            choices.append(Choice(token, part, end - len(part), end, cost, total))
            end -= len(part)
        for token, part, _, _ in path:
            ids += [token] if token >= 0 else [int(self._emit[2 * byte]) for byte in part]
        return [], [Word(text, "min-cost", tokens(self._pieces, ids), (), tuple(choices))] if text else []
