"""A text through the stages of its tokenizer, and the proof that they lead to the ids of ``encode``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from tokpack.analysis.explanation.trace import Explanation, Part, Post
from tokpack.errors import FormatError, Location, UnsupportedError, UsageError
from tokpack.runtime.errors import meta_errors

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["TEXT_LIMIT", "explain"]

TEXT_LIMIT = 1 << 16  # bytes: an explanation takes some thousand times the memory of its text

Tracer = Callable[["Tokenizer", "str | bytes", bool, bool], "tuple[list[Part], Post, list[str]]"]

_TRACERS = {
    "llama.cpp": "llamacpp",
    "huggingface": "huggingface",
    "sentencepiece": "sentencepiece",
    "tiktoken": "tiktoken",
    "mnn": "mnn",
}


def explain(
    tokenizer: Tokenizer, text: str | bytes, add_special_tokens: bool = True, parse_special: bool = True
) -> Explanation:
    """What happens to ``text``, stage by stage; its ``ids`` are those of :meth:`tokpack.Tokenizer.encode`.

    Raises EncodeError for a text on which the reference program aborts, UsageError for one above ``TEXT_LIMIT``
    bytes, UnsupportedError for a reference whose stages are not known here.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    if len(raw) > TEXT_LIMIT:
        hint = "explain a part of it"
        raise UsageError(f"the text has {len(raw):,} bytes, of which {TEXT_LIMIT:,} can be explained", hint=hint)
    module = _TRACERS.get(tokenizer.reference)
    if module is None:
        raise UnsupportedError(f"the stages of {tokenizer.reference} cannot be shown")
    ids = tokenizer.encode(text, add_special_tokens, parse_special)
    pieces = tuple(tokenizer.pieces(text, add_special_tokens, parse_special))
    trace: Tracer = import_module(f"tokpack.analysis.explanation.{module}").trace
    view = tokenizer.view
    with meta_errors(view.file):
        parts, post, notes = trace(tokenizer, text, add_special_tokens, parse_special)
    found = Explanation(
        file=view.file,
        reference=tokenizer.reference,
        rules=str(view.meta.get("rules")),
        text=raw,
        add_special=add_special_tokens,
        parse_special=parse_special,
        parts=tuple(parts),
        post=post,
        tokens=pieces,
        notes=tuple(notes),
    )
    if not ids == found.ids == found.traced_ids():
        # encoding takes shorter ways, by sections that the stages do not look at
        raise FormatError(
            f"the sections of the index disagree: the stages lead to {_some(found.traced_ids())}, "
            f"encoding to {_some(ids)}",
            location=Location(view.file),
            hint="tokpack verify --deep says whether the file is damaged; if it is not, please report it with the text",
        )
    return found


def _some(ids: list[int]) -> str:
    return " ".join(map(str, ids[:20])) + (" …" if len(ids) > 20 else "")
