"""Patterns of the Hugging Face library, which runs Oniguruma, as patterns for Python's ``re`` with the same matches.

The text is first mapped character by character to class characters (:class:`Translated`), so that a pattern holds only
short explicit sets and no result depends on the Unicode version of the interpreter.

The reference goes on after a match as the crate ``onig`` does (``find_iter``): the next search starts at the end of the
match; an empty match there is dropped and the search starts one character later. ``re.finditer`` goes on differently
after an empty match: for a pattern that ``can_be_empty`` search from position to position instead.

Not reproduced: the reference gives up (an error for the caller) after 10,000,000 backtracking steps in one match. Its
search for a required literal makes some exponential patterns quick that are not quick here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokpack.onig.cursor import Cursor
from tokpack.onig.emit import FLAGS, Classes, emit
from tokpack.onig.lower import lower
from tokpack.onig.parse import parse
from tokpack.onig.simplify import can_be_empty, simplify

__all__ = ["FLAGS", "Translated", "quote", "translate"]

# what the library's ``pattern.escape`` puts a backslash before (crate regex-syntax, is_meta_character)
_META = frozenset("\\.+*?()|[]{}^$#&-~")


@dataclass(frozen=True, slots=True)
class Translated:
    """Patterns over class characters, and the map from text to them.

    Attributes:
        patterns: for ``re.compile(pattern, FLAGS)``, in the order given.
        index: uint16 ``[4352]``: block of the code points ``256 * i …``.
        blocks: uint16 ``[n, 256]``: the class character of code point c is ``blocks[index[c >> 8], c & 255]``; ASCII
            stands for itself.
        can_be_empty: for each pattern whether it may match the empty text.
    """

    patterns: tuple[str, ...]
    index: NDArray[np.uint16]
    blocks: NDArray[np.uint16]
    can_be_empty: tuple[bool, ...]

    def compile(self) -> tuple[re.Pattern[str], ...]:
        """The patterns, compiled."""
        return tuple(re.compile(pattern, FLAGS) for pattern in self.patterns)


def translate(patterns: Sequence[str]) -> Translated:
    """All patterns of one tokenizer, over one set of classes.

    Raises:
        UnsupportedError: a construct that this package does not translate exactly; the reference may take it.
        RefusedError: the reference itself refuses the pattern.
    """
    trees = [simplify(lower(parse(pattern), Cursor(pattern))) for pattern in patterns]
    classes = Classes(trees)
    return Translated(
        tuple(emit(tree, classes) for tree in trees),
        classes.index,
        classes.blocks,
        tuple(map(can_be_empty, trees)),
    )


def quote(literal: str) -> str:
    """The pattern of a ``{"String": …}``: the library escapes the text and runs it on the same engine."""
    return "".join("\\" + char if char in _META else char for char in literal)
