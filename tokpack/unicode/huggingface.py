"""What the normalizers of the ``tokenizers`` library 0.23.3 know about characters; see ``make_huggingface.py``.

Four Unicode versions meet in the library: normalization forms and StripAccents have 9.0, BertNormalizer's controls and
nonspacing marks 8.0, lower case and grapheme clusters 17.0.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokpack.typed import Any

__all__ = ["Runs", "canonical", "combining", "compatible", "composition", "control", "grapheme", "lowercase"]
__all__ += ["mark", "nonspacing"]

Runs = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""(starts, values): ``values[i]`` belongs to the code points from ``starts[i]`` to the next start; starts[0] is 0."""


@lru_cache(maxsize=1)
def _data() -> dict[str, NDArray[Any]]:
    with np.load(Path(__file__).with_name("huggingface_tables.npz")) as data:
        return {name: data[name] for name in data.files}


def _runs(name: str) -> Runs:
    data = _data()
    return np.cumsum(data[f"{name}_step"], dtype=np.uint32), data[f"{name}_value"].astype(np.uint32)


def _texts(name: str) -> dict[int, str]:
    data = _data()
    keys = np.cumsum(data[f"{name}_step"], dtype=np.uint32)
    lengths = data[f"{name}_length"]
    codes = data[f"{name}_char"] + np.repeat(keys, lengths)
    chars = list(map(chr, codes.tolist()))
    texts, at = {}, 0
    for key, length in zip(keys.tolist(), lengths.tolist(), strict=True):
        texts[key] = "".join(chars[at : at + length])
        at += length
    return texts


@lru_cache(maxsize=1)
def canonical() -> dict[int, str]:
    """Full canonical decompositions of Unicode 9.0, without Hangul syllables; the caller must not change it."""
    return _texts("canonical")


@lru_cache(maxsize=1)
def compatible() -> dict[int, str]:
    """Full compatibility decompositions of Unicode 9.0, without Hangul syllables; the caller must not change it."""
    return dict(sorted((canonical() | _texts("compatible")).items()))


@lru_cache(maxsize=1)
def lowercase() -> dict[int, str]:
    """``char::to_lowercase`` of Rust (Unicode 17.0), where it changes something; the caller must not change it."""
    return _texts("lowercase")


def composition() -> NDArray[np.uint32]:
    """Primary composites of Unicode 9.0 ``[n, 3]``: first, second, composition; without Hangul syllables."""
    pairs: NDArray[np.uint32] = _data()["compose_pairs"]
    return pairs


def combining() -> Runs:
    """Canonical_Combining_Class of Unicode 9.0."""
    return _runs("combining")


def mark() -> Runs:
    """1 for General_Category M of Unicode 9.0 (``is_combining_mark``)."""
    return _runs("mark")


def nonspacing() -> Runs:
    """1 for General_Category Mn of Unicode 8.0, as far as the canonical decomposition leaves it alone."""
    return _runs("nonspacing")


def control() -> Runs:
    """1 for what BertNormalizer's clean_text drops: U+0000, U+FFFD, Cc, Cf and Co of Unicode 8.0 but tab, LF and CR."""
    return _runs("control")


def grapheme() -> Runs:
    """Letters (code points) of :mod:`tokpack.runtime.hf.graphemes` (Unicode 17.0)."""
    return _runs("grapheme")
