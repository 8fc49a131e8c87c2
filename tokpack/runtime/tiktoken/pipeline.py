"""Text → ids and back by the rules of tiktoken, and of mistral-common, which runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.known import rules_of_pattern
from tokpack.runtime.spans import Spans, in_characters
from tokpack.runtime.tiktoken.detokenize import RankDetokenizer, RankStream
from tokpack.runtime.tiktoken.fields import Fields
from tokpack.runtime.tiktoken.specials import SpecialMatcher
from tokpack.runtime.tiktoken.words import Words
from tokpack.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.tiktoken import TiktokenBulk

__all__ = ["TiktokenPipeline"]

_SPACES = frozenset(b" \n\t")
_LONG = 1 << 15  # characters from which on a text goes the bulk way: importing numpy pays off


class TiktokenPipeline:
    """Everything between a text and its ids; each stage is made when it is first used.

    * ``encode(text, parse_special=False)`` is ``Encoding.encode_ordinary``, with ``parse_special=True``
      ``Encoding.encode(text, allowed_special="all")``; nothing is added around a text.
    * bytes that are UTF-8 count as text; others are encoded as by ``Encoding._encode_bytes``, which knows no special
      tokens.
    * ``decode_bytes(ids, skip_special_tokens=False)`` is ``Encoding.decode_bytes``; to leave special tokens out has no
      counterpart there.
    * tekken.json: ``Tekkenizer.encode(text, bos=False, eos=False)``, which never finds special tokens in a text;
      decoding is ``Tekkenizer.decode`` with the policy IGNORE or KEEP.

    Where tiktoken panics because its regular expression gives up (a million spaces) there are ids here.

    Attributes:
        pieces: the vocabulary.
        detokenizer: the way back.
    """

    def __init__(self, view: PackView) -> None:
        meta = view.meta
        if meta["model"]["kind"] != "RankMerge" or meta["normalizer"]:
            raise UnsupportedError(f"a pack with the model {meta['model']['kind']!r} under tiktoken's rules")
        if meta["matching"] not in ("leftmost", "none"):
            raise UnsupportedError(f"a pack with the matching rule {meta['matching']!r}")
        if [step["kind"] for step in meta["decoder"]] != ["bytes-decoder"]:
            raise UnsupportedError("a pack with another decoder under tiktoken's rules")
        self.pieces = PieceTable(view)
        self._view = view
        self._matches = meta["matching"] == "leftmost"
        self._words = Words(view, self.pieces)
        self.detokenizer = RankDetokenizer(self.pieces, by_run=str(meta["rules"]).startswith("mistral-common"))

    @cached_property
    def _specials(self) -> SpecialMatcher:
        return SpecialMatcher(self._view, self.pieces.size)

    def stream(self, special: bool) -> RankStream:
        """A decoder for ids that come one by one."""
        return RankStream(self.detokenizer, special)

    def _fragments(self, text: str, parse_special: bool) -> Iterator[tuple[int, int, int]]:
        if parse_special and self._matches:
            return self._specials.split(text)
        return iter([(-1, 0, len(text))])

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`."""
        if isinstance(text, str) and len(text) < _LONG and not (parse_special and self._may_match(text)):
            return self._plain(text)
        chars = _text(text)
        if not isinstance(chars, str):
            return [token for token, _, _ in self._invalid(*chars)]
        if len(chars) >= _LONG:
            found: list[int] = self.bulk.encode(chars, parse_special).tolist()
            return found
        ids: list[int] = []
        for token, start, end in self._fragments(chars, parse_special):
            if token >= 0:
                ids.append(token)
            else:
                ids += self._plain(chars[start:end])
        return ids

    @cached_property
    def _may_match(self) -> Callable[[str], bool]:
        """Whether a text may hold special tokens."""
        firsts = self._specials.firsts if self._matches else ""
        if len(firsts) == 1:
            return lambda text: firsts in text
        return lambda text: any(first in text for first in firsts)

    @cached_property
    def _plain(self) -> Callable[[str], list[int]]:
        """What encodes a text without special tokens by the scalar path, surrogates allowed."""
        words = self._words
        if words.source is None or rules_of_pattern(words.source, onig=False) is None:
            return lambda text: list(words.encode(_valid(text)))
        return Fields(lambda text, following: words.encode_before(_valid(text), following)).encode

    @cached_property
    def bulk(self) -> TiktokenBulk:
        """The bulk path; needs numpy."""
        from tokpack.runtime.bulk.tiktoken import TiktokenBulk

        return TiktokenBulk(self._view, self.pieces, self._words, self._fragments)

    def encode_array(self, text: str | bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32]:
        """As :meth:`encode`, int32 ``[n]``, with numpy where the text is long enough."""
        chars = _text(text)
        if isinstance(chars, str):
            return self.bulk.encode(chars, parse_special)
        import numpy as np

        return np.array([token for token, _, _ in self._invalid(*chars)], dtype=np.int32)

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> Spans:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes."""
        if isinstance(text, str):
            valid = _valid(text)
            spans = in_characters(valid, self._byte_spans(valid, parse_special))
            return spans if len(valid) == len(text) else _unpaired(text, spans)
        try:
            return self._byte_spans(bytes(text).decode("utf-8"), parse_special)
        except UnicodeDecodeError as error:
            return self._invalid(bytes(text), error.start)

    def _byte_spans(self, text: str, parse_special: bool) -> Spans:
        spans: Spans = []
        place = 0  # bytes before the fragment
        for token, start, end in self._fragments(text, parse_special):
            size = len(text[start:end].encode("utf-8"))
            if token >= 0:
                spans.append((token, place, place + size))
            else:
                for word in self._word_spans(text[start:end], place):
                    spans += word
            place += size
        return spans

    def _word_spans(self, text: str, place: int) -> Iterator[Spans]:
        """Spans of each word, in bytes from ``place``."""
        last = 0
        for start, end in self._words.cut(text):
            place += len(text[last:start].encode("utf-8"))
            word = text[start:end].encode("utf-8")
            spans: Spans = []
            begin = place
            for token, stop in self._words.model.encode_ends(word):
                spans.append((token, begin, place + stop))
                begin = place + stop
            yield spans
            place += len(word)
            last = end

    def _invalid(self, raw: bytes, valid: int) -> Spans:
        """``CoreBPE::_encode_bytes``: the last word before the invalid bytes and all behind it are one word."""
        words = list(self._word_spans(raw[:valid].decode("utf-8"), 0))
        spans = [span for word in words for span in word]
        unstable = len(words[-1]) if words else 0
        # _increase_last_piece_token_len: white space before it may be cut in another way
        if unstable and self._is_space(spans[-unstable][0]):
            while unstable < len(spans) and self._is_space(spans[-unstable - 1][0]):
                unstable += 1
        kept, lopped = spans[: len(spans) - unstable], spans[len(spans) - unstable :]
        rest = b"".join(self.pieces.raw(token) for token, _, _ in lopped) + raw[valid:]
        begin = lopped[0][1] if lopped else valid
        place = begin
        for token, end in self._words.model.encode_ends(rest):
            kept.append((token, place, min(begin + end, len(raw))))
            place = min(begin + end, len(raw))
        return kept

    def _is_space(self, token: int) -> bool:
        return _SPACES.issuperset(self.pieces.raw(token))


def _text(text: str | bytes) -> str | tuple[bytes, int]:
    """Text without surrogates; of bytes that are no UTF-8 all of them, and where they go wrong."""
    if isinstance(text, str):
        return _valid(text)
    raw = bytes(text)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return raw, error.start


def _valid(text: str) -> str:
    """Surrogate pairs joined, lone ones U+FFFD (``Encoding.encode``, tiktoken/core.py)."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unpaired(text: str, spans: Spans) -> Spans:
    """Spans in a text whose surrogate pairs count as two characters."""
    places = [0]
    at = 0
    while at < len(text):
        paired = "\ud800" <= text[at] <= "\udbff" and "\udc00" <= text[at + 1 : at + 2] <= "\udfff"
        at += 2 if paired else 1
        places.append(at)
    return [(token, places[start], places[end]) for token, start, end in spans]
