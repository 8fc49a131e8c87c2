"""A vocabulary in figures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.analysis.scripts import scripts_of
from tokpack.analysis.select import duplicates, near_duplicates, reserved_runs
from tokpack.analysis.vocabulary import Vocabulary
from tokpack.runtime.errors import meta_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SCHEMA", "byte_coverage", "length_histogram", "piece_scripts", "statistics"]

SCHEMA = "tokpack.vocab-stats/1"
_EXAMPLES = 5


def statistics(vocabulary: Vocabulary) -> dict[str, Any]:
    """Sizes, byte coverage, lengths, scripts, reserved ranges and near duplicates (``schemas/vocab-stats.json``)."""
    with meta_errors(vocabulary.file):
        return _statistics(vocabulary)


def _statistics(vocabulary: Vocabulary) -> dict[str, Any]:
    there = ~vocabulary.holes
    lengths = vocabulary.lengths[there]
    missing = np.flatnonzero(~byte_coverage(vocabulary)).tolist()
    groups = duplicates(vocabulary)
    kinds = Counter(vocabulary.type_of(token) for token in range(vocabulary.size))
    return {
        "schema": SCHEMA,
        "file": vocabulary.file,
        "size": vocabulary.size,
        "pieces": int(there.sum()),
        "types": dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        "bytes": {
            "total": int(lengths.sum()),
            "shortest": int(lengths.min()) if lengths.size else 0,
            "longest": int(lengths.max()) if lengths.size else 0,
            "mean": round(float(lengths.mean()), 3) if lengths.size else 0.0,
            "median": float(np.median(lengths)) if lengths.size else 0.0,
        },
        "lengths": [
            {"from": first, "to": last, "pieces": count} for first, last, count in length_histogram(vocabulary)
        ],
        "byte_coverage": {"bytes": 256 - len(missing), "missing": missing},
        "scripts": [
            {"script": script, "pieces": count}
            for script, count in sorted(piece_scripts(vocabulary).items(), key=lambda item: (-item[1], item[0]))
        ],
        "reserved": [
            {"first": first, "last": last, "kind": kind, "example": vocabulary.text(first)}
            for first, last, kind in reserved_runs(vocabulary)
        ],
        "duplicates": _groups(vocabulary, groups),
        "near_duplicates": {name: _groups(vocabulary, found) for name, found in near_duplicates(vocabulary).items()},
    }


def _groups(vocabulary: Vocabulary, groups: list[list[int]]) -> dict[str, Any]:
    return {
        "groups": len(groups),
        "pieces": sum(map(len, groups)),
        "examples": [[{"id": t, "readable": vocabulary.text(t)} for t in group] for group in groups[:_EXAMPLES]],
    }


def byte_coverage(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Whether a piece stands for that byte alone, bool ``[256]``."""
    covered = np.zeros(256, dtype=np.bool_)
    for raw in vocabulary.bytes:
        if len(raw) == 1:
            covered[raw[0]] = True
    return covered


def length_histogram(vocabulary: Vocabulary) -> list[tuple[int, int, int]]:
    """(shortest, longest, pieces) of classes of lengths in bytes: 0 to 16 one by one, then doubling; no empty ones."""
    lengths = vocabulary.lengths[~vocabulary.holes]
    edges = [*range(18)]
    while lengths.size and edges[-1] <= int(lengths.max()):
        edges.append((edges[-1] - 1) * 2 + 1)
    counts, _ = np.histogram(lengths, bins=edges)
    classes = zip(edges, edges[1:], counts.tolist(), strict=False)
    return [(first, behind - 1, count) for first, behind, count in classes if count]


def piece_scripts(vocabulary: Vocabulary) -> dict[str, int]:
    """Script → pieces; ``several`` for a piece in more than one, ``not text`` for bytes that are not UTF-8."""
    found: Counter[str] = Counter()
    for token, raw in enumerate(vocabulary.bytes):
        if vocabulary.holes[token]:
            continue
        try:
            scripts = scripts_of(raw.decode("utf-8"))
        except UnicodeDecodeError:
            found["not text"] += 1
            continue
        found[scripts[0] if len(scripts) == 1 else "several" if scripts else "empty"] += 1
    return dict(found)
