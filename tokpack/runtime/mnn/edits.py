"""Steps that change a text, as edits: what they replace is known, so a token can be traced back to the text.

Texts are ``str`` with one character per code point as ``utf8_decode`` of ``unicode.hpp`` finds them; a byte that is not
UTF-8 is a lone surrogate (``surrogateescape``), which the engine sees as U+FFFD but copies as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Edit", "Origin", "Step", "apply_edits", "move", "resync", "to_bytes", "to_text"]

Edit = tuple[int, int, str]  # start, end, what stands there instead
Origin = list[tuple[int, int]]  # for each character, where it comes from


def to_text(raw: bytes) -> str:
    """Bytes as the engine cuts them into code points."""
    return raw.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """The inverse of :func:`to_text`."""
    return text.encode("utf-8", "surrogateescape")


def resync(text: str) -> str:
    """``text`` read anew: bytes that were parted may now be a character."""
    return text if text.isascii() else to_text(to_bytes(text))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with its edits, which are ascending and do not overlap."""
    parts = []
    last = 0
    for start, end, new in edits:
        parts += [text[last:start], new]
        last = end
    parts.append(text[last:])
    return "".join(parts)


def move(origin: Origin, edits: Iterable[Edit], size: int) -> Origin:
    """Where the characters of an edited text come from."""
    out: Origin = []
    last = 0
    for start, end, new in edits:
        out += origin[last:start]
        if start < end:
            place = (origin[start][0], origin[end - 1][1])
        else:
            at = origin[start][0] if start < size else origin[-1][1] if origin else 0
            place = (at, at)
        out += [place] * len(new)
        last = end
    return out + origin[last:]


class Step:
    """One step that changes a text."""

    def apply(self, text: str) -> str:
        """The changed text."""
        return apply_edits(text, self.edits(text))

    def edits(self, text: str) -> list[Edit]:
        """What changes."""
        raise NotImplementedError
