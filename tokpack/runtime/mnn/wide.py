r"""Patterns that MNN gives to ``std::wregex``: those with a character beyond ASCII and no ``\p{`` (``use_wregex``).

libstdc++ (ECMAScript) and Python's ``re`` agree on what is taken here: literals, classes in the "C" locale, groups,
lookaheads, repetitions. Anything else is refused by name, and so is what could take exponential time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokpack.errors import UnsupportedError

__all__ = ["LONGEST_RUN", "WidePattern", "translate", "uses_wregex"]

LONGEST_RUN = 20_000  # characters: libstdc++ recurses for each and overflows the stack some way beyond
_NESTING = 50
_MOST = 1000  # repetitions in braces
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": " \\t-\\r"}
_NAMED = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


def uses_wregex(pattern: str) -> bool:
    """Whether MNN gives ``pattern`` to ``std::wregex``."""
    return not pattern.isascii() and "\\p{" not in pattern and "\\P{" not in pattern


@dataclass(frozen=True, slots=True)
class WidePattern:
    """A translated pattern, and what is repeated in it and may be gone over once more for each repetition."""

    text: str
    retried: tuple[str, ...]


@dataclass(slots=True)
class _Item:
    text: str
    least: int  # characters
    repeated: str = ""  # what a repetition without a limit repeats
    long: bool = False  # repeats without a limit
    holds_long: bool = False
    look: bool = False


def translate(pattern: str) -> WidePattern:
    """The pattern for ``re``; UnsupportedError for one whose meaning or cost is not known to be the same."""
    parser = _Parser(pattern)
    items = parser.alternatives()
    if parser.at < len(pattern):
        raise parser.unsupported("a parenthesis that opens nowhere")
    if items.least == 0:
        raise parser.unsupported("a match that may be empty")
    if parser.degree > 1:
        raise parser.unsupported("repetitions that may be gone over again and again")
    return WidePattern(items.text, tuple(parser.retried))


def _quote(char: str) -> str:
    code = ord(char)
    return f"\\U{code:08x}"


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0
        self.degree = 0
        self.retried: list[str] = []
        self._depth = 0

    def unsupported(self, what: str) -> UnsupportedError:
        text = f"{what} in a pattern for std::wregex: {self._pattern[:60]!r}"
        return UnsupportedError(text, code="mnn-pattern", hint="only the MNN engine can tell its ids")

    def _peek(self, size: int = 1) -> str:
        return self._pattern[self.at : self.at + size]

    def _take(self, text: str) -> bool:
        if not self._pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def alternatives(self) -> _Item:
        self._depth += 1
        if self._depth > _NESTING:
            raise self.unsupported("deeply nested groups")
        parts = [self._sequence()]
        degrees = [self.degree]
        while self._take("|"):
            self.degree = 0
            parts.append(self._sequence())
            degrees.append(self.degree)
        self.degree = max(degrees)
        self._depth -= 1
        text = "|".join(part.text for part in parts)
        return _Item(text, min(p.least for p in parts), holds_long=any(p.holds_long for p in parts))

    def _sequence(self) -> _Item:
        items: list[_Item] = []
        while self._peek() not in ("", "|", ")"):
            items.append(self._repeated(self._atom()))
        for index, item in enumerate(items):
            if item.long and any(later.least or later.look for later in items[index + 1 :]):
                # of a group that holds a repetition the runs cannot be told
                self.degree += 1 if item.repeated else 2
                self.retried.append(item.repeated)
        least = sum(item.least for item in items if not item.look)
        return _Item("".join(item.text for item in items), least, holds_long=any(i.holds_long for i in items))

    def _repeated(self, item: _Item) -> _Item:
        counts = self._counts()
        if counts is None:
            return item
        low, high, text = counts
        if item.look or (item.holds_long and high != 1) or (item.least == 0 and high != 1):
            raise self.unsupported("a repetition of this part")
        if self._peek() and self._peek() in "*+?{":
            raise self.unsupported("a repetition of a repetition")
        long = high < 0 or high > 64
        repeated = item.text if long else ""
        return _Item(item.text + text, item.least * low, repeated, long, item.holds_long or long)

    def _counts(self) -> tuple[int, int, str] | None:
        """(low, high, text) of a quantifier, high -1 for none."""
        simple = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(self._peek())
        if simple is not None:
            text = self._peek()
            self.at += 1
        elif self._peek() == "{":
            end = self._pattern.find("}", self.at)
            first, comma, second = self._pattern[self.at + 1 : max(end, 0)].partition(",")
            if (
                not first.isdecimal()
                or not first.isascii()
                or len(first + second) > 8
                or (second and not second.isdecimal())
            ):
                raise self.unsupported("braces that are not counts")
            low = int(first)
            high = (int(second) if second else -1) if comma else low
            if max(low, high) > _MOST or 0 <= high < low:
                raise self.unsupported("such counts")
            simple, text = (low, high), f"{{{low},{'' if high < 0 else high}}}"
            self.at = end + 1
        else:
            return None
        return *simple, text + ("?" if self._take("?") else "")

    def _atom(self) -> _Item:
        char = self._peek()
        if char == "(":
            return self._group()
        if char == "[":
            return _Item(self._class(), 1)
        self.at += 1
        if char == ".":
            return _Item(r"[^\n\r\u2028\u2029]", 1)
        if char == "\\":
            kind, value = self._escape()
            return _Item(f"[{value}]" if kind == "class" else _quote(value) if kind == "char" else f"[^{value}]", 1)
        if char in "^$*+?{":
            raise self.unsupported(repr(char))
        return _Item(_quote(char), 1)

    def _group(self) -> _Item:
        self.at += 1
        look = ""
        if self._take("?"):
            if self._peek() not in (":", "=", "!"):
                raise self.unsupported("such a group")
            look = self._peek().replace(":", "")
            self.at += 1
        before, self.degree = self.degree, 0
        inner = self.alternatives()
        if not self._take(")"):
            raise self.unsupported("a group that does not end")
        if look and inner.holds_long:
            raise self.unsupported("a repetition without a limit in a lookahead")
        self.degree += before
        if look:
            return _Item(f"(?{look}{inner.text})", 0, look=True)
        return _Item(f"(?:{inner.text})", inner.least, holds_long=inner.holds_long, long=inner.holds_long)

    def _escape(self) -> tuple[str, str]:
        """(class, members), (negated, members) or (char, character) of an escape; behind the backslash."""
        char = self._peek()
        self.at += 1
        if char in _CONTROLS:
            return "char", _CONTROLS[char]
        if char and char.lower() in _CLASSES:
            return ("class" if char.islower() else "negated"), _CLASSES[char.lower()]
        if char and char in "xu":
            size = 2 if char == "x" else 4
            digits = self._peek(size)
            if len(digits) < size or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise self.unsupported("such an escape")
            self.at += size
            return "char", chr(int(digits, 16))
        if not char or char.isalnum() or not char.isascii():
            raise self.unsupported("such an escape")
        return "char", char

    def _class(self) -> str:
        self.at += 1
        negated = self._take("^")
        members: list[str] = []
        if self._peek() == "]":
            raise self.unsupported("an empty class")
        while not self._take("]"):
            if not self._peek():
                raise self.unsupported("a class that does not end")
            members.append(self._member(not members))
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def _member(self, first: bool) -> str:
        if self._peek() == "[" and self._peek(2) in ("[:", "[.", "[="):
            end = self._pattern.find(":]", self.at)
            name = self._pattern[self.at + 2 : max(end, 0)]
            if self._peek(2) != "[:" or name not in _NAMED:
                raise self.unsupported("such a named class")
            self.at = end + 2
            return _NAMED[name]
        char = self._one()
        if len(char) > 1:
            return char
        if char == "-" and not first and self._peek() != "]":
            raise self.unsupported("a hyphen inside a class")
        if self._peek() != "-" or self._peek(2) == "-]":
            return _quote(char)
        if char == "-":
            raise self.unsupported("a hyphen inside a class")
        self.at += 1
        last = self._one()
        if len(last) > 1 or last < char or last in "[":
            raise self.unsupported("such a range")
        if self._peek() == "-" and self._peek(2) != "-]":
            raise self.unsupported("a hyphen behind a range")
        return f"{_quote(char)}-{_quote(last)}"

    def _one(self) -> str:
        """A character, or the members of an escaped class."""
        char = self._peek()
        if not char:
            raise self.unsupported("a class that does not end")
        self.at += 1
        if char != "\\":
            return char
        kind, value = self._escape()
        if kind == "negated":
            raise self.unsupported("a negated escape in a class")
        return value
