"""Ids to text (``SentencePieceProcessor::DecodeOptimized``)."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from operator import index

from tokpack.errors import EncodeError
from tokpack.pack.pieces import BYTE, CONTROL, UNKNOWN, PieceTable
from tokpack.runtime.sentencepiece.charsmap import REPLACEMENT, character_end
from tokpack.runtime.sentencepiece.normalizer import Normalizer
from tokpack.runtime.stream import StreamDecoder
from tokpack.typed import TYPE_CHECKING, Any
from tokpack.unicode.utf8 import character_length, is_utf8

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["Detokenizer", "SentencePieceStream"]

_MARK = "▁".encode()
_CACHE = 1 << 18

Ids = Any  # a list, or an array
Shown = bytes | int | None  # text of a piece, the byte that it stands for, or nothing (control)


class _OddError(Exception):
    """A piece that is not UTF-8."""


class _PieceCache(dict[int, bytes]):
    """Id → its bytes behind the beginning of a text; bounded."""

    def __init__(self, detokenizer: Detokenizer, *, special: bool) -> None:
        super().__init__()
        self._detokenizer = detokenizer
        self._special = special

    def __missing__(self, token: int) -> bytes:
        text = self._detokenizer.inner(token, special=self._special)
        if len(self) >= _CACHE:
            self.clear()
        self[token] = text
        return text


class Detokenizer:
    """The decoder of a pack whose reference is sentencepiece.

    sentencepiece never shows control pieces; with ``special`` they are shown as they are spelled.

    Attributes:
        strip, strip_each: of :class:`tokpack.ir.steps.SentencePieceDecoder`.
        whole: a denormalizer has to see the whole text.
    """

    def __init__(
        self, step: Mapping[str, Any], pieces: PieceTable, denormalizer: Callable[[], Normalizer] | None
    ) -> None:
        self._pieces = pieces
        self._unknown = str(step["unk_surface"]).encode()
        self.strip = bool(step["strip_prefix"])
        self.strip_each = bool(step["strip_each"])
        self._denormalizer = denormalizer  # made when it is first used
        self.whole = denormalizer is not None
        self._shown: dict[int, Shown] = {}
        self._caches = {special: _PieceCache(self, special=special) for special in (False, True)}
        self._gathers: dict[bool, ByteGather] = {}
        self._empty: dict[bool, set[int]] = {False: set(), True: set()}  # pieces met that show nothing

    def plain(self, token: int) -> Shown:
        """What a piece stands for, U+2581 as it is; EncodeError for an id outside the vocabulary."""
        try:
            return self._shown[token]
        except (KeyError, TypeError):
            pass
        if not isinstance(token, int) or not 0 <= token < self._pieces.size:
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}")
        if len(self._shown) >= _CACHE:
            self._shown.clear()
        shown = self._shown[token] = self._make(token)
        return shown

    def _make(self, token: int) -> Shown:
        attr = self._pieces.attrs[token]
        if attr & CONTROL:
            return None
        if attr & UNKNOWN:
            return self._unknown
        text = self._pieces.text(token)
        if attr & BYTE:
            return _byte(text)
        return text

    def is_unknown(self, token: int) -> bool:
        """Whether the piece is the unknown one, whose text is not touched."""
        return bool(self._pieces.attrs[token] & UNKNOWN)

    def piece_text(self, token: int) -> bytes:
        """The piece as it is spelled."""
        return self._pieces.text(token)

    def piece(self, token: int, special: bool) -> bytes:
        """The bytes of one piece inside a text: U+2581 as a space; of a control piece its text if ``special``."""
        shown = self.plain(token)
        if shown is None:
            return self._pieces.text(token) if special else b""
        if isinstance(shown, int):
            return bytes([shown])
        return shown if self.is_unknown(token) else shown.replace(_MARK, b" ")

    def detokenize(self, ids: Iterable[int], remove_special: bool, unparse_special: bool) -> bytes:
        """The text of ``ids``; ``remove_special`` has no meaning, as encoding adds nothing."""
        values = list(ids)
        cache = self._caches[bool(unparse_special)]
        text = self._joined(values, unparse_special, lambda rest: b"".join(map(cache.__getitem__, rest)))
        return self.finished(self._walked(values, unparse_special) if text is None else text)

    def detokenize_array(self, ids: NDArray[np.int64], remove_special: bool, unparse_special: bool) -> bytes | None:
        """As :meth:`detokenize`; None if the scalar path has to do it."""
        from tokpack.runtime.bulk.gather import ByteGather

        special = bool(unparse_special)
        gather = self._gathers.get(special)
        if gather is None:
            gather = self._gathers[special] = ByteGather(
                lambda token: self.inner(token, special=special), self._pieces.size
            )
        text = self._joined(ids, special, gather.join)
        return None if text is None else self.finished(text)

    def inner(self, token: int, *, special: bool) -> bytes:
        """A piece behind the beginning of a text; of a byte piece its byte. _OddError for one that is not UTF-8."""
        shown = self.plain(token)
        if isinstance(shown, int):
            return bytes([shown])
        text = self.piece(token, special)
        if not is_utf8(text):
            raise _OddError
        if not text:
            self._empty[special].add(token)
        return text

    def _joined(self, ids: Ids, special: bool, join: Callable[[Ids], bytes | None]) -> bytes | None:
        """Pieces end to end; None if bytes among them do not make characters.

        Where all of it is UTF-8 and so is each piece, the bytes between pieces are whole characters.
        """
        walk = Walk(self, special)
        parts, at = [], 0
        try:
            while at < len(ids) and not walk.begun:
                parts.append(walk.push(index(ids[at])))
                at += 1
            rest = join(ids[at:])
        except (_OddError, TypeError, EncodeError):
            return None
        if rest is None or not walk.begun or not is_utf8(rest) or self._parted(ids[at:], special):
            return None
        return b"".join([*parts, rest])

    def _parted(self, ids: Ids, special: bool) -> bool:
        """Whether bytes may lie left and right of a piece that shows nothing, which ends their character."""
        empty = self._empty[special]
        if not empty:
            return False
        if isinstance(ids, list):
            return not empty.isdisjoint(ids)
        import numpy as np

        shown = np.flatnonzero(~np.isin(ids, list(empty)))
        byte = np.frombuffer(self._pieces.attrs, dtype="<u2").take(ids[shown]) & BYTE != 0
        return bool((byte[1:] & byte[:-1] & (np.diff(shown) > 1)).any())

    def _walked(self, ids: Iterable[int], special: bool) -> bytes:
        walk = Walk(self, special)
        parts = [walk.push(token) for token in ids]
        parts.append(walk.finish())
        return b"".join(parts)

    def finished(self, raw: bytes) -> bytes:
        """What the denormalizer makes of a text."""
        if self._denormalizer is None or not raw:
            return raw
        return self._denormalizer().trace(raw)[0]


def _byte(text: bytes) -> int:
    try:
        return int(text[3:5], 16)
    except ValueError as error:  # the reader refuses such a piece
        raise EncodeError(f"the byte piece {text[:20]!r} names no byte") from error


class Walk:
    """Ids one by one to bytes: the state between them.

    Args:
        detokenizer: the pieces.
        special: show control pieces.
    """

    def __init__(self, detokenizer: Detokenizer, special: bool) -> None:
        self._of = detokenizer
        self._special = special
        self._strip = detokenizer.strip
        self._any = False  # there is text
        self._bytes = bytearray()

    def push(self, token: int) -> bytes:
        """Text that is complete with ``token``."""
        shown = self._of.plain(token)
        if isinstance(shown, int):
            self._bytes.append(shown)
            return self._characters(final=False)
        out = self._characters(final=True) if self._bytes else b""
        if shown is None:
            if not self._special:
                return out
            self._any = True
            return out + self._of.piece_text(token)
        if self._of.is_unknown(token):
            if self._strip and not self._any and self._of.piece_text(token).startswith(_MARK):
                self._strip = self._of.strip_each  # its own mark counts, though it is not shown
            self._any = self._any or bool(shown)
            return out + shown
        if self._strip and not self._any and shown.startswith(_MARK):
            shown = shown[len(_MARK) :]
            self._strip = self._of.strip_each
        if shown:
            self._any = True
        return out + shown.replace(_MARK, b" ")

    def finish(self) -> bytes:
        """What is left."""
        return self._characters(final=True)

    @property
    def begun(self) -> bool:
        """Whether there is text, and no byte is left over."""
        return self._any and not self._bytes

    def _characters(self, *, final: bool) -> bytes:
        """The bytes that are decided: whole characters, U+FFFD for a byte that begins none."""
        waiting, out, at = bytes(self._bytes), bytearray(), 0
        while at < len(waiting):
            end = character_end(waiting, at)
            if not end and not final and _may_go_on(waiting, at):
                break
            out += waiting[at:end] if end else REPLACEMENT
            at = end or at + 1
        del self._bytes[:at]
        self._any = self._any or bool(out)
        return bytes(out)


def _may_go_on(raw: bytes, at: int) -> bool:
    return len(raw) - at < character_length(raw[at])


class SentencePieceStream(StreamDecoder):
    """Decodes ids as they come: all that is pushed and flushed is the text of all ids.

    With a denormalizer, which replaces across pieces, everything comes with the flush.
    """

    def __init__(self, detokenizer: Detokenizer, special: bool) -> None:
        self._detokenizer = detokenizer
        self._special = special
        self._start()

    def _start(self) -> None:
        self._walk = Walk(self._detokenizer, self._special)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[bytes] = []

    def push(self, token: int) -> str:
        """See :meth:`StreamDecoder.push`."""
        new = self._walk.push(token)
        if self._detokenizer.whole:
            self._held.append(new)
            return ""
        return self._decoder.decode(new)

    def flush(self) -> str:
        """See :meth:`StreamDecoder.flush`."""
        rest = self._walk.finish()
        if self._detokenizer.whole:
            rest = self._detokenizer.finished(b"".join([*self._held, rest]))
        text = self._decoder.decode(rest, True)
        self._start()
        return text
