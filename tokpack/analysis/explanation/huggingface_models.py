"""The models of the ``tokenizers`` library, traced: each is the runtime's own, with its work written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tokpack.analysis.explanation.common import MergeRecorder, longest, tokens, utf8
from tokpack.analysis.explanation.lattice import Edges, best_path
from tokpack.analysis.explanation.trace import Match, Word
from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.hf.models import BpeModel, UnigramModel, WordLevelModel, WordPieceModel

__all__ = ["WordTracer", "make_tracer"]


class WordTracer(Protocol):
    """A model that can show its work."""

    def trace(self, word: str) -> Word:
        """What becomes of a word that is not empty."""
        ...


class _Bpe(BpeModel):
    """``BPE::merge_word``."""

    def trace(self, word: str) -> Word:
        raw = utf8(word)
        whole = self.find(word) if self._ignore_merges else -1
        if whole >= 0:
            return Word(raw, "lookup", tokens(self._pieces, [whole]), note="the word is a piece: no merging")
        recorder = MergeRecorder(self._view, self._pieces)
        symbols, ends = self._symbols(word)
        shown = tuple(map(recorder.text, symbols))
        merges, ids, _ = recorder.merge(symbols, ends, _byte_offsets(word, ends))
        return Word(raw, "merges", tokens(self._pieces, ids), shown, tuple(merges))


def _byte_offsets(word: str, ends: Sequence[int]) -> list[int]:
    offsets = [0]
    for char in word:
        offsets.append(offsets[-1] + len(utf8(char)))
    return [offsets[end] for end in ends]


class _Unigram(UnigramModel):
    """``Unigram::encode_optimized``."""

    def trace(self, word: str) -> Word:
        text = utf8(word)
        # its sums are of doubles, the score of a piece first
        path = best_path(text, lambda at: self._edges(text, at), lambda here, score: score + here)
        ids = [token for token, _ in self.encode(word)]
        changed = [choice.id for choice in path] != ids
        note = "neighbouring unknown characters become one; a piece or bytes that spell it take its place"
        return Word(text, "viterbi", tokens(self._pieces, ids), (), tuple(path), note if changed else None)

    def _edges(self, text: bytes, at: int) -> Edges:
        lead = text[at]
        length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        found = [(end - at, float(self._scores[token]), token) for end, token in self._trie.prefixes(text, at)]
        if all(size != length for size, _, _ in found):
            found.append((length, self._unk_score, self._unk))
        return length, found


class _WordPiece(WordPieceModel):
    """``WordPiece::tokenize``."""

    def trace(self, word: str) -> Word:
        text = utf8(word)
        ids = [token for token, _ in self.encode(word)]
        note: str | None = None
        if len(word) > self._longest:
            note = f"longer than {self._longest} characters: unknown"
            return Word(text, "longest-match", tokens(self._pieces, ids), note=note)
        matches: list[Match] = []
        at = 0
        while at < len(text):
            prefix = self._prefix if at else b""
            match = longest(self._trie, prefix + text[at:], 0, len(prefix))
            if match.id < 0:
                note = "nothing matches behind that: the whole word is unknown"
                break
            size = match.end - len(prefix)
            matches.append(Match(match.id, text[at : at + size], at, at + size, match.shorter))
            at += size
        return Word(text, "longest-match", tokens(self._pieces, ids), (), tuple(matches), note)


class _WordLevel(WordLevelModel):
    """``WordLevel::tokenize``."""

    def trace(self, word: str) -> Word:
        ids = [token for token, _ in self.encode(word)]
        note = None if self.find(word) >= 0 else "not in the vocabulary: unknown"
        return Word(utf8(word), "lookup", tokens(self._pieces, ids), note=note)


_TRACERS: dict[str, type[_Bpe] | type[_Unigram] | type[_WordPiece] | type[_WordLevel]] = {
    "BPE": _Bpe,
    "Unigram": _Unigram,
    "WordPiece": _WordPiece,
    "WordLevel": _WordLevel,
}


def make_tracer(view: PackView, pieces: PieceTable) -> WordTracer:
    """The model of a pack."""
    plain = view.meta["model"]
    kind = _TRACERS.get(plain["kind"])
    if kind is None:
        raise UnsupportedError(f"a pack with the model {plain['kind']!r} under the library's rules")
    return kind(view, pieces, plain)
