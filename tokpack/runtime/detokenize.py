"""Ids to bytes: ``llama_token_to_piece`` and ``llama_detokenize`` (``llama-vocab.cpp`` 3660-3900)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tokpack.errors import EncodeError
from tokpack.pack.pieces import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, PieceTable
from tokpack.unicode import byte_level, rwkv
from tokpack.unicode.utf8 import decode_lenient

__all__ = ["Detokenizer"]

_CACHE = 1 << 16


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
        self._unescape = bool(step.get("unescape_spaces"))
        self._strip_space = bool(step.get("strip_space"))
        self._bos = specials.get("bos") if post.get("add_bos") else None
        self._eos = specials.get("eos") if post.get("add_eos") else None
        self._cache: dict[int, bytes] = {}

    def piece(self, token: int, special: bool) -> bytes:
        """``llama_token_to_piece`` with lstrip 0; EncodeError for an id outside the vocabulary."""
        if not 0 <= token < self._pieces.size:
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}")
        if not special and self._pieces.attrs[token] & (UNKNOWN | CONTROL):
            return b""
        cached = self._cache.get(token)
        if cached is None:
            if len(self._cache) >= _CACHE:
                self._cache.clear()
            cached = self._cache[token] = self._piece(token)
        return cached

    def _piece(self, token: int) -> bytes:
        pieces = self._pieces
        attr = pieces.attrs[token]
        if self._escaped:
            return rwkv.unescape(pieces.text(token))
        if self._plain:
            text = pieces.text(token)
            return bytes([_hex_byte(text[3:5])]) if attr & BYTE and _is_byte_piece(text) else text
        if attr & (UNKNOWN | CONTROL | USER_DEFINED):
            return pieces.text(token)
        if attr & NORMAL:
            if self._unescape:
                return pieces.text(token).replace("▁".encode(), b" ")
            return pieces.raw(token) if pieces.spelled(token) else _decode_text(pieces.text(token))
        if attr & BYTE:
            return bytes([_hex_byte(pieces.text(token)[3:5])])
        return b""

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        """``llama_detokenize``."""
        if not ids:
            return b""
        strip = self._strip_space
        first, last = 0, len(ids)
        if remove_special and self._bos is not None and ids[0] == self._bos:
            first, strip = 1, False
        if remove_special and self._eos is not None and last > first and ids[-1] == self._eos:
            last -= 1
        parts = [self.piece(token, unparse_special) for token in ids[first:last]]
        if strip and parts and parts[0][:1] == b" ":
            parts[0] = parts[0][1:]
        text = b"".join(parts)
        return _clean_spaces(text) if self._clean_spaces else text


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


def _clean_spaces(text: bytes) -> bytes:
    """Three passes, each over the text of the one before, written as in the original: they work in place.

    The second pass puts a NUL where it takes a space away, so that the space does not count for the next apostrophe.
    """
    first = bytearray(text[:1])
    for before, char in itertools.pairwise(text):
        if before == 0x20 and char in b"?!.,":
            first.pop()
        first.append(char)

    second, index, size = bytearray(first[:1]), 1, len(first)
    while index < size:
        char = first[index]
        if char == 0x27 and index + 1 < size and first[index - 1] == 0x20 == first[index + 1]:
            second.pop()
            index += 1
            first[index] = 0
        second.append(char)
        index += 1

    third = bytearray(second[:1])
    for index in range(1, len(second)):
        char = second[index]
        if char == 0x27 and second[index - 1] == 0x20:
            rest = bytes(second[index + 1 : index + 3])
            if rest[:1] in (b"s", b"m") or rest in (b"re", b"ve"):
                third.pop()
        third.append(char)
    return bytes(third)
