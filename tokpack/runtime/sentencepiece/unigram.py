"""sentencepiece's Unigram (``unigram::Model::EncodeOptimized``): the best path over bytes, in single precision.

Sums are those of single precision from the start of the text, so that near ties come out as they do there. A word is
looked up when its best path leads by more than all rounding together can change, wherever in a text it stands.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from tokpack.pack.pieces import NORMAL, USER_DEFINED, PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.sentencepiece.words import words
from tokpack.typed import Any
from tokpack.unicode.utf8 import character_length, is_utf8, split_characters

__all__ = ["SHORT", "UnigramModel"]

_RESET = 100000.0  # kScoreResetThreshold
_SAFE = 99900.0  # sums that stay below, but for rounding, are not reset within a word
_ULP = 2.0**-23  # of single precision, relative
_CACHE = 1 << 16
_WINDOW = 64  # bytes of text that a cache entry is for, at most
SHORT = 300  # characters of a text within which :meth:`UnigramModel.anywhere` holds
_MOST_AHEAD = 1 << 19  # beginnings of pieces that are kept at hand
_LOWEST = 32.0  # scores of a word for each of its characters, at most, for that
_FARTHEST = (SHORT + 1) * _LOWEST * 1.01  # so far from 0 is the sum before a word then, rounding included

Edges = tuple[int, list[tuple[int, float, int]]]  # bytes of the character; (length, score, id) of what begins with it
Tokens = list[tuple[int, int]]
Ahead = tuple[int, float, int] | tuple[()]  # an edge; nothing where pieces only go on
# pieces, their scores, and how large a sum before the word may be for them to be certain
Word = tuple[Tokens, list[float], float]


class UnigramModel:
    """The path of pieces with the highest sum; of equal ones the one whose last piece begins first.

    Attributes:
        word_cut: where words may be cut that depend on each other through sums alone.
    """

    cut = ""

    def __init__(self, view: PackView, pieces: PieceTable, facts: Mapping[str, Any], mark: bytes) -> None:
        self._pieces = pieces
        self._trie = Trie.of(view, "trie")
        self._unk_score = float(facts["unk_score"])
        self._longest = int(facts["longest"])
        self.word_cut = str(facts["cut"])
        self._mark = mark
        self._edges_at: dict[bytes, Edges] = {}
        self._words: dict[bytes, Word] = {}
        self._scores = pieces.scores
        self._ahead: dict[bytes, Ahead] = {}

    def hasten(self) -> None:
        """Keep the beginnings of all pieces at hand, for texts that are worth it; not those of a vast vocabulary."""
        ahead: dict[bytes, Ahead] = {}
        for token in range(self._pieces.size):
            text = self._pieces.text(token)
            if not self._pieces.attrs[token] & (NORMAL | USER_DEFINED) or text in (b"", b"\0"):
                continue
            if not is_utf8(text) or len(ahead) > _MOST_AHEAD:
                return
            for end in split_characters(text)[:-1]:
                ahead.setdefault(text[:end], ())
            ahead[text] = len(text), self._score(token, len(text)), token
        self._ahead = ahead

    def _edges(self, text: bytes, start: int) -> Edges:
        """What may follow at ``start``, shortest first; an unknown character if no piece is one character."""
        if self._ahead:
            return self._find_ahead(text, start)
        window = self._longest if self._longest <= _WINDOW else 0
        key = text[start : start + max(window, 4)] if window else b""
        edges = self._edges_at.get(key) if key else None
        if edges is None:
            edges = self._find(text, start)
            if key:
                if len(self._edges_at) >= _CACHE:
                    self._edges_at.clear()
                self._edges_at[key] = edges
        return edges

    def _find(self, text: bytes, start: int) -> Edges:
        char = min(character_length(text[start]), len(text) - start)
        found: list[tuple[int, float, int]] = []
        single = False
        for end, token in self._trie.prefixes(text, start):
            if token >= self._pieces.size:
                raise self._pieces.damaged("trie.value", f"id {token} is out of range")
            length = end - start
            single |= length == char
            found.append((length, self._score(token, length), token))
        if not single:
            found.append((char, self._unk_score, -1))
        return char, found

    def _find_ahead(self, text: bytes, start: int) -> Edges:
        char = min(character_length(text[start]), len(text) - start)
        ahead, size, end = self._ahead, len(text), start + char
        found: list[tuple[int, float, int]] = []
        while (edge := ahead.get(text[start:end])) is not None:
            if edge:
                found.append(edge)
            if end >= size:
                break
            end += 1 if text[end] < 0x80 else character_length(text[end])
        if not found or found[0][0] != char:
            found.append((char, self._unk_score, -1))
        return char, found

    def _score(self, token: int, length: int) -> float:
        if self._pieces.attrs[token] & USER_DEFINED:
            return array("f", [0.1 * (length - 1)])[0]  # GetUserDefinedScore
        return float(self._scores[token]) if len(self._scores) else 0.0

    def encode(self, text: bytes, *, valid: bool) -> Tokens:
        """(id or -1, end) of the pieces of a normalized text."""
        if not valid or not self.word_cut:
            return self.best(text, 0.0)[0]
        out: Tokens = []
        base, here = 0, 0.0
        known = self._words
        rounded = array("f", [0.0])
        for word in words(text, self._mark, self.word_cut):
            entry = known.get(word)
            if entry is None:
                entry = self._learn(word)
            tokens, scores, limit = entry
            if -limit < here < limit:
                for score in scores:
                    rounded[0] = here + score
                    here = rounded[0]
            else:
                tokens, here = self.best(word, here)
            out += [(token, base + end) for token, end in tokens] if base else tokens
            base += len(word)
        return out

    def anywhere(self, text: bytes, size: int) -> Tokens | None:
        """Pieces of words, as they are wherever in a text of SHORT characters they stand; None if that is not so.

        That holds if all of such a text is of this kind. Then the sum before any of its words is bounded, since words
        that take ``size`` characters of the text add at most ``_LOWEST`` for each of them.
        """
        if not self.word_cut:
            return None
        out: Tokens = []
        base, weight = 0, 0.0
        for word in words(text, self._mark, self.word_cut):
            tokens, scores, limit = self._words.get(word) or self._learn(word)
            if not limit > _FARTHEST:
                return None
            weight += sum(map(abs, scores))
            out += [(token, base + end) for token, end in tokens]
            base += len(word)
        return out if weight <= size * _LOWEST else None

    def _learn(self, word: bytes) -> Word:
        if len(word) > _WINDOW:
            return [], [], 0.0  # too long for a cache: always worked out
        if len(self._words) >= _CACHE:
            self._words.clear()
        entry = self._words[word] = self.certain(word)
        return entry

    def certain(self, word: bytes) -> Word:
        """The best path of a word of a valid text by exact sums, and where it can be relied on.

        A sum of single precision is off by at most half a unit in the last place for each piece added, so that paths
        that differ by more than twice that come out in the same order.
        """
        size, steps, largest = len(word), 0, 0.0
        best: list[tuple[float, int, int, float]] = [(0.0, -1, -1, 0.0)] * (size + 1)  # sum, begin, id, score
        second = [float("-inf")] * (size + 1)
        at = 0
        while at < size:
            here = best[at][0]
            steps += 1
            char, edges = self._edges(word, at)
            for length, score, piece in edges:
                end, total = at + length, here + score
                largest = max(largest, abs(total), abs(score))
                if best[end][1] < 0:
                    best[end] = (total, at, piece, score)
                elif total > best[end][0]:
                    second[end] = best[end][0]
                    best[end] = (total, at, piece, score)
                else:
                    second[end] = max(second[end], total)
            at += char
        tokens: Tokens = []
        scores: list[float] = []
        lead, end = float("inf"), size
        while end > 0:
            total, begin, piece, score = best[end]
            lead = min(lead, total - second[end])
            tokens.append((piece, end))
            scores.append(score)
            end = begin
        limit = min(lead / (2 * steps * _ULP), _SAFE) - largest
        return tokens[::-1], scores[::-1], limit

    def best(self, text: bytes, start: float) -> tuple[Tokens, float]:
        """(pieces, sum at the end) of a text before which the sum is ``start``."""
        size = len(text)
        best = array("f", bytes(4 * (size + 1)))
        best[0] = start
        origin = array("q", [-1]) * (size + 1)
        token = array("q", [-1]) * (size + 1)
        rounded = array("f", [0.0])
        at = frontier = 0
        edges_of = self._edges
        while at < size:
            here = best[at]
            if here < -_RESET or here > _RESET:
                self._reset(best, origin, at, frontier)
                here = 0.0
            char, edges = edges_of(text, at)
            for length, score, piece in edges:
                end = at + length
                if end > frontier:
                    frontier = end
                rounded[0] = score + here
                if origin[end] < 0 or rounded[0] > best[end]:
                    best[end] = rounded[0]
                    origin[end] = at
                    token[end] = piece
            at += char
        out: Tokens = []
        end = size
        while end > 0:
            out.append((token[end], end))
            end = origin[end]
        out.reverse()
        return out, best[size]

    @staticmethod
    def _reset(best: array[float], origin: array[int], at: int, frontier: int) -> None:
        """Count from zero again, so that sums stay exact in long texts."""
        offset = best[at]
        for end in range(at, frontier + 1):
            if end == at or origin[end] >= 0:
                best[end] -= offset
