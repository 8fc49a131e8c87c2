"""MNN's four text formats, traced (``tokenizer.cpp``; see :mod:`tokpack.runtime.mnn.text_engines`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from tokpack.analysis.explanation.common import longest, tokens
from tokpack.analysis.explanation.mnn_words import MnnRecorder, greedy
from tokpack.analysis.explanation.trace import Match, Step, Word
from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.mnn.text_engines import _BERT_WORDS, _HF_WORDS
from tokpack.unicode.utf8 import split_characters

__all__ = ["TextTracer", "make_text_tracer"]

_MARK = "▁".encode()


class TextTracer(Protocol):
    """An engine that can show its work."""

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        """Steps and words of a fragment between special tokens."""
        ...


class _Sentencepiece:
    """Type 0: merging by score."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._recorder = MnnRecorder(view, pieces, stops=False)
        self._unk = int(view.meta["model"]["unk_id"])
        self._bytes = [int(value) for value in view.meta["mnn"]["bytes"]]

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        text = _MARK + raw.replace(b" ", _MARK)
        steps = [Step("normalizer", "spaces", "U+2581 in front and for each space", (text,), True)]
        ends = split_characters(text)
        starts = [0, *ends]
        symbols = [self._pieces.find_raw(text[a:b], False) for a, b in zip(starts, ends, strict=False)]
        shown = tuple(text[a:b] for a, b in zip(starts, ends, strict=False))
        merges, symbols, ends = self._recorder.merge(symbols, ends)
        ids: list[int] = []
        note = None
        for symbol, start, end in zip(symbols, [0, *ends], ends, strict=False):
            token = self._recorder.id_of(symbol) if 0 <= symbol < self._pieces.size else self._unk
            if token == self._unk:
                ids += [self._bytes[byte] for byte in text[start:end]]
                note = "what is no piece becomes its bytes"
            else:
                ids.append(token)
        return steps, [Word(text, "merges", tokens(self._pieces, ids), shown, tuple(merges), note)]


class _Tiktoken:
    """Type 1: longest match from the left."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._trie = Trie.of(view, "trie")

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        matches: list[Match] = []
        at, note = 0, None
        while at < len(raw):
            match = longest(self._trie, raw, at)
            if match.id < 0:
                match = Match(-1, raw[at : at + 1], at, at + 1)
                note = "bytes without a token are dropped"
            matches.append(match)
            at = match.end
        ids = (match.id for match in matches if match.id >= 0)
        return [], [Word(raw, "longest-match", tokens(self._pieces, ids), (), tuple(matches), note)] if raw else []


class _Bert:
    """Type 2: ASCII lower case, every other character a word of its own."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._first, self._rest = Trie.of(view, "trie"), Trie.of(view, "user")
        self._unk = int(view.meta["mnn"]["unk"])

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        words = [match[0].lower() for match in _BERT_WORDS.finditer(raw)]
        step = Step("pre-tokenizer", "bert", "ASCII in lower case", tuple(words), words != [raw])
        return [step], list(map(self._word, words))

    def _word(self, word: bytes) -> Word:
        matches, whole = greedy(self._first, self._rest, word)
        ids = [match.id for match in matches]
        note = None
        if not whole:
            ids.append(self._unk)
            note = "what is left of the word is unknown"
        return Word(word, "longest-match", tokens(self._pieces, ids), (), tuple(matches), note)


class _Huggingface:
    """Type 3: one pattern for every model, then merging."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._recorder = MnnRecorder(view, pieces, stops=False)
        self._first: list[int] = view.array("byte.symbol").tolist()

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        words = [match[0] for match in _HF_WORDS.finditer(raw)]
        step = Step("pre-tokenizer", "split", "one pattern for every model", tuple(words), words != [raw])
        return [step], list(self._words(words))

    def _words(self, words: Iterable[bytes]) -> Iterable[Word]:
        seen: dict[bytes, Word] = {}
        for word in words:
            if word not in seen:
                symbols = [self._first[byte] for byte in word]
                shown = tuple(map(self._recorder.text, symbols))
                merges, symbols, _ = self._recorder.merge(symbols, list(range(1, len(word) + 1)))
                ids = map(self._recorder.id_of, symbols)
                seen[word] = Word(word, "merges", tokens(self._pieces, ids), shown, tuple(merges))
            yield seen[word]


_TRACERS: dict[int, Callable[[PackView, PieceTable], TextTracer]] = {
    0: _Sentencepiece,
    1: _Tiktoken,
    2: _Bert,
    3: _Huggingface,
}


def make_text_tracer(number: int, view: PackView, pieces: PieceTable) -> TextTracer:
    """The tracer of a tokenizer type."""
    if number not in _TRACERS:
        raise UnsupportedError(f"a pack with the MNN tokenizer type {number}")
    return _TRACERS[number](view, pieces)
