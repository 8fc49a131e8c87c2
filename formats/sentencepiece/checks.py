"""What sentencepiece refuses when it loads a model (``Load``, ``InitializePieces``, ``Normalizer::Init``)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import Location
from tokpack.findings import Finding, Severity

from .proto import BPE, UNIGRAM, ModelProto

__all__ = ["check_charsmap", "check_pieces", "effective_types"]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_RESERVED = (UNKNOWN, CONTROL, BYTE)
_LONGEST = 8000  # kMaxPieceSize
_NUL = b"\0"
_WALKED = 8  # times that a node may be met, at most: nodes may be shared
_DEEPEST = 1000  # bytes of a key of a charsmap; sentencepiece's own have at most some 20


def effective_types(model: ModelProto) -> list[int]:
    """Types as they are in effect: with byte fallback, a piece of one NUL is unused (``Load``)."""
    types = model.pieces.types
    if model.trainer.byte_fallback and _NUL in model.pieces.texts:
        return [UNUSED if text == _NUL else kind for text, kind in zip(model.pieces.texts, types, strict=True)]
    return types


def _refuse(code: str, message: str, path: str) -> Finding:
    return Finding(code, Severity.REFUSE, message, Location(None, path))


def check_pieces(model: ModelProto, types: list[int]) -> Iterator[Finding]:
    """A finding per kind of thing that is wrong with the pieces, with the first place of each."""
    found: dict[str, Finding] = {}
    for finding in _each_piece(model, types):
        found.setdefault(finding.code, finding)
    yield from found.values()
    yield from _all_pieces(model, types)


def _each_piece(model: ModelProto, types: list[int]) -> Iterator[Finding]:
    one_map = model.trainer.model_type == BPE
    seen: tuple[set[bytes], set[bytes]] = (set(), set())
    unknown = False
    for index, (text, kind) in enumerate(zip(model.pieces.texts, types, strict=True)):
        path = f"pieces[{index}].piece"
        if not text:
            yield _refuse("spm-empty-piece", "a piece is empty", path)
        if len(text) >= _LONGEST:
            yield _refuse("spm-long-piece", f"a piece has {len(text)} bytes; {_LONGEST - 1} are allowed", path)
        if text == _NUL and kind == UNUSED:
            continue
        if _NUL in text:
            yield _refuse("spm-nul-piece", "a piece holds a NUL", path)
        texts = seen[0 if one_map else kind in _RESERVED]
        if text in texts:
            yield _refuse("spm-duplicate-piece", f"the piece {text[:40]!r} comes twice", path)
        texts.add(text)
        if kind == UNKNOWN:
            if unknown:
                yield _refuse("spm-second-unk", "there are two unknown pieces", path)
            unknown = True
        elif kind == BYTE:
            yield from _check_byte(model, text, path)


def _check_byte(model: ModelProto, text: bytes, path: str) -> Iterator[Finding]:
    if not model.trainer.byte_fallback:
        yield _refuse("spm-byte-piece", f"the byte piece {text[:20]!r} is there although byte_fallback is false", path)
    elif text not in _BYTE_TEXTS:
        yield _refuse("spm-byte-text", f"the byte piece {text[:20]!r} is not spelled <0x00> to <0xFF>", path)


_BYTE_TEXTS = frozenset(b"<0x%02X>" % byte for byte in range(256))


def _all_pieces(model: ModelProto, types: list[int]) -> Iterator[Finding]:
    fallback, texts = model.trainer.byte_fallback, model.pieces.texts
    if UNKNOWN not in types and not fallback:
        yield _refuse("spm-no-unk", "there is no unknown piece", "pieces")
    if fallback:
        missing = len(_BYTE_TEXTS - {text for text, kind in zip(texts, types, strict=True) if kind == BYTE})
        if missing:
            message = f"{missing} byte pieces are missing although byte_fallback is true"
            yield _refuse("spm-byte-pieces", message, "pieces")
    if model.trainer.model_type == UNIGRAM:
        odd = next((i for i, score in enumerate(model.pieces.scores) if not math.isfinite(score)), None)
        if odd is not None:
            yield _refuse("spm-score", f"the score {model.pieces.scores[odd]} is not finite", f"pieces[{odd}].score")
        if not any(kind not in _RESERVED and text != _NUL for text, kind in zip(texts, types, strict=True)):
            yield _refuse("spm-no-pieces", "there is no piece besides unknown, control and byte pieces", "pieces")


def check_charsmap(blob: bytes, path: str) -> Iterator[Finding]:
    """At most one finding (``DecodePrecompiledCharsMap``, ``DoubleArrayImpl::validate``)."""
    why = _charsmap_fault(blob) if blob else None
    if why is not None:
        yield _refuse("spm-charsmap", f"the charsmap is damaged: {why}", path)


def _charsmap_fault(blob: bytes) -> str | None:
    if len(blob) <= 4:
        return f"it has {len(blob)} bytes"
    (size,) = struct.unpack_from("<I", blob)
    if size >= len(blob) - 4:
        return f"its array has {size} bytes, {len(blob) - 4} are left"
    if size < 1024 or size % 1024:
        return f"its array has {size} bytes, which is no multiple of 1,024"
    if blob[-1]:
        return "its replacements do not end in NUL"
    units = np.frombuffer(blob, dtype="<u4", count=size // 4, offset=4)
    return _array_fault(units, len(blob) - 4 - size) or _walk_fault(units)


def _array_fault(units: NDArray[np.uint32], texts: int) -> str | None:
    index = np.arange(len(units), dtype=np.uint32)
    base = index ^ _offsets(units)
    inner = units < 1 << 31  # nodes; the others are values
    leaf = (units & 0x100) != 0
    if units[0] & 0x800001FF or not base[0]:
        return "its root is not one"
    if ((base | 0xFF) >= len(units))[inner].any():
        return "a node points outside the array"
    ends = inner & leaf
    ends[0] = False
    if inner[base[ends]].any():
        return "a key ends without a value"
    values = units[~inner] & 0x7FFFFFFF
    if (values >= texts).any():
        return "a value points behind the replacements"
    return None


def _walk_fault(units: NDArray[np.uint32]) -> str | None:
    """A circle, which sentencepiece follows for as long as the text lasts, is a fault here."""
    labels = units & 0x800000FF
    inner = np.flatnonzero(labels <= 0xFF).astype(np.uint32)
    parent_base = inner ^ labels[inner]  # a unit is the child of every node whose base and its label lead to it
    order = np.argsort(parent_base, kind="stable")
    children, parent_base = inner[order], parent_base[order]
    level, walked = np.zeros(1, dtype=np.uint32), 0
    for _ in range(_DEEPEST):
        bases = np.unique(level ^ _offsets(units[level]))
        first = np.searchsorted(parent_base, bases, "left")
        count = np.searchsorted(parent_base, bases, "right") - first
        # the children of each base lie side by side
        total = int(count.sum())
        within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        level = children[np.repeat(first, count) + within]
        walked += total
        if not total:
            return None
        if walked > _WALKED * len(units):
            return "its nodes go in a circle"
    return f"a key has more than {_DEEPEST} bytes"


def _offsets(units: NDArray[np.uint32]) -> NDArray[np.uint32]:
    shifted: NDArray[np.uint32] = (units >> np.uint32(10)) << ((units & np.uint32(0x200)) >> np.uint32(6))
    return shifted
