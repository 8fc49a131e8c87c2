"""Cutting a normalized text where no piece joins the two sides."""

from __future__ import annotations

from tokpack.typed import AnyStr

__all__ = ["words"]


def words(text: AnyStr, space: AnyStr, cut: str) -> list[AnyStr]:
    """The parts of a text: runs of spaces stay with what follows (``before``), or with what is before (``after``)."""
    found: list[AnyStr] = []
    append = found.append
    pending = text[:0]
    parts = text.split(space)
    if cut == "before":
        if parts[0]:
            append(parts[0])
        for part in parts[1:]:
            pending += space
            if part:
                append(pending + part)
                pending = text[:0]
    else:
        last = parts.pop()
        for part in parts:
            if part and pending:
                append(pending)
                pending = text[:0]
            pending += part + space
        if last and pending:
            append(pending)
            pending = text[:0]
        pending += last
    if pending:
        append(pending)
    return found
