"""Patterns from files cannot hang us: all but known ones run with a time limit.

Known are the translated patterns of published tokenizers, by their BLAKE2b-128 in ``linear.bin``
(:mod:`tokpack.onig.make_linear`). Others run on the package ``regex``, whose matcher looks at the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.limits import PATTERN_SECONDS, PATTERN_SECONDS_PER_CHARACTER
from tokpack.typed import Any, Protocol

__all__ = ["Pattern", "compile_pattern", "find_all", "is_linear", "nesting"]

_FLAGS = re.ASCII | re.DOTALL
_SIZE = 16
_DEEPEST = 12  # published patterns nest two quantifiers at most
# an escaped character, a class, or any other character
_ITEMS = r"(?s:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)"
_QUANTIFIERS = frozenset("*+?{")


class Pattern(Protocol):
    """A compiled pattern, with or without a limit."""

    @property
    def pattern(self) -> str:
        """The translated pattern."""

    def finditer(self, text: str, /) -> Iterator[Any]:
        """All matches, as :meth:`re.Pattern.finditer`."""

    def search(self, text: str, at: int = 0, /) -> Any:
        """The first match from ``at`` on, or None."""


@cache
def _digests() -> frozenset[bytes]:
    with open(__file__.removesuffix("limited.py") + "linear.bin", "rb") as handle:
        raw = handle.read()
    return frozenset(raw[at : at + _SIZE] for at in range(0, len(raw), _SIZE))


def is_linear(translated: str) -> bool:
    """Whether a translated pattern is known to take time that grows with the text, no faster."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    return blake2b(translated.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest() in _digests()


def compile_pattern(source: str, translated: str, where: str) -> Pattern:
    """``translated`` for ``re.ASCII | re.DOTALL``; with a limit unless it is a known one.

    Args:
        source: the pattern as the file has it, for messages.
        translated: over class characters, see :mod:`tokpack.onig`.
        where: where the pattern stands, for messages.
    """
    if is_linear(translated):
        return re.compile(translated, _FLAGS)
    return _Limited(source, translated, where)


def nesting(translated: str) -> int:
    """How deep quantifiers stand inside of each other: ``(?:a+)*`` has 2.

    The package ``regex`` takes time and memory that double with each level to compile them.
    """
    outer: list[int] = []  # of the groups around, the deepest nesting that was seen in each
    seen = 0
    for item in re.finditer(_ITEMS, translated):
        text, at = item[0], item.end()
        if text == "(":
            outer.append(seen)
            seen = 0
            continue
        inner = 0
        if text == ")":
            inner, seen = seen, outer.pop() if outer else 0
        quantified = translated[at : at + 1] in _QUANTIFIERS
        seen = max(seen, inner + quantified)
    return seen


def _too_large(where: str, source: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"{where}: the pattern {_shown(source)!a} {what}", hint="use another pattern")


def _shown(source: str) -> str:
    return source if len(source) < 80 else source[:77] + "..."


class _Limited:
    """A pattern of the package ``regex`` that gives up after a time."""

    def __init__(self, source: str, translated: str, where: str) -> None:
        try:
            import regex
        except ImportError as error:
            hint = "pip install regex"
            raise UnsupportedError(f"{where}: this pattern needs the package regex", hint=hint) from error
        depth = nesting(translated)
        if depth > _DEEPEST:
            raise _too_large(where, source, f"nests {depth} quantifiers, more than {_DEEPEST}")
        try:
            re.compile(translated, _FLAGS)  # what the one does not take, the other need not see
            self._compiled = regex.compile(translated, regex.ASCII | regex.DOTALL | regex.VERSION0)
        except regex.error as error:
            raise re.error(str(error)) from error
        except (OverflowError, RecursionError, MemoryError) as error:
            raise _too_large(where, source, "is too large to be compiled") from error
        self.pattern = translated
        self._source, self._where = source, where

    def _limit(self, text: str) -> float:
        return PATTERN_SECONDS + len(text) * PATTERN_SECONDS_PER_CHARACTER

    def _error(self, text: str) -> EncodeError:
        shown = _shown(self._source)
        what = (
            f"{self._where}: the pattern {shown!a} took more than {self._limit(text):.0f} s "
            f"on a text of {len(text)} characters"
        )
        return EncodeError(what, hint="cut the text, or use another pattern: this one backtracks without bound")

    def finditer(self, text: str, /) -> Iterator[Any]:
        """All matches; EncodeError when it takes too long."""
        try:
            yield from self._compiled.finditer(text, timeout=self._limit(text))
        except TimeoutError as error:
            raise self._error(text) from error

    def search(self, text: str, at: int = 0, /) -> Any:
        """The first match from ``at`` on; EncodeError when it takes too long."""
        try:
            return self._compiled.search(text, at, timeout=self._limit(text))
        except TimeoutError as error:
            raise self._error(text) from error


def find_all(pattern: Pattern, text: str, can_be_empty: bool) -> Iterator[tuple[int, int]]:
    """Matches as the reference libraries' ``find_iter`` gives them (tokenizers with Oniguruma, tiktoken's fancy-regex).

    They drop an empty match right behind the match before, and go on one character later.
    """
    if not can_be_empty:
        return (match.span() for match in pattern.finditer(text))
    return _careful(pattern, text)


def _careful(pattern: Pattern, text: str) -> Iterator[tuple[int, int]]:
    at, last = 0, -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            return
        start, end = match.span()
        at = end + 1 if start == end else end
        if start < end or end != last:
            yield start, end
        last = end
