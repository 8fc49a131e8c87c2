"""The stages of the ``tokenizers`` library (``tokenizer/mod.rs``).

Added tokens are cut out of the text as it is, the rest is normalized, added tokens that ask for it are cut out of that,
and what is left goes through the pre-tokenizers to the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokpack.analysis.explanation.common import step, tokens, utf8
from tokpack.analysis.explanation.huggingface_models import WordTracer, make_tracer
from tokpack.analysis.explanation.trace import Part, Post, Step, Token, Word
from tokpack.pack.pieces import PieceTable
from tokpack.runtime.hf.compose import Composer
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.hf.pipeline import HfPipeline, Stages

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["trace"]


def trace(
    tokenizer: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool
) -> tuple[list[Part], Post, list[str]]:
    """The parts of a text, what is added, and notes."""
    view = tokenizer.view
    pieces = PieceTable(view)
    chars = text if isinstance(text, str) else bytes(text).decode("utf-8")
    tracer = _Tracer(view.meta, pieces, HfPipeline(view).stages(), make_tracer(view, pieces), not parse_special)
    return tracer.parts(chars), _post(view.meta, pieces, add_special), []


class _Tracer:
    def __init__(self, meta: Any, pieces: PieceTable, stages: Stages, model: WordTracer, skip_special: bool) -> None:
        self._normalizers, self._pre_tokenizers = meta["normalizer"], meta["pre_tokenizer"]
        self._pieces, self._stages, self._model, self._skip = pieces, stages, model, skip_special
        self._seen: dict[str, Word] = {}

    def parts(self, text: str) -> list[Part]:
        """The whole text."""
        offsets = [0]
        for char in text:
            offsets.append(offsets[-1] + len(utf8(char)))
        whole = Fragment(text, [(at, at + 1) for at in range(len(text))])
        out = []
        for token, part in self._stages.passes[0].split(whole, self._skip):
            origin = part.origin or [(0, 0)]
            start, end = offsets[origin[0][0]], offsets[origin[-1][1]]
            if token >= 0:
                out.append(Part("token", utf8(part.text), start, end, tokens(self._pieces, [token])[0]))
            else:
                out.append(self._text(part, start, end))
        return out

    def _text(self, fragment: Fragment, start: int, end: int) -> Part:
        raw = utf8(fragment.text)
        steps: list[Step] = []
        for normalizer, plain in zip(self._stages.normalizers, self._normalizers, strict=True):
            before = fragment
            # as HfPipeline does it, one step at a time
            fragment = before.edit(normalizer.edits(before.text), to_last=plain["kind"] == "replace")
            if fragment.origin and plain["kind"] != "precompiled":
                fragment = replace(fragment, first=fragment.origin[0][0] == 0)
            steps.append(step("normalizer", plain, [utf8(before.text)], [utf8(fragment.text)]))
        cuts = self._stages.passes[1].split(fragment, self._skip)
        if [token for token, _ in cuts] in ([], [-1]):
            for _, part in cuts:
                more, words = self._words(part)
                return Part("text", raw, start, end, None, (*steps, *more), (), words)
        inner: list[Part] = []
        place = 0
        for token, part in cuts:
            text = utf8(part.text)
            if token >= 0:
                inner.append(Part("token", text, place, place + len(text), tokens(self._pieces, [token])[0]))
            else:
                more, words = self._words(part)
                inner.append(Part("text", text, place, place + len(text), None, tuple(more), (), words))
            place += len(text)
        return Part("text", raw, start, end, None, tuple(steps), tuple(inner))

    def _words(self, fragment: Fragment) -> tuple[list[Step], tuple[Word, ...]]:
        parts = [fragment] if fragment.text else []
        steps: list[Step] = []
        for run, plain in zip(self._stages.pre_tokenizers, self._pre_tokenizers, strict=True):
            before = [utf8(part.text) for part in parts]
            parts = [piece for part in parts for piece in run(part) if piece.text]
            steps.append(step("pre-tokenizer", plain, before, [utf8(part.text) for part in parts]))
        return steps, tuple(self._word(part.text) for part in parts)

    def _word(self, text: str) -> Word:
        found = self._seen.get(text)
        if found is None:
            found = self._seen[text] = self._model.trace(text)
        return found


def _post(meta: Any, pieces: PieceTable, add_special: bool) -> Post:
    post = meta["post_processor"]
    if post is None:
        return Post("no post-processor")
    before, after = Composer(post, {}, pieces.size).around()
    items = (
        [f"${item['sequence']}"] if item["sequence"] else [_text(token) for token in tokens(pieces, item["ids"])]
        for item in post["single"]
    )
    name = " ".join(part for item in items for part in item)
    if not add_special:
        return Post(f"template {name}; not asked for")
    return Post(f"template {name}", tokens(pieces, before), tokens(pieces, after))


def _text(token: Token) -> str:
    return token.text.decode("utf-8", "replace")
