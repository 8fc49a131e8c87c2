"""Turning what a damaged meta section leads to into one clear error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tokpack.errors import FormatError, Location

__all__ = ["meta_errors"]


@contextmanager
def meta_errors(file: str | None) -> Iterator[None]:
    """Raise FormatError instead of the errors of looking into a map that does not hold what it should."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, re.error) as error:
        what = f"the meta section of the index is damaged: {type(error).__name__}: {error}"
        raise FormatError(what, location=Location(file), hint="convert the tokenizer again") from error
