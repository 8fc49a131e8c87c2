r"""Cuts that change no id: between two characters that no merge ever joins.

The BPE of MNN 3.6.1 (``BPEModel::tokenize``) takes time that grows with the square of a split, and the models whose
pieces are spelled with U+2581 have no pre-tokenizer: a split would be a whole text. A cut between two characters is
exact if no result of a merge has them side by side, which is looked up in the merges when a file is written.

Two Splits are made of that. The first runs on MNN's own matcher, before spaces become U+2581, and cuts between a
character and the space that follows. The second cuts after punctuation of scripts that write no spaces; it runs on
``std::wregex``, and its matches are one character long because libstdc++ recurses for every repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .core import SPACE_MARK
from .parts import Split

__all__ = ["exact_cuts"]

_PUNCTUATION = "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a\u2026\u201d\u300d\u300f\u300b\uff09\u0964\u104b\u17d4"
_FOLDED = tuple(map(chr, range(1, 8)))  # what MNN's matcher sees of characters beyond ASCII (``fold_text``)
_SYMBOL = "\x07"  # among them U+2581 itself


def exact_cuts(results: Iterable[bytes]) -> tuple[Split, ...]:
    """Splits that never part what a merge would join; ``results`` are the texts that merges give."""
    # NUL parts the results: none has one, or the body could not be written
    text = "\0".join(result.decode("utf-8", "replace") for result in set(results))
    before_space = set(re.findall(f"([^\0{SPACE_MARK}]){SPACE_MARK}", text))
    followed = set(re.findall(f"([{_PUNCTUATION}])(?=[^\0])", text))
    closed = {" ", _SYMBOL}
    for char in before_space:
        closed.update(char if char.isascii() else _FOLDED)
    # [^...] followed by a space; (?!(?! )) is the positive lookahead that the matcher lacks
    cuts = [Split(f"[^{''.join(map(_in_class, sorted(closed)))}](?!(?! ))", behavior="merged-with-previous")]
    marks = "".join(char for char in _PUNCTUATION if char not in followed)
    if marks:
        cuts.append(Split(f"[{marks}]", behavior="merged-with-previous"))
    return tuple(cuts)


def _in_class(char: str) -> str:
    if char in "\\]^-":
        return "\\" + char
    return char if char.isprintable() else f"\\x{ord(char):02X}"
