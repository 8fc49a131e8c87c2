"""Ids to bytes: ``llama_token_to_piece`` and ``llama_detokenize`` (``llama-vocab.cpp`` 3660-3900)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from tokpack.errors import EncodeError
from tokpack.pack.pieces import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, PieceTable
from tokpack.typed import TYPE_CHECKING, Any
from tokpack.unicode import byte_level, rwkv
from tokpack.unicode.utf8 import decode_lenient

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["Detokenizer"]

_CACHE = 1 << 18


class _PieceCache(dict[int, bytes]):
    """id → its bytes in the output, bounded."""

    def __init__(self, detokenizer: Detokenizer, special: bool) -> None:
        super().__init__()
        self._detokenizer = detokenizer
        self._special = special

    def __missing__(self, token: int) -> bytes:
        if len(self) >= _CACHE:
            self.clear()
        piece = self[token] = self._detokenizer.make(token, self._special)
        return piece


class Detokenizer:
    """The decoder of a pack whose reference is llama.cpp."""

    def __init__(
        self,
        step: Mapping[str, Any],
        post: Mapping[str, Any],
        specials: Mapping[str, int],
        pieces: PieceTable,
        *,
        escaped: bool = False,
    ) -> None:
        self._pieces = pieces
        self._clean_spaces = bool(step.get("clean_spaces"))
        self._escaped = escaped
        self._plain = bool(step.get("plain"))
        self._hidden = str(step.get("hidden_suffix", "")).encode()
        self._unescape = bool(step.get("unescape_spaces"))
        self._strip_space = bool(step.get("strip_space"))
        # a missing id is -1 there, too
        self._bos = specials.get("bos", -1) if post.get("add_bos") else None
        self._eos = specials.get("eos", -1) if post.get("add_eos") else None
        self._shown = (_PieceCache(self, False), _PieceCache(self, True))

    def piece(self, token: int, special: bool) -> bytes:
        """``llama_token_to_piece`` with lstrip 0; EncodeError for an id outside the vocabulary."""
        return self._shown[bool(special)][token]

    def make(self, token: int, special: bool) -> bytes:
        """As :meth:`piece`, not cached."""
        if not isinstance(token, int) or not 0 <= token < self._pieces.size:
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}")
        if not special and self._pieces.attrs[token] & (UNKNOWN | CONTROL):
            return b""
        return self._piece(token)

    def _piece(self, token: int) -> bytes:
        pieces = self._pieces
        attr = pieces.attrs[token]
        if self._escaped:
            return rwkv.unescape(pieces.text(token))
        if self._plain:
            text = pieces.text(token)
            return bytes([_hex_byte(text[3:5])]) if attr & BYTE and _is_byte_piece(text) else text
        if attr & (UNKNOWN | CONTROL | USER_DEFINED):
            return self._text(token)
        if attr & NORMAL:
            if self._unescape:
                return self._text(token).replace("▁".encode(), b" ")
            return pieces.raw(token) if pieces.spelled(token) else _decode_text(self._text(token))
        if attr & BYTE:
            return bytes([_hex_byte(pieces.text(token)[3:5])])
        return b""

    def _text(self, token: int) -> bytes:
        text = self._pieces.text(token)
        hidden = self._hidden
        return text[: -len(hidden)] if hidden and text.endswith(hidden) and text != hidden else text

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        """``llama_detokenize``."""
        if not ids:
            return b""
        first, last, strip = self._range(ids, remove_special)
        parts = list(map(self._shown[bool(unparse_special)].__getitem__, ids[first:last]))
        if strip and parts and parts[0][:1] == b" ":
            parts[0] = parts[0][1:]
        text = b"".join(parts)
        return _clean_spaces(text) if self._clean_spaces else text

    def detokenize_array(self, ids: NDArray[np.int64], remove_special: bool, unparse_special: bool) -> bytes | None:
        """The same for many ids, at least one; None if some are out of range."""
        first, last, strip = self._range(ids, remove_special)
        text = self._gathers[bool(unparse_special)].join(ids[first:last])
        if text is None:
            return None
        if strip and first < last and self.piece(int(ids[first]), unparse_special)[:1] == b" ":
            text = text[1:]
        return _clean_spaces(text) if self._clean_spaces else text

    def _range(self, ids: Sequence[int] | NDArray[np.int64], remove_special: bool) -> tuple[int, int, bool]:
        """(first, last + 1, whether a space at the beginning goes) of the ids that count."""
        strip, first, last = self._strip_space, 0, len(ids)
        if remove_special and self._bos is not None and ids[0] == self._bos:
            first, strip = 1, False
        if remove_special and self._eos is not None and last > first and ids[-1] == self._eos:
            last -= 1
        return first, last, strip

    @cached_property
    def _gathers(self) -> tuple[ByteGather, ByteGather]:
        from tokpack.runtime.bulk.gather import ByteGather

        size = self._pieces.size
        return ByteGather(partial(self.make, special=False), size), ByteGather(partial(self.make, special=True), size)


def _is_byte_piece(text: bytes) -> bool:
    return len(text) == 6 and text.startswith(b"<0x") and text.endswith(b">")


def _decode_text(text: bytes) -> bytes:
    """Byte-level text with characters outside the alphabet: each of those becomes a message, as in the original."""
    out = bytearray()
    for char in decode_lenient(text):
        byte = byte_level.BYTES.get(char)
        if byte is not None:
            out.append(byte)
        else:
            out += b"[UNK_BYTE_0x" + char.encode("utf-8", "surrogatepass").hex().encode() + text + b"]"
    return bytes(out)


def _hex_byte(digits: bytes) -> int:
    """``strtol(digits, NULL, 16)`` as a byte: leading spaces, a sign and 0x are accepted, the rest is cut off."""
    text = digits.lstrip(b" \t\n\v\f\r")
    sign = -1 if text[:1] == b"-" else 1
    if text[:1] in (b"-", b"+"):
        text = text[1:]
    value = 0
    for char in text:
        at = b"0123456789abcdef".find(bytes([char]).lower())
        if at < 0:
            break
        value = value * 16 + at
    return sign * value & 0xFF


_BEFORE_PUNCTUATION = re.compile(rb" ([?!.,])")
_BEFORE_CONTRACTION = re.compile(rb" ('(?:s|m|re|ve))")


def _clean_spaces(text: bytes) -> bytes:
    """Three passes, each over the text of the one before (3821-3900)."""
    text = _BEFORE_PUNCTUATION.sub(rb"\1", text)
    # the original marks the second space as taken, so that it does not count for the next apostrophe: what a
    # replacement without overlaps does by itself
    text = text.replace(b" ' ", b"'")
    return _BEFORE_CONTRACTION.sub(rb"\1", text)
