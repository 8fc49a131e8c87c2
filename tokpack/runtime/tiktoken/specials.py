"""Special tokens in a text: the leftmost, if there is no doubt which one (``CoreBPE::encode``, src/lib.rs).

tiktoken joins the tokens to one regular expression in the order of a hash map. Where one token begins with another,
both can match at one place, and that order decides; here that text is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokpack.errors import EncodeError
from tokpack.pack.view import PackView

__all__ = ["SpecialMatcher"]


class SpecialMatcher:
    """The special tokens of a pack.

    Args:
        view: the pack.
        size: number of ids.

    Attributes:
        firsts: the characters with which they begin.
    """

    def __init__(self, view: PackView, size: int) -> None:
        ids, offset, blob = view.array("added.id"), view.array("added.offset"), view.raw("added.blob")
        self._tokens: dict[str, int] = {}
        for i in range(min(len(ids), len(offset) - 1)):
            content = bytes(blob[offset[i] : offset[i + 1]]).decode("utf-8", "replace")
            if content and ids[i] < size:
                self._tokens[content] = ids[i]
        self._lengths: dict[str, list[int]] = {}
        for content in sorted(self._tokens, key=len):
            lengths = self._lengths.setdefault(content[0], [])
            if len(content) not in lengths:
                lengths.append(len(content))
        self.firsts = "".join(sorted(self._lengths))
        self._first = re.compile(f"[{re.escape(self.firsts)}]") if self.firsts else None

    def split(self, text: str) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of special tokens, (-1, start, end) of what is between them, empty or not."""
        last = at = 0
        while self._first is not None:
            candidate = self._first.search(text, at)
            if candidate is None:
                break
            start = candidate.start()
            found = self._at(text, start)
            if found is None:
                at = start + 1
                continue
            yield -1, last, start
            last = at = start + len(found)
            yield self._tokens[found], start, at
        yield -1, last, len(text)

    def _at(self, text: str, start: int) -> str | None:
        found = [
            content
            for length in self._lengths[text[start]]
            if (content := text[start : start + length]) in self._tokens and len(content) == length
        ]
        if len(found) > 1:
            what = f"{found[0]!r} and {found[1]!r} match at character {start}: which one tiktoken takes is not defined"
            raise EncodeError(what, hint="encode with parse_special=False")
        return found[0] if found else None
