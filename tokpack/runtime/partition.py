"""Cutting special tokens out of a text, by llama.cpp's rule (``tokenizer_st_partition``).

One pass over the still raw fragments per token, in cache order; what is left of a match stays raw, what is right of it
is searched on. Tokens cut earlier are never looked into again. The result depends on that order, not on the position
in the text, so it is reproduced as passes; tokens that do not occur in the text cost one ``in`` each, and only if a
text of theirs could begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tokpack.errors import FormatError, Location
from tokpack.pack.layout import LSTRIP, RSTRIP, SPECIAL
from tokpack.pack.view import PackView

__all__ = ["Fragment", "Partition"]

_SPACE = b" \t\n\v\f\r"  # isspace of the C locale
_TRIES = 1 << 12  # places that are looked at for all tokens with one beginning
_PREFIX = 2  # bytes by which tokens are grouped

Fragment = tuple[int, int, int]  # (id, start, end) of a special token, (-1, start, end) of raw text


@dataclass(frozen=True, slots=True)
class _Special:
    id: int
    content: bytes
    lstrip: bool
    rstrip: bool
    special: bool


class Partition:
    """The added tokens of a pack in matching order."""

    def __init__(self, view: PackView, size: int) -> None:
        ids, flags, offset = view.array("added.id"), view.raw("added.flags"), view.array("added.offset")
        blob = view.raw("added.blob")
        where = Location(view.file, "added.offset")
        if len(flags) != len(ids) or len(offset) != len(ids) + 1:
            raise FormatError("the index is damaged: added-token sections differ in length", location=where)
        if any(first > last for first, last in pairwise(offset)) or offset[len(ids)] != len(blob):
            raise FormatError("the index is damaged: offsets of added tokens do not ascend", location=where)
        self._tokens = [
            _Special(
                ids[i],
                bytes(blob[offset[i] : offset[i + 1]]),
                bool(flags[i] & LSTRIP),
                bool(flags[i] & RSTRIP),
                bool(flags[i] & SPECIAL),
            )
            for i in range(len(ids))
            if ids[i] < size and offset[i] < offset[i + 1]
        ]
        prefixes: dict[bytes, list[int]] = {}
        for index, token in enumerate(self._tokens):
            prefixes.setdefault(token.content[:_PREFIX], []).append(index)
        self._prefixes = prefixes

    def cut(self, text: bytes, parse_special: bool) -> list[Fragment]:
        """Fragments of ``text`` in order, as byte offsets; stripped spaces lie between fragments."""
        if not text:
            return []
        fragments: list[Fragment] = [(-1, 0, len(text))]
        for index in self._present(text):
            token = self._tokens[index]
            if parse_special or not token.special:
                fragments = _pass(text, fragments, token)
        return fragments

    def _present(self, text: bytes) -> list[int]:
        """The tokens that occur in ``text``, in matching order."""
        found: set[int] = set()
        for prefix, indices in self._prefixes.items():
            missing, tries, at = set(indices), 0, text.find(prefix)
            # looking for each token on its own reads a long text once for each of them
            while at >= 0 and missing and tries < _TRIES:
                seen = [index for index in missing if text.startswith(self._tokens[index].content, at)]
                found.update(seen)
                missing.difference_update(seen)
                at = text.find(prefix, at + 1)
                tries += 1
            if at >= 0:
                found.update(index for index in missing if self._tokens[index].content in text)
        return sorted(found)

    def may_hold(self, text: str) -> bool:
        """Whether any added token could begin in ``text``: False means that :meth:`cut` has nothing to do."""
        return any(prefix in text for prefix in self._text_prefixes()) if self._tokens else False

    def _text_prefixes(self) -> tuple[str, ...]:
        """Prefixes as text; a prefix that ends inside a character is cut to what can be compared."""
        cached: tuple[str, ...] | None = getattr(self, "_cached_prefixes", None)
        if cached is None:
            texts = set()
            for token in self._tokens:
                text = token.content.decode("utf-8", "replace")[:_PREFIX]
                texts.add(text.split("�", 1)[0])
            self._cached_prefixes = cached = ("",) if "" in texts else tuple(sorted(texts))
        return cached


def _pass(text: bytes, fragments: list[Fragment], token: _Special) -> list[Fragment]:
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
