"""Unicode normalization of long texts: only where a character can change, or can change the one before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokpack.runtime.hf.normalize_unicode import UnicodeNormalizer

__all__ = ["normalize_long"]


def normalize_long(normalizer: UnicodeNormalizer, text: str) -> str:
    """``normalizer.apply(text)``; the same object when nothing changes.

    A segment that is normalized on its own is a run of characters that are not stable, with one stable character before
    it at most (:mod:`tokpack.runtime.hf.normalize_unicode`). So runs are normalized with the character before them.
    """
    if text.isascii():
        return text
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    seen = np.zeros(0x110000, dtype=np.bool_)
    seen[points] = True
    seen[:128] = False
    changing = [code for code in np.flatnonzero(seen).tolist() if not normalizer.is_stable(chr(code))]
    if not changing:
        return text
    seen[:] = False
    seen[changing] = True
    unstable = np.concatenate(([False], seen.take(points), [False]))
    edges = np.flatnonzero(unstable[1:] != unstable[:-1])
    parts: list[str] = []
    last = 0
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(start - 1, last)
        segment = text[start:end]
        normalized = normalizer.apply(segment)
        if normalized != segment:
            parts += (text[last:start], normalized)
            last = end
    if not parts:
        return text
    parts.append(text[last:])
    return "".join(parts)
