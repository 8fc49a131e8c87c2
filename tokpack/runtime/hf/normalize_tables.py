"""Character tables of a pack, read on demand and checked where they are used (:mod:`tokpack.pack.hf_tables`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tokpack.errors import FormatError, Location
from tokpack.pack.view import PackView
from tokpack.typed import Any, cast

__all__ = ["CharFunction", "Numbers", "Texts", "Translation", "array", "damaged"]

CharFunction = Callable[[str], str]

_TEXT = 1 << 31


def damaged(view: PackView, name: str, what: str) -> FormatError:
    """The error for a section that contradicts itself."""
    return FormatError(f"the index is damaged: {what}", location=Location(view.file, name))


def array(view: PackView, name: str, code: str, size: int) -> memoryview[Any]:
    """A section as elements of ``size`` bytes of the type that :meth:`memoryview.cast` calls ``code``."""
    raw = view.raw(name)
    if len(raw) % size:
        raise damaged(view, name, f"{len(raw)} bytes are no multiple of {size}")
    return cast("Any", raw).cast(code) if len(raw) else raw


class Numbers:
    """A number for each code point: ``hf.NAME.start`` and ``hf.NAME.value``."""

    def __init__(self, view: PackView, name: str) -> None:
        self._view, self._name = view, name
        self._starts = array(view, f"hf.{name}.start", "I", 4)
        self._values = array(view, f"hf.{name}.value", "I", 4)
        if not len(self._starts) or len(self._starts) != len(self._values):
            raise damaged(view, f"hf.{name}.start", "the table is incomplete")

    def number(self, char: str) -> int:
        """The number of ``char``; in a table that is out of order, any of its numbers."""
        return int(self._values[bisect_right(self._starts, ord(char)) - 1])


class Texts(Numbers):
    """A text for each code point: the values are places in ``hf.NAME.text``."""

    def __init__(self, view: PackView, name: str) -> None:
        super().__init__(view, name)
        self._blob = view.raw(f"hf.{name}.text")

    def text(self, char: str) -> str:
        """What takes the place of ``char``."""
        value = self.number(char)
        if not value:
            return char
        offset, length = (value & _TEXT - 1) >> 8, value & 0xFF
        raw = self._blob[offset : offset + length]
        if not value & _TEXT or len(raw) != length:
            raise damaged(self._view, f"hf.{self._name}.value", "a text lies outside its blob")
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError as error:
            raise damaged(self._view, f"hf.{self._name}.text", "a text is not UTF-8") from error


class Translation(dict[int, str]):
    """A table for :meth:`str.translate` that asks ``function`` once for each character that it meets."""

    def __init__(self, function: CharFunction) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, code: int) -> str:
        text = self[code] = self._function(chr(code))
        return text
