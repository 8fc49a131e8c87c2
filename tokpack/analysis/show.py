"""Showing text from files on a screen: nothing in it may move the cursor, reorder or hide."""

from __future__ import annotations

import unicodedata

__all__ = ["readable", "shorten"]

# controls, formats (bidi, zero width), surrogates, private use, unassigned, line and paragraph separators
_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def readable(text: str | bytes, *, backslash: bool = True) -> str:
    """``text`` with control, bidi, zero-width and undecodable characters escaped.

    Backslashes are doubled, so that the result is unambiguous, unless ``backslash`` is False (patterns, messages).
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isprintable() and text.isascii() and (not backslash or "\\" not in text):
        return text
    return "".join(char if char == "\\" and not backslash else _readable(char) for char in text)


def _readable(char: str) -> str:
    short = _SHORT.get(char)
    if short is not None:
        return short
    if unicodedata.category(char) not in _ESCAPED:
        return char
    value = ord(char)
    if 0xDC80 <= value <= 0xDCFF:
        return f"\\x{value - 0xDC00:02x}"  # a byte that is not UTF-8
    return f"\\u{value:04x}" if value < 0x10000 else f"\\U{value:08x}"


def shorten(text: str, width: int) -> str:
    """``text`` cut to ``width`` characters, with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + "…"
