"""What the script of the page works on: the vocabulary in few long strings, and samples with their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokpack.analysis.hard_texts import hard_texts
from tokpack.analysis.show import readable, shorten
from tokpack.analysis.vocabulary import Vocabulary
from tokpack.errors import EncodeError
from tokpack.unicode.utf8 import has_surrogates

__all__ = ["page_data"]

_PIECE = 400  # characters of a piece; some are pages long
_SAMPLE = 300  # characters of a sample of ours
_TOKENS = 5000  # of a sample


def page_data(vocabulary: Vocabulary, samples: list[str], add_special: bool, parse_special: bool) -> dict[str, Any]:
    """JSON-ready: columns of the vocabulary joined by line ends (escaped texts have none), samples.

    ``spelled`` is empty where it equals ``texts``; ``kinds`` has a letter for each piece: A for the first of ``types``.
    """
    texts, spelled = [], []
    for raw, text in zip(vocabulary.bytes, vocabulary.texts, strict=True):
        shown = shorten(readable(raw), _PIECE)
        texts.append(shown)
        source = shown if text == raw else shorten(readable(text), _PIECE)
        spelled.append("" if source == shown else source)
    kinds = [vocabulary.type_of(token) for token in range(vocabulary.size)]
    types = sorted(set(kinds))
    letters = {kind: chr(65 + number) for number, kind in enumerate(types)}
    value, values = _values(vocabulary)
    return {
        "size": vocabulary.size,
        "texts": "\n".join(texts),
        "spelled": "\n".join(spelled),
        "types": types,
        "kinds": "".join(map(letters.__getitem__, kinds)),
        "value": value,
        "values": values,
        "flags": {
            str(token): [readable(flag) for flag in vocabulary.flags(token)]
            for token in sorted({*vocabulary.added, *vocabulary.roles})
            if 0 <= token < vocabulary.size
        },
        "samples": list(_samples(vocabulary, samples, add_special, parse_special)),
    }


def _values(vocabulary: Vocabulary) -> tuple[str, str | None]:
    """(name of the column, its values): merge ranks or scores."""
    ranks = vocabulary.ranks
    if ranks is not None:
        return "rank", "\n".join("" if rank < 0 else str(rank) for rank in ranks.tolist())
    scores = vocabulary.scores
    if scores is not None:
        return "score", "\n".join(f"{score:.6g}" for score in scores.tolist())
    return "", None


def _samples(
    vocabulary: Vocabulary, wanted: list[str], add_special: bool, parse_special: bool
) -> Iterator[dict[str, Any]]:
    tokenizer = vocabulary.tokenizer
    if tokenizer is None:
        return
    texts = dict.fromkeys(wanted, "chosen")
    for kind, text in hard_texts(tokenizer):
        if len(text) <= _SAMPLE:
            texts.setdefault(text, kind)
    for text, kind in texts.items():
        # a text area gives line ends as one character, and no lone surrogates
        if "\r" in text or has_surrogates(text):
            continue
        entry: dict[str, Any] = {"kind": kind, "text": text, "shown": readable(text), "error": None, "tokens": []}
        try:
            pieces = tokenizer.pieces(text, add_special, parse_special)
        except EncodeError as error:
            entry["error"] = readable(str(error), backslash=False)
        else:
            entry["tokens"] = [[piece.id, readable(piece.bytes)] for piece in pieces[:_TOKENS]]
        yield entry
