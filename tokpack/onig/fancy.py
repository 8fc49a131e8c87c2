"""Patterns of tiktoken, which runs the crate fancy-regex, as patterns for Python's ``re`` with the same matches.

As in :mod:`tokpack.onig` the text is first mapped to class characters. Not reproduced: the reference gives up (it
panics) on a run of about a million spaces before which ``\\s+(?!\\S)`` has to step back, and on other patterns after
1,000,000 steps back.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokpack.onig import Translated
from tokpack.onig.emit import Classes, emit
from tokpack.onig.fancy_parse import parse
from tokpack.onig.simplify import can_be_empty, simplify

__all__ = ["translate_fancy"]


def translate_fancy(patterns: Sequence[str]) -> Translated:
    """All patterns of one tokenizer, over one set of classes.

    Raises:
        UnsupportedError: a construct that this package does not translate exactly; the reference may take it.
        RefusedError: the reference itself refuses the pattern.
    """
    trees = [simplify(parse(pattern)) for pattern in patterns]
    classes = Classes(trees)
    return Translated(
        tuple(emit(tree, classes) for tree in trees), classes.index, classes.blocks, tuple(map(can_be_empty, trees))
    )
