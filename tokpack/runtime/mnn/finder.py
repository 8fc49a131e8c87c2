"""What finds the matches of a pattern of a pre-tokenizer, as ``regex_scanner`` and ``regex_split`` find them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from tokpack.errors import EncodeError
from tokpack.runtime.mnn.emit import can_be_empty, char_class, emit, first_set, retried
from tokpack.runtime.mnn.folded import parse
from tokpack.runtime.mnn.matcher import Matcher, check_depth
from tokpack.runtime.mnn.wide import LONGEST_RUN, translate, uses_wregex

__all__ = ["Finder", "FoldedFinder", "WideFinder", "make_finder"]

Range = tuple[int, int]
_SHORT_RUN = 256  # of characters that a pattern may go over again
_UNDECODED = re.compile("[\udc80-\udcff]")


class Finder:
    """Finds matches; none is empty."""

    def find(self, text: str, folded: Callable[[str], str]) -> list[Range]:
        """(start, end) of the matches in ``text``, ascending; ``folded`` gives its folded form."""
        raise NotImplementedError


class FoldedFinder(Finder):
    """A pattern of MNN's own matcher.

    Args:
        pattern: the pattern.
        classify: folded byte of a code point beyond ASCII.
    """

    def __init__(self, pattern: str, classify: Callable[[int], int]) -> None:
        self._branches = parse(pattern.encode("utf-8", "surrogateescape"), classify)
        check_depth(self._branches)

    @cached_property
    def _empty(self) -> bool:
        return can_be_empty(self._branches)

    @cached_property
    def _compiled(self) -> re.Pattern[str] | None:
        """The pattern for ``re``, None when the matcher itself has to run."""
        text = emit(self._branches)
        return None if text is None or retried(self._branches)[0] > 1 else re.compile(text)

    @cached_property
    def _long_run(self) -> re.Pattern[str] | None:
        """What makes even a linear-looking pattern slow."""
        degree, chars = retried(self._branches)
        return re.compile(f"{char_class(chars)}{{{_SHORT_RUN},}}") if degree else None

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        return re.compile(char_class(first_set(self._branches)))

    def find(self, text: str, folded: Callable[[str], str]) -> list[Range]:
        """See :meth:`Finder.find`."""
        chars = folded(text)
        compiled = self._compiled
        if compiled is None or (self._long_run is not None and self._long_run.search(chars)):
            return self._slow(chars)
        if not self._empty:
            return [match.span() for match in compiled.finditer(chars)]
        found: list[Range] = []
        at = 0
        while at < len(chars):
            match = compiled.match(chars, at)
            if match is not None and match.end() > at:
                found.append((at, match.end()))
                at = match.end()
            else:
                at += 1  # an empty match counts as none
        return found

    def _slow(self, chars: str) -> list[Range]:
        matcher = Matcher(chars, self._branches)
        found: list[Range] = []
        at = 0
        while True:
            # what is not empty begins with one of these
            begin = self._begins.search(chars, at)
            if begin is None:
                return found
            start = begin.start()
            end = matcher.match(start)
            if end > start:
                found.append((start, end))
            at = max(end, start + 1)


class WideFinder(Finder):
    """A pattern of ``std::wregex``, on code points."""

    def __init__(self, pattern: str) -> None:
        self._wide = translate(pattern)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._wide.text)

    @cached_property
    def _long_runs(self) -> list[re.Pattern[str]]:
        return [re.compile(f"(?:{part}){{{LONGEST_RUN},}}") for part in self._wide.retried]

    def find(self, text: str, folded: Callable[[str], str]) -> list[Range]:
        """See :meth:`Finder.find`."""
        text = _UNDECODED.sub("\ufffd", text)
        if len(text) >= LONGEST_RUN and any(run.search(text) for run in self._long_runs):
            raise EncodeError("a run of characters on which std::wregex overflows the stack of MNN")
        return [match.span() for match in self._compiled.finditer(text)]


def make_finder(pattern: str, classify: Callable[[int], int]) -> Finder:
    """The finder of a pattern; UnsupportedError for one whose matches are not known.

    ``classify`` gives the folded byte of a code point beyond ASCII.
    """
    return WideFinder(pattern) if uses_wregex(pattern) else FoldedFinder(pattern, classify)
