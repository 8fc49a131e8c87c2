"""The MNN engine's stages (``Tokenizer::encode``): special tokens, added tokens, pipeline or text engine, prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokpack.analysis.explanation.common import tokens
from tokpack.analysis.explanation.mnn_text import make_text_tracer
from tokpack.analysis.explanation.mnn_words import WordTracer
from tokpack.analysis.explanation.trace import Part, Post
from tokpack.pack.pieces import PieceTable
from tokpack.runtime.mnn.pipeline import MnnPipeline

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["trace"]

_PIPELINE = 4


def trace(
    tokenizer: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool
) -> tuple[list[Part], Post, list[str]]:
    """The parts of a text, what is added, and notes."""
    view = tokenizer.view
    pieces = PieceTable(view)
    header: dict[str, Any] = view.meta["post_processor"]
    number = int(header["tokenizer_type"])
    tracer = WordTracer(view, pieces) if number == _PIPELINE else make_text_tracer(number, view, pieces)
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    parts: list[Part] = []
    place = 0
    for token, start, end in MnnPipeline(view).fragments(raw, parse_special):
        if place < start:
            parts.append(Part("dropped", raw[place:start], place, start))
        if token >= 0:
            parts.append(Part("token", raw[start:end], start, end, tokens(pieces, [token])[0]))
        else:
            steps, words = tracer.fragment(raw[start:end])
            parts.append(Part("text", raw[start:end], start, end, None, tuple(steps), (), tuple(words)))
        place = end
    if place < len(raw):
        parts.append(Part("dropped", raw[place:], place, len(raw)))
    if not add_special:
        return parts, Post("prefix and post-processor; not asked for"), []
    return _around(parts, header, pieces)


def _around(parts: list[Part], header: dict[str, Any], pieces: PieceTable) -> tuple[list[Part], Post, list[str]]:
    """Prefix, then the program of the post-processor section, whose sequence includes the prefix."""
    prefix = [int(token) for token in header["prefix"]]
    applied = [None if op is None else int(op) for op in header["applied"]] or [None]
    rule = "prefix of the header" + (", post-processor" if header["applied"] else "")
    if applied.count(None) == 1:
        at = applied.index(None)
        before = [op for op in applied[:at] if op is not None] + prefix
        after = [op for op in applied[at + 1 :] if op is not None]
        return parts, Post(rule, tokens(pieces, before), tokens(pieces, after)), []
    out: list[Part] = []
    inside = [*(Part("token", b"", 0, 0, token) for token in tokens(pieces, prefix)), *parts]
    for op in applied:
        out += inside if op is None else [Part("token", b"", 0, 0, tokens(pieces, [op])[0])]
    return out, Post(rule), [f"the post-processor puts the text in {applied.count(None)} times"]
