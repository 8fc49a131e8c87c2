r"""Patterns as MNN's own matcher reads them (``PatternParser`` in ``unicode.cpp`` of MNN tag 3.6.1).

The matcher runs on a text folded to one byte per code point: ASCII as it is, others 1 letter, 2 number, 3 white space,
4 other, 5 mark, 6 punctuation, 7 symbol. What the parser does not know it reads as something else without a word:
``\p{Lu}`` is any letter, ``^`` a literal, a second ``+`` another literal, a stray ``)`` the end of the pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokpack.errors import UnsupportedError

__all__ = ["GPT2_PATTERN", "GROUP_LIMIT", "Branch", "Chars", "Group", "Look", "Node", "parse"]

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GROUP_LIMIT = 10_000  # match_seq: repetitions of a group without a limit of its own
_NESTING = 100
_NODES = 20_000
_INT_MAX = (1 << 31) - 1
_ALL = (1 << 256) - 1


@dataclass(frozen=True, slots=True)
class Chars:
    """One of a set of folded bytes, ``low`` to ``high`` times; ``high`` -1 is without limit. Bit b of ``mask`` is b."""

    mask: int
    low: int = 1
    high: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Alternatives; each repetition takes the first that matches, for good, and must not be empty."""

    branches: tuple[Branch, ...]
    low: int = 1
    high: int = 1


@dataclass(frozen=True, slots=True)
class Look:
    """The negative lookahead."""

    branches: tuple[Branch, ...]


Node = Chars | Group | Look
Branch = tuple[Node, ...]


def _mask(chars: bytes) -> int:
    mask = 0
    for char in chars:
        mask |= 1 << char
    return mask


_LOWER = bytes(range(0x61, 0x7B))
_LETTER = _mask(b"\x01" + _LOWER + _LOWER.upper())
_NUMBER = _mask(b"\x020123456789")
_SPACE = _mask(b"\x03 \t\n\r\f\v")
_PROPERTIES = {
    b"L": _LETTER,
    b"N": _NUMBER,
    b"M": 1 << 5,
    b"P": _mask(b"\x06!\"#%&'()*,-./:;?@[\\]_{}"),
    b"S": _mask(b"\x07$+<=>^`|~"),
    b"Z": _SPACE,
}
_WORD = _LETTER | _NUMBER | _mask(b"_")
_CLASSES = {b"s": _SPACE, b"d": _NUMBER, b"w": _WORD}
_CLASSES |= {name.upper(): _ALL ^ mask for name, mask in _CLASSES.items()}
_CONTROLS = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"f": b"\f", b"v": b"\v"}
_RANGE_ENDS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_UNSUPPORTED = b"bBAZ123456789"  # a branch with one of these escapes is dropped


def parse(pattern: bytes, classify: Callable[[int], int]) -> tuple[Branch, ...]:
    """The branches that the matcher tries in turn.

    Args:
        pattern: UTF-8.
        classify: folded byte of a code point beyond ASCII.

    Raises:
        UnsupportedError: a pattern on which the engine crashes, needs more stack than it has, or reads freed memory:
            where it supports no branch, it means to use GPT-2's pattern, but its parser refers to a text that is gone
            (``get_compiled``).
    """
    branches = _Parser(pattern, classify).top()
    if not branches:
        what = f"MNN supports no branch of the pattern {pattern[:60]!r} and then reads freed memory"
        raise UnsupportedError(what, code="mnn-pattern")
    return branches


def _decode(text: bytes, at: int) -> tuple[int, int]:
    """(code point, bytes) as ``utf8_decode``: U+FFFD and one byte for what is not UTF-8."""
    first = text[at]
    size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    try:
        char = text[at : at + size].decode("utf-8")
    except UnicodeDecodeError:
        return 0xFFFD, 1
    return (ord(char), size) if len(char) == 1 else (0xFFFD, 1)


class _Parser:
    """Recursive descent, byte by byte as the original; comments name its functions where names differ."""

    def __init__(self, pattern: bytes, classify: Callable[[int], int]) -> None:
        self._text = pattern
        self._at = 0
        self._fold_case = False
        self._supported = True
        self._classify = classify
        self._depth = 0
        self._nodes = 0

    def top(self) -> tuple[Branch, ...]:
        """``parse``: supported branches of the top-level alternation."""
        kept: list[Branch] = []
        while True:
            self._supported = True
            branch = self._branch()
            if self._supported:
                kept.append(branch)
            if self._peek() != b"|":
                return tuple(kept)
            self._at += 1

    def _peek(self) -> bytes:
        return self._text[self._at : self._at + 1]

    def _next(self) -> bytes:
        char = self._peek()
        self._at += 1 if char else 0
        return char or b"\0"

    def _wide(self) -> bool:
        return self._peek() >= b"\x80"

    def _read_folded(self) -> int:
        code, size = _decode(self._text, self._at)
        self._at += size
        return self._fold(code)

    def _fold(self, code: int) -> int:
        return code if code < 0x80 else self._classify(code)

    def _literal(self, char: bytes) -> int:
        """``add_literal``: ASCII letters in both cases inside (?i:…)."""
        return _mask(char.lower() + char.upper()) if self._fold_case and char.isalpha() else _mask(char)

    def _branches(self) -> tuple[Branch, ...]:
        self._depth += 1
        if self._depth > _NESTING:
            raise UnsupportedError(f"a pattern nests groups more than {_NESTING} deep", code="mnn-pattern")
        found = [self._branch()]
        while self._peek() == b"|":
            self._at += 1
            found.append(self._branch())
        self._depth -= 1
        return tuple(found)

    def _branch(self) -> Branch:
        nodes: list[Node] = []
        while self._peek() not in (b"", b"|", b")"):
            self._nodes += 1
            if self._nodes > _NODES:
                raise UnsupportedError(f"a pattern has more than {_NODES} parts", code="mnn-pattern")
            node = self._atom()
            low, high = self._quantifier()
            if isinstance(node, Chars):
                node = Chars(node.mask, low, high)
            elif isinstance(node, Group):
                node = Group(node.branches, low, high)
            nodes.append(node)
        return tuple(nodes)

    def _atom(self) -> Node:
        char = self._peek()
        if char == b"(":
            return self._group()
        if char == b"[":
            return Chars(self._class())
        if char == b"\\":
            return Chars(self._escape())
        if self._wide():
            return Chars(1 << self._read_folded())
        self._at += 1
        return Chars(_ALL ^ _mask(b"\n") if char == b"." else self._literal(char))

    def _quantifier(self) -> tuple[int, int]:
        char = self._peek()
        simple = {b"+": (1, -1), b"*": (0, -1), b"?": (0, 1)}.get(char)
        if simple is not None:
            self._at += 1
            found = simple
        elif char == b"{":
            found = self._counts()
        else:
            return 1, 1
        if self._peek() == b"?":  # lazy: read, and ignored
            self._at += 1
        return found

    def _counts(self) -> tuple[int, int]:
        self._at += 1
        first = self._digits()
        low = high = 0 if first is None else first
        if self._peek() == b",":
            self._at += 1
            second = self._digits()
            high = -1 if second is None else second
        if self._peek() == b"}":
            self._at += 1
        return low, high

    def _digits(self) -> int | None:
        start = self._at
        while self._peek().isdigit():
            self._at += 1
        digits = self._text[start : self._at]
        if len(digits) > 18 or (digits and int(digits) > _INT_MAX):
            raise UnsupportedError("a repetition count in a pattern makes MNN throw", code="mnn-pattern")
        return int(digits) if digits else None

    def _group(self) -> Node:
        self._at += 1
        if self._peek() != b"?":
            return Group(self._closed())
        self._at += 1
        if self._peek() == b"!":
            self._at += 1
            return Look(self._closed())
        if self._peek() in (b"=", b"<"):
            self._supported = False
            depth = 1
            while depth and self._peek():
                depth += {b"(": 1, b")": -1}.get(self._next(), 0)
            return Chars(0)
        before = self._fold_case
        while self._peek() not in (b"", b":", b")"):
            self._fold_case |= self._next() == b"i"
        if self._peek() == b":":
            self._at += 1
        group = Group(self._closed())
        self._fold_case = before
        return group

    def _closed(self) -> tuple[Branch, ...]:
        found = self._branches()
        if self._peek() == b")":
            self._at += 1
        return found

    def _escape(self) -> int:
        """``add_escape_to_cs``."""
        self._at += 1
        char = self._next()
        if char in b"pP":
            return self._property(char == b"P")
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS:
            return _mask(_CONTROLS[char])
        if char == b"x":
            if self._at + 1 >= len(self._text):
                return 0
            high, low = self._next(), self._next()
            return 1 << (_hex(high) * 16 + _hex(low) & 0xFF)
        if char in _UNSUPPORTED:
            self._supported = False
        return self._literal(char)

    def _property(self, negated: bool) -> int:
        if self._peek() != b"{":
            return 0
        end = self._text.find(b"}", self._at)
        name = self._text[self._at + 1 : end if end >= 0 else len(self._text)]
        self._at = end + 1 if end >= 0 else len(self._text)
        mask = _PROPERTIES.get(name[:1], 0)
        return _ALL ^ mask if negated else mask

    def _class(self) -> int:
        """``parse_class``."""
        self._at += 1
        negated = self._peek() == b"^"
        self._at += negated
        mask = 0
        if self._peek() == b"]":
            mask = _mask(b"]")
            self._at += 1
        while self._peek() not in (b"", b"]"):
            if self._peek() == b"\\":
                mask |= self._escape()
            elif self._wide():
                mask |= self._wide_member()
            else:
                mask |= self._member()
        self._at += self._peek() == b"]"
        return _ALL ^ mask if negated else mask

    def _range_follows(self) -> bool:
        return self._peek() == b"-" and self._text[self._at + 1 : self._at + 2] not in (b"", b"]")

    def _wide_member(self) -> int:
        first = self._read_folded()
        if not self._range_follows():
            return 1 << first
        self._at += 1
        last = self._read_folded() if self._wide() else self._fold(self._next()[0])
        return _span(min(first, last), max(first, last))

    def _member(self) -> int:
        char = self._next()
        if not self._range_follows():
            return self._literal(char)
        self._at += 1
        if self._peek() == b"\\":
            self._at += 1
            last = self._next()
            last = _RANGE_ENDS.get(last, last)
        elif self._wide():
            end = self._read_folded()
            return _span(min(char[0], end), max(char[0], end))
        else:
            last = self._next()
        mask = 0
        for code in range(char[0], last[0] + 1):
            mask |= self._literal(bytes((code,)))
        return mask


def _span(first: int, last: int) -> int:
    return (1 << last + 1) - (1 << first)


def _hex(digit: bytes) -> int:
    return int(digit, 16) if digit in b"0123456789abcdefABCDEF" else 0
