"""Added tokens: two passes, each leftmost-longest (``tokenizer/added_vocabulary.rs``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tokpack.runtime.hf.fragment import Fragment

__all__ = ["AddedMatcher", "AddedToken"]

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
        self._lengths: dict[str, list[int]] = {}
        for pattern in sorted(self._tokens, key=len, reverse=True):
            lengths = self._lengths.setdefault(pattern[0], [])
            if len(pattern) not in lengths:
                lengths.append(len(pattern))
        firsts = "".join(sorted(self._lengths))
        self._first = re.compile(f"[{re.escape(firsts)}]") if firsts else None

    def split(self, fragment: Fragment, skip_special: bool) -> list[Part]:
        """The fragment in parts: tokens, and text between them.

        ``skip_special``: special tokens are not cut out; what they match is not given to a shorter one either.
        """
        text = fragment.text
        if not text or self._first is None:
            return [(-1, fragment)]
        parts: list[Part] = []
        last = 0
        for match_start, match_end, token in self._matches(text):
            if skip_special and token.special:
                continue
            start, end = match_start, match_end
            if token.single_word and self._inside_word(text, start, end):
                continue
            if token.lstrip:
                while start > 0 and self._is_space(text[start - 1]):
                    start -= 1
                start = max(start, last)
            if token.rstrip:
                while end < len(text) and self._is_space(text[end]):
                    end += 1
            if last < start:
                parts.append((-1, fragment.slice(last, start)))
            # a token whose spaces reach over the next match does not keep that one away: text can come twice
            parts.append((token.id, fragment.slice(start, end)))
            last = end
        if last != len(text):
            parts.append((-1, fragment.slice(last, len(text))))
        return parts

    def _inside_word(self, text: str, start: int, end: int) -> bool:
        before = start > 0 and self._is_word(text[start - 1])
        return before or (end < len(text) and self._is_word(text[end]))

    def _matches(self, text: str) -> list[tuple[int, int, AddedToken]]:
        assert self._first is not None
        found: list[tuple[int, int, AddedToken]] = []
        get, lengths = self._tokens.get, self._lengths
        at = 0
        while True:
            candidate = self._first.search(text, at)
            if candidate is None:
                return found
            start = at = candidate.start()
            for length in lengths[text[start]]:
                token = get(text[start : start + length])
                if token is not None:
                    at = start + length
                    found.append((start, at, token))
                    break
            else:
                at = start + 1
