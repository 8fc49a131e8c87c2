"""A SentencePiece model → TokenizerIR: what sentencepiece's ``SentencePieceProcessor`` makes of the file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import numpy as np

from tokpack.errors import FormatError, Location, TokpackError
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    Alphabet,
    AlphabetKind,
    Characters,
    Matching,
    MatchingRule,
    Model,
    PieceAttr,
    Reference,
    ScoreMerge,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
    Unigram,
    Vocab,
    WordLevel,
)
from tokpack.ir.steps import BosEos, SentencePieceDecoder, SentencePieceNormalizer
from tokpack.limits import DEFAULT, Limits

from .._cursor import Cursor, map_file
from .._limited import check_file, limited
from .checks import BYTE, CONTROL, UNKNOWN, check_charsmap, check_pieces, effective_types
from .proto import BPE, CHAR, UNIGRAM, WORD, ModelProto, parse

__all__ = ["RULES", "read", "read_bytes"]

RULES = "sentencepiece 0.2.3"
_ATTRS = {
    1: PieceAttr.NORMAL,
    2: PieceAttr.UNKNOWN,
    3: PieceAttr.CONTROL,
    4: PieceAttr.USER_DEFINED,
    5: PieceAttr.UNUSED,
    6: PieceAttr.BYTE,
}
_MODEL_NAMES = {UNIGRAM: "unigram", BPE: "bpe", WORD: "word", CHAR: "char"}


def read(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> TokenizerIR:
    """Read a ``.model`` file.

    Args:
        path: the file.
        limits: upper limits on what the file may ask for.

    Raises ReadError when it cannot be read, FormatError when it is not such a file. What sentencepiece refuses when it
    loads the file comes back as findings of severity ``refuse``.
    """
    with map_file(path) as data:
        return read_bytes(data, os.fspath(path), limits=limits)


def read_bytes(data: bytes | mmap.mmap, file: str | None = None, *, limits: Limits = DEFAULT) -> TokenizerIR:
    """As :func:`read`, from the bytes of a file."""
    check_file(len(data), limits, file)
    try:
        return limited(_build(parse(Cursor(bytes(data), file), limits)), limits)
    except TokpackError as error:
        if file is not None:
            error.in_file(file)
        raise


def _build(model: ModelProto) -> TokenizerIR:
    if not model.pieces.texts:
        raise FormatError("the file has no pieces", hint="is this a SentencePiece model?")
    types = effective_types(model)
    trainer, rules, back = model.trainer, model.normalizer, model.denormalizer
    return TokenizerIR(
        reference=Reference.SENTENCEPIECE,
        rules=RULES,
        unicode="none",
        vocab=_vocab(model, types),
        alphabet=Alphabet(AlphabetKind.UTF8, trainer.byte_fallback),
        model=_model(model, types),
        matching=Matching(MatchingRule.NONE),
        normalizer=(
            SentencePieceNormalizer(
                rules.precompiled_charsmap,
                rules.add_dummy_prefix,
                rules.remove_extra_whitespaces,
                rules.escape_whitespaces,
                trainer.treat_whitespace_as_suffix,
            ),
        ),
        decoder=(
            SentencePieceDecoder(
                unk_surface=_text(trainer.unk_surface, "trainer_spec.unk_surface"),
                strip_prefix=rules.add_dummy_prefix or rules.remove_extra_whitespaces,
                strip_each=rules.remove_extra_whitespaces,
                charsmap=back.precompiled_charsmap,
                add_dummy_prefix=back.add_dummy_prefix,
                remove_extra_whitespaces=back.remove_extra_whitespaces,
                escape_whitespaces=back.escape_whitespaces,
            ),
        ),
        post_processor=BosEos(add_bos=False, add_eos=False),  # encode() adds nothing unless it is told to
        specials=_specials(model, types),
        source=Source("sentencepiece", _facts(model)),
        extras=_extras(model),
        findings=(*check_pieces(model, types), *_check_rules(model), *_notes(model)),
    )


def _text(raw: bytes, path: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise FormatError("the text is not UTF-8", location=Location(None, path)) from error


def _vocab(model: ModelProto, types: list[int]) -> Vocab:
    return Vocab(
        tuple(model.pieces.texts),
        np.array(model.pieces.types, dtype=np.uint8),
        np.array([_ATTRS[kind] for kind in types], dtype=np.uint16),
        np.array(model.pieces.scores, dtype=np.float32),
    )


def _model(model: ModelProto, types: list[int]) -> Model:
    unk_id = types.index(UNKNOWN) if UNKNOWN in types else None
    kind = model.trainer.model_type
    if kind == UNIGRAM:
        return Unigram(unk_id)
    if kind == BPE:
        return ScoreMerge(unk_id)
    if kind == CHAR:
        return Characters(unk_id)
    return WordLevel(b"" if unk_id is None else model.pieces.texts[unk_id])


def _specials(model: ModelProto, types: list[int]) -> Specials:
    """Ids by the texts of the pieces, not by the ids of the trainer (``SentencePieceProcessor::Load``)."""
    trainer = model.trainer
    ids: dict[bytes, int] = {}
    for index, (text, kind) in enumerate(zip(model.pieces.texts, types, strict=True)):
        if kind in (UNKNOWN, CONTROL, BYTE):
            ids.setdefault(text, index)  # these come first
    for index, text in enumerate(model.pieces.texts):
        ids.setdefault(text, index)
    roles: dict[str, SpecialId] = {}
    unk = types.index(UNKNOWN) if UNKNOWN in types else -1
    for role, text, default, wanted in (
        ("unk", trainer.unk_piece, b"<unk>", UNKNOWN),
        ("bos", trainer.bos_piece, b"<s>", CONTROL),
        ("eos", trainer.eos_piece, b"</s>", CONTROL),
        ("pad", trainer.pad_piece, b"<pad>", CONTROL),
    ):
        found = ids.get(text or default, unk)
        if found >= 0 and types[found] == wanted:
            roles[role] = SpecialId(found, f"trainer_spec.{role}_piece")
    return Specials(roles, (roles["eos"].id,) if "eos" in roles else ())


def _check_rules(model: ModelProto) -> Iterator[Finding]:
    for name, spec in (("normalizer_spec", model.normalizer), ("denormalizer_spec", model.denormalizer)):
        yield from check_charsmap(spec.precompiled_charsmap, f"{name}.precompiled_charsmap")


def _notes(model: ModelProto) -> Iterator[Finding]:
    odd = model.trainer.odd_model_type
    if odd is not None:
        name = _MODEL_NAMES[model.trainer.model_type]
        message = f"model type {odd} does not exist: sentencepiece takes the model for {name}"
        yield Finding("spm-model-type", Severity.WARN, message, Location(None, "trainer_spec.model_type"))
    for index, number in model.pieces.odd_types.items():
        message = f"piece type {number} does not exist: sentencepiece takes the piece for a normal one"
        yield Finding("spm-piece-type", Severity.WARN, message, Location(None, f"pieces[{index}].type"))
        break
    if "self_test_data" in model.raw:
        message = "the self-test data is not looked at, nor does sentencepiece 0.2.3"
        yield Finding("spm-self-test", Severity.INFO, message, Location(None, "self_test_data"))


def _facts(model: ModelProto) -> dict[str, str | int | float | bool]:
    facts: dict[str, str | int | float | bool] = {"model_type": _MODEL_NAMES[model.trainer.model_type]}
    if model.normalizer.name:
        facts["normalizer"] = model.normalizer.name.decode("utf-8", "replace")
    if "denormalizer_spec" in model.raw and model.denormalizer.precompiled_charsmap:
        facts["denormalizer"] = model.denormalizer.name.decode("utf-8", "replace")
    return facts


def _extras(model: ModelProto) -> dict[str, object]:
    """The parts as they are in the file, for a round trip; the charsmaps are steps."""
    extras: dict[str, object] = {name: ["protobuf", raw] for name, raw in model.raw.items()}
    extras |= {f"field {number}": ["protobuf", raw] for number, raw in model.further.items()}
    extras |= {f"pieces[{index}]": ["protobuf", raw] for index, raw in model.pieces.extra.items()}
    return extras
