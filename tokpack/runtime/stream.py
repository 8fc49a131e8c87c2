"""Decoding ids that come one by one."""

from __future__ import annotations

import codecs

from tokpack.runtime.detokenize import Detokenizer

__all__ = ["StreamDecoder"]


class StreamDecoder:
    """Turns ids into text as they come; bytes of an unfinished character are held back.

    The text is the pieces end to end, as llama.cpp's programs print them; the clean-up of spaces that
    ``Tokenizer.decode`` applies for some vocabularies needs the whole text and is not part of it.
    """

    def __init__(self, detokenizer: Detokenizer, special: bool) -> None:
        self._detokenizer = detokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Text that has become complete with ``token``; often empty inside a character."""
        return self._decoder.decode(self._detokenizer.piece(token, self._special))

    def flush(self) -> str:
        """What is left, an unfinished character as U+FFFD; the decoder starts afresh."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        return rest
