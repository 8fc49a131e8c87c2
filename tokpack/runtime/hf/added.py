"""Added tokens: two passes, each leftmost-longest (``tokenizer/added_vocabulary.rs``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tokpack.pack.layout import LSTRIP, NORMALIZED, RSTRIP, SINGLE_WORD, SPECIAL
from tokpack.pack.view import PackView
from tokpack.records import dataclass
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.spaced import crosses
from tokpack.typed import Any

__all__ = ["AddedMatcher", "AddedToken", "read_added"]

Part = tuple[int, Fragment]  # id, or -1 for text that goes on


@dataclass(frozen=True, slots=True)
class AddedToken:
    """One added token; ``pattern`` is its content, normalized if it is matched in normalized text."""

    id: int
    pattern: str
    special: bool
    single_word: bool
    lstrip: bool
    rstrip: bool


class _Branches(dict[str, Any]):
    """Patterns as a tree of characters, a branch made when a text asks for it; "" leads to the token that ends there.

    Some vocabularies have thousands of added tokens, of which a text holds few.
    """

    def __init__(self, tokens: Mapping[str, AddedToken]) -> None:
        super().__init__()
        self.groups: dict[str, list[AddedToken]] = {}
        for pattern, token in tokens.items():
            self.groups.setdefault(pattern[0], []).append(token)

    def __missing__(self, first: str) -> dict[str, Any]:
        root: dict[str, Any] = {}
        for token in self.groups[first]:
            node = root
            for char in token.pattern[1:]:
                node = node.setdefault(char, {})
            node[""] = token
        self[first] = root
        return root


class AddedMatcher:
    """Finds the tokens of one pass.

    Args:
        tokens: in file order; of equal patterns the last one counts.
        is_word, is_space: of Rust's regular expressions and of Rust.
    """

    def __init__(
        self, tokens: Sequence[AddedToken], is_word: Callable[[str], bool], is_space: Callable[[str], bool]
    ) -> None:
        self._tokens = {token.pattern: token for token in tokens if token.pattern}
        self._is_word = is_word
        self._is_space = is_space
        self._tree = _Branches(self._tokens)
        firsts = "".join(sorted(self._tree.groups))
        self._first = re.compile(f"[{re.escape(firsts)}]") if firsts else None

    def may_match(self, text: str) -> bool:
        """Whether a token could begin in ``text``."""
        return self._first is not None and self._first.search(text) is not None

    @property
    def patterns(self) -> list[str]:
        """What is looked for."""
        return list(self._tokens)

    def occurs(self, text: str) -> bool:
        """Whether a token is found in ``text``."""
        if self._first is None or self._first.search(text) is None:
            return False
        return next(self._matches(text), None) is not None

    def hinders(self, text: str) -> bool:
        """Whether a token is found in ``text`` that is not always cut out, or takes spaces beside it."""
        if self._first is None or self._first.search(text) is None:
            return False
        return any(t.special or t.single_word or t.lstrip or t.rstrip for _, _, t in self._matches(text))

    @property
    def crosses_spaces(self) -> bool:
        """Whether a token could hold a space that is cut at (:mod:`tokpack.runtime.spaced`)."""
        return any(" " in pattern and crosses(pattern) for pattern in self._tokens)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to find."""
        return self._first is None

    def split(self, fragment: Fragment, skip_special: bool) -> list[Part]:
        """The fragment in parts: tokens, and text between them.

        ``skip_special``: special tokens are not cut out; what they match is not given to a shorter one either.
        """
        text = fragment.text
        if not text or self._first is None:
            return [(-1, fragment)]
        parts: list[Part] = []
        last = 0
        for start, end, token in self.spans(text, skip_special):
            if last < start:
                parts.append((-1, fragment.slice(last, start)))
            # a token whose spaces reach over the next match does not keep that one away: text can come twice
            parts.append((token, fragment.slice(start, end)))
            last = end
        if last != len(text):
            parts.append((-1, fragment.slice(last, len(text))))
        return parts

    def spans(self, text: str, skip_special: bool) -> Iterator[tuple[int, int, int]]:
        """(start, end, id) of the tokens of a text, with the spaces that they take."""
        last = 0
        for start, end, token in self._matches(text):
            if not (token.special or token.single_word or token.lstrip or token.rstrip):
                last = end
                yield start, end, token.id
                continue
            if skip_special and token.special:
                continue
            if token.single_word and self._inside_word(text, start, end):
                continue
            if token.lstrip:
                while start > 0 and self._is_space(text[start - 1]):
                    start -= 1
                start = max(start, last)
            if token.rstrip:
                while end < len(text) and self._is_space(text[end]):
                    end += 1
            yield start, end, token.id
            last = end

    def _inside_word(self, text: str, start: int, end: int) -> bool:
        before = start > 0 and self._is_word(text[start - 1])
        return before or (end < len(text) and self._is_word(text[end]))

    def _matches(self, text: str) -> Iterator[tuple[int, int, AddedToken]]:
        if self._first is None:
            return
        search, tree, size = self._first.search, self._tree, len(text)
        candidate = search(text)
        while candidate is not None:
            start = at = candidate.start()
            node = tree[text[at]]
            end, token = start + 1, node.get("")
            while True:
                at += 1
                node = node.get(text[at]) if at < size else None
                if node is None:
                    break
                if "" in node:
                    end, token = at + 1, node[""]
            if token is not None:
                yield start, end, token
            candidate = search(text, end)


def read_added(view: PackView, size: int) -> list[tuple[AddedToken, bool]]:
    """Added tokens of a pack in file order, and whether each is matched in normalized text."""
    ids, flags, offset = view.array("added.id"), bytes(view.raw("added.flags")), view.array("added.offset").tolist()
    blob = bytes(view.raw("added.blob"))
    tokens = []
    for token_id, flag, start, end in zip(ids.tolist(), flags, offset, offset[1:], strict=False):
        if token_id < size:
            content = blob[start:end].decode("utf-8", "replace")
            special, single = bool(flag & SPECIAL), bool(flag & SINGLE_WORD)
            token = AddedToken(token_id, content, special, single, bool(flag & LSTRIP), bool(flag & RSTRIP))
            tokens.append((token, bool(flag & NORMALIZED)))
    return tokens
