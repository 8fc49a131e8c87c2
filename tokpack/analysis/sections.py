"""Where things are in a binary file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokpack.findings import Finding

__all__ = ["Look", "Section", "alignment"]

_ALIGNMENTS = tuple(1 << bit for bit in range(12, -1, -1))


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of bytes.

    Attributes:
        name: unique in the file; parts of a section are called ``SECTION/PART`` and lie inside it.
        offset, size: bytes from the start of ``file``.
        note: what is in it, such as ``2,001 strings``.
        file: the file, when it is not the one that was opened (an index beside a .mtok).
        present: bytes of it that are there; less than ``size`` in a file that is cut off.
    """

    name: str
    offset: int
    size: int
    note: str = ""
    file: str | None = None
    present: int | None = None

    @property
    def parent(self) -> str | None:
        """Name of the section that this one is a part of."""
        return self.name.rpartition("/")[0] or None

    @property
    def missing(self) -> int:
        """Bytes that are not in the file."""
        return 0 if self.present is None else self.size - self.present

    def as_dict(self, total: int) -> dict[str, object]:
        """A JSON-ready form; ``share`` is the part of ``total`` bytes that the section takes."""
        there = self.size - self.missing
        return {
            "name": self.name,
            "file": self.file,
            "offset": self.offset,
            "size": self.size,
            "missing": self.missing,
            "alignment": alignment(self.offset),
            "share": round(there / total, 6) if total else 0.0,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Look:
    """What a format knows about a file without making a tokenizer of it: ``look(data, file)`` of its ``layout`` module.

    Attributes:
        sections: in file order, parts behind the section that they lie in.
        facts: about the source, for when the tokenizer cannot be read.
        findings: what is wrong with the file as a file.
        keys: for formats with keys: name, type, count, offset, value (None for an array) of each.
        value: gives the value of an array by the name of its key: a list, or None where it is not kept.
    """

    sections: list[Section]
    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    keys: list[dict[str, Any]] | None = None
    value: Callable[[str], Any] | None = None


def alignment(offset: int) -> int:
    """The largest power of two up to a page that divides ``offset``."""
    return next(step for step in _ALIGNMENTS if offset % step == 0)
