"""Text → ids and back by the rules of sentencepiece (``sentencepiece_processor.cc``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.sentencepiece.charsmap import Charsmap
from tokpack.runtime.sentencepiece.decoder import Detokenizer, SentencePieceStream
from tokpack.runtime.sentencepiece.fields import Fields
from tokpack.runtime.sentencepiece.models import MergeModel, Model, Tokens, make_model
from tokpack.runtime.sentencepiece.normalizer import Normalizer
from tokpack.runtime.sentencepiece.unigram import SHORT, UnigramModel
from tokpack.runtime.sentencepiece.user import PrefixMatcher
from tokpack.runtime.sentencepiece.words import words as cut_words
from tokpack.runtime.spans import Spans
from tokpack.typed import TYPE_CHECKING, Any
from tokpack.unicode.utf8 import is_utf8, split_characters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.sentencepiece import SentencePieceBulk

__all__ = ["SentencePiecePipeline"]

_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64
_LONG = 1 << 15  # characters from which on a text goes the bulk way: importing numpy pays off


class SentencePiecePipeline:
    """Everything between a text and its ids; each stage is made when it is first used.

    ``encode`` adds nothing around the ids, and finds user-defined pieces always, control pieces never: both flags of
    :meth:`tokpack.Tokenizer.encode` are without effect, as the file says nothing about the first and sentencepiece has
    no such thing as the second.

    Attributes:
        pieces: the vocabulary.
        detokenizer: the way back.
    """

    def __init__(self, view: PackView) -> None:
        self.pieces = PieceTable(view)
        self._view = view
        facts: dict[str, Any] = view.meta["sentencepiece"]
        self._facts = facts
        self._unk = int(facts["unk"])
        self._fallback = bool(view.meta["byte_fallback"])
        self._words: dict[str, list[int]] = {}
        self._short = _LONG  # characters up to which a text is cut into fields
        (step,) = view.meta["normalizer"]
        (back,) = view.meta["decoder"]
        if step["kind"] != "sentencepiece-normalizer" or back["kind"] != "sentencepiece-decoder":
            raise UnsupportedError(f"a pack with the steps {step['kind']!r} and {back['kind']!r}")
        self._step = step
        self.space = "▁" if step["escape_whitespaces"] else " "
        self._back = back
        has_charsmap = len(view.raw("decoder.charsmap")) > 0
        self.detokenizer = Detokenizer(back, self.pieces, (lambda: self._denormalizer) if has_charsmap else None)

    @cached_property
    def _denormalizer(self) -> Normalizer:
        with meta_errors(self._view.file):
            return Normalizer(self._back, Charsmap(self._view.raw("decoder.charsmap"), self._view.file), None)

    @cached_property
    def _user(self) -> PrefixMatcher:
        return PrefixMatcher(self._view, self.pieces, is_text=bool(self._facts["user_text"]))

    @cached_property
    def _normalizer(self) -> Normalizer:
        with meta_errors(self._view.file):
            charsmap = Charsmap(self._view.raw("charsmap"), self._view.file)
            return Normalizer(self._step, charsmap, self._user, user_spaces=bool(self._facts["user_spaces"]))

    @cached_property
    def _model(self) -> Model:
        with meta_errors(self._view.file):
            return make_model(self._view, self.pieces, self._user, self._facts)

    @cached_property
    def _bytes(self) -> list[int]:
        emit = self._view.array("byte.emit")
        if len(emit) != 512:
            raise self.pieces.damaged("byte.emit", f"it has {len(emit)} elements, not 512")
        return [int(token) for token in emit[::2].tolist()]

    def stream(self, special: bool) -> SentencePieceStream:
        """A decoder for ids that come one by one."""
        return SentencePieceStream(self.detokenizer, special)

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`; EncodeError for a str with lone surrogates."""
        fields = self._fields
        if fields is not None and isinstance(text, str) and len(text) <= self._short:
            ids = fields.encode(text)
            if ids is not None:
                return self._joined(ids)
        if len(text) >= _LONG:
            found: list[int] = self.bulk.encode(text).tolist()
            return found
        return self.encode_normalized(self.normalized(text))

    @cached_property
    def _fields(self) -> Fields | None:
        """Short texts, where words lie between spaces whatever is around them."""
        with meta_errors(self._view.file):
            cut = str(self._facts["cut"])
            if cut != self._normalizer.fields or not self._user.is_text:
                return None
        model = self._model
        if isinstance(model, MergeModel) and not model.cuts_up:
            return Fields(self._normalizer, lambda text, size: self.encode_part(text.encode()))
        if isinstance(model, UnigramModel):
            self._short = SHORT
            return Fields(self._normalizer, lambda text, size: self._anywhere(model, text.encode(), size))
        return None

    def _anywhere(self, model: UnigramModel, text: bytes, size: int) -> list[int] | None:
        tokens = model.anywhere(text, size)
        return None if tokens is None else self.ids_of(text, tokens)

    @cached_property
    def bulk(self) -> SentencePieceBulk:
        """The bulk path; needs numpy."""
        from tokpack.runtime.bulk.sentencepiece import SentencePieceBulk

        return SentencePieceBulk(self._view, self.pieces, self)

    def encode_array(self, text: str | bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32]:
        """As :meth:`encode`, int32 ``[n]``, with numpy where the text is long enough."""
        return self.bulk.encode(text)

    @property
    def user(self) -> PrefixMatcher:
        """What finds user-defined pieces."""
        return self._user

    @property
    def model(self) -> Model:
        """Normalized text to pieces."""
        return self._model

    @property
    def falls_back(self) -> bool:
        """Whether what is unknown is encoded byte by byte."""
        return self._fallback

    @property
    def unknown(self) -> int:
        """Id of the unknown piece, or -1."""
        return self._unk

    def encode_normalized(self, normalized: str | bytes) -> list[int]:
        """Ids of a normalized text; bytes only if it is no text."""
        if isinstance(normalized, str):
            return self._encode_text(normalized) if normalized else []
        return self._joined(self._encode_raw(normalized, valid=False)) if normalized else []

    def encode_part(self, part: bytes) -> list[int]:
        """Ids of a part of a normalized text, UTF-8; neighbouring unknown pieces are not joined."""
        return self._encode_raw(part, valid=True)

    @property
    def normalizer(self) -> Normalizer:
        """Text to normalized text."""
        return self._normalizer

    def normalized(self, text: str | bytes, replace: Callable[[str], str | None] | None = None) -> str | bytes:
        """What the model gets: str if it is text, as nearly always. ``replace``: see :meth:`Normalizer.apply`."""
        if isinstance(text, str):
            _checked(text)
            return self._normalizer.apply(text, replace)
        try:
            return self._normalizer.apply(text.decode(), replace)
        except UnicodeDecodeError:
            return self._normalizer.trace(text)[0]

    def _encode_text(self, text: str) -> list[int]:
        model, user = self._model, self._user
        if not model.cut or not user.is_text:
            return self._joined(self._encode_raw(text.encode(), valid=True))
        if user.empty:
            return self._joined(self._encode_words(text))
        ids: list[int] = []
        raw = text.encode()
        for token, start, end in user.split(raw, valid=True):
            if token >= 0:
                ids.append(token)
            else:
                ids += self._encode_words(raw[start:end].decode())
        return self._joined(ids)

    def _encode_words(self, text: str) -> list[int]:
        ids: list[int] = []
        words = self._words
        for word in cut_words(text, self.space, self._model.cut):
            found = words.get(word)
            if found is None:
                found = self._encode_raw(word.encode(), valid=True)
                if len(word) <= _CACHED_LENGTH:
                    if len(words) >= _CACHED_WORDS:
                        words.clear()
                    words[word] = found
            ids += found
        return ids

    def _encode_raw(self, text: bytes, *, valid: bool) -> list[int]:
        """Ids of a normalized text, those of bytes for what is unknown if there is byte fallback."""
        return self.ids_of(text, self._model.encode(text, valid=valid))

    def ids_of(self, text: bytes, tokens: Tokens) -> list[int]:
        """Ids of the pieces of a text; neighbouring unknown ones are not joined."""
        unk = self._unk
        if not self._fallback:
            return [token if token >= 0 else unk for token, _ in tokens]
        ids: list[int] = []
        start = 0
        for token, end in tokens:
            if token < 0 or token == unk:
                ids += map(self._byte, text[start:end])
            else:
                ids.append(token)
            start = end
        return ids

    def _byte(self, byte: int) -> int:
        token = self._bytes[byte]
        if not 0 <= token < self.pieces.size:
            raise EncodeError(f"there is no piece for byte 0x{byte:02X}", hint="the vocabulary lacks byte pieces")
        return token

    def _joined(self, ids: list[int]) -> list[int]:
        """Neighbouring unknown pieces are one."""
        if self._fallback:
            return ids
        unk = self._unk
        if ids.count(unk) < 2:
            return ids
        before = -1
        out: list[int] = []
        for token in ids:
            if token != unk or before != unk:
                out.append(token)
            before = token
        return out

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> Spans:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes (``PopulateSentencePieceText``).

        Of the bytes of an unknown character all but the last have no width.
        """
        if isinstance(text, str):
            _checked(text)
        raw = text.encode() if isinstance(text, str) else text
        normalized, origin = self._normalizer.trace(raw)
        spans = self._spans(normalized, origin) if normalized else []
        if isinstance(text, bytes):
            return spans
        # a place inside a character is that of the character (``UTF8ToUnicodeOffsets``)
        starts = [0, *split_characters(raw)]
        return [(token, bisect_right(starts, a) - 1, bisect_right(starts, b) - 1) for token, a, b in spans]

    def _spans(self, text: bytes, origin: list[int]) -> Spans:
        out: Spans = []
        unk, start, was_unknown = self._unk, 0, False
        for token, end in self._model.encode(text, valid=is_utf8(text)):
            begin, stop = origin[start], origin[end]
            unknown = token < 0 or token == unk
            if unknown and self._fallback:
                ids = [self._byte(byte) for byte in text[start:end]]
                out += [(piece, begin, begin) for piece in ids[:-1]]
                out.append((ids[-1], begin, stop))
            elif unknown and was_unknown:
                out[-1] = (unk, out[-1][1], stop)
            else:
                out.append((unk if unknown else token, begin, stop))
            was_unknown = unknown
            start = end
        return out


def _checked(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"the text has a lone surrogate at character {error.start}, which sentencepiece does not take"
        raise EncodeError(what, hint='text.encode("utf-8", "replace") gives bytes without it') from error
