"""Text to code points and back as llama.cpp does it: lenient in, exact out (``src/unicode.cpp``); and strict checks."""

from __future__ import annotations

from tokpack.errors import EncodeError

__all__ = [
    "character_length",
    "code_points",
    "decode_lenient",
    "decode_with_offsets",
    "has_surrogates",
    "is_utf8",
    "sequence_length",
    "split_characters",
]

# length of a UTF-8 character by the high half of its first byte (unicode_len_utf8): no validation
_LENGTHS = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4)


def character_length(first: int) -> int:
    """Bytes of the character that begins with ``first``, by that byte alone."""
    return _LENGTHS[first >> 4]


def is_utf8(raw: bytes) -> bool:
    """Whether all of it is well-formed."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def has_surrogates(text: str) -> bool:
    """Whether there are lone surrogates, which UTF-8 cannot hold."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def split_characters(text: bytes) -> list[int]:
    """Ends of the characters of ``text`` by their first bytes; the last one may be cut short."""
    ends, at, size = [], 0, len(text)
    while at < size:
        at = min(at + _LENGTHS[text[at] >> 4], size)
        ends.append(at)
    return ends


def sequence_length(raw: bytes, at: int) -> int:
    """Bytes of the sequence at ``at`` if it is well-formed as ``unicode_cpt_from_utf8`` sees it, else 0."""
    lead = raw[at]
    if lead < 0x80:
        return 1
    length = 2 if 0xC0 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF8 else 0
    tail = raw[at + 1 : at + length]
    return length if length and len(tail) == length - 1 and all(byte & 0xC0 == 0x80 for byte in tail) else 0


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
    at = 0
    for value, end in code_points(raw):
        if value > 0x10FFFF:
            raise EncodeError(f"byte {at} of the text starts a sequence above U+10FFFF, on which llama.cpp dies")
        out.append((chr(value), end))
        at = end
    return out


def code_points(raw: bytes) -> list[tuple[int, int]]:
    """(code point, end offset) as ``unicode_cpts_from_utf8`` reads them; values above U+10FFFF are possible."""
    out: list[tuple[int, int]] = []
    size, at = len(raw), 0
    while at < size:
        length = sequence_length(raw, at)
        if not length:
            at += 1
            out.append((0xFFFD, at))
            continue
        value = raw[at] if length == 1 else raw[at] & (0x7F >> length)
        for byte in raw[at + 1 : at + length]:
            value = value << 6 | byte & 0x3F
        at += length
        out.append((value, at))
    return out
