"""Texts on which implementations of one tokenizer tend to differ, for a given tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources

from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["hard_texts"]

_LONGEST = 12  # pieces, by length in bytes
_SPECIALS = 12  # added tokens that get texts of their own
_SHAPES = ("{0}", "a{0}b", " {0} ", "{0}{0}", "{1}{0}", "x {0}\n{0} y")


@cache
def _table() -> dict[str, list[str]]:
    text = (resources.files(__package__) / "hard_texts.json").read_text("ascii")
    table: dict[str, list[str | list[int | str]]] = json.loads(text)["texts"]
    return {
        kind: [item if isinstance(item, str) else str(item[0]) * int(item[1]) for item in items]
        for kind, items in table.items()
    }


def hard_texts(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    """(kind, text), each text once: the table's, then those about special tokens and long pieces of ``tokenizer``."""
    found: dict[str, str] = {}
    for kind, text in (*_general(), *_special(tokenizer), *_pieces(tokenizer)):
        found.setdefault(text, kind)
    return [(kind, text) for text, kind in found.items()]


def _general() -> Iterator[tuple[str, str]]:
    for kind, texts in _table().items():
        for text in texts:
            yield kind, text


def _special(tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """Special tokens alone, in words, beside spaces, twice, and behind the half of themselves."""
    view = tokenizer.view
    offset, blob = view.array("added.offset"), view.raw("added.blob")
    for number in range(min(len(offset) - 1, _SPECIALS)):
        content = bytes(blob[offset[number] : offset[number + 1]]).decode("utf-8", "replace")
        for shape in _SHAPES:
            yield "special", shape.format(content, content[: len(content) // 2])


def _pieces(tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """The longest pieces that are text, alone and joined to a letter."""
    offset = tokenizer.view.array("piece.offset")
    sizes = [offset[i + 1] - offset[i] for i in range(min(tokenizer.vocab_size, len(offset) - 1))]
    longest = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    taken = 0
    for token in longest[: 8 * _LONGEST]:
        try:
            text = tokenizer.id_to_bytes(token).decode("utf-8")
        except UnicodeDecodeError:
            continue
        if text and not tokenizer.is_special(token):
            yield "long-piece", text
            yield "long-piece", f"{text}a"
            taken += 1
            if taken == _LONGEST:
                return
