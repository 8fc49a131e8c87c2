"""Cutting special tokens out of a text, by llama.cpp's rule (``tokenizer_st_partition``).

One pass over the still raw fragments per token, in cache order; what is left of a match stays raw, what is right of it
is searched on. Tokens cut earlier are never looked into again. The result depends on that order, not on the position
in the text. The order of a pack is by length, which allows for one pass in all (:mod:`tokpack.runtime.occurrences`);
for any other, it is reproduced as passes.
"""

from __future__ import annotations

import re
from itertools import pairwise

from tokpack.errors import FormatError, Location
from tokpack.pack.layout import LSTRIP, RSTRIP, SPECIAL
from tokpack.pack.view import PackView
from tokpack.runtime.occurrences import Finder, Special, finder
from tokpack.runtime.spaced import crosses

__all__ = ["Fragment", "Partition"]

_SPACE = b" \t\n\v\f\r"  # isspace of the C locale
_PREFIX = 2  # characters by which a text is looked through

Fragment = tuple[int, int, int]  # (id, start, end) of a special token, (-1, start, end) of raw text


class Partition:
    """The added tokens of a pack in matching order.

    Attributes:
        tokens: those that can be found.
    """

    def __init__(self, view: PackView, size: int) -> None:
        ids, flags, offset = view.array("added.id"), view.raw("added.flags"), view.array("added.offset")
        blob = view.raw("added.blob")
        where = Location(view.file, "added.offset")
        if len(flags) != len(ids) or len(offset) != len(ids) + 1:
            raise FormatError("the index is damaged: added-token sections differ in length", location=where)
        if any(first > last for first, last in pairwise(offset)) or offset[len(ids)] != len(blob):
            raise FormatError("the index is damaged: offsets of added tokens do not ascend", location=where)
        self.tokens = [
            Special(
                ids[i],
                bytes(blob[offset[i] : offset[i + 1]]),
                bool(flags[i] & LSTRIP),
                bool(flags[i] & RSTRIP),
                bool(flags[i] & SPECIAL),
            )
            for i in range(len(ids))
            if ids[i] < size and offset[i] < offset[i + 1]
        ]
        self._finders: dict[bool, Finder | None] = {}
        self._start: re.Pattern[str] | None = None

    def cut(self, text: bytes, parse_special: bool) -> list[Fragment]:
        """Fragments of ``text`` in order, as byte offsets; stripped spaces lie between fragments."""
        if not text:
            return []
        found = self._finder(parse_special)
        if found is None:
            return self._passes(text, parse_special)
        fragments: list[Fragment] = []
        last = 0
        for left, start, end, right, token in found.find(text):
            if last < left:
                fragments.append((-1, last, left))
            fragments.append((token, start, end))
            last = right
        if last < len(text):
            fragments.append((-1, last, len(text)))
        return fragments

    def _finder(self, parse_special: bool) -> Finder | None:
        key = bool(parse_special)
        if key not in self._finders:
            self._finders[key] = finder([token for token in self.tokens if key or not token.special])
        return self._finders[key]

    def _passes(self, text: bytes, parse_special: bool) -> list[Fragment]:
        """The rule as it stands."""
        fragments: list[Fragment] = [(-1, 0, len(text))]
        for token in self.tokens:
            if (parse_special or not token.special) and token.content in text:
                fragments = _pass(text, fragments, token)
        return fragments

    @property
    def crosses_spaces(self) -> bool:
        """Whether a token could hold a space that is cut at (:mod:`tokpack.runtime.spaced`)."""
        return any(b" " in t.content and _crosses(t.content) for t in self.tokens)

    def may_hold(self, text: str) -> bool:
        """Whether any added token could begin in ``text``: False means that :meth:`cut` has nothing to do."""
        if not self.tokens:
            return False
        if self._start is None:
            self._start = self._beginnings()
        return self._start.search(text) is not None

    def _beginnings(self) -> re.Pattern[str]:
        """What tokens begin with, as text; a beginning that ends inside a character is cut to what can be compared."""
        after: dict[str, set[str]] = {}
        for content in {token.content[: 4 * _PREFIX] for token in self.tokens}:
            start = content.decode("utf-8", "replace")[:_PREFIX].split("\ufffd", 1)[0]
            after.setdefault(start[:1], set()).add(start[1:])
        if "" in after:
            return re.compile("")
        found = []
        for first, seconds in sorted(after.items()):
            some = "".join(map(re.escape, sorted(seconds)))
            found.append(re.escape(first) + ("" if "" in seconds else f"(?=[{some}])"))
        return re.compile("|".join(found), re.DOTALL)


def _crosses(content: bytes) -> bool:
    try:
        return crosses(content.decode("utf-8"))
    except UnicodeDecodeError:
        return True


def _pass(text: bytes, fragments: list[Fragment], token: Special) -> list[Fragment]:
    content, size = token.content, len(token.content)
    out: list[Fragment] = []
    for fragment in fragments:
        if fragment[0] >= 0:
            out.append(fragment)
            continue
        _, start, end = fragment
        while True:
            at = text.find(content, start, end)
            if at < 0:
                break
            left = at
            if token.lstrip:
                left = start + len(text[start:at].rstrip(_SPACE))
            if left > start:
                out.append((-1, start, left))
            out.append((token.id, at, at + size))
            start = at + size
            if token.rstrip:
                start = end - len(text[start:end].lstrip(_SPACE))
        if start < end:
            out.append((-1, start, end))
    return out
