"""Which characters the normalizers of the ``tokenizers`` library treat on their own, and what they make of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tokpack.errors import EncodeError
from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_chars import WHITE_SPACE
from tokpack.runtime.hf.normalize_tables import Numbers
from tokpack.runtime.hf.normalize_unicode import Decomposition, UnicodeNormalizer
from tokpack.runtime.hf.normalizers import Normalizer

__all__ = ["COLLAPSE", "SPACES", "FreeChars"]

COLLAPSE = " {2,}"
SPACES = " \t\n"  # what may begin a field in a run
# letters of runtime/hf/graphemes.py that make clusters with others than these only
_APART = frozenset("oXKCABn")
# a regular expression that matches one character, whatever is beside it
_ONE = re.compile(r"\[(?:\\u[0-9A-Fa-f]{4}|[^\\\[\]^&-])+\]|\\p\{\w+\}")

Step = Callable[[str], "str | None"]


class FreeChars:
    """The steps of a normalizer on one character.

    Args:
        view: the pack.
        normalizers: the steps.
        plain: the same as the meta section has them.

    Attributes:
        known: whether every step is one that is looked through here.
        replaced: texts that are replaced before all other steps, and what takes their place; to these steps their
            characters are as all others.
        collapses: what a run of two spaces or more becomes, None if there is no step for that.
        strips: whether there is a step that strips spaces at the ends of a text.
    """

    def __init__(self, view: PackView, normalizers: Sequence[Normalizer], plain: Sequence[Any]) -> None:
        self._view = view
        self.known = True
        self.replaced: list[tuple[str, str]] = []
        self.collapses: str | None = None
        self.strips = False
        self._steps: list[Step] = []
        self._before_collapse = 0
        for at, (step, what) in enumerate(zip(normalizers, plain, strict=True)):
            dropped = normalizers[at + 1] if at + 1 < len(plain) and plain[at + 1]["kind"] == "strip-accents" else None
            made = self._make(step, what, dropped)
            if made is None:
                self.known = False
                return
            self._steps.append(made)

    def text(self, char: str) -> str | None:
        """What a free character becomes; None if it is not free."""
        return self._through(char, self._steps)

    def single_space(self, char: str) -> bool:
        """Whether a character is one space to the step that makes one of several."""
        return self._through(char, self._steps[: self._before_collapse]) == " "

    def _through(self, char: str, steps: Sequence[Step]) -> str | None:
        text: str | None = char
        try:
            for step in steps:
                if text is None:
                    return None
                text = step(text)
        except EncodeError:
            return None  # an error of a text that holds it, perhaps: not wherever it is part of a longer cluster
        return text

    def _make(self, step: Normalizer, plain: Any, dropped: Normalizer | None) -> Step | None:
        kind = plain["kind"]
        if kind in ("lowercase", "strip-accents", "nmt"):
            return step.apply
        if kind == "unicode-normalization":
            return self._unicode(step, str(plain["form"]), dropped)
        if kind == "precompiled":
            clusters = Numbers(self._view, "grapheme")
            return lambda text: step.apply(text) if _all(text, lambda c: _letter(clusters, c) in _APART) else None
        if kind == "bert-normalizer":
            return self._bert(step, plain)
        if kind == "strip":
            self.strips = True
            return lambda text: text if text and (text in SPACES or not any(map(_is_space, text))) else None
        return self._replace(step, plain) if kind == "replace" else None

    def _unicode(self, step: Normalizer, form: str, dropped: Normalizer | None) -> Step | None:
        if not isinstance(step, UnicodeNormalizer):
            return None
        if form.endswith("C"):
            return lambda text: text if _all(text, step.is_stable) else None
        decomposition = Decomposition(self._view, compatible="K" in form)

        def moves(char: str) -> bool:
            """Whether canonical ordering can move something where that shows."""
            marks = (mark for mark in decomposition.of(char) if decomposition.combining(mark))
            return any(dropped is None or dropped.apply(mark) for mark in marks)

        return lambda text: None if any(map(moves, text)) else step.apply(text)

    def _bert(self, step: Normalizer, plain: Any) -> Step:
        accents = plain["lowercase"] if plain["strip_accents"] is None else plain["strip_accents"]
        if not accents:
            return step.apply
        decomposition = Decomposition(self._view, compatible=False)

        def moves(char: str) -> bool:
            marks = (mark for mark in decomposition.of(char) if decomposition.combining(mark))
            return any(step.apply(mark) for mark in marks)

        return lambda text: None if any(map(moves, text)) else step.apply(text)

    def _replace(self, step: Normalizer, plain: Any) -> Step | None:
        pattern, content = str(plain["pattern"]), str(plain["content"])
        if plain["dialect"] == "literal":
            if len(pattern) == 1:
                return step.apply
            if not pattern or any(map(_is_space, pattern)):
                return None
            if len(self.replaced) == len(self._steps):
                self.replaced.append((pattern, content))
                return lambda text: text
            return lambda text: None if set(text) & set(pattern) else text
        if pattern == COLLAPSE and content in (" ", "\u2581"):
            if self.collapses is None:
                self._before_collapse = len(self._steps)
            self.collapses = content if self.collapses in (None, content) else ""
            return lambda text: None if "  " in text else text
        return step.apply if _ONE.fullmatch(pattern) else None


def _all(text: str, test: Callable[[str], bool]) -> bool:
    return all(map(test, text))


def _is_space(char: str) -> bool:
    return char in WHITE_SPACE


def _letter(clusters: Numbers, char: str) -> str:
    return chr(clusters.number(char) & 0xFF)
