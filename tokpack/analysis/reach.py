"""Pieces that no text leads to, and pieces that do not come back from their own text.

A model is asked about a piece's own text as one word, as the model sees it: behind the normalizer and the
pre-tokenizer. For byte-pair merging and Unigram that decides it: what stands between the ends of a piece in any text is
merged, or scored, as it is alone. Where a rule takes whole words (``ignore_merges``, tiktoken), the pre-tokenizer has
to leave the piece's text in one, alone or between some other characters. Byte pieces, and the models of MNN, are asked
of the whole tokenizer. Texts are Unicode: what bytes that are not UTF-8 would lead to does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tokpack.analysis.reach_models import Merging, own_text
from tokpack.analysis.vocabulary import Vocabulary
from tokpack.errors import TokpackError, UsageError
from tokpack.ir.vocab import PieceAttr
from tokpack.pack.trie import Trie
from tokpack.runtime.errors import meta_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["REASONS", "Unreachable", "round_trip", "unreachable", "without_merges"]

REASONS = {
    "duplicate": "another id has the same text",
    "merges": "merging its own text gives other pieces",
    "cut": "merges do not lead to it, and the pre-tokenizer cuts its text",
    "score": "other pieces give its text a higher score",
    "word": "no word leads to it",
    "model": "no text that was tried is encoded to it",
    "byte": "no Unicode text leaves this byte over",
}
_NEVER_MODEL = PieceAttr.CONTROL | PieceAttr.UNKNOWN
_AROUND = ("", " ", "a", "1", "\n", ".", "'", "\u00e9", "\u6f22")
_CHARACTERS = 256  # without a piece, that begin with one byte
_RARE = "\U0010fffe"
_SENTINEL = 10_000_000  # costs as much as an unknown character
_SYMBOLS = 4096  # texts that only merges name
_WORDS = 512  # beginnings of words that are tried for a piece that continues one


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Ids that no text leads to.

    Attributes:
        ids: int64 ``[n]``, ascending.
        reasons: a key of :data:`REASONS` for each.
    """

    ids: NDArray[np.int64]
    reasons: tuple[str, ...]


def unreachable(vocabulary: Vocabulary) -> Unreachable:
    """The pieces that encoding never gives; holes, control pieces and the unknown piece are not counted.

    Raises UsageError when the tokenizer encodes nothing.
    """
    with meta_errors(vocabulary.file):
        return _unreachable(vocabulary)


def _unreachable(vocabulary: Vocabulary) -> Unreachable:
    finder = _Finder(vocabulary, _encoder(vocabulary))
    never = (vocabulary.attrs & _NEVER_MODEL) != 0
    ids: list[int] = []
    reasons: list[str] = []
    for token in np.flatnonzero(~never & ~vocabulary.holes).tolist():
        reason = finder.reason(token)
        if reason is not None:
            ids.append(token)
            reasons.append(reason)
    return Unreachable(np.array(ids, dtype=np.int64), tuple(reasons))


def without_merges(vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Ordinary pieces that merging their own text does not give, int64 ``[n]``.

    With ``ignore_merges`` and in tiktoken a word that is such a piece becomes it all the same. Empty for models that do
    not merge.
    """
    with meta_errors(vocabulary.file):
        return _without_merges(vocabulary)


def _without_merges(vocabulary: Vocabulary) -> NDArray[np.int64]:
    model = own_text(vocabulary)
    if not isinstance(model, Merging):
        return np.zeros(0, dtype=np.int64)
    ordinary = ((vocabulary.attrs & (PieceAttr.NORMAL | _NEVER_MODEL)) == PieceAttr.NORMAL) & ~vocabulary.holes
    found = (t for t in np.flatnonzero(ordinary).tolist() if not vocabulary.is_byte(t) and not model.makes(t))
    return np.fromiter(found, dtype=np.int64)


def round_trip(vocabulary: Vocabulary, ids: Iterable[int] | None = None) -> NDArray[np.int64]:
    """The ids, int64 ``[n]``, for which ``encode(decode([id]))`` is not ``[id]``.

    Decoding shows special tokens, encoding adds none and reads those in the text. A text that cannot be encoded counts,
    a hole does not. ``ids`` None: all. Raises UsageError when the tokenizer encodes nothing.
    """
    tokenizer = _encoder(vocabulary)
    wanted = range(vocabulary.size) if ids is None else ids
    found = []
    for token in wanted:
        if vocabulary.holes[token]:
            continue
        same = False
        with suppress(TokpackError), meta_errors(vocabulary.file):
            raw = tokenizer.decode_bytes([token], skip_special_tokens=False)
            same = tokenizer.encode(_as_text(raw), add_special_tokens=False) == [token]
        if not same:
            found.append(token)
    return np.array(found, dtype=np.int64)


def _encoder(vocabulary: Vocabulary) -> Tokenizer:
    tokenizer = vocabulary.tokenizer
    if tokenizer is None:
        raise UsageError("nothing can be encoded with this tokenizer", hint="look at it without this option")
    return tokenizer


def _as_text(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


class _Finder:
    def __init__(self, vocabulary: Vocabulary, tokenizer: Tokenizer) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._attrs: list[int] = vocabulary.attrs.tolist()
        self._model = own_text(vocabulary)
        self._user = Trie.of(vocabulary.view, "user")
        # PLaMo2 with such a piece leaves bytes over wherever it stands (runtime/min_cost.py)
        self._sentinels = _SENTINEL in vocabulary.view.array("piece.cost")

    def reason(self, token: int) -> str | None:
        """Why nothing leads to ``token``; None if something does."""
        attr, text = self._attrs[token], self._vocabulary.texts[token]
        if token in self._vocabulary.added and self._gives(text, token, parse=True):
            return None
        if attr & PieceAttr.USER_DEFINED and self._user.longest(text, 0) == (len(text), token):
            return None
        if self._vocabulary.is_byte(token) and (self._sentinels or token in self._byte_ids):
            return None
        if self._model is not None and self._model.makes(token):
            return None
        if self._vocabulary.is_byte(token):
            return None if self._is_left_over(token) else "byte"
        if self._vocabulary.pieces.find_text(text) not in (token, -1):
            return "duplicate"
        reason = None if self._model is None else self._model.certain(token)
        if reason is not None:
            return reason
        if self._somewhere(token):
            return None
        return "model" if self._model is None else self._model.reason

    def _gives(self, text: str | bytes, token: int, *, parse: bool = False) -> bool:
        try:
            return token in self._tokenizer.encode(text, add_special_tokens=False, parse_special=parse)
        except TokpackError:
            return False

    def _somewhere(self, token: int) -> bool:
        """Whether the whole tokenizer gives it for its text, alone or between other characters."""
        raw = self._vocabulary.bytes[token]
        around = [text.encode() for text in _AROUND]
        before_after = [*((a, b) for a in around for b in around), (b"<dna>", b"</dna>")]
        prefix = bytes(self._vocabulary.view.meta["model"].get("continuing_subword_prefix") or b"")
        if prefix and raw.startswith(prefix):
            raw = raw[len(prefix) :]
            before_after = [(start, b"") for start in self._letters]
        return any(self._gives(_as_text(before + raw + after), token) for before, after in before_after)

    @cached_property
    def _letters(self) -> list[bytes]:
        """Beginnings of words: the shortest pieces."""
        pairs = zip(self._vocabulary.texts, self._attrs, strict=True)
        texts = {text for text, attr in pairs if attr & PieceAttr.NORMAL}
        return sorted(texts, key=lambda text: (len(text), text))[:_WORDS]

    @cached_property
    def _byte_ids(self) -> frozenset[int]:
        """Ids that single characters and single bytes give, and what merges make but is no piece."""
        found: set[int] = set()
        pieces = self._vocabulary.pieces
        made = range(pieces.size, min(pieces.symbols, pieces.size + _SYMBOLS))
        for text in chain(_probes(), (_as_text(pieces.raw(symbol)) for symbol in made)):
            with suppress(TokpackError):
                found.update(self._tokenizer.encode(text, add_special_tokens=False, parse_special=False))
        return frozenset(found)

    def _is_left_over(self, token: int) -> bool:
        """Whether it is the first byte of a character without a piece."""
        raw = self._vocabulary.bytes[token]
        if len(raw) != 1 or not 0xC2 <= raw[0] < 0xF0:
            return False
        low, high = ((raw[0] & 31) << 6, 0x40) if raw[0] < 0xE0 else ((raw[0] & 15) << 12, 0x1000)
        find = self._vocabulary.pieces.find_text
        tried = 0
        for char in map(chr, range(max(low, 0x80), low + high)):
            if not "\ud800" <= char <= "\udfff" and find(char.encode()) < 0:
                if self._gives(f"{_RARE}{char}", token):
                    return True
                tried += 1
                if tried == _CHARACTERS:
                    break
        return False


def _probes() -> Iterator[str]:
    """Texts that leave bytes over: all characters of one or two bytes, and some of the others."""
    for start, end, step in ((0, 0x800, 1), (0x800, 0x10000, 61), (0x10000, 0x110000, 4093)):
        for code in range(start, end, step):
            if not 0xD800 <= code < 0xE000:
                # what is put before a text, or the same again, may join it
                yield from (chr(code), f"{_RARE}{chr(code)}{_RARE}")
    yield from map(chr, range(0x10FFC0, 0x110000))
