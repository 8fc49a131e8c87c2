"""base64 as MNN decodes it (``base64_decode`` in ``tokenizer.cpp``): foreign characters, ``=`` among them, are passed
over, and a last group that is cut short gives the bytes that are whole.
"""

from __future__ import annotations

from binascii import a2b_base64

__all__ = ["decode_base64"]

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FOREIGN = bytes(set(range(256)) - set(_ALPHABET))


def decode_base64(text: bytes) -> bytes:
    """Bytes of ``text``; nothing is an error."""
    digits = text.translate(None, _FOREIGN)
    left = len(digits) % 4
    if left == 1:  # six bits make no byte
        digits, left = digits[:-1], 0
    return a2b_base64(digits + b"=" * (-left % 4))
