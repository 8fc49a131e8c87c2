"""Models that work on a whole fragment: score merge, Unigram, WPM, RWKV (PLaMo2 has a module of its own).

Each has ``encode(raw, after_special)`` and ``spans(raw, after_special)``; ``raw`` is the fragment between two special
tokens, ``after_special`` is true for the first fragment and for one that follows a special token.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import MergeModel
from tokpack.runtime.chars import CharActions
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.spans import Spans
from tokpack.runtime.steps import TrieSteps
from tokpack.runtime.unigram import UnigramModel
from tokpack.unicode.utf8 import decode_with_offsets

__all__ = ["Fragments", "GreedyFragments", "ScoreMergeFragments", "UnigramFragments", "WordPieceFragments"]

_MARK = "▁".encode()


class Fragments:
    """What the models share."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._view = view
        self._pieces = pieces
        self._unk = unk

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        raise NotImplementedError

    def encode(self, raw: bytes, after_special: bool) -> Iterable[int]:
        """Ids of a fragment."""
        return [token for token, _, _ in self.spans(raw, after_special)]

    @cached_property
    def _trie(self) -> Trie:
        return Trie.of(self._view, "trie")

    def _checked(self, token: int) -> int:
        if token >= self._pieces.size:
            raise self._pieces.damaged("trie.value", f"id {token} is out of range")
        return token


class ScoreMergeFragments(Fragments):
    """llama.cpp's SPM (``llm_tokenizer_spm_session``): a space in front, spaces as U+2581, merging by score."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        super().__init__(view, pieces, unk)
        kinds = [step["kind"] for step in view.meta["normalizer"]]
        if kinds not in (["replace"], ["space-prefix", "replace"]):
            raise UnsupportedError(f"a pack with the normalizer steps {kinds}")
        self._prefix = len(kinds) == 2

    @property
    def prefix(self) -> bool:
        """Whether a fragment behind a special token, or at the beginning, gets a space in front."""
        return self._prefix

    @property
    def model(self) -> MergeModel:
        """Text to ids."""
        return self._model

    @cached_property
    def _model(self) -> MergeModel:
        with meta_errors(self._view.file):
            return MergeModel(self._view, self._pieces)

    def encode(self, raw: bytes, after_special: bool) -> Iterable[int]:
        """Ids of a fragment."""
        prefix = _MARK if self._prefix and after_special else b""
        return self._model.encode(prefix + raw.replace(b" ", _MARK))

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes; the space in front has no width."""
        origin = [0]  # source offset before each byte of the escaped text, and behind the last
        if self._prefix and after_special:
            origin = [0, 0, 0, 0]
        for at, byte in enumerate(raw):
            origin += [at + 1] if byte != 0x20 else [at, at, at + 1]
        escaped = (_MARK if len(origin) > 1 and self._prefix and after_special else b"") + raw.replace(b" ", _MARK)
        out: Spans = []
        begin = 0
        for token, end in self._model.encode_spans(escaped) if escaped else []:
            out.append((token, origin[begin], max(origin[end], origin[begin])))
            begin = end
        return out


class UnigramFragments(Fragments):
    """llama.cpp's Unigram."""

    @cached_property
    def _model(self) -> UnigramModel:
        with meta_errors(self._view.file):
            step = self._view.meta["normalizer"][0]
            if step["kind"] != "precompiled":
                raise UnsupportedError(f"a pack with the normalizer step {step['kind']!r}")
            prefix, merge = bool(step["add_space_prefix"]), bool(step["remove_extra_whitespaces"])
            return UnigramModel(self._view, self._pieces, self._unk, prefix, merge)

    def encode(self, raw: bytes, after_special: bool) -> Iterable[int]:
        """Ids of a fragment."""
        return self._model.encode(raw)

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        return self._model.encode_spans(raw)


class WordPieceFragments(Fragments):
    """llama.cpp's WPM (``llm_tokenizer_wpm_session``): words, then greedy longest matches; a miss makes all unknown."""

    @cached_property
    def actions(self) -> CharActions:
        """What becomes of each character."""
        return CharActions(self._view)

    def encode_word(self, word: str) -> list[int]:
        """Ids of one word."""
        found = self._match(_MARK + word.encode("utf-8", "surrogatepass"))
        return [token for token, _, _ in found] if found else [self._unk]

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        text, ends = decode_with_offsets(raw)
        out: Spans = []
        for word, origin in self.actions.words(text):
            # source span of each byte of the marked word; the mark has no width
            first = ends[origin[0] - 1] if origin[0] else 0
            edges = [(first, first)] * len(_MARK)
            for char, at in zip(word, origin, strict=True):
                edges += [(ends[at - 1] if at else 0, ends[at])] * len(char.encode("utf-8", "surrogatepass"))
            found = self._match(_MARK + word.encode("utf-8", "surrogatepass"))
            if found:
                out += [
                    (token, edges[start][0], max(edges[end - 1][1], edges[start][0])) for token, start, end in found
                ]
            else:
                out.append((self._unk, first, edges[-1][1]))
        return out

    @cached_property
    def _steps(self) -> TrieSteps:
        return TrieSteps(self._trie)

    def _match(self, word: bytes) -> Spans:
        steps, values = self._steps, self._view.array("trie.value")
        out: Spans = []
        at, size = 0, len(word)
        while at < size:
            node, end, stop, token = 0, at, at, -1
            while end < size:
                node = steps[node << 8 | word[end]]
                if node < 0:
                    break
                end += 1
                if values[node] >= 0:
                    stop, token = end, values[node]
            if token < 0:
                return []
            out.append((self._checked(token), at, stop))
            at = stop
        return out


class GreedyFragments(Fragments):
    """RWKV (``llm_tokenizer_rwkv_session``): greedy longest match on bytes, specials included."""

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        out: Spans = []
        size = len(raw)
        # the original reads the NUL that ends a C++ string, so a piece that ends in NUL can match at the end
        text = raw + b"\0"
        at = 0
        while at < size:
            end, token = self._trie.longest(text, at)
            if token < 0:
                end, token = at + 1, self._unk
            out.append((self._checked(token), at, min(end, size)))
            at = end
        return out
