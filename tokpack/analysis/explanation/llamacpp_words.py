"""llama.cpp's byte-pair vocabularies, traced: escape, cut into words, merge each word."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tokpack.analysis.explanation.common import MergeRecorder, step, tokens, utf8
from tokpack.analysis.explanation.trace import Step, Word
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.chars import CharActions
from tokpack.runtime.split import ClassMap, Splitter
from tokpack.unicode.utf8 import decode_lenient, split_characters

__all__ = ["MergeWords", "WordTracer"]

_MARK = "▁".encode()


class MergeWords:
    """A word to its merges (``llm_tokenizer_bpe_session``, ``llm_tokenizer_spm_session``)."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        model = view.meta["model"]
        self._pieces = pieces
        self._recorder = MergeRecorder(view, pieces)
        self._ignore_merges = bool(model.get("ignore_merges"))
        self._whole_newlines = bool(model.get("whole_newlines"))
        self._first: list[int] = view.array("byte.symbol").tolist()
        self._emit: list[int] = view.array("byte.emit").tolist()
        if len(self._emit) != 512 or (pieces.byte_level and len(self._first) != 256):
            raise pieces.damaged("byte.emit", "it does not cover all bytes")
        self._seen: dict[bytes, Word] = {}

    def word(self, raw: bytes) -> Word:
        """The trace of a word; the same object for the same word."""
        found = self._seen.get(raw)
        if found is None:
            found = self._seen[raw] = self._trace(raw)
        return found

    def _trace(self, raw: bytes) -> Word:
        if self._ignore_merges or (self._whole_newlines and not raw.strip(b"\n")):
            whole = self._pieces.find_raw(raw, self._pieces.byte_level)
            if 0 <= whole < self._pieces.size:
                return Word(raw, "lookup", tokens(self._pieces, [whole]), note="the word is a piece: no merging")
        symbols, ends = self._symbols(raw)
        shown = tuple(
            self._recorder.text(symbol) if symbol >= 0 else raw[start:end]
            for symbol, start, end in zip(symbols, [0, *ends], ends, strict=False)
        )
        merges, symbols, ends = self._recorder.merge(symbols, ends)
        ids: list[int] = []
        note = None
        for symbol, start, end in zip(symbols, [0, *ends], ends, strict=False):
            if 0 <= symbol < self._pieces.size:
                ids.append(symbol)
            else:
                ids += self._bytes(raw[start:end])
                note = "symbols without a piece become those of their bytes"
        return Word(raw, "merges", tokens(self._pieces, ids), shown, tuple(merges), note)

    def _bytes(self, raw: bytes) -> list[int]:
        return [i for byte in raw for i in self._emit[2 * byte : 2 * byte + 2] if 0 <= i < self._pieces.size]

    def _symbols(self, raw: bytes) -> tuple[list[int], list[int]]:
        if self._pieces.byte_level:
            return [self._first[byte] for byte in raw], list(range(1, len(raw) + 1))
        ends = split_characters(raw)
        starts = [0, *ends]
        return [self._pieces.find_raw(raw[a:b], False) for a, b in zip(starts, ends, strict=False)], ends


class WordTracer:
    """Fragments of a byte-pair vocabulary; see :class:`tokpack.runtime.words.WordFragments`."""

    def __init__(self, view: PackView, pieces: PieceTable, unk: int) -> None:
        self._view = view
        self._pieces = pieces
        self._model = MergeWords(view, pieces)
        self._escapes: list[Mapping[str, Any]] = list(view.meta["normalizer"])
        steps: list[Mapping[str, Any]] = list(view.meta["pre_tokenizer"])
        self._dna = steps.pop(0) if steps and steps[0]["kind"] == "dna-tags" else None
        self._runs = steps.pop(0) if steps and steps[0]["kind"] == "whitespace-split" else None
        self._splits = steps

    @cached_property
    def _splitters(self) -> list[Splitter]:
        """One for the first step, one for the first two, and so on: what each step adds is seen by comparing."""
        view = self._view
        spaces = dict.fromkeys(view.array("class.spaces").tolist(), 0x0B)
        classes = ClassMap(*view.two_stage("class"))
        return [Splitter(self._splits[: n + 1], classes, spaces) for n in range(len(self._splits))]

    def fragment(self, raw: bytes, after_special: bool) -> tuple[list[Step], list[Word]]:
        """Steps and words of a fragment between special tokens."""
        if self._dna is not None:
            return self._with_dna(raw, self._dna)
        steps: list[Step] = []
        if self._escapes:
            # bytes are escaped before they are decoded: an overlong space stays one
            escaped = raw.replace(b" ", _MARK)
            steps.append(step("normalizer", self._escapes[0], [raw], [escaped]))
            raw = escaped
        texts = [decode_lenient(raw)]
        if self._runs is not None:
            runs = [run for _, _, run in CharActions(self._view).runs(texts[0])]
            steps.append(step("pre-tokenizer", self._runs, map(utf8, texts), map(utf8, runs)))
            texts = runs
        cut, words = self._split(texts)
        return [*steps, *cut], [self._model.word(utf8(word)) for word in words]

    def _split(self, texts: list[str]) -> tuple[list[Step], list[str]]:
        steps: list[Step] = []
        before = list(texts)
        for plain, splitter in zip(self._splits, self._splitters, strict=True):
            after = [word for text in texts for word in splitter.words(text)]
            steps.append(step("pre-tokenizer", plain, map(utf8, before), map(utf8, after)))
            before = after
        return steps, [text for text in before if text]

    def _with_dna(self, raw: bytes, dna: Mapping[str, Any]) -> tuple[list[Step], list[Word]]:
        """``<dna>…</dna>`` in k-mers, the rest as words (``llm_tokenizer_hybriddna``)."""
        parts: list[bytes | Word] = []  # plain text, or what is looked up as it is
        at, size = 0, len(raw)
        while at < size:
            opened = raw.find(b"<dna>", at)
            parts.append(raw[at : opened if opened >= 0 else size])
            if opened < 0:
                break
            parts.append(Word(b"<dna>", "lookup", tokens(self._pieces, [int(dna["open_id"])])))
            closed = raw.find(b"</dna>", opened + 5)
            at = closed if closed >= 0 else size
            parts += self._kmers(raw[opened + 5 : at], dna)
            if closed >= 0:
                parts.append(Word(b"</dna>", "lookup", tokens(self._pieces, [int(dna["close_id"])])))
                at = closed + 6
        shown = [part.text if isinstance(part, Word) else part for part in parts]
        steps = [step("pre-tokenizer", dna, [raw], [text for text in shown if text])]
        cuts: list[list[Step]] = []
        words: list[Word] = []
        for part in parts:
            if isinstance(part, Word):
                words.append(part)
            elif part:
                cut, found = self._split([decode_lenient(part)])
                cuts.append(cut)
                words += [self._model.word(utf8(word)) for word in found]
        for same in zip(*cuts, strict=True):  # the same step on each text outside the tags
            texts = tuple(text for one in same for text in one.texts)
            changed = any(one.changed for one in same)
            steps.append(Step(same[0].stage, same[0].name, same[0].detail, texts, changed))
        return steps, words

    def _kmers(self, sequence: bytes, dna: Mapping[str, Any]) -> list[Word]:
        width, unknown = int(dna["size"]), int(dna["oov_id"])
        kmers = {str(kmer): int(token) for kmer, token in dna["kmers"] if 0 <= token < self._pieces.size}
        words = []
        for at in range(0, len(sequence), width):
            kmer = sequence[at : at + width]
            text = kmer.upper().ljust(width, b"A").decode("utf-8", "surrogateescape")
            found = kmers.get(text, unknown)
            note = "an unknown k-mer" if found == unknown else None
            words.append(Word(kmer, "lookup", tokens(self._pieces, [found]), note=note))
        return words
