"""What happens to the text between special tokens of a ``.mtok``: normalizer, pre-tokenizer, model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.mnn.edits import Origin, Step, move, resync, to_bytes, to_text
from tokpack.runtime.mnn.models import Model, make_model
from tokpack.runtime.mnn.normalizers import make_normalizer, normalize
from tokpack.runtime.mnn.pre_tokenizers import BytesStep, Splitter, make_pre_tokenizer
from tokpack.runtime.spans import Spans

__all__ = ["ClassMap", "WordEngine"]

_UNDECODED = re.compile("[\udc80-\udcff]")
_LONGEST = 64  # characters of a word that is remembered
_WORDS = 1 << 16  # words that are remembered, per stage


class ClassMap(dict[int, int]):
    """Code point → folded byte; ASCII is itself. Filled on demand from the pack's two-stage table."""

    def __init__(self, view: PackView) -> None:
        super().__init__()
        self._index, self._blocks = view.two_stage("mnn.class")

    def __missing__(self, code: int) -> int:
        if code < 0x80:
            value = code
        elif code >= 0x110000:
            value = 4  # unassigned
        else:
            value = self._blocks[self._index[code >> 8] << 8 | code & 255] & 0x7F
        self[code] = value
        return value

    def fold(self, text: str) -> str:
        """``fold_text``."""
        return text if text.isascii() else text.translate(self)


class WordEngine:
    """Fragments to ids.

    Args:
        view, pieces: the pack.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._view = view
        self._classes = ClassMap(view)
        classify = self._classes.__getitem__
        self._normalizers: list[Step] = [
            step for plain in view.meta["normalizer"] for step in make_normalizer(plain, classify, self._lower)
        ]
        self._stages: list[Splitter | Step] = [
            stage
            for plain in view.meta["pre_tokenizer"]
            for stage in make_pre_tokenizer(plain, classify, self._classes.fold)
        ]
        # bytes as GPT-2's characters are left to the model, which then need not spell them at all
        self._spelled = bool(self._stages) and isinstance(self._stages[-1], BytesStep)
        if self._spelled:
            self._stages.pop()
        self._pieces = pieces
        self._known: list[dict[str, list[int]]] = [{} for _ in range(len(self._stages) + 1)]

    @cached_property
    def _model(self) -> Model:
        with meta_errors(self._view.file):
            return make_model(self._view, self._pieces, self._spelled)

    def _lower(self) -> Mapping[int, int]:
        view = self._view
        return dict(zip(view.array("mnn.lower.from"), view.array("mnn.lower.to"), strict=False))

    def encode(self, raw: bytes) -> list[int]:
        """Ids of a fragment (``PipelineTokenizer::encode``)."""
        text = to_text(raw)
        text = normalize(text, self._normalizers, clean=text.isascii() or not _UNDECODED.search(text))
        return self._run(text, 0) if text else []

    def _run(self, word: str, level: int) -> list[int]:
        """Ids of a word through the stages from ``level`` on."""
        known = self._known[level]
        ids = known.get(word)
        if ids is not None:
            return ids
        if level == len(self._stages):
            ids = self._model.encode(word) if word else []
        else:
            stage = self._stages[level]
            level += 1
            if isinstance(stage, Step):
                ids = self._run(stage.apply(word), level)
            else:
                ids = []
                inner, run = self._known[level], self._run
                for start, end in stage.ranges(word):
                    part = word[start:end]
                    ids += inner.get(part) or run(part, level)
        if len(word) <= _LONGEST:
            if len(known) >= _WORDS:
                known.clear()
            known[word] = ids
        return ids

    def encode_spans(self, raw: bytes) -> Spans:
        """(id, start, end) of each token of a fragment, in its bytes."""
        text = to_text(raw)
        origin: Origin = []
        at = 0
        for char in text:
            size = len(to_bytes(char))
            origin.append((at, at + size))
            at += size
        for step in self._normalizers:
            text, origin = _changed(text, origin, step)
        out: Spans = []
        if text:
            self._run_spans(text, origin, 0, out)
        return out

    def _run_spans(self, word: str, origin: Origin, level: int, out: Spans) -> None:
        if level < len(self._stages):
            stage = self._stages[level]
            if isinstance(stage, Step):
                self._run_spans(*_changed(word, origin, stage), level + 1, out)
            else:
                for start, end in stage.ranges(word):
                    self._run_spans(word[start:end], origin[start:end], level + 1, out)
            return
        if not word:
            return
        places = [place for char, place in zip(word, origin, strict=True) for _ in to_bytes(char)]
        begin = 0
        for token, end in self._model.spans(word):
            first = max(0, min(begin, end - 1))  # byte pieces of one character share its end
            start = places[first][0] if first < len(places) else 0
            out.append((token, start, max(start, places[end - 1][1] if end else start)))
            begin = end


def _changed(text: str, origin: Origin, step: Step) -> tuple[str, Origin]:
    edits = step.edits(text)
    if not edits:
        return text, origin
    origin = move(origin, edits, len(text))
    made = step.apply(text)
    read = resync(made)
    if read == made:
        return made, origin
    joined: Origin = []
    at = 0
    for char in read:
        size = 1 if made[at] == char else len(to_bytes(char))
        joined.append((origin[at][0], origin[at + size - 1][1]))
        at += size
    return read, joined
