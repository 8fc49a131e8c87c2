"""Short texts field by field: a space before a character that is none begins a word in many patterns.

In the patterns that :mod:`tokpack.runtime.bulk.known` lists such a space goes with what follows it or is a word of its
own. What is before it is cut into words as if any other such space followed. So a text is cut at these spaces, and each
field is encoded once. No numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["Fields"]

# \S is less than what is no space to a pattern: not all of the spaces that could be used are
_SPLIT = re.compile(r" (?=\S)")
_NEXT = " a"  # a field that may follow any
_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64  # characters; longer fields are rarely seen twice

Known = dict[str, list[int]]


class Fields:
    """Texts to ids.

    Args:
        encode: ids of the words of a text that are in it when another one follows, which begins a word.
    """

    def __init__(self, encode: Callable[[str, str], list[int]]) -> None:
        self._encode = encode
        # plain dictionaries and lists, because that is what the interpreter is fastest at
        self._first: Known = {}
        self._later: Known = {}  # without the space before them
        self._last: Known = {}  # with it; those that end in white space

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        if "  " in text or text[-1:].isspace():
            return self._careful(text)
        fields = iter(text.split(" "))
        ids: list[int] = []
        later = self._later
        try:
            ids += self._first[next(fields)]
            for field in fields:
                ids += later[field]
        except KeyError:
            return self._careful(text)
        return ids

    def _careful(self, text: str) -> list[int]:
        fields = _SPLIT.split(text)
        last = fields.pop() if text[-1:].isspace() else ""
        if not fields:
            return list(self._ending(last))
        ids: list[int] = []
        known, space = self._first, ""
        for field in fields:
            found = known.get(field)
            ids += self._learn(known, field, space + field, _NEXT) if found is None else found
            known, space = self._later, " "
        if last:
            ids += self._ending(" " + last)
        return ids

    def _ending(self, text: str) -> list[int]:
        found = self._last.get(text)
        return self._learn(self._last, text, text, "") if found is None else found

    def _learn(self, known: Known, field: str, text: str, following: str) -> list[int]:
        ids = self._encode(text, following)
        if len(field) <= _CACHED_LENGTH:
            if len(known) >= _CACHED_WORDS:
                known.clear()
            known[field] = ids
        return ids
