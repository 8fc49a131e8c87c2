"""Text to code points and back as llama.cpp does it: lenient in, exact out (``src/unicode.cpp``)."""

from __future__ import annotations

from tokpack.errors import EncodeError

__all__ = ["decode_lenient", "decode_with_offsets"]


def decode_lenient(raw: bytes) -> str:
    """Code points of ``raw``: U+FFFD for each byte that starts no sequence; overlong forms and surrogates count.

    Raises EncodeError for a sequence above U+10FFFF, on which llama.cpp throws out of its C interface.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(char for char, _ in _sequences(raw))


def decode_with_offsets(raw: bytes) -> tuple[str, list[int]]:
    """As :func:`decode_lenient`, with the byte offset behind each code point."""
    pairs = list(_sequences(raw))
    return "".join(char for char, _ in pairs), [end for _, end in pairs]


def _sequences(raw: bytes) -> list[tuple[str, int]]:
    out: list[tuple[str, int]] = []
    size, at = len(raw), 0
    while at < size:
        lead = raw[at]
        length = (
            1
            if lead < 0x80
            else 2
            if 0xC0 <= lead < 0xE0
            else 3
            if 0xE0 <= lead < 0xF0
            else 4
            if 0xF0 <= lead < 0xF8
            else 0
        )
        tail = raw[at + 1 : at + length]
        if length == 0 or len(tail) < length - 1 or any(byte & 0xC0 != 0x80 for byte in tail):
            at += 1
            out.append(("�", at))
            continue
        value = lead if length == 1 else lead & (0x7F >> length)
        for byte in tail:
            value = value << 6 | byte & 0x3F
        if value > 0x10FFFF:
            raise EncodeError(f"byte {at} of the text starts a sequence above U+10FFFF, on which llama.cpp dies")
        at += length
        out.append((chr(value), at))
    return out
