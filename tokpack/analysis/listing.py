"""Rows of a vocabulary: what the filters leave, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.analysis import select
from tokpack.analysis.reach import round_trip, unreachable, without_merges
from tokpack.analysis.vocabulary import Vocabulary
from tokpack.runtime.errors import meta_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SCHEMA", "Listing", "listing"]

SCHEMA = "tokpack.vocab/1"


@dataclass(frozen=True)
class Listing:
    """A page of pieces.

    Attributes:
        vocabulary: where they are from.
        matched: number of pieces that the filters leave.
        offset: of the first row among them.
        ids: int64 ``[n]``, the rows.
        reasons: id → why it is unreachable; empty unless that was asked for.
        whole_words: pieces that merging alone does not give, when that is worth a remark (see :func:`listing`).
    """

    vocabulary: Vocabulary
    matched: int
    offset: int
    ids: NDArray[np.int64]
    reasons: Mapping[int, str]
    whole_words: int = 0

    def rows(self) -> Iterator[dict[str, Any]]:
        """:meth:`Vocabulary.row` of each piece, with ``reason`` where there are reasons."""
        for token in self.ids.tolist():
            row = self.vocabulary.row(token)
            yield row | {"reason": self.reasons[token]} if self.reasons else row

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready (``schemas/vocab.json``)."""
        return {
            "schema": SCHEMA,
            "file": self.vocabulary.file,
            "size": self.vocabulary.size,
            "matched": self.matched,
            "offset": self.offset,
            "pieces": list(self.rows()),
        }


def listing(vocabulary: Vocabulary, filters: Mapping[str, Any], offset: int = 0, limit: int | None = None) -> Listing:
    """The pieces that all ``filters`` leave; a filter that is None or False is not applied.

    Args:
        vocabulary: the pieces.
        filters: by the names of :data:`_FILTERS` and ``unreachable``.
        offset: leave out so many of them.
        limit: show so many, None for all.

    Raises UsageError for a filter that cannot be understood.
    """
    with meta_errors(vocabulary.file):
        return _listing(vocabulary, filters, offset, limit)


def _listing(vocabulary: Vocabulary, filters: Mapping[str, Any], offset: int, limit: int | None) -> Listing:
    ids = np.arange(vocabulary.size, dtype=np.int64)
    for name, find in _FILTERS.items():
        value = filters.get(name)
        if value is not None and value is not False:
            ids = np.intersect1d(ids, find(vocabulary, value), assume_unique=True)
    reasons: dict[int, str] = {}
    whole_words = 0
    if filters.get("unreachable"):
        found = unreachable(vocabulary)
        reasons = dict(zip(found.ids.tolist(), found.reasons, strict=True))
        ids = np.intersect1d(ids, found.ids, assume_unique=True)
        whole_words = int(np.setdiff1d(without_merges(vocabulary), found.ids).size)
    shown = ids[offset : None if limit is None else offset + limit]
    return Listing(vocabulary, len(ids), offset, shown, reasons, whole_words)


def _duplicates(vocabulary: Vocabulary, _: object) -> NDArray[np.int64]:
    groups = select.duplicates(vocabulary)
    return np.array(sorted(token for group in groups for token in group), dtype=np.int64)


_FILTERS: dict[str, Any] = {
    "span": select.in_range,
    "kind": select.of_type,
    "search": select.holding_text,
    "digits": select.holding_bytes,
    "regex": select.matching,
    "script": select.in_script,
    "unused": lambda vocabulary, _: select.unused(vocabulary),
    "duplicates": _duplicates,
    "no_merge_path": lambda vocabulary, _: without_merges(vocabulary),
    "no_roundtrip": lambda vocabulary, _: round_trip(vocabulary),
}
