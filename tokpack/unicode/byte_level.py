"""The byte-level alphabet of GPT-2: one printable character for each of the 256 bytes.

Source: ``bytes_to_unicode`` of openai/gpt-2 ``src/encoder.py`` (the same table is in llama.cpp and ``tokenizers``).
"""

from __future__ import annotations

__all__ = ["BYTES", "CHARS", "decode", "encode"]

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


def _chars() -> tuple[str, ...]:
    table = {byte: chr(byte) for byte in _PRINTABLE}
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(0x100 + len(table) - len(_PRINTABLE))
    return tuple(table[byte] for byte in range(256))


CHARS = _chars()  # byte → character
BYTES = {char: byte for byte, char in enumerate(CHARS)}  # character → byte
_ENCODE = dict(enumerate(CHARS))
# latin-1 characters outside the alphabet go where latin-1 cannot follow, so that one encode() call finds them
_DECODE = {**dict.fromkeys(range(256), 0xFFFF), **{ord(char): byte for char, byte in BYTES.items()}}


def encode(raw: bytes) -> str:
    """Spell ``raw`` in the alphabet, one character per byte."""
    return raw.decode("latin-1").translate(_ENCODE)


def decode(text: bytes) -> bytes | None:
    """The bytes that ``text`` (UTF-8) spells, or None when it holds a character outside the alphabet."""
    try:
        return text.decode("utf-8").translate(_DECODE).encode("latin-1")
    except UnicodeError:
        return None
