"""llama.cpp's stages (``llama_vocab::impl::tokenize``): special tokens, each fragment by its model, BOS and EOS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokpack.analysis.explanation.common import tokens
from tokpack.analysis.explanation.llamacpp_whole import (
    GreedyTracer,
    MinCostTracer,
    ScoreMergeTracer,
    UnigramTracer,
    WordPieceTracer,
)
from tokpack.analysis.explanation.llamacpp_words import WordTracer
from tokpack.analysis.explanation.trace import Part, Post
from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.runtime.partition import Partition

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["trace"]

_TRACERS: dict[str, Any] = {
    "BPE": WordTracer,
    "ScoreMerge": ScoreMergeTracer,
    "Unigram": UnigramTracer,
    "WordPieceGreedy": WordPieceTracer,
    "GreedyTrie": GreedyTracer,
    "MinCost": MinCostTracer,
}


def trace(
    tokenizer: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool
) -> tuple[list[Part], Post, list[str]]:
    """The parts of a text, what is added, and notes."""
    view = tokenizer.view
    pieces = PieceTable(view)
    kind = view.meta["model"]["kind"]
    if kind not in _TRACERS:
        raise UnsupportedError(f"a pack with the model {kind!r}")
    unk = view.meta["specials"].get("unk")
    tracer = _TRACERS[kind](view, pieces, unk if isinstance(unk, int) and 0 <= unk < pieces.size else -1)
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    parts: list[Part] = []
    place, after_special = 0, True
    for token, start, end in Partition(view, pieces.size).cut(raw, parse_special):
        if place < start:
            parts.append(Part("dropped", raw[place:start], place, start))
        if token >= 0:
            parts.append(Part("token", raw[start:end], start, end, tokens(pieces, [token])[0]))
        else:
            steps, words = tracer.fragment(raw[start:end], after_special)
            parts.append(Part("text", raw[start:end], start, end, None, tuple(steps), (), tuple(words)))
        place, after_special = end, token >= 0
    if place < len(raw):
        parts.append(Part("dropped", raw[place:], place, len(raw)))
    return parts, _post(view.meta, pieces, add_special), []


def _post(meta: Any, pieces: PieceTable, add_special: bool) -> Post:
    post, specials = meta["post_processor"], meta["specials"]
    rule = post["rule"]
    if rule == "never":
        return Post("this model adds nothing, whatever the flags say")
    if rule == "cls-sep":
        before, after, name = [specials.get("bos")], [specials.get("sep")], "CLS before and SEP behind"
    else:
        before = [specials.get("bos")] if post["add_bos"] else []
        after = [specials.get("eos")] if post["add_eos"] else []
        name = f"BOS {'yes' if before else 'no'}, EOS {'yes' if after else 'no'}"
    if not add_special:
        return Post(f"{name}; not asked for")
    return Post(name, tokens(pieces, before), tokens(pieces, after))
