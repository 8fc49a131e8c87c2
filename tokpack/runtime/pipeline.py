"""Text → ids by llama.cpp's rules: special tokens, then each fragment, then what is added (scalar path)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from tokpack.errors import EncodeError, RefusedError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.detokenize import Detokenizer
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.min_cost import MinCostFragments
from tokpack.runtime.partition import Partition
from tokpack.runtime.short import short_fragments
from tokpack.runtime.spaced import SpacedParts
from tokpack.runtime.spans import Spans, in_characters
from tokpack.runtime.whole import (
    GreedyFragments,
    ScoreMergeFragments,
    UnigramFragments,
    WordPieceFragments,
)
from tokpack.runtime.words import WordFragments
from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.llamacpp import LlamaBulk
    from tokpack.runtime.stream import StreamDecoder

__all__ = ["LlamaPipeline"]

_WHOLE: dict[str, Callable[[PackView, PieceTable, int], Any]] = {
    "ScoreMerge": ScoreMergeFragments,
    "Unigram": UnigramFragments,
    "WordPieceGreedy": WordPieceFragments,
    "GreedyTrie": GreedyFragments,
    "MinCost": MinCostFragments,
}
_LONG = 1 << 15  # characters from which on a text goes the bulk way: importing numpy pays off
_NOTHING = -2  # nothing is added
_MISSING = -1  # the file asks for an id that it does not name


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
        post, specials, kind = meta["post_processor"], meta["specials"], meta["model"]["kind"]
        if kind == "none":
            hint = "the file holds no vocabulary; use the tokenizer of the text model"
            raise RefusedError("nothing can be encoded or decoded", hint=hint)
        if meta["matching"] != "pass-per-token":
            raise UnsupportedError(f"a pack with the matching rule {meta['matching']!r}")
        self._before, self._after = _added(post, specials, self.pieces.size)
        (decoder,) = meta["decoder"]
        if decoder["kind"] != "llama-detokenize":
            raise UnsupportedError(f"a pack with the decoder {decoder['kind']!r}")
        self.detokenizer = Detokenizer(decoder, post, specials, self.pieces, escaped=meta["alphabet"] == "escaped")
        self._words: WordFragments | None = None
        if kind == "BPE":
            self._words = WordFragments(view, self.pieces)
            self._fragments: Any = self._words
        elif kind in _WHOLE:
            self._fragments = _WHOLE[kind](view, self.pieces, _in_range(specials.get("unk"), self.pieces.size))
        else:
            raise UnsupportedError(f"a pack with the model {kind!r}")

    @cached_property
    def _partition(self) -> Partition:
        return Partition(self._view, self.pieces.size)

    @cached_property
    def bulk(self) -> LlamaBulk:
        """The bulk path; needs numpy."""
        from tokpack.runtime.bulk.llamacpp import LlamaBulk

        return LlamaBulk(self._view, self.pieces, self._partition, self._fragments)

    def encode_array(self, text: str | bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32]:
        """As :meth:`encode`, int32 ``[n]``, with numpy where the text is long enough."""
        before, after = self._around(add_special)
        return self.bulk.encode(text, parse_special, before, after)

    def stream(self, special: bool) -> StreamDecoder:
        """A decoder for ids that come one by one."""
        from tokpack.runtime.stream import PieceStream

        return PieceStream(self.detokenizer, special)

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`."""
        if len(text) >= _LONG:
            found: list[int] = self.encode_array(text, add_special, parse_special).tolist()
            return found
        ids = self._short.encode(text) if self._short is not None and isinstance(text, str) else None
        if ids is None:
            ids = self._between_specials(text, parse_special)
        if not add_special:
            return ids
        before, after = self._around(add_special)
        return before + ids + after

    @cached_property
    def _short(self) -> SpacedParts | None:
        """Short texts without special tokens."""
        with meta_errors(self._view.file):
            return short_fragments(self._view, self.pieces, self._fragments, self._partition)

    @cached_property
    def _between(self) -> SpacedParts | None:
        """Short texts that have been cut at special tokens."""
        with meta_errors(self._view.file):
            return short_fragments(self._view, self.pieces, self._fragments, None)

    def _between_specials(self, text: str | bytes, parse_special: bool) -> list[int]:
        """A text with special tokens; what is between them goes the short way where that can be done."""
        if self._words is not None and isinstance(text, str) and not self._partition.may_hold(text):
            return list(self._words.encode_text(text))
        ids: list[int] = []
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        after_special = True
        for token, start, end in self._partition.cut(raw, parse_special):
            if token >= 0:
                ids.append(token)
            else:
                fragment = raw[start:end]
                found = self._short_fragment(fragment) if after_special else None
                ids.extend(self._fragments.encode(fragment, after_special) if found is None else found)
            after_special = token >= 0
        return ids

    def _short_fragment(self, raw: bytes) -> list[int] | None:
        """Ids of a text that begins the input, or that follows a special token; None if it has to go the long way."""
        if self._between is None:
            return None
        try:
            return self._between.encode(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return None

    def _around(self, add_special: bool) -> tuple[list[int], list[int]]:
        """Ids before and behind a text."""
        if not add_special:
            return [], []
        before = [] if self._before == _NOTHING else [_named(self._before, "BOS")]
        return before, [] if self._after == _NOTHING else [_named(self._after, "EOS")]

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> Spans:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        spans: Spans = []
        after_special = True
        for token, start, end in self._partition.cut(raw, parse_special):
            if token >= 0:
                spans.append((token, start, end))
            else:
                found = self._fragments.spans(raw[start:end], after_special)
                spans += [(piece, start + first, start + last) for piece, first, last in found]
            after_special = token >= 0
        if isinstance(text, str):
            spans = in_characters(text, spans)
        if add_special and self._before != _NOTHING:
            spans.insert(0, (_named(self._before, "BOS"), 0, 0))
        if add_special and self._after != _NOTHING:
            spans.append((_named(self._after, "EOS"), len(text), len(text)))
        return spans


def _named(token: int, role: str) -> int:
    if token < 0:
        hint = "encode without special tokens"
        raise EncodeError(f"the file asks for {role} but names no id for it: llama.cpp aborts here", hint=hint)
    return token


def _in_range(token: Any, size: int) -> int:
    return token if isinstance(token, int) and 0 <= token < size else _MISSING


def _added(post: Mapping[str, Any], specials: Mapping[str, int], size: int) -> tuple[int, int]:
    """Ids before and behind a text when special ones are asked for."""
    if post["kind"] != "bos-eos":
        raise UnsupportedError(f"a pack with the post-processor {post['kind']!r}")
    rule = post["rule"]
    if rule == "never":
        return _NOTHING, _NOTHING
    if rule == "cls-sep":
        return _in_range(specials.get("bos"), size), _in_range(specials.get("sep"), size)
    if rule != "flags":
        raise UnsupportedError(f"a pack with the post-processor rule {rule!r}")
    before = _in_range(specials.get("bos"), size) if post["add_bos"] else _NOTHING
    after = _in_range(specials.get("eos"), size) if post["add_eos"] else _NOTHING
    return before, after
