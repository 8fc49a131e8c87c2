"""The escapes in which RWKV vocabularies spell their pieces (``llama_unescape_rwkv_token``)."""

from __future__ import annotations

__all__ = ["unescape"]

_SIMPLE = {0x74: 0x09, 0x6E: 0x0A, 0x72: 0x0D}  # \t \n \r; every other escaped byte stands for itself


def unescape(text: bytes) -> bytes:
    """The bytes that ``text`` spells: backslash t, n, r, and xHH in lower case; an escape at the end is dropped."""
    if b"\\" not in text:
        return text
    out = bytearray()
    at, size = 0, len(text)
    while at < size:
        byte = text[at]
        at += 1
        if byte != 0x5C:
            out.append(byte)
        elif at < size:
            escaped = text[at]
            at += 1
            if escaped != 0x78:  # x
                out.append(_SIMPLE.get(escaped, escaped))
            elif at + 2 <= size:
                out.append((_digit(text[at]) << 4) + _digit(text[at + 1]) & 0xFF)
                at += 2
            else:
                at = size
    return bytes(out)


def _digit(byte: int) -> int:
    """A hex digit as the original reads it: no check, and letters count from ``a``."""
    return byte - 0x61 + 10 if byte >= 0x61 else byte - 0x30
