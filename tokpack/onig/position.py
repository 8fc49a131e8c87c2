"""A place in a pattern that is read from left to right."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tokpack.errors import RefusedError, UnsupportedError

__all__ = ["PatternReader"]

_SHOWN = 200  # characters of a pattern in a message


class PatternReader(ABC):
    """Reads a pattern from left to right; each engine has its own words for what it does not take."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0

    @abstractmethod
    def refused(self, reason: str, at: int | None = None) -> RefusedError:
        """The engine itself refuses the pattern."""

    @abstractmethod
    def unsupported(self, construct: str, why: str, at: int | None = None) -> UnsupportedError:
        """The engine takes it, or may take it; this package does not."""

    def place(self, at: int | None) -> str:
        """The end of a message: where in which pattern; here if ``at`` is None."""
        shown = self.pattern if len(self.pattern) <= _SHOWN else self.pattern[:_SHOWN] + "…"
        return f", at character {self.pos if at is None else at} of the regular expression {shown!r}"

    def done(self) -> bool:
        """Nothing is left."""
        return self.pos >= len(self.pattern)

    def peek(self, text: str) -> bool:
        """The text stands here."""
        return self.pattern.startswith(text, self.pos)

    def take(self, text: str) -> bool:
        """Step over the text if it stands here."""
        if not self.peek(text):
            return False
        self.pos += len(text)
        return True

    def next(self, at_end: str) -> str:
        """The next character; ``at_end`` is the engine's complaint if there is none."""
        if self.done():
            raise self.refused(at_end)
        self.pos += 1
        return self.pattern[self.pos - 1]
