"""Decoding ids that come one by one."""

from __future__ import annotations

import codecs

from tokpack.errors import EncodeError
from tokpack.typed import Protocol

__all__ = ["PieceStream", "StreamDecoder", "WindowStream"]


class StreamDecoder:
    """Turns ids into text as they come; bytes of an unfinished character are held back."""

    def push(self, token: int) -> str:
        """Text that has become complete with ``token``; often empty inside a character."""
        raise NotImplementedError

    def flush(self) -> str:
        """What is left, an unfinished character as U+FFFD; the decoder starts afresh."""
        raise NotImplementedError


class _Detokenizer(Protocol):
    def piece(self, token: int, special: bool) -> bytes: ...

    def detokenize(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes: ...


class PieceStream(StreamDecoder):
    """The pieces end to end, as llama.cpp's programs print them.

    The clean-up of spaces that ``Tokenizer.decode`` applies for some vocabularies needs the whole text and is not part
    of it.
    """

    def __init__(self, detokenizer: _Detokenizer, special: bool) -> None:
        self._detokenizer = detokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """See :meth:`StreamDecoder.push`."""
        return self._decoder.decode(self._detokenizer.piece(token, self._special))

    def flush(self) -> str:
        """See :meth:`StreamDecoder.flush`."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        return rest


class WindowStream(StreamDecoder):
    """Decodes the last few ids again and gives what is new, as ``DecodeStream`` of the tokenizers library does.

    A decoder chain looks at neighbours, so the text of an id is not the same in every place.
    """

    def __init__(self, detokenizer: _Detokenizer, special: bool) -> None:
        self._detokenizer = detokenizer
        self._special = special
        self._start()

    def _start(self) -> None:
        self._ids: list[int] = []
        self._prefix = ""  # text of the ids before _read, already given
        self._prefix_index = 0

    def _decode(self, ids: list[int]) -> str:
        return self._detokenizer.detokenize(ids, False, self._special).decode("utf-8", "replace")

    def push(self, token: int) -> str:
        """See :meth:`StreamDecoder.push`."""
        if not self._prefix and self._ids:
            prefix = self._decode(self._ids)
            if not prefix.endswith("\ufffd"):
                self._prefix, self._prefix_index = prefix, len(self._ids)
        self._ids.append(token)
        text = self._decode(self._ids)
        if len(text) <= len(self._prefix) or text.endswith("\ufffd"):
            return ""
        if not text.startswith(self._prefix):
            raise EncodeError("the text so far changes with this id: the library fails here, too")
        new = text[len(self._prefix) :]
        kept = len(self._ids) - self._prefix_index
        self._ids = self._ids[self._prefix_index :]
        self._prefix = self._decode(self._ids)
        self._prefix_index = kept
        return new

    def flush(self) -> str:
        """See :meth:`StreamDecoder.flush`."""
        rest = self._decode(self._ids)[len(self._prefix) :]
        self._start()
        return rest
