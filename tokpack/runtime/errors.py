"""Turning what a damaged meta section leads to into one clear error."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokpack.errors import FormatError, Location
from tokpack.typed import Any

__all__ = ["bytes_of", "meta_errors", "text_of"]


_DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, re.error)


class meta_errors:  # noqa: N801 - used as a function is
    """Raise FormatError instead of the errors of looking into a map that does not hold what it should."""

    def __init__(self, file: str | None) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _DAMAGE):
            what = f"the meta section of the index is damaged: {type(error).__name__}: {error}"
            raise FormatError(what, location=Location(self._file), hint="convert the tokenizer again") from error


def text_of(step: Mapping[str, Any], name: str) -> str:
    """A text in a step; TypeError, for :class:`meta_errors`, if it is something else."""
    value = step[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def bytes_of(step: Mapping[str, Any], name: str) -> bytes:
    """Bytes in a step, as :func:`text_of`: of a number, ``bytes`` would make as many zeros."""
    value = step[name]
    if not isinstance(value, bytes):
        raise TypeError(f"{name} is not bytes")
    return value
