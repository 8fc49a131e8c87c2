"""``ModelProto`` of sentencepiece_model.proto: what decides ids, with the defaults of the format.

A message that comes twice is merged, of a value that comes twice the last one counts, as protobuf does it. Numbers
that an enum does not have count as absent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tokpack.limits import Limits, hint_for

from .._cursor import Cursor
from .wire import FIXED32, LENGTH, VARINT, Field, fields

__all__ = ["ModelProto", "NormalizerSpec", "Pieces", "TrainerSpec", "parse"]

_FLOAT = struct.Struct("<f")
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
_PIECES, _TRAINER, _NORMALIZER, _SELF_TEST, _DENORMALIZER = 1, 2, 3, 4, 5
_SECTIONS = {
    _TRAINER: "trainer_spec",
    _NORMALIZER: "normalizer_spec",
    _SELF_TEST: "self_test_data",  # earlier versions ran it when they loaded the file; 0.2.3 has no such field
    _DENORMALIZER: "denormalizer_spec",
}


@dataclass(slots=True)
class Pieces:
    """The pieces by id.

    Attributes:
        texts, scores, types: one of each per piece.
        odd_types: index → number of a type that sentencepiece does not know; it counts as NORMAL.
        extra: index → bytes of further fields.
    """

    texts: list[bytes] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    odd_types: dict[int, int] = field(default_factory=dict)
    extra: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class TrainerSpec:
    """What the trainer was told, as far as it decides ids and text."""

    model_type: int = UNIGRAM
    odd_model_type: int | None = None
    vocab_size: int = 8000
    treat_whitespace_as_suffix: bool = False
    byte_fallback: bool = False
    unk_piece: bytes = b"<unk>"
    bos_piece: bytes = b"<s>"
    eos_piece: bytes = b"</s>"
    pad_piece: bytes = b"<pad>"
    unk_surface: bytes = " ⁇ ".encode()


@dataclass(slots=True)
class NormalizerSpec:
    """Rules of a normalizer."""

    name: bytes = b""
    precompiled_charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


@dataclass(slots=True)
class ModelProto:
    """A whole file.

    Attributes:
        pieces, trainer, normalizer, denormalizer: its parts.
        raw: name of a part → its bytes, without the charsmap.
        further: numbers and bytes of fields that sentencepiece does not know.
    """

    pieces: Pieces = field(default_factory=Pieces)
    trainer: TrainerSpec = field(default_factory=TrainerSpec)
    normalizer: NormalizerSpec = field(default_factory=NormalizerSpec)
    denormalizer: NormalizerSpec = field(default_factory=NormalizerSpec)
    raw: dict[str, bytes] = field(default_factory=dict)
    further: dict[int, bytes] = field(default_factory=dict)


_TRAINER_BOOLS = {24: "treat_whitespace_as_suffix", 35: "byte_fallback"}
_TRAINER_TEXTS = {44: "unk_surface", 45: "unk_piece", 46: "bos_piece", 47: "eos_piece", 48: "pad_piece"}
_NORMALIZER_BOOLS = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}
_NORMALIZER_TEXTS = {1: "name", 2: "precompiled_charsmap"}


def parse(cursor: Cursor, limits: Limits) -> ModelProto:
    """The message that is the whole file; FormatError when it is not one."""
    model = ModelProto()
    _usual_pieces(cursor, model.pieces, limits)
    for item in fields(cursor, "the model"):
        if item.number == _PIECES:
            index = len(model.pieces.texts)
            if index >= limits.pieces:
                what = f"the pieces are above the limit of {limits.pieces}"
                raise cursor.fail(what, path="pieces", offset=item.begin, hint=hint_for("pieces"))
            item.of_wire(LENGTH, f"pieces[{index}]", cursor)
            _piece(_inside(cursor, item), model.pieces, index, limits)
            _usual_pieces(cursor, model.pieces, limits)
        elif item.number in _SECTIONS:
            _section(cursor, item, model, limits)
        else:
            model.further[item.number] = model.further.get(item.number, b"") + cursor.data[item.begin : item.end]
    return model


def _inside(cursor: Cursor, item: Field) -> Cursor:
    """A cursor over the content of a message field."""
    inner = Cursor(cursor.data, cursor.file)
    inner.pos, inner.end = item.start, item.end
    return inner


def _section(cursor: Cursor, item: Field, model: ModelProto, limits: Limits) -> None:
    name = _SECTIONS[item.number]
    item.of_wire(LENGTH, name, cursor)
    inner = _inside(cursor, item)
    if item.number == _SELF_TEST:
        kept = cursor.data[item.start : item.end]
    elif item.number == _TRAINER:
        _trainer(inner, model.trainer, limits)
        kept = cursor.data[item.start : item.end]
    else:
        spec = model.normalizer if item.number == _NORMALIZER else model.denormalizer
        kept = _normalizer(inner, spec, name, limits)
    model.raw[name] = model.raw.get(name, b"") + kept


def _usual_pieces(cursor: Cursor, pieces: Pieces, limits: Limits) -> None:
    """Read the pieces that follow, as long as they are spelled as sentencepiece spells them.

    That is: text, score, perhaps a type, and no length or number of more than one byte. Everything else is left to
    :func:`_piece`, which says what is wrong.
    """
    data, at, end = cursor.data, cursor.pos, cursor.end
    texts, scores, types = pieces.texts.append, pieces.scores.append, pieces.types.append
    unpack = _FLOAT.unpack_from
    longest = min(0x7F, limits.piece_bytes + 7)
    for _ in range(limits.pieces - len(pieces.texts)):
        if end - at < 9 or data[at] != 0x0A or data[at + 2] != 0x0A:
            break
        size, length = data[at + 1], data[at + 3]
        score = at + 4 + length
        behind = score + 5
        kind = 1
        if size > longest or behind > end or at + 2 + size > end or data[score] != 0x15:
            break
        if size == length + 9 and data[behind] == 0x18:
            kind = data[behind + 1]
            behind += 2
        if behind != at + 2 + size or not 1 <= kind <= 6:
            break
        texts(data[at + 4 : score])
        scores(unpack(data, score + 1)[0])
        types(kind)
        at = behind
    cursor.pos = at


def _piece(cursor: Cursor, pieces: Pieces, index: int, limits: Limits) -> None:
    text, score, kind, extra = b"", 0.0, 1, b""
    for item in fields(cursor, f"pieces[{index}]", 1):
        name = f"pieces[{index}]"
        if item.number == 1:
            item.of_wire(LENGTH, f"{name}.piece", cursor)
            if item.end - item.start > limits.piece_bytes:
                what = f"a piece of {item.end - item.start} bytes is above the limit of {limits.piece_bytes}"
                raise cursor.fail(what, path=f"{name}.piece", offset=item.begin, hint=hint_for("piece_bytes"))
            text = cursor.data[item.start : item.end]
        elif item.number == 2:
            item.of_wire(FIXED32, f"{name}.score", cursor)
            score = _FLOAT.unpack_from(cursor.data, item.start)[0]
        elif item.number == 3:
            number = _int32(item.of_wire(VARINT, f"{name}.type", cursor).value)
            if 1 <= number <= 6:
                kind = number
            else:
                pieces.odd_types[index] = number
        else:
            extra += cursor.data[item.begin : item.end]
    pieces.texts.append(text)
    pieces.scores.append(score)
    pieces.types.append(kind)
    if extra:
        pieces.extra[index] = extra


def _int32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _text(cursor: Cursor, item: Field, name: str, limits: Limits) -> bytes:
    """The content of a field of text or bytes."""
    item.of_wire(LENGTH, name, cursor)
    size = item.end - item.start
    if size > limits.string_bytes:
        what = f"{size} bytes are above the limit of {limits.string_bytes}"
        raise cursor.fail(what, path=name, offset=item.begin, hint=hint_for("string_bytes"))
    return cursor.data[item.start : item.end]


def _trainer(cursor: Cursor, spec: TrainerSpec, limits: Limits) -> None:
    for item in fields(cursor, "trainer_spec", 1):
        if item.number in _TRAINER_BOOLS:
            name = _TRAINER_BOOLS[item.number]
            setattr(spec, name, bool(item.of_wire(VARINT, f"trainer_spec.{name}", cursor).value))
        elif item.number in _TRAINER_TEXTS:
            name = _TRAINER_TEXTS[item.number]
            setattr(spec, name, _text(cursor, item, f"trainer_spec.{name}", limits))
        elif item.number == 3:
            number = _int32(item.of_wire(VARINT, "trainer_spec.model_type", cursor).value)
            if UNIGRAM <= number <= CHAR:
                spec.model_type = number
            else:
                spec.odd_model_type = number
        elif item.number == 4:
            spec.vocab_size = _int32(item.of_wire(VARINT, "trainer_spec.vocab_size", cursor).value)


def _normalizer(cursor: Cursor, spec: NormalizerSpec, where: str, limits: Limits) -> bytes:
    """Read into ``spec``; returns the bytes of all fields but the charsmap."""
    kept = []
    for item in fields(cursor, where, 1):
        if item.number in _NORMALIZER_BOOLS:
            name = _NORMALIZER_BOOLS[item.number]
            setattr(spec, name, bool(item.of_wire(VARINT, f"{where}.{name}", cursor).value))
        elif item.number in _NORMALIZER_TEXTS:
            name = _NORMALIZER_TEXTS[item.number]
            setattr(spec, name, _text(cursor, item, f"{where}.{name}", limits))
        if item.number != 2:
            kept.append(cursor.data[item.begin : item.end])
    return b"".join(kept)
