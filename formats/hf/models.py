"""The ``model`` of tokenizer.json (tokenizers/src/models/)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import FormatError, Location, TokpackError, UnsupportedError
from tokpack.findings import Severity
from tokpack.ir import BPE, Model, Unigram, WordLevel, WordPiece
from tokpack.limits import Limits, above, hint_for

from .getters import Obj, as_object, as_unsigned, describe, key_path, wrong
from .json import serde_float
from .merges import read_merges
from .notes import Notes

__all__ = ["ModelParts", "check_size", "read_model"]

_SPARSE_FACTOR, _SPARSE_FLOOR = 16, 1 << 20  # ids per entry that a vocabulary may have, and always may


@dataclass(slots=True)
class ModelParts:
    """A model and its vocabulary.

    Attributes:
        model: the model's dataclass.
        ids: token → id, as the model looks tokens up.
        pieces: tokens by id; None for holes.
        size: number of entries, from which the ids of added tokens are counted.
        kind: name of the model, with a type or without.
        scores: float64 by id, of Unigram.
        byte_fallback: characters without a token become byte tokens.
        typed: whether the file names the type.
        merges_spelling: ``pairs`` or ``strings``, of BPE.
    """

    model: Model
    ids: dict[str, int]
    pieces: list[bytes | None]
    size: int
    kind: str
    scores: NDArray[np.float64] | None = None
    byte_fallback: bool = False
    typed: bool = True
    merges_spelling: str | None = None


def read_model(value: Any, limits: Limits, notes: Notes) -> ModelParts:
    """The ``model`` key.

    A file without ``type`` is tried as BPE, WordPiece, WordLevel and Unigram in turn (models/mod.rs, ModelUntagged).
    """
    node = as_object(value, "model", "a model")
    if "type" in node.data:
        kind = node.data["type"]
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is None:
            what = f"unknown model type {kind[:60]!r}" if isinstance(kind, str) else f"model type is {describe(kind)}"
            hint = f"known: {', '.join(_READERS)}"
            raise UnsupportedError(what, location=Location(None, node.at("type")), hint=hint)
        return reader(node, limits, notes)
    return _untyped(node, limits, notes)


def _untyped(node: Obj, limits: Limits, notes: Notes) -> ModelParts:
    failures: list[TokpackError] = []
    for kind, reader in _READERS.items():
        made = len(notes.findings)
        try:
            parts = reader(node, limits, notes)
        except (FormatError, UnsupportedError) as error:
            failures.append(error)
            del notes.findings[made:]
            continue
        parts.typed = False
        notes.info("hf-model-untyped", f"the model has no type; its fields are those of {kind}", "model")
        if kind == "WordLevel" and "merges" in node.data:
            message = f"the merges are not valid ({failures[0].what}): tokenizers takes the model for WordLevel"
            notes.warn("hf-model-mistaken", message, "model", 'write "type": "BPE" and repair the merges')
        return parts
    # the reason that matters is that of the structure whose fields are there
    if "merges" in node.data:
        raise failures[0]
    if "max_input_chars_per_word" in node.data or "continuing_subword_prefix" in node.data:
        raise failures[1]
    raise failures[2] if isinstance(node.data.get("vocab"), dict) else failures[3]


def _bpe(node: Obj, limits: Limits, notes: Notes) -> ModelParts:
    for key in ("vocab", "merges"):
        if key not in node.data:
            raise FormatError(f"Missing vocab/merges: missing field `{key}`", location=Location(None, node.path))
    dropout = _dropout(node, notes)
    unk = node.string_or_none("unk_token")
    prefix = node.string_or_none("continuing_subword_prefix") or ""
    suffix = node.string_or_none("end_of_word_suffix") or ""
    fuse, fallback, ignore = (
        node.boolean_or_none(key) or False for key in ("fuse_unk", "byte_fallback", "ignore_merges")
    )
    vocab = _vocab(node, limits, notes)
    merges = read_merges(node.data["merges"], vocab.spelled, prefix, limits, notes)
    if unk is not None:
        _check_unk(unk, vocab.ids, notes)
    model = BPE(
        merges=merges.pairs,
        ranks=merges.ranks,
        ignore_merges=ignore,
        unk_piece=None if unk is None else unk.encode("utf-8"),
        fuse_unk=fuse,
        continuing_subword_prefix=prefix.encode("utf-8"),
        end_of_word_suffix=suffix.encode("utf-8"),
        dropout=dropout,
    )
    return ModelParts(
        model,
        vocab.ids,
        vocab.pieces,
        len(vocab.ids),
        "BPE",
        byte_fallback=fallback,
        merges_spelling=merges.spelling,
    )


def _dropout(node: Obj, notes: Notes) -> float | None:
    value = node.data.get("dropout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(value, "f32", node.at("dropout"))
    if not 0.0 <= value <= 1.0:
        what = "Dropout should be between 0 and 1, inclusive"
        raise FormatError(what, location=Location(None, node.at("dropout")))
    if value > 0:
        what = "never merges" if value == 1 else "merges at random"
        message = f"dropout {value}: tokenizers {what}; tokpack merges as if there was none"
        notes.add("hf-dropout", Severity.IDS, message, node.at("dropout"), "set it to null")
    return float(np.float32(value))


def _word_piece(node: Obj, limits: Limits, notes: Notes) -> ModelParts:
    unk = node.string("unk_token")
    prefix = node.string("continuing_subword_prefix")
    longest = node.unsigned("max_input_chars_per_word", 64)
    vocab = _vocab(node, limits, notes)
    _check_unk(unk, vocab.ids, notes)
    model = WordPiece(unk.encode("utf-8"), prefix.encode("utf-8"), longest)
    return ModelParts(model, vocab.ids, vocab.pieces, len(vocab.ids), "WordPiece")


def _word_level(node: Obj, limits: Limits, notes: Notes) -> ModelParts:
    unk = node.string("unk_token")
    vocab = _vocab(node, limits, notes)
    _check_unk(unk, vocab.ids, notes)
    return ModelParts(WordLevel(unk.encode("utf-8")), vocab.ids, vocab.pieces, len(vocab.ids), "WordLevel")


def _unigram(node: Obj, limits: Limits, notes: Notes) -> ModelParts:
    unk_id = node.unsigned_or_none("unk_id", 64)
    fallback = node.boolean("byte_fallback", False)
    if "vocab" not in node.data:
        raise FormatError("Missing vocab", location=Location(None, node.path))
    rows = node.array("vocab")
    path = node.at("vocab")
    _check_count(len(rows), limits, path)
    tokens: list[str] = []
    scores = np.empty(len(rows), dtype=np.float64)
    for at, row in enumerate(rows):
        if type(row) is not list or len(row) != 2 or type(row[0]) is not str:
            raise _wrong_row(row, f"{path}[{at}]")
        token, score = row
        if type(score) is not float:
            score = _whole_score(score, f"{path}[{at}][1]")
        tokens.append(token)
        scores[at] = score
    if unk_id is not None and unk_id >= len(rows):
        reason = "UnkIdNotInVocabulary" if rows else "EmptyVocabulary"
        what = f"Unable to load vocab {reason}: unk_id is {unk_id}, there are {len(rows)} entries"
        raise FormatError(what, location=Location(None, node.at("unk_id")))
    if unk_id is None:
        message = "there is no unk_id: tokenizers fails on a character without a token"
        notes.warn("hf-unk-missing", message, node.path)
    pieces: list[bytes | None] = [token.encode("utf-8") for token in tokens]
    _check_lengths(pieces, limits, path)
    ids = {token: at for at, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        message = f"{len(tokens) - len(ids)} tokens occur twice; the last one gives id and score"
        notes.warn("hf-duplicate-piece", message, path)
    return ModelParts(Unigram(unk_id, 10.0), ids, pieces, len(rows), "Unigram", scores=scores, byte_fallback=fallback)


def _wrong_row(row: Any, path: str) -> FormatError:
    if not isinstance(row, list):
        return wrong(row, "a tuple of size 2", path)
    if len(row) != 2:
        return FormatError(f"invalid length {len(row)}, expected a tuple of size 2", location=Location(None, path))
    return wrong(row[0], "a string", f"{path}[0]")


def _whole_score(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(value, "f64", path)
    if -(1 << 63) <= value < 1 << 64:
        return float(value)
    try:
        return serde_float(str(value))
    except ValueError as error:
        raise FormatError(f"not a number: {error}", location=Location(None, path)) from error


@dataclass(slots=True)
class _Vocab:
    """A ``vocab`` map: ids by token, tokens in UTF-8 by id and by token."""

    ids: dict[str, int]
    pieces: list[bytes | None]
    spelled: dict[str, bytes]


def _vocab(node: Obj, limits: Limits, notes: Notes) -> _Vocab:
    value = node.required("vocab")
    path = node.at("vocab")
    if not isinstance(value, dict):
        raise wrong(value, "a map", path)
    ids: dict[str, int] = value
    _check_count(len(ids), limits, path)
    if not all(type(token_id) is int for token_id in ids.values()):
        for token, token_id in ids.items():
            as_unsigned(token_id, key_path(path, token))
    lowest, highest = min(ids.values(), default=0), max(ids.values(), default=-1)
    if lowest < 0 or highest >= 1 << 32:
        for token, token_id in ids.items():
            as_unsigned(token_id, key_path(path, token))
    check_size(highest + 1, len(ids), limits, path)
    spelled = {token: token.encode("utf-8") for token in ids}
    _check_lengths(list(spelled.values()), limits, path)
    pieces: list[bytes | None] = [None] * (highest + 1)
    for token_id, piece in zip(reversed(ids.values()), reversed(spelled.values()), strict=True):
        pieces[token_id] = piece
    if len(set(ids.values())) < len(ids):
        _note_shared(ids, spelled, pieces, path, notes)
    return _Vocab(ids, pieces, spelled)


def _note_shared(
    ids: dict[str, int], spelled: dict[str, bytes], pieces: list[bytes | None], path: str, notes: Notes
) -> None:
    token = next(token for token, token_id in ids.items() if pieces[token_id] != spelled[token])
    message = f"{token!r} shares id {ids[token]} with another token: which one it decodes to changes from run to run"
    notes.refuse("hf-shared-id", message, key_path(path, token), "give every token an id of its own")


def check_size(size: int, entries: int, limits: Limits, path: str) -> None:
    """Refuse ids that would need an array far larger than the file."""
    bound = min(limits.pieces, max(_SPARSE_FLOOR, _SPARSE_FACTOR * entries))
    if size > bound:
        what = f"the highest id is {size - 1}, with {entries} entries; the limit is {bound - 1}"
        hint = hint_for("pieces") if bound == limits.pieces else "number the ids without large gaps"
        raise FormatError(what, location=Location(None, path), hint=hint)


def _check_count(count: int, limits: Limits, path: str) -> None:
    if count > limits.pieces:
        raise above("pieces", f"{count} pieces are", limits, Location(None, path))


def _check_lengths(pieces: list[bytes | None] | list[bytes], limits: Limits, path: str) -> None:
    longest = max((len(piece) for piece in pieces if piece is not None), default=0)
    if longest > limits.piece_bytes:
        raise above("piece_bytes", f"a piece of {longest} bytes is", limits, Location(None, path))


def _check_unk(unk: str, ids: dict[str, int], notes: Notes) -> None:
    if unk not in ids:
        message = f"the unknown token {unk[:60]!r} is not in the vocabulary: tokenizers fails when it needs it"
        notes.warn("hf-unk-missing", message, "model.unk_token", "add it to the vocabulary")


_READERS: dict[str, Callable[[Obj, Limits, Notes], ModelParts]] = {
    "BPE": _bpe,
    "WordPiece": _word_piece,
    "WordLevel": _word_level,
    "Unigram": _unigram,
}
