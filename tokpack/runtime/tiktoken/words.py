"""Text into words and words into ids (``_encode_ordinary_native``, ``byte_pair_encode``, tiktoken's src/lib.rs)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import CONTROL, PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import Merger
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.limited import Pattern, compile_pattern, find_all
from tokpack.runtime.split import ClassMap

__all__ = ["RankModel", "Words"]

_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64

Range = tuple[int, int]


class RankModel:
    """Words to ids: a word that is a piece, else the merges of lowest rank.

    Args:
        view, pieces: the pack.

    Attributes:
        first: symbol of each byte.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._merger = Merger(view, pieces)
        self.first: list[int] = view.array("byte.symbol").tolist()
        if len(self.first) != 256 or max(self.first) >= pieces.symbols:
            raise pieces.damaged("byte.symbol", "it does not hold a symbol for each byte")

    def _whole(self, word: bytes) -> int:
        found = self._pieces.find_raw(word, False)
        if not 0 <= found < self._pieces.size or self._pieces.attrs[found] & CONTROL or self._pieces.is_hole(found):
            return -1
        return found

    def encode_ends(self, word: bytes) -> list[tuple[int, int]]:
        """(id, end offset in ``word``) of each piece; EncodeError for bytes without a piece."""
        whole = self._whole(word)
        if whole >= 0:
            return [(whole, len(word))]
        if not word:
            raise EncodeError(
                "the pattern matches the empty text, on which tiktoken panics", hint="use another pattern"
            )
        return self._merge(word)

    def _merge(self, word: bytes) -> list[tuple[int, int]]:
        symbols, ends = self._merger.merge(list(map(self.first.__getitem__, word)), list(range(1, len(word) + 1)))
        for symbol, end in zip(symbols, ends, strict=True):
            if symbol >= self._pieces.size:
                what = f"there is no piece for byte 0x{word[end - 1]:02X}, on which tiktoken panics"
                raise EncodeError(what, hint="the vocabulary lacks single bytes")
        return list(zip(symbols, ends, strict=True))

    def encode(self, word: bytes) -> list[int]:
        """Ids of a word."""
        return [token for token, _ in self.encode_ends(word)]

    def merged(self, word: bytes) -> list[int]:
        """As :meth:`encode`, without looking the word up as a whole."""
        return [token for token, _ in self._merge(word)]


class _WordCache(dict[str, tuple[int, ...]]):
    """Word → ids, filled by the model; bounded."""

    def __init__(self, model: RankModel) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._model.encode(word.encode("utf-8")))
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids


class Words:
    """The pattern of a pack, and the words that it cuts; text that it does not match is dropped, as in tiktoken.

    Args:
        view, pieces: the pack. The pattern is compiled when the first text comes.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._view = view
        self._pieces = pieces
        steps, patterns = view.meta["pre_tokenizer"], view.meta["patterns"]
        if len(steps) != len(patterns) or len(steps) > 1:
            raise UnsupportedError(f"a pack with {len(steps)} pre-tokenizer steps under tiktoken's rules")

    @cached_property
    def model(self) -> RankModel:
        """What makes ids of words."""
        with meta_errors(self._view.file):
            return RankModel(self._view, self._pieces)

    @cached_property
    def _cache(self) -> _WordCache:
        return _WordCache(self.model)

    @cached_property
    def _pattern(self) -> tuple[Pattern, bool] | None:
        with meta_errors(self._view.file):
            for source, translated, empty in self._view.meta["patterns"]:
                # translated by tokpack.onig.fancy: explicit sets of class characters, no property of the interpreter's
                return compile_pattern(str(source), str(translated), "the pre-tokenizer"), bool(empty)
        return None

    @property
    def source(self) -> str | None:
        """The pattern as the file has it, or None."""
        with meta_errors(self._view.file):
            for source, _, _ in self._view.meta["patterns"]:
                return str(source)
        return None

    @property
    def pattern(self) -> Pattern | None:
        """The compiled pattern, on class characters."""
        return None if self._pattern is None else self._pattern[0]

    @cached_property
    def _classes(self) -> ClassMap:
        return ClassMap(*self._view.two_stage("onig"))

    def encode(self, text: str) -> Iterator[int]:
        """Ids of a text without surrogates."""
        cache = self._cache
        for start, end in self.cut(text):
            yield from cache[text[start:end]]

    def encode_before(self, text: str, following: str) -> list[int]:
        """The same when another text follows, which begins a word."""
        cache, size = self._cache, len(text)
        text += following
        ids: list[int] = []
        for start, end in self.cut(text):
            if start >= size:
                break
            ids += cache[text[start:end]]
        return ids

    def cut(self, text: str) -> Iterator[Range]:
        """Words as (start, end), as ``find_iter`` of fancy-regex gives them."""
        if self._pattern is None:
            return iter([(0, len(text))] if text else [])
        pattern, can_be_empty = self._pattern
        classes = text if text.isascii() else text.translate(self._classes)
        return find_all(pattern, classes, can_be_empty)
