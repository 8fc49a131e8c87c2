"""Text → ids by llama.cpp's rules: special tokens, escaping, splits, merging, BOS and EOS (scalar path)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

from tokpack.errors import EncodeError, FormatError, Location, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import BpeModel
from tokpack.runtime.detokenize import Detokenizer
from tokpack.runtime.partition import Partition
from tokpack.runtime.split import ClassMap, Splitter
from tokpack.runtime.text import decode_lenient, decode_with_offsets

__all__ = ["LlamaPipeline", "meta_errors"]

_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64  # characters; longer words are rarely seen twice
_SPACES = {0x20: "▁"}

Span = tuple[int, int, int]  # id, start, end


@contextmanager
def meta_errors(file: str | None) -> Iterator[None]:
    """Turn what a damaged meta section leads to into a FormatError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, re.error) as error:
        what = f"the meta section of the index is damaged: {type(error).__name__}: {error}"
        raise FormatError(what, location=Location(file), hint="convert the tokenizer again") from error


class _WordCache(dict[str, tuple[int, ...]]):
    """Word → ids, filled by the model; bounded."""

    def __init__(self, model: BpeModel) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, word: str) -> tuple[int, ...]:
        ids = tuple(self._model.encode(word.encode("utf-8", "surrogatepass")))
        if len(word) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = ids
        return ids


class LlamaPipeline:
    """Everything between a text and its ids.

    Opening checks names only; each stage is made when it is first used, so that opening costs the same for every
    vocabulary.

    Attributes:
        pieces: the vocabulary.
        detokenizer: the way back.
    """

    def __init__(self, view: PackView) -> None:
        meta = view.meta
        self.pieces = PieceTable(view)
        self._view = view
        if meta["model"]["kind"] != "BPE":
            raise UnsupportedError(f"a pack with the model {meta['model']['kind']!r}")
        if meta["matching"] != "pass-per-token":
            raise UnsupportedError(f"a pack with the matching rule {meta['matching']!r}")
        self._escape = _escapes(meta["normalizer"])
        post, specials = meta["post_processor"], meta["specials"]
        self._bos = _added(post, specials, "bos", self.pieces.size)
        self._eos = _added(post, specials, "eos", self.pieces.size)
        (decoder,) = meta["decoder"]
        if decoder["kind"] != "llama-detokenize":
            raise UnsupportedError(f"a pack with the decoder {decoder['kind']!r}")
        self.detokenizer = Detokenizer(decoder, post, specials, self.pieces)

    @cached_property
    def _model(self) -> BpeModel:
        return BpeModel(self._view, self.pieces)

    @cached_property
    def _words(self) -> _WordCache:
        return _WordCache(self._model)

    @cached_property
    def _partition(self) -> Partition:
        return Partition(self._view, self.pieces.size)

    @cached_property
    def _splitter(self) -> Splitter:
        with meta_errors(self._view.file):
            return _splitter(self._view, self.pieces)

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`."""
        ids: list[int] = []
        if add_special and self._bos is not None:
            ids.append(self._special(self._bos, "bos"))
        if isinstance(text, str) and not self._partition.may_hold(text):
            self._encode_raw(text, ids)
        else:
            raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
            for token, start, end in self._partition.cut(raw, parse_special):
                if token >= 0:
                    ids.append(token)
                else:
                    self._encode_raw(decode_lenient(raw[start:end]), ids)
        if add_special and self._eos is not None:
            ids.append(self._special(self._eos, "eos"))
        return ids

    def _encode_raw(self, text: str, ids: list[int]) -> None:
        if self._escape:
            text = text.translate(_SPACES)
        ids.extend(chain.from_iterable(map(self._words.__getitem__, self._splitter.words(text))))

    def _special(self, token: int, role: str) -> int:
        if token < 0:
            raise EncodeError(
                f"the file asks for {role.upper()} but names no id for it: llama.cpp aborts here",
                hint="encode without special tokens",
            )
        return token

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[Span]:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        spans: list[Span] = []
        if add_special and self._bos is not None:
            spans.append((self._special(self._bos, "bos"), 0, 0))
        for token, start, end in self._partition.cut(raw, parse_special):
            if token >= 0:
                spans.append((token, start, end))
            else:
                self._spans_raw(raw[start:end], start, spans)
        if isinstance(text, str):
            spans = _in_characters(text, spans)
            size = len(text)
        else:
            size = len(raw)
        if add_special and self._eos is not None:
            spans.append((self._special(self._eos, "eos"), size, size))
        return spans

    def _spans_raw(self, raw: bytes, base: int, spans: list[Span]) -> None:
        """Spans of a raw fragment in bytes; ``raw`` lies at ``base``."""
        text, ends = decode_with_offsets(raw)
        if self._escape:
            text = text.translate(_SPACES)
        first = 0
        for word in self._splitter.words(text):
            last = first + len(word)
            # where each character of the word ends, in the bytes of the word and in those of the text
            sizes = [len(char.encode("utf-8", "surrogatepass")) for char in word]
            edges = [0]
            for size in sizes:
                edges.append(edges[-1] + size)
            begin = 0
            for token, end in self._model.encode_spans(word.encode("utf-8", "surrogatepass")):
                from_char = bisect_right(edges, begin) - 1
                to_char = bisect_right(edges, end - 1)
                start = ends[first + from_char - 1] if first + from_char else 0
                if sizes[from_char] == _width(ends, first + from_char):  # the character was not changed on the way
                    start += begin - edges[from_char]
                stop = ends[first + to_char - 1]
                if sizes[to_char - 1] == _width(ends, first + to_char - 1):
                    stop -= edges[to_char] - end
                spans.append((token, base + start, base + stop))
                begin = end
            first = last


def _width(ends: list[int], index: int) -> int:
    return ends[index] - (ends[index - 1] if index else 0)


def _in_characters(text: str, spans: list[Span]) -> list[Span]:
    """Byte spans of the UTF-8 form as character spans; a part of a character becomes the whole of it."""
    starts = [0]
    for char in text:
        starts.append(starts[-1] + len(char.encode("utf-8", "surrogatepass")))
    out = []
    for token, start, end in spans:
        first = bisect_right(starts, start) - 1
        out.append((token, first, bisect_right(starts, end - 1) if end > start else first))
    return out


def _escapes(steps: list[Mapping[str, Any]]) -> bool:
    """Whether spaces are escaped; the only normalization that this reference's BPE has."""
    if not steps:
        return False
    (step,) = steps
    if (step["kind"], step["pattern"], step["content"], step["dialect"]) != ("replace", " ", "▁", "literal"):
        raise UnsupportedError(f"a pack with the normalizer step {step!r}")
    return True


def _splitter(view: PackView, pieces: PieceTable) -> Splitter:
    index, blocks = view.array("class.index"), view.raw("class.blocks")
    if len(index) != 0x1100 or not len(blocks) or max(index) >= len(blocks) // 256:
        raise pieces.damaged("class.index", "the class table is incomplete")
    spaces = dict.fromkeys(view.array("class.spaces").tolist(), 0x0B)
    return Splitter(view.meta["pre_tokenizer"], ClassMap(index, blocks), spaces)


def _added(post: Mapping[str, Any], specials: Mapping[str, int], role: str, size: int) -> int | None:
    """Id that is added for ``role``: None if none is, -1 if the file asks for it without having one."""
    if post["kind"] != "bos-eos":
        raise UnsupportedError(f"a pack with the post-processor {post['kind']!r}")
    if not post[f"add_{role}"]:
        return None
    token = specials.get(role, -1)
    return token if isinstance(token, int) and -1 <= token < size else -1
