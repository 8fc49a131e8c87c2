"""Tables of a pack for the normalizers of the ``tokenizers`` library: only what the steps at hand need.

Sections, all little-endian:

``hf.NAME.start``, ``hf.NAME.value``
    u32 ``[n]`` each: ``value[i]`` belongs to the code points from ``start[i]`` up to ``start[i + 1]``; start[0] is 0.
``hf.NAME.text``
    for tables of texts: a value is 0 (the character itself) or ``TEXT | offset << 8 | length`` of UTF-8 in this blob.
``hf.compose.key``, ``hf.compose.value``
    u64 and u32 ``[n]``: ``first << 32 | second``, ascending, and the composition.
``charsmap``
    the charsmap of Precompiled as the source has it.

Names: canonical, compatible, lowercase (texts); combining, mark, nonspacing, control, grapheme (numbers); see
:mod:`tokpack.unicode.huggingface`. Hangul syllables are arithmetic and in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import UnsupportedError
from tokpack.ir.normalizers import (
    BertNormalizer,
    Lowercase,
    NormalizerStep,
    Precompiled,
    StripAccents,
    UnicodeNormalization,
)
from tokpack.unicode import huggingface

__all__ = ["TEXT", "normalizer_sections"]

TEXT = 1 << 31

Sections = dict[str, bytes]
_RUNS: dict[str, Callable[[], huggingface.Runs]] = {
    "combining": huggingface.combining,
    "control": huggingface.control,
    "grapheme": huggingface.grapheme,
    "mark": huggingface.mark,
    "nonspacing": huggingface.nonspacing,
}
_TEXTS: dict[str, Callable[[], dict[int, str]]] = {
    "canonical": huggingface.canonical,
    "compatible": huggingface.compatible,
    "lowercase": huggingface.lowercase,
}


def normalizer_sections(steps: Iterable[NormalizerStep]) -> Sections:
    """Sections by name; UnsupportedError for two Precompiled steps with different charsmaps."""
    names: set[str] = set()
    charsmaps: set[bytes] = set()
    for step in steps:
        names |= _needs(step)
        if isinstance(step, Precompiled):
            charsmaps.add(step.charsmap)
    if len(charsmaps) > 1:
        hint = "keep one Precompiled normalizer"
        raise UnsupportedError("a pack holds one charsmap, this tokenizer has more", hint=hint)
    sections: Sections = {}
    if charsmaps:
        sections["charsmap"] = charsmaps.pop()
    for name in sorted(names):
        sections |= _table(name)
    return sections


def _needs(step: NormalizerStep) -> set[str]:
    if isinstance(step, UnicodeNormalization):
        kind = "compatible" if "K" in step.form else "canonical"
        return {kind, "combining"} | ({"compose"} if step.form.endswith("C") else set())
    if isinstance(step, BertNormalizer):
        strip = step.lowercase if step.strip_accents is None else step.strip_accents
        names = {"canonical", "combining", "nonspacing"} if strip else set()
        return names | ({"control"} if step.clean_text else set()) | ({"lowercase"} if step.lowercase else set())
    if isinstance(step, Lowercase):
        return {"lowercase"}
    if isinstance(step, StripAccents):
        return {"mark"}
    return {"grapheme"} if isinstance(step, Precompiled) else set()


def _table(name: str) -> Sections:
    if name == "compose":
        return _composition()
    if name in _RUNS:
        starts, values = _RUNS[name]()
        return {f"hf.{name}.start": _bytes(starts, "<u4"), f"hf.{name}.value": _bytes(values, "<u4")}
    return _texts(name, _TEXTS[name]())


def _bytes(array: NDArray[np.generic] | list[int], code: str) -> bytes:
    return np.asarray(array).astype(code).tobytes()


def _composition() -> Sections:
    pairs = huggingface.composition().astype(np.uint64)
    keys = pairs[:, 0] << np.uint64(32) | pairs[:, 1]
    order = np.argsort(keys)
    values = pairs[order, 2]
    return {"hf.compose.key": _bytes(keys[order], "<u8"), "hf.compose.value": _bytes(values, "<u4")}


def _texts(name: str, texts: Mapping[int, str]) -> Sections:
    """Equal texts are stored once; neighbours with equal values share a run."""
    blob = bytearray()
    known: dict[str, int] = {}
    starts, values = [0], [0]
    following = 0  # the code point behind the last entry
    for code in sorted(texts):
        text = texts[code]
        if text not in known:
            raw = text.encode()
            known[text] = TEXT | len(blob) << 8 | len(raw)
            blob += raw
        for start, value in ((following, 0), (code, known[text])):
            if start == starts[-1]:
                values[-1] = value
            elif value != values[-1]:
                starts.append(start)
                values.append(value)
        following = code + 1
    if values[-1] and following <= 0x10FFFF:
        starts.append(following)
        values.append(0)
    return {
        f"hf.{name}.start": _bytes(starts, "<u4"),
        f"hf.{name}.value": _bytes(values, "<u4"),
        f"hf.{name}.text": bytes(blob),
    }
