"""A position in a pattern, the errors that name it, and what a backslash can spell in and out of brackets."""

from __future__ import annotations

import string

from tokpack.errors import RefusedError, UnsupportedError
from tokpack.onig.position import PatternReader
from tokpack.onig.sets import CharSet, named, normal_name

__all__ = ["NAMED_ESCAPES", "Cursor"]

_CONTROL = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "a": 0x07, "b": 0x08, "e": 0x1B, "v": 0x0B}
# \w \d \s \h and their complements are the engine's properties of these names (regparse.c, fetch_token)
NAMED_ESCAPES = {"w": "word", "d": "digit", "s": "space", "h": "xdigit"}
_MAX_CODE = 0x10FFFF
_MAX_NAME = 200


class Cursor(PatternReader):
    """Reads a pattern of Oniguruma."""

    def refused(self, reason: str, at: int | None = None) -> RefusedError:
        """The engine itself refuses the pattern."""
        return RefusedError(f"the reference library refuses this pattern: {reason}{self.place(at)}")

    def unsupported(self, construct: str, why: str, at: int | None = None) -> UnsupportedError:
        """The engine takes it, this package does not."""
        return UnsupportedError(f"{construct} is not translated: {why}{self.place(at)}")

    def run(self, alphabet: str, most: int) -> str:
        """Up to ``most`` characters of the alphabet."""
        start = self.pos
        while self.pos < len(self.pattern) and self.pos - start < most and self.pattern[self.pos] in alphabet:
            self.pos += 1
        return self.pattern[start : self.pos]

    def property_set(self, negate: bool, *, in_brackets: bool = False) -> CharSet:
        """``\\p{name}``, after the brace (fetch_char_property_to_ctype: the name ends at ``}``, not at ``(){|``)."""
        start = self.pos
        if self.take("^"):
            negate = not negate
        first = self.pos
        while not self.done() and self.pattern[self.pos] not in "}(){|":
            self.pos += 1
        if not self.peek("}"):
            raise self.refused("unmatched brace of a character property", start)
        name = self.pattern[first : self.pos]
        self.pos += 1
        plain = normal_name(name) if name.isascii() and "[" not in name and len(name) <= _MAX_NAME else ""
        chars = named("[word" if in_brackets and plain == "word" else plain)
        if chars is None:
            raise self.refused(f"invalid character property name {{{name}}}", start)
        return ~chars if negate else chars

    def number_escape(self, letter: str, start: int) -> int | None:
        """``\\xHH \\x{H…} \\uHHHH \\0oo``, after the letter; None: the letter stands for itself."""
        if letter in "xuo" and self.done():
            return None
        if letter in "xo" and self.peek("{"):
            return self._braced(letter, start)
        if letter == "x":
            return self._byte(self.run(string.hexdigits, 2), 16, start)
        if letter == "u":
            digits = self.run(string.hexdigits, 4)
            if len(digits) < 4:
                raise self.refused("invalid code point value (\\u takes four digits)", start)
            return int(digits, 16)
        if letter == "0":
            return self._byte(self.run(string.octdigits, 2), 8, start)
        return None

    def _braced(self, letter: str, start: int) -> int:
        self.pos += 1
        digits = self.run(string.octdigits, 11) if letter == "o" else self.run(string.hexdigits, 8)
        if not digits or not self.take("}"):
            raise self.unsupported(f"\\{letter}{{…}} other than one code point", "not verified", start)
        code = int(digits, 8 if letter == "o" else 16)
        if code > _MAX_CODE:
            raise self.unsupported(f"\\{letter}{{…}} beyond 10FFFF", "no such character", start)
        return code

    def _byte(self, digits: str, base: int, start: int) -> int:
        value = int(digits, base) if digits else 0  # "can't read nothing, but it's not error"
        if value > 0x7F:
            raise self.unsupported("a raw byte from 80", "bytes of UTF-8 spelled one by one are not joined", start)
        return value

    def control(self, letter: str) -> int:
        """What a letter after a backslash means when nothing else claims it (conv_backslash_value)."""
        return _CONTROL.get(letter, ord(letter))
