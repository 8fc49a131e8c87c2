"""Short texts field by field: what is between two spaces is encoded once, through all steps.

This is right for a field if each of its characters is replaced without regard to what is before the space on the left
or behind the one on the right, and if what comes out is a word to the model, see :func:`tokpack.runtime.sentencepiece.
words.words`. Other fields send the whole text the plain way. No numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tokpack.runtime.sentencepiece.normalizer import Normalizer

__all__ = ["Fields"]

_RUNS = re.compile(r" *[^ ]+| +")  # spaces with what follows
_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64  # characters; longer fields are rarely seen twice


class Fields:
    """Texts to ids.

    Args:
        normalizer: what it does with spaces: each word has one in front of it, or behind it.
        encode: ids of normalized words; None if they depend on what is before them. It is also given how many
            characters of a text they take, with their space.

    Attributes:
        plain: whether spaces are all that the normalizer replaces.
    """

    def __init__(self, normalizer: Normalizer, encode: Callable[[str, int], list[int] | None]) -> None:
        self._normalizer = normalizer
        self._encode = encode
        # plain dictionaries and lists, because that is what the interpreter is fastest at
        self._known: dict[str, list[int]] = {}
        self._runs: dict[str, list[int]] = {}
        self._unsure: set[str] = set()
        self.plain = normalizer.only_escapes

    def encode(self, text: str) -> list[int] | None:
        """Ids of a text; None if it is not certain that its fields can be encoded one by one."""
        ids: list[int] = []
        known = self._known
        try:
            for field in text.split(" "):
                ids += known[field]
        except KeyError:
            return self._careful(text)
        return ids

    def _careful(self, text: str) -> list[int] | None:
        if self.plain and ("  " in text or text[:1] == " " or text[-1:] == " "):
            return self._by_runs(text)
        ids: list[int] = []
        for field in text.split(" "):
            found = self._known.get(field)
            if found is None:
                found = self._learn(field)
                if found is None:
                    return None
            ids += found
        return ids

    def _by_runs(self, text: str) -> list[int] | None:
        """Where no space is left out, those in a row belong to one word."""
        ids: list[int] = []
        known = self._runs
        for run in _RUNS.findall(" " + text):
            found = known.get(run)
            if found is None:
                normalized = self._normalizer.escaped(run)
                found = None if normalized is None else self._encode(normalized, len(run))
                if found is None:
                    return None
                _remember(known, run, found)
            ids += found
        return ids

    def _learn(self, field: str) -> list[int] | None:
        if field in self._unsure:
            return None
        normalized = self._normalizer.between_spaces(field) if len(field) <= _CACHED_LENGTH else None
        if normalized is not None:
            found = self._encode(normalized, len(field) + 1) if normalized else []
            if found is not None:
                _remember(self._known, field, found)
                return found
        if len(field) <= _CACHED_LENGTH:
            if len(self._unsure) >= _CACHED_WORDS:
                self._unsure.clear()
            self._unsure.add(field)
        return None


def _remember(known: dict[str, list[int]], text: str, ids: list[int]) -> None:
    if len(text) <= _CACHED_LENGTH:
        if len(known) >= _CACHED_WORDS:
            known.clear()
        known[text] = ids
