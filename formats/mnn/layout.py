"""What stands where in the body of a ``.mtok``.

The order is that of ``PipelineTokenizer::load_vocab_binary`` (``tokenizer.cpp`` of MNN tag 3.6.1). Where the body
cannot be followed, what is left is one section; nothing but the places of things is checked here.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence

from tokpack.analysis.sections import Look, Section
from tokpack.errors import TokpackError
from tokpack.limits import DEFAULT

from .._cursor import Cursor
from .read_header import Lines, read_header
from .read_steps import StepReader

__all__ = ["body_sections", "look"]

_MERGE = 12
_SHORTEST = {0: 6, 1: 6, 2: 14}  # bytes of a vocabulary entry by model type


def look(data: bytes | mmap.mmap, file: str | None = None) -> Look:
    """Sections of a plain ``.mtok``: its body, and what stands behind it."""
    return Look(body_sections(data, len(data), file))


def body_sections(data: bytes | mmap.mmap, size: int, file: str | None = None) -> list[Section]:
    """Sections of the first ``size`` bytes of ``data``."""
    lines = Lines(data)
    header = read_header(lines, file)
    note = f"type {header.tokenizer_type}, {len(header.special):,} special, {len(header.stop):,} stop, "
    found = [Section("text header", 0, lines.pos, f"{note}{len(header.prefix):,} prefix ids")]
    cursor = Cursor(data, file)
    cursor.pos, cursor.end = lines.pos, size
    if header.tokenizer_type == 4:
        _follow(cursor, found)
    if cursor.pos < size:
        found.append(Section("behind the body", cursor.pos, size - cursor.pos))
    return found


def _follow(cursor: Cursor, found: list[Section]) -> None:
    steps = StepReader(cursor)
    readers: list[tuple[str, Callable[[], str]]] = [
        ("normalizer", lambda: _kinds(steps.normalizer())),
        ("pre-tokenizer", lambda: _kinds(steps.pre_tokenizer())),
        ("model", lambda: _model(cursor, found)),
        ("decoder", lambda: _kinds(steps.decoder())),
        ("added tokens", lambda: _added(cursor)),
        ("chat template", lambda: _text(cursor, "u32", DEFAULT.string_bytes)),
        ("eos", lambda: _text(cursor, "u16", 65_535)),
        ("flags", lambda: f"{int(cursor.number('u8', 'the flags'))}"),
        ("bos", lambda: _text(cursor, "u16", 65_535)),
        ("post-processor", lambda: _operations(cursor)),
    ]
    for name, reader in readers:
        start, place = cursor.pos, len(found)
        if not cursor.left:
            return  # a shorter tail is legal
        try:
            note = reader()
        except TokpackError as error:
            cursor.pos = cursor.end
            found[place:] = [Section(name, start, cursor.end - start, f"cannot be followed: {error.what}")]
            return
        found.insert(place, Section(name, start, cursor.pos - start, note))


def _kinds(steps: Sequence[object]) -> str:
    return ", ".join(type(step).__name__ for step in steps) or "none"


def _model(cursor: Cursor, found: list[Section]) -> str:
    kind = cursor.number("u8", "the model type")
    if kind not in _SHORTEST:
        raise cursor.fail(f"model type {kind} is unknown")
    count = cursor.count("u32", "the number of vocabulary entries", _SHORTEST[kind], DEFAULT.pieces)
    merges = 0
    if kind == 0:
        cursor.skip(2, "flags")
        merges = cursor.count("u32", "the number of merges", _MERGE, DEFAULT.merges)
    elif kind == 1:
        cursor.string("u16", "unk_token", 65_535)
        cursor.string("u16", "the prefix", 65_535)
        cursor.skip(4, "max_chars")
    else:
        cursor.skip(5, "unk_id and byte_fallback")
    start = cursor.pos
    tail = 12 if kind == 2 else 4
    for _ in range(count):
        cursor.skip(cursor.count("u16", "length of an entry", 1, 65_535) + tail, "an entry")
    found.append(Section("model/pieces", start, cursor.pos - start, f"{count:,} entries"))
    if kind == 0:
        found.append(Section("model/merges", cursor.pos, merges * _MERGE, f"{merges:,} merges"))
        cursor.skip(merges * _MERGE, "the merges")
    return ("BPE", "WordPiece", "Unigram")[kind]


def _added(cursor: Cursor) -> str:
    count = cursor.count("u32", "the number of added tokens", 9, DEFAULT.pieces)
    for _ in range(count):
        cursor.skip(7, "an added token")
        cursor.string("u16", "an added token", 65_535)
    return f"{count:,} tokens"


def _text(cursor: Cursor, kind: str, limit: int) -> str:
    return f"{len(cursor.string(kind, 'a text', limit)):,} bytes"


def _operations(cursor: Cursor) -> str:
    count = cursor.number("u16", "the number of operations")
    if cursor.left >= 4 * count and cursor.left < 4 * count + 1 and count:
        cursor.skip(4 * count, "operations")  # an older layout: four bytes each
        return f"{count:,} operations"
    for _ in range(count):
        if cursor.number("u8", "an operation"):
            cursor.skip(4, "an operation")
    return f"{count:,} operations"
