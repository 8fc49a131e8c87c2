"""What the models say about a piece's own text: part of :mod:`tokpack.analysis.reach`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tokpack.analysis.vocabulary import Vocabulary
from tokpack.ir.vocab import PieceAttr
from tokpack.pack.trie import Trie
from tokpack.runtime.bpe import Merger
from tokpack.unicode.utf8 import split_characters

__all__ = ["Merging", "OwnText", "own_text"]

_WORDS = 512  # beginnings of words that are tried for a piece that continues one


class OwnText:
    """What a model says about the text of one piece.

    Attributes:
        reason: why a piece that it does not make is not made, if no other text leads to it either.
    """

    reason = "model"

    def __init__(self, vocabulary: Vocabulary, plain: Mapping[str, Any]) -> None:
        self._vocabulary = vocabulary
        self._pieces = vocabulary.pieces
        self._plain = plain

    def makes(self, token: int) -> bool:
        """Whether the text of a piece gives it."""
        raise NotImplementedError

    def certain(self, token: int) -> str | None:
        """Why no text at all leads to a piece that its own text does not give; None if one might."""
        return None


class Merging(OwnText):
    """Byte-pair merging: characters or bytes, then merges; whole-word rules are left to the whole tokenizer."""

    def __init__(self, vocabulary: Vocabulary, plain: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, plain)
        view, pieces = vocabulary.view, vocabulary.pieces
        self._merger = Merger(view, pieces)
        self._library = view.meta["reference"] == "huggingface"
        self._first: list[int] = [] if self._library else view.array("byte.symbol").tolist()
        self._whole = bool(plain.get("ignore_merges")) or plain["kind"] == "RankMerge"
        self._newlines = bool(plain.get("whole_newlines"))
        self._dna = any(step["kind"] == "dna-tags" for step in view.meta["pre_tokenizer"])
        self.reason = "merges" if self._dna else "cut"
        self._prefix = bytes(plain.get("continuing_subword_prefix") or b"")
        self._suffix = bytes(plain.get("end_of_word_suffix") or b"")
        self._chars: dict[bytes, int] = {}

    def makes(self, token: int) -> bool:
        """Whether the text of a piece gives it."""
        ranks = self._vocabulary.ranks
        symbols = self._symbols(token)
        if ranks is not None and len(symbols) > 1 and ranks[token] < 0:
            return False
        if not symbols or min(symbols) < 0:
            return False
        return self._merger.merge(symbols, list(range(1, len(symbols) + 1)))[0] == [token]

    def certain(self, token: int) -> str | None:
        """See :meth:`OwnText.certain`."""
        if self._whole or self._dna or (self._newlines and not self._pieces.text(token).strip(b"\n")):
            return None
        return "merges"

    def _symbols(self, token: int) -> list[int]:
        text = self._pieces.text(token)
        if self._first:
            if self._pieces.byte_level and not self._pieces.spelled(token):
                return []
            return [self._first[byte] for byte in self._pieces.raw(token)] if len(self._first) == 256 else []
        chars = self._split(text)
        symbols = []
        for char in chars:
            found = self._chars.get(char)
            if found is None:
                found = self._chars[char] = self._symbol(char)
            symbols.append(found)
        return symbols

    def _symbol(self, char: bytes) -> int:
        if not self._library:
            return self._pieces.find_raw(char, False)
        found = self._pieces.find_text(char)
        return found if found >= 0 and self._vocabulary.attrs[found] & PieceAttr.NORMAL else -1

    def _split(self, text: bytes) -> list[bytes]:
        """The characters, with what marks the inside and the end of a word as the model adds it."""
        inside = bool(self._prefix) and text.startswith(self._prefix)
        last = bool(self._suffix) and text.endswith(self._suffix)
        if inside:
            text = text[len(self._prefix) :]
        if last:
            text = text[: -len(self._suffix)]
        ends = split_characters(text)
        chars = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        marked = [self._prefix + char if at or inside else char for at, char in enumerate(chars)]
        if marked and last:
            marked[-1] += self._suffix
        return marked


class Scored(OwnText):
    """Unigram: the piece is on the best path through its own text."""

    reason = "score"

    def __init__(self, vocabulary: Vocabulary, plain: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, plain)
        self._trie = Trie.of(vocabulary.view, "trie")
        scores = vocabulary.scores
        self._scores: list[float] = [0.0] * vocabulary.size if scores is None else scores.tolist()
        if vocabulary.view.meta["reference"] == "llama.cpp":
            user = (vocabulary.attrs & PieceAttr.USER_DEFINED) != 0
            self._scores = [0.0 if free else score for free, score in zip(user.tolist(), self._scores, strict=True)]
        self._rounding = 1e-9 * max((abs(score) for score in self._scores if math.isfinite(score)), default=0.0)
        normal = (vocabulary.attrs & PieceAttr.NORMAL) != 0
        self._unknown = min((s for s, n in zip(self._scores, normal.tolist(), strict=True) if n), default=0.0) - 10.0

    def makes(self, token: int) -> bool:
        text = self._pieces.text(token)
        size = len(text)
        if not size or self._trie.longest(text, 0) != (size, token):
            return False
        best = [float("-inf")] * (size + 1)
        best[0] = 0.0
        at = 0
        for end in split_characters(text):
            single = False
            for stop, found in self._trie.prefixes(text, at):
                single |= stop == end
                if found < len(self._scores) and not (at == 0 and stop == size):
                    best[stop] = max(best[stop], best[at] + self._scores[found])
            if not single:
                best[end] = max(best[end], best[at] + self._unknown)
            at = end
        # of equal scores the first found wins, the one from the start; behind high scores near ones become equal
        return self._scores[token] >= best[size] - self._rounding

    def certain(self, token: int) -> str | None:
        return self.reason


class Greedy(OwnText):
    """Greedy longest matches; a piece that continues a word needs a beginning after which it is the longest match."""

    reason = "word"

    def __init__(self, vocabulary: Vocabulary, plain: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, plain)
        self._trie = Trie.of(vocabulary.view, "trie")
        self._prefix = bytes(plain.get("continuing_subword_prefix") or b"")
        self._mark = "▁".encode() if plain["kind"] == "WordPieceGreedy" else b""
        self._longest_word = int(plain.get("max_input_chars_per_word") or 1 << 30)

    def makes(self, token: int) -> bool:
        text = self._pieces.text(token)
        whole = self._trie.longest(text, 0) == (len(text), token)
        if not whole or not text or len(text.decode("utf-8", "replace")) > self._longest_word:
            return False
        if self._prefix and text.startswith(self._prefix) and len(text) > len(self._prefix):
            rest = text[len(self._prefix) :]
            return any(self._precedes(start, rest) for start in self._starts)
        if self._mark and not text.startswith(self._mark):
            return any(self._precedes(start, text) for start in self._starts)
        return True

    def _precedes(self, start: bytes, rest: bytes) -> bool:
        """Whether the beginning ``start`` of a word is matched before ``rest``, and no more than it."""
        return self._trie.longest(start + rest, 0)[0] == len(start)

    @cached_property
    def _starts(self) -> list[bytes]:
        """Pieces that begin words, the shortest first."""
        texts = [
            text
            for token, text in enumerate(self._vocabulary.texts)
            if text
            and self._vocabulary.attrs[token] & PieceAttr.NORMAL
            and (text.startswith(self._mark) if self._mark else not self._prefix or not text.startswith(self._prefix))
            and self._trie.longest(text, 0) == (len(text), token)
        ]
        return sorted(texts, key=lambda text: (len(text), text))[:_WORDS]


class Longest(OwnText):
    """Longest match anywhere, or a word that is a piece: the text finds it if it is in the table at all."""

    def __init__(self, vocabulary: Vocabulary, plain: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, plain)
        self._trie = Trie.of(vocabulary.view, "trie") if plain["kind"] != "WordLevel" else None
        if plain["kind"] == "WordLevel" and len(vocabulary.view.array("trie.value")):
            self._trie = Trie.of(vocabulary.view, "trie")

    def makes(self, token: int) -> bool:
        text = self._vocabulary.bytes[token] if self._plain["kind"] == "GreedyTrie" else self._pieces.text(token)
        if self._trie is not None:
            return bool(text) and self._trie.longest(text, 0) == (len(text), token)
        found = self._pieces.find_text(text)
        return found == token and bool(self._vocabulary.attrs[token] & PieceAttr.NORMAL)


_KINDS: dict[str, Callable[[Vocabulary, Mapping[str, Any]], OwnText]] = {
    "BPE": Merging,
    "ScoreMerge": Merging,
    "RankMerge": Merging,
    "Unigram": Scored,
    "WordPiece": Greedy,
    "WordPieceGreedy": Greedy,
    "GreedyTrie": Longest,
    "WordLevel": Longest,
    "Characters": Longest,
}


def own_text(vocabulary: Vocabulary) -> OwnText | None:
    """None for a model that is only asked as a whole."""
    plain = vocabulary.view.meta["model"]
    made = _KINDS.get(plain["kind"])
    return None if made is None or vocabulary.view.meta["reference"] == "mnn" else made(vocabulary, plain)
