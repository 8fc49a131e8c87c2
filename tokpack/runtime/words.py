"""Fragments of byte-pair vocabularies: escape, cut into words, merge each word (``llm_tokenizer_bpe_session``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import MergeModel
from tokpack.runtime.chars import CharActions
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.spans import Spans, character_spans
from tokpack.runtime.split import ClassMap, Splitter
from tokpack.typed import Any
from tokpack.unicode.utf8 import decode_lenient, decode_with_offsets

__all__ = ["WordFragments"]

_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64  # characters; longer words are rarely seen twice
_SPACES = {0x20: "▁"}
_MARK = "▁".encode()


class _WordCache(dict[str, tuple[int, ...]]):
    """Word → ids, filled by the model; bounded."""

    def __init__(self, model: MergeModel) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._model.encode(word.encode("utf-8", "surrogatepass")))
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids


class WordFragments:
    """A fragment between special tokens → ids.

    Args:
        view, pieces: the pack. Its steps are compiled when the first text comes.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._view = view
        self._pieces = pieces
        self._escape = _escapes(view.meta["normalizer"])
        steps = list(view.meta["pre_tokenizer"])
        self._dna: Mapping[str, Any] | None = steps.pop(0) if steps and steps[0]["kind"] == "dna-tags" else None
        self._runs = bool(steps) and steps[0]["kind"] == "whitespace-split"
        if self._runs:
            steps.pop(0)
        self._steps = steps

    @property
    def plain(self) -> bool:
        """Whether a fragment is cut into words as it is, and nothing else is done to it."""
        return self._dna is None and not self._runs and not self._escape

    @property
    def escaping(self) -> bool:
        """Whether spaces are escaped, and nothing else is done to a fragment before it is cut."""
        return self._dna is None and not self._runs and self._escape

    @property
    def model(self) -> MergeModel:
        """Words to ids."""
        return self._model

    @property
    def splitter(self) -> Splitter:
        """Text to words."""
        return self._splitter

    @cached_property
    def _model(self) -> MergeModel:
        with meta_errors(self._view.file):
            return MergeModel(self._view, self._pieces)

    @cached_property
    def _words(self) -> _WordCache:
        return _WordCache(self._model)

    @cached_property
    def _actions(self) -> CharActions:
        return CharActions(self._view)

    @cached_property
    def _splitter(self) -> Splitter:
        view = self._view
        with meta_errors(view.file):
            spaces = dict.fromkeys(view.array("class.spaces").tolist(), 0x0B)
            return Splitter(self._steps, ClassMap(*view.two_stage("class")), spaces)

    @cached_property
    def _kmers(self) -> dict[str, int]:
        assert self._dna is not None
        with meta_errors(self._view.file):
            return {str(kmer): int(token) for kmer, token in self._dna["kmers"] if 0 <= token < self._pieces.size}

    def encode_text(self, text: str) -> Iterable[int]:
        """Ids of a fragment that is text already."""
        if self._dna is not None or self._runs:
            raw = text.encode("utf-8", "surrogatepass")
            return [token for token, _, _ in self.spans(raw, False)]
        return self.encode_words(text.translate(_SPACES) if self._escape else text)

    def encode_words(self, text: str) -> Iterable[int]:
        """Ids of a text that is only cut into words."""
        return chain.from_iterable(map(self._words.__getitem__, self._splitter.words(text)))

    def encode(self, raw: bytes, after_special: bool) -> Iterable[int]:
        """Ids of a fragment; ``after_special`` makes no difference here."""
        if self._escape and self._dna is None and not self._runs:
            # bytes are escaped before they are decoded: an overlong space stays one
            return self.encode_words(decode_lenient(raw.replace(b" ", _MARK)))
        return self.encode_text(decode_lenient(raw))

    def spans(self, raw: bytes, after_special: bool) -> Spans:
        """Spans of a fragment in its bytes."""
        if self._dna is not None:
            return list(self._dna_spans(raw, self._dna))
        text, ends = decode_with_offsets(raw)
        if self._escape:
            text = "".join(
                "▁" if char == " " and end - start == 1 else char
                for char, start, end in zip(text, [0, *ends], ends, strict=False)
            )
        if self._runs:
            return [
                span for run, run_ends, base in self._white_runs(text, ends) for span in self._cut(run, run_ends, base)
            ]
        return self._cut(text, ends, 0)

    def _cut(self, text: str, ends: list[int], base: int) -> Spans:
        """Words of a text whose characters end at ``ends`` in the source; it begins at ``base``."""
        spans: Spans = []
        shifted = [end - base for end in ends]
        first = 0
        for word in self._splitter.words(text):
            tokens = self._model.encode_spans(word.encode("utf-8", "surrogatepass"))
            spans += [(t, base + s, base + e) for t, s, e in character_spans(word, shifted, first, tokens)]
            first += len(word)
        return spans

    def _white_runs(self, text: str, ends: list[int]) -> Iterator[tuple[str, list[int], int]]:
        """Runs between White_Space, lower-cased if the model says so (``llm_tokenizer_whitespace``)."""
        for start, end, run in self._actions.runs(text):
            yield run, ends[start:end], ends[start - 1] if start else 0

    def _dna_spans(self, raw: bytes, dna: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
        """``<dna>…</dna>`` in k-mers, the rest as words (``llm_tokenizer_hybriddna``)."""
        at, size = 0, len(raw)
        while at < size:
            opened = raw.find(b"<dna>", at)
            stop = opened if opened >= 0 else size
            text, ends = decode_with_offsets(raw[at:stop])
            yield from ((t, at + s, at + e) for t, s, e in self._cut(text, ends, 0))
            if opened < 0:
                return
            yield int(dna["open_id"]), opened, opened + 5
            start = opened + 5
            closed = raw.find(b"</dna>", start)
            stop = closed if closed >= 0 else size
            yield from self._kmer_spans(raw, start, stop, dna)
            at = stop
            if closed >= 0:
                yield int(dna["close_id"]), closed, closed + 6
                at = closed + 6

    def _kmer_spans(self, raw: bytes, start: int, stop: int, dna: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
        width = int(dna["size"])
        sequence = raw[start:stop].upper()  # ASCII letters only, as bytes.upper does
        for at in range(0, len(sequence), width):
            kmer = sequence[at : at + width]
            text = kmer.ljust(width, b"A").decode("utf-8", "surrogateescape")
            yield self._kmers.get(text, int(dna["oov_id"])), start + at, start + at + len(kmer)


def _escapes(steps: list[Mapping[str, Any]]) -> bool:
    """Whether spaces are escaped; the only normalization that this reference's BPE has."""
    if not steps:
        return False
    (step,) = steps
    if (step["kind"], step["pattern"], step["content"], step["dialect"]) != ("replace", " ", "▁", "literal"):
        raise UnsupportedError(f"a pack with the normalizer step {step!r}")
    return True
