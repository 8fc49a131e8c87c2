"""The pipeline of a ``.mtok``, traced: normalizers, pre-tokenizers, and its three models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tokpack.analysis.explanation.common import MergeRecorder, longest, step, tokens
from tokpack.analysis.explanation.trace import Action, Choice, Match, Step, Word
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.mnn.edits import Step as Edit
from tokpack.runtime.mnn.edits import resync, to_bytes, to_text
from tokpack.runtime.mnn.merging import read_same
from tokpack.runtime.mnn.models import BpeModel, WordPieceModel, make_model
from tokpack.runtime.mnn.normalizers import make_normalizer
from tokpack.runtime.mnn.pre_tokenizers import BytesStep, make_pre_tokenizer
from tokpack.runtime.mnn.viterbi import UnigramModel
from tokpack.runtime.mnn.words import ClassMap
from tokpack.unicode import byte_level

__all__ = ["MnnRecorder", "WordTracer", "greedy"]

_UNDECODED = re.compile("[\udc80-\udcff]")


class MnnRecorder(MergeRecorder):
    """Merging as :class:`tokpack.runtime.mnn.merging.Merger` does it.

    Args:
        view, pieces: the pack.
        stops: a merge whose result is no piece ends the work on a word.
    """

    def __init__(self, view: PackView, pieces: PieceTable, *, stops: bool) -> None:
        super().__init__(view, pieces)
        equal = view.array("mnn.merge.rank")  # where ranks are shared
        if len(equal) not in (0, len(self._keys)):
            raise pieces.damaged("mnn.merge.rank", "merge sections differ in length")
        if len(equal):
            self._ranks, self._source = equal, self._source[:0]
        self._stops = stops
        self._same = read_same(view)

    def stops(self, result: int) -> bool:
        """See :meth:`MergeRecorder.stops`."""
        return self._stops and (result >= self._pieces.size or self._same.get(result, 0) < 0)

    def id_of(self, symbol: int) -> int:
        """The id that a lookup of the symbol's text gives."""
        return self._same.get(symbol, symbol)


def greedy(first: Trie, rest: Trie, word: bytes) -> tuple[list[Match], bool]:
    """Longest matches, from ``rest`` behind the first; whether they cover the word."""
    matches: list[Match] = []
    at = 0
    while at < len(word):
        match = longest(rest if at else first, word, at)
        if match.id < 0:
            return matches, False
        matches.append(match)
        at = match.end
    return matches, True


class WordTracer:
    """Fragments of a ``.mtok``; see :class:`tokpack.runtime.mnn.words.WordEngine`."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._view, self._pieces = view, pieces
        self._classes = ClassMap(view)
        stages = [stage for plain in view.meta["pre_tokenizer"] for stage in self._stages(plain)]
        self._spelled = bool(stages) and isinstance(stages[-1], BytesStep)
        model = make_model(view, pieces, self._spelled)
        self._respelled = not isinstance(model, (BpeModel, WordPieceModel, UnigramModel))
        self._whole = model
        self._model: Any = getattr(model, "_model", model)
        self._recorder = MnnRecorder(view, pieces, stops=True)
        self._seen: dict[str, Word] = {}

    def _stages(self, plain: dict[str, object]) -> Sequence[object]:
        return make_pre_tokenizer(plain, self._classes.__getitem__, self._classes.fold)

    def _lower(self) -> dict[int, int]:
        view = self._view
        return dict(zip(view.array("mnn.lower.from"), view.array("mnn.lower.to"), strict=False))

    def fragment(self, raw: bytes) -> tuple[list[Step], list[Word]]:
        """Steps and words of a fragment between special tokens."""
        steps: list[Step] = []
        text = to_text(raw)
        clean = text.isascii() or not _UNDECODED.search(text)
        for plain in self._view.meta["normalizer"]:
            before = text
            for edit in make_normalizer(plain, self._classes.__getitem__, self._lower):
                text = edit.apply(text)
                text = text if clean else resync(text)
            steps.append(step("normalizer", plain, [to_bytes(before)], [to_bytes(text)]))
        words = [text] if text else []
        plains = list(self._view.meta["pre_tokenizer"])
        for number, plain in enumerate(plains):
            before_words = words
            last = number == len(plains) - 1
            shown: list[str] = words
            for stage in self._stages(plain):
                if not isinstance(stage, Edit):
                    shown = words = [word[a:b] for word in words for a, b in stage.ranges(word)]  # type: ignore[attr-defined]
                elif last and isinstance(stage, BytesStep):  # left to the model
                    shown = [stage.apply(word) for word in words]
                else:
                    shown = words = [stage.apply(word) for word in words]
            steps.append(step("pre-tokenizer", plain, map(to_bytes, before_words), map(to_bytes, shown)))
        return steps, [self._word(word) for word in words if word]

    def _word(self, word: str) -> Word:
        found = self._seen.get(word)
        if found is None:
            found = self._seen[word] = self._trace(word)
        return found

    def _trace(self, word: str) -> Word:
        ids = tokens(self._pieces, (token for token, _ in self._whole.spans(word)))
        inner = byte_level.encode(to_bytes(word)) if self._respelled else word
        text = to_bytes(inner)
        if isinstance(self._model, BpeModel):
            return self._merges(self._model, inner)
        actions: tuple[Action, ...]
        if isinstance(self._model, WordPieceModel):
            matches, whole = greedy(Trie.of(self._view, "trie"), Trie.of(self._view, "user"), text)
            known = whole and len(ids) == len(matches)
            actions, method, note = tuple(matches), "longest-match", None if known else "the whole word is unknown"
        else:
            path = self._path(self._model, text)
            fused = [choice.id for choice in path] != [token.id for token in ids]
            note = "neighbouring unknown characters become one token" if fused else None
            actions, method = tuple(path), "viterbi"
        return Word(text, method, ids, (), actions, note)

    def _merges(self, model: BpeModel, word: str) -> Word:
        ends: list[int] = []
        symbols = model.first_symbols(word, ends)
        raw = to_bytes(word)
        shown = tuple(map(self._recorder.text, symbols))
        merges, symbols, _ = self._recorder.merge(symbols, ends)
        ids = map(self._recorder.id_of, symbols)
        return Word(raw, "merges", tokens(self._pieces, ids), shown, tuple(merges))

    def _path(self, model: UnigramModel, text: bytes) -> list[Choice]:
        best, ids, starts = model.paths(text)
        scores = self._view.array("piece.scores64")
        out: list[Choice] = []
        end = len(text)
        while end > 0 and ids[end] >= 0:
            start = starts[end]
            out.append(Choice(ids[end], text[start:end], start, end, float(scores[ids[end]]), best[end]))
            end = start
        out.reverse()
        return out
