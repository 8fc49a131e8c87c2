"""A position in a pattern of tiktoken, the errors that name it, and what a backslash spells in and out of brackets."""

from __future__ import annotations

import string

from tokpack.errors import RefusedError, UnsupportedError
from tokpack.onig.fancy_sets import fold, named, property_named
from tokpack.onig.position import PatternReader
from tokpack.onig.sets import CharSet

__all__ = ["FancyCursor"]

_CONTROL = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B, "v": 0x0B, " ": 0x20}
_CLASSES = {"w": "[word", "d": "[decimal", "s": "[white", "h": "[hex"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_MAX_CODE = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def _recorded(name: str) -> CharSet:
    chars = named(name)
    assert chars is not None
    return chars


class FancyCursor(PatternReader):
    """Reads a pattern of fancy-regex."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.fold = False

    def refused(self, reason: str, at: int | None = None) -> RefusedError:
        """The engine itself refuses the pattern."""
        return RefusedError(f"tiktoken refuses this pattern: {reason}{self.place(at)}", code="pattern-refused")

    def unsupported(self, construct: str, why: str, at: int | None = None) -> UnsupportedError:
        """The engine takes it, or may take it; this package does not."""
        what = f"{construct} is not translated: {why}{self.place(at)}"
        return UnsupportedError(what, code="pattern-unsupported")

    def digits(self) -> str:
        """Decimal digits, maybe none."""
        start = self.pos
        while not self.done() and self.pattern[self.pos] in string.digits:
            self.pos += 1
        return self.pattern[start : self.pos]

    def escape(self, start: int) -> CharSet | None:
        """The set of an escape that is the same in and out of brackets, after its letter was found at ``start`` + 1.

        None leaves the cursor behind the backslash: the escape is another one (Parser::parse_escape, parse.rs).
        """
        letter = self.next("a backslash at the end")
        if letter.lower() in _CLASSES:
            chars = _recorded(_CLASSES[letter.lower()])
            return ~chars if letter.isupper() else chars
        if letter in "pP":
            return self._property(letter == "P", start)
        if letter in _HEX_DIGITS:
            return self._folded(CharSet.of((self._hex(_HEX_DIGITS[letter], start),)))
        if letter in _CONTROL:
            return CharSet.of((_CONTROL[letter],))
        if letter in string.punctuation and letter not in "<>":
            return CharSet.of((ord(letter),))
        self.pos -= 1
        return None

    def _folded(self, chars: CharSet) -> CharSet:
        return fold(chars) if self.fold else chars

    def _property(self, negate: bool, start: int) -> CharSet:
        name = self.next("an unclosed Unicode name")
        if name == "{":
            end = self.pattern.find("}", self.pos)
            if end < 0:
                raise self.refused("an unclosed Unicode name", start)
            name = self.pattern[self.pos : end]
            self.pos = end + 1
            if name.startswith("^"):
                negate, name = not negate, name[1:]
        chars = property_named(name) if len(name) <= 100 else None
        if chars is None:
            raise self.unsupported(f"the property {name[:100]!r}", "its characters are not recorded", start)
        chars = self._folded(chars)
        return ~chars if negate else chars

    def _hex(self, count: int, start: int) -> int:
        digits = self.pattern[self.pos : self.pos + count]
        if len(digits) == count and all(c in string.hexdigits for c in digits):
            self.pos += count
        elif self.take("{"):
            end = self.pattern.find("}", self.pos)
            digits = self.pattern[self.pos : end] if end >= 0 else ""
            if not 0 < len(digits) <= 8 or any(c not in string.hexdigits for c in digits):
                raise self.refused("invalid hex escape", start)
            self.pos = end + 1
        else:
            raise self.refused("invalid hex escape", start)
        code = int(digits, 16)
        if code > _MAX_CODE or code in _SURROGATES:
            raise self.refused("invalid codepoint for hex or unicode escape", start)
        return code
