"""Pattern of tiktoken → tree of sets, by the rules of the crate fancy-regex 0.19 (src/parse.rs).

What depends on a corner of that parser (options set in the middle, back references, conditionals, ``\\K``, ``\\G``) is
not translated. Lookbehinds are of single widths, or alternatives of such.
"""

from __future__ import annotations

from tokpack.onig.fancy_brackets import parse_class
from tokpack.onig.fancy_cursor import FancyCursor
from tokpack.onig.fancy_sets import fold, named
from tokpack.onig.lower import EMPTY, width
from tokpack.onig.nodes import Alt, Anchor, Atomic, Look, Node, Repeat, Seq, Set, children
from tokpack.onig.sets import CharSet
from tokpack.onig.simplify import can_be_empty

__all__ = ["parse"]

_MAX_DEPTH = 60
_MAX_REPEAT = 1000
_NEWLINE = CharSet.of((0x0A,))
_ALL = ~CharSet.of(())
_SPACES = " \t\r\n"


def parse(pattern: str) -> Node:
    """The tree of a pattern; raises RefusedError or UnsupportedError."""
    parser = _Parser(pattern)
    parser.leading_options()
    tree = parser.alternatives(0)
    if not parser.done():
        raise parser.refused("end of string not reached")
    return tree


def _word() -> CharSet:
    word = named("[word")
    assert word is not None
    return word


def _boundary(inside: bool) -> Node:
    """``\\b``, or ``\\B`` if ``inside``."""
    word, offset = Set(_word()), 0
    yes_before, no_before = (Look(word, True, negate, offset) for negate in (False, True))
    yes_behind, no_behind = (Look(word, False, negate, offset) for negate in (False, True))
    if inside:
        return Alt((Seq((yes_before, yes_behind)), Seq((no_before, no_behind))))
    return Alt((Seq((yes_before, no_behind)), Seq((no_before, yes_behind))))


class _Parser(FancyCursor):
    """Recursive descent, with the names of the Rust functions in the docstrings."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.dot_all = False
        self.multi_line = False
        self.extended = False

    def leading_options(self) -> None:
        """``(?ims)`` at the very beginning holds for the whole pattern."""
        if self.peek("(?") and (end := self.pattern.find(")")) > 2:
            letters = self.pattern[2:end]
            if set(letters) <= set("imsxu"):
                self._set(letters)
                self.pos = end + 1

    def _set(self, letters: str) -> None:
        self.fold |= "i" in letters
        self.multi_line |= "m" in letters
        self.dot_all |= "s" in letters
        self.extended |= "x" in letters

    def skip(self) -> None:
        """Comments and, under ``(?x)``, white space (optional_whitespace)."""
        while True:
            if self.take("(?#"):
                while (letter := self.next("unclosed comment")) != ")":
                    if letter == "\\":
                        self.pos += 1
            elif self.extended and not self.done() and self.pattern[self.pos] in _SPACES:
                self.pos += 1
            elif self.extended and self.take("#"):
                end = self.pattern.find("\n", self.pos)
                self.pos = len(self.pattern) if end < 0 else end + 1
            else:
                return

    def alternatives(self, depth: int) -> Node:
        """parse_re."""
        if depth > _MAX_DEPTH:
            raise self.unsupported("deep nesting", f"more than {_MAX_DEPTH} levels")
        branches = [self.branch(depth)]
        self.skip()
        while self.take("|"):
            branches.append(self.branch(depth))
            self.skip()
        return branches[0] if len(branches) == 1 else Alt(tuple(branches))

    def branch(self, depth: int) -> Node:
        """parse_branch."""
        items: list[Node] = []
        while True:
            self.skip()
            if self.done() or self.peek("|") or self.peek(")"):
                return items[0] if len(items) == 1 else Seq(tuple(items))
            items.append(self.piece(depth))

    def piece(self, depth: int) -> Node:
        """parse_piece: an atom with at most one quantifier."""
        start = self.pos
        node = self.atom(depth)
        self.skip()
        found = self._bounds()
        if found is None:
            return node
        if isinstance(node, (Look, Anchor)) or node == EMPTY or width(node) == 0:
            raise self.unsupported("a repeated assertion", "mostly refused by the reference, too", start)
        low, high = found
        if high is not None and low > high:
            raise self.unsupported("a quantifier that counts down", "not verified", start)
        if can_be_empty(node) and (low, high) != (0, 1):
            raise self.unsupported("a repeated item that can be empty", "engines differ on it", start)
        self.skip()
        node = Repeat(node, low, high, not self.take("?"))
        if self.take("+"):
            node = Atomic(node)
        self.skip()
        if not self.done() and self.pattern[self.pos] in "?*+":
            raise self.refused("the target of a repeat operator is invalid")
        if self.peek("{"):
            raise self.unsupported("{ behind a quantifier", "not verified")
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        if self.done():
            return None
        bounds = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(self.pattern[self.pos])
        if bounds is not None:
            self.pos += 1
            return bounds
        return self._interval() if self.peek("{") else None

    def _interval(self) -> tuple[int, int | None]:
        """``{n} {n,} {n,m} {,m}``."""
        start = self.pos
        self.pos += 1
        low, comma = self.digits(), self.take(",")
        high = self.digits() if comma else low
        if not self.take("}") or not (low or comma):
            raise self.unsupported("{ that is no quantifier", "write \\{", start)
        if max(len(low), len(high)) > 4 or int(low or 0) > _MAX_REPEAT or int(high or 0) > _MAX_REPEAT:
            raise self.unsupported("a large count", f"more than {_MAX_REPEAT}", start)
        return int(low or 0), int(high) if high else None

    def atom(self, depth: int) -> Node:
        """parse_atom."""
        start = self.pos
        letter = self.next("end of pattern")
        if letter == ".":
            return Set(_ALL) if self.dot_all else Set(~_NEWLINE)
        if letter == "^":
            return self._edge(behind=True)
        if letter == "$":
            return self._edge(behind=False)
        if letter == "(":
            return self.group(start, depth)
        if letter == "[":
            return Set(parse_class(self))
        if letter == "\\":
            return self._escaped(start)
        if letter in "?*+":
            raise self.refused("the target of a repeat operator is invalid", start)
        if letter == "{":
            raise self.unsupported("{ that is no quantifier", "write \\{", start)
        chars = CharSet.of((ord(letter),))
        return Set(fold(chars) if self.fold else chars)

    def _edge(self, *, behind: bool) -> Node:
        """``^`` and ``$``: of the text, under ``(?m)`` of a line."""
        if not self.multi_line:
            return Anchor("\\A" if behind else "\\z")
        return Alt((Anchor("\\A" if behind else "\\z"), Look(Set(_NEWLINE), behind, False, self.pos)))

    def _escaped(self, start: int) -> Node:
        for letter, made in (("A", Anchor("\\A")), ("z", Anchor("\\z"))):
            if self.take(letter):
                return made
        if self.take("b") or self.take("B"):
            if self.peek("{"):
                raise self.unsupported("\\b{…}", "not verified", start)
            return _boundary(inside=self.pattern[self.pos - 1] == "B")
        if self.take("O"):
            return Set(_ALL)
        if self.take("N"):
            return Set(~_NEWLINE)
        chars = self.escape(start)
        if chars is None:
            letter = self.pattern[self.pos]
            raise self.unsupported(f"\\{letter}", "it has no counterpart here, or the reference refuses it", start)
        return Set(chars)

    def group(self, start: int, depth: int) -> Node:
        """parse_group."""
        if not self.take("?"):
            return self._body(depth)
        if self.take(">"):
            return Atomic(self._body(depth))
        for sign, behind, negate in (
            ("=", False, False),
            ("!", False, True),
            ("<=", True, False),
            ("<!", True, True),
        ):
            if self.take(sign):
                body = self._body(depth)
                return self._behind(body, negate, start) if behind else Look(body, False, negate, start)
        letters = ""
        while not self.done() and self.pattern[self.pos] in "imsu":
            letters += self.next("")
        if not self.take(":"):
            what = f"(?{self.pattern[self.pos : self.pos + 1]}…"
            raise self.unsupported(what, "a group or option that is not verified", start)
        saved = self.fold, self.multi_line, self.dot_all
        self._set(letters)
        node = self._body(depth)
        self.fold, self.multi_line, self.dot_all = saved
        return node

    def _body(self, depth: int) -> Node:
        node = self.alternatives(depth + 1)
        self.skip()
        if not self.take(")"):
            raise self.refused("an opening parenthesis without a closing one")
        return node

    def _behind(self, body: Node, negate: bool, start: int) -> Node:
        """A lookbehind, one for each width: only whether one of them matches counts."""
        looks: list[Node] = []
        for item in body.items if isinstance(body, Alt) else (body,):
            if width(item) is None or _has_group(item):
                raise self.unsupported("a lookbehind of varying width", "`re` has none", start)
            looks.append(Look(item, True, negate, start))
        if len(looks) == 1:
            return looks[0]
        return Seq(tuple(looks)) if negate else Alt(tuple(looks))


def _has_group(node: Node) -> bool:
    return isinstance(node, (Atomic, Look)) or any(map(_has_group, children(node)))
