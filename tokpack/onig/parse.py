"""Pattern → syntax tree, by the rules of Oniguruma's parser (doc/RE, doc/SYNTAX.md; src/regparse.c, syntax Oniguruma).

The tree keeps what later steps of the engine depend on: where strings begin and end (case folding takes whole strings),
which groups are borders, and the rewriting of nested quantifiers.
"""

from __future__ import annotations

from tokpack.onig.brackets import parse_class
from tokpack.onig.cursor import NAMED_ESCAPES, Cursor
from tokpack.onig.folding import fold_class
from tokpack.onig.nodes import Alt, Anchor, Atomic, Chars, Group, Look, Node, Seq, Set
from tokpack.onig.quantify import Quantifier, interval, invalid_target, repeat
from tokpack.onig.sets import CharSet, named

__all__ = ["parse"]

_MAX_DEPTH = 100
_NEWLINE = CharSet.of((0x0A,))
_GENERAL_NEWLINE = CharSet.of((0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029))
_NO_CLOSE = "end pattern with unmatched parenthesis"
_IN_GROUP = "end pattern in group"
_ANCHORS = {"b": "\\b", "B": "\\B", "A": "\\A", "z": "\\z", "Z": "\\Z"}
_REFUSED_ESCAPES = {
    "G": "it depends on where a search starts",
    "K": "the start of the match would move",
    "X": "text segments are not verified",
    "y": "text segments are not verified",
    "Y": "text segments are not verified",
    "k": "a back reference compares text, and the text is mapped to classes",
    "g": "calls of groups have no counterpart in `re`",
    "c": "control notation is not verified",
    "C": "control notation is not verified",
    "M": "meta notation is not verified",
}


def parse(pattern: str) -> Node:
    """The tree of a pattern; raises RefusedError or UnsupportedError."""
    parser = _Parser(pattern)
    tree = parser.alternatives(0)
    if not parser.done():
        raise parser.refused("unmatched close parenthesis")
    return tree


class _Parser(Cursor):
    """Recursive descent; the names of the C functions are in the methods' docstrings."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.fold = False
        self.dot_all = False
        self.extended = False

    def skip(self) -> None:
        """Comments, and white space under ``(?x)`` (fetch_token, at its label start)."""
        while True:
            if self.take("(?#"):
                while (letter := self.next(_IN_GROUP)) != ")":
                    if letter == "\\" and not self.done():
                        self.pos += 1
            elif self.extended and not self.done() and self.pattern[self.pos] in " \t\n\r\f":
                self.pos += 1
            elif self.extended and self.take("#"):
                end = self.pattern.find("\n", self.pos)
                self.pos = len(self.pattern) if end < 0 else end + 1
            else:
                return

    def at_end(self) -> bool:
        """A branch ends here."""
        self.skip()
        return self.done() or self.peek("|") or self.peek(")")

    def alternatives(self, depth: int) -> Node:
        """prs_alts: options set inside end with it."""
        if depth > _MAX_DEPTH:
            raise self.unsupported("deep nesting", f"more than {_MAX_DEPTH} levels")
        options = self.fold, self.dot_all, self.extended
        branches = [self.branch(depth)]
        while self.take("|"):
            branches.append(self.branch(depth))
        self.fold, self.dot_all, self.extended = options
        return branches[0] if len(branches) == 1 else Alt(tuple(branches))

    def branch(self, depth: int) -> Node:
        """prs_branch: a list that is not the first item dissolves into this one, the first stays one item."""
        items: list[Node] = []
        while not self.at_end():
            node = self.expression(depth)
            if items and isinstance(node, Seq):
                items.extend(node.items)
            else:
                items.append(node)
        if not items:
            return Chars(())
        return items[0] if len(items) == 1 else Seq(tuple(items))

    def expression(self, depth: int) -> Node:
        """prs_exp: one item with its quantifiers."""
        start = self.pos
        if self.take("("):
            node, is_group, complete = self.group(start, depth)
            return node if complete else self.quantified(node, is_group)
        if self.take("["):
            chars, negate = parse_class(self)
            return self.quantified(fold_class(chars, negate=negate) if self.fold else Set(~chars if negate else chars))
        if self.quantifier() is not None:
            raise self.refused("target of repeat operator is not specified", start)
        return self.quantified(self.atom())

    def atom(self) -> Node:
        """A run of plain characters, or one escape, dot or anchor."""
        node = self.single()
        if not isinstance(node, str):
            return node
        codes = [ord(node)]
        while not self.at_end() and self.pattern[self.pos] not in "([":
            start = self.pos
            if self.quantifier() is not None:
                self.pos = start
                break
            more = self.single()
            if not isinstance(more, str):
                self.pos = start
                break
            codes.append(ord(more))
        return Chars(tuple(codes), self.fold)

    def single(self) -> Node | str:
        """One item that is no group, class or quantifier; a str is a character that joins a run (TK_STRING)."""
        start = self.pos
        letter = self.next("end of pattern")
        if letter == ".":
            return Set(~CharSet.of(())) if self.dot_all else Set(~_NEWLINE)
        if letter in "^$":
            return Anchor(letter)
        if letter != "\\":
            return letter
        letter = self.next("end pattern at escape")
        if letter in _ANCHORS:
            return Anchor(_ANCHORS[letter])
        if letter in "123456789":
            raise self.unsupported(f"\\{letter}", _REFUSED_ESCAPES["k"], start)
        if letter in "kg" and not (self.peek("<") or self.peek("'")):
            return letter
        if letter in _REFUSED_ESCAPES:
            raise self.unsupported(f"\\{letter}", _REFUSED_ESCAPES[letter], start)
        return self._single_set(letter) or self._single_char(letter, start)

    def _single_set(self, letter: str) -> Node | None:
        if letter.lower() in NAMED_ESCAPES:
            chars = named(NAMED_ESCAPES[letter.lower()])
            assert chars is not None
            return Set(~chars if letter.isupper() else chars)
        if letter in "pP" and self.take("{"):
            return Set(self.property_set(letter == "P"))
        if letter == "R":  # node_new_general_newline
            return Atomic(Alt((Chars((0x0D, 0x0A)), Set(_GENERAL_NEWLINE))))
        if letter == "N":
            return Set(~_NEWLINE)
        return Set(~CharSet.of(())) if letter == "O" else None

    def _single_char(self, letter: str, start: int) -> Node | str:
        code = self.number_escape(letter, start)
        if code is None:
            code = self.control(letter)
            if code == ord(letter):
                return letter
        return Chars((code,), self.fold)

    def quantifier(self) -> Quantifier | None:
        """``? * + {…}`` with what follows; None if none stands here (fetch_token)."""
        if self.done():
            return None
        if self.peek("{"):
            return interval(self)
        bounds = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(self.pattern[self.pos])
        if bounds is None:
            return None
        self.pos += 1
        if self.take("?"):
            return Quantifier(*bounds, greedy=False)
        return Quantifier(*bounds, possessive=self.take("+"))

    def quantified(self, node: Node, is_group: bool = False) -> Node:
        """The quantifiers after an item; of a run that is no group only the last character is repeated."""
        head: Node | None = None
        while True:
            self.skip()
            start = self.pos
            found = self.quantifier()
            if found is None:
                return node if head is None else Seq((head, node))
            if invalid_target(node):
                raise self.refused("target of repeat operator is invalid", start)
            if (found.low, found.high) != (1, 1):
                if isinstance(node, Chars) and len(node.codes) > 1 and not is_group:
                    head, node = Chars(node.codes[:-1], node.fold), Chars(node.codes[-1:], node.fold)
                node = repeat(node, found)
                node = Atomic(node) if found.possessive else node
            is_group = False

    def close(self) -> None:
        """The end of a group."""
        if not self.take(")"):
            raise self.refused(_NO_CLOSE)

    def body(self, depth: int) -> Node:
        """What stands up to the closing parenthesis."""
        node = self.alternatives(depth + 1)
        self.close()
        return node

    def group(self, start: int, depth: int) -> tuple[Node, bool, bool]:
        """prs_bag: (node, is it ``(?:…)``, is the branch over: an option without a body)."""
        if self.done():
            raise self.refused(_NO_CLOSE)
        if self.peek("*"):
            raise self.unsupported("(*…)", "callouts", start)
        if not self.take("?"):
            return Group(self.body(depth), "plain"), False, False
        letter = self.next(_IN_GROUP)
        if letter == ":":
            return self.body(depth), True, False
        if letter in "=!":
            return Look(self.body(depth), False, letter == "!", start), False, False
        if letter == ">":
            return Atomic(self.body(depth)), False, False
        if letter == "<" and (self.peek("=") or self.peek("!")):
            negate = self.next(_IN_GROUP) == "!"
            return Look(self.body(depth), True, negate, start), False, False
        if letter in "<'":
            self._group_name(">" if letter == "<" else "'", start)
            return Group(self.body(depth), "named"), False, False
        if letter in "~({":
            what = {"~": "an absent function", "(": "a conditional", "{": "a callout"}[letter]
            raise self.unsupported(f"(?{letter}…)", what, start)
        self.pos -= 1
        return self._options(start, depth)

    def _group_name(self, end: str, start: int) -> None:
        """fetch_name: only the first character is checked, and a parenthesis may not come before the end."""
        first = self.next("group name is empty")
        word = named("word")
        assert word is not None
        if first == end or first in "0123456789" or CharSet.of((ord(first),)) - word:
            raise self.refused("invalid group name", start)
        while (letter := self.next("invalid group name")) != end:
            if letter == ")":
                raise self.refused("invalid group name", start)

    def _options(self, start: int, depth: int) -> tuple[Node, bool, bool]:
        """``(?imx-imx)`` up to the end of the group it stands in, or ``(?imx-imx:…)``."""
        saved = self.fold, self.dot_all, self.extended
        on, foreign = True, ""
        while (letter := self.next(_IN_GROUP)) not in ":)":
            if letter == "-":
                on = False
            elif letter == "i":
                self.fold = on
            elif letter == "m":
                self.dot_all = on
            elif letter == "x":
                self.extended = on
            elif letter in "WDSPyCIL" and not (letter == "P" and self.peek("<")):
                foreign = letter
                if letter == "y":
                    self.take("{g}") or self.take("{w}")
            else:
                raise self.refused("undefined group option", start)
        if foreign:
            raise self.unsupported(f"the option {foreign}", "not verified", start)
        node = self.alternatives(depth + 1)
        self.fold, self.dot_all, self.extended = saved
        if letter == ":":
            self.close()
        return Group(node, "option"), False, letter == ")"
