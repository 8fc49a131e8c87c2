"""tokenizer.json → TokenizerIR: what the library ``tokenizers`` makes of the file."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import FormatError, Location, ReadError, TokpackError, UnsupportedError
from tokpack.ir import (
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Reference,
    Source,
    Specials,
    TokenizerIR,
    Unigram,
    Vocab,
)
from tokpack.ir.steps import ByteLevel, ByteLevelNormalizer, NormalizerStep, PreTokenizerStep
from tokpack.limits import DEFAULT, Limits

from .._cursor import map_file
from .._limited import limited
from .added import Added, read_added_tokens
from .companions import NAMES, Companions, read_companions
from .decoders import read_decoder
from .extras import as_extra
from .getters import Obj, as_object
from .json import load
from .models import ModelParts, read_model
from .normal_forms import normal_form_findings
from .normalizers import read_normalizer
from .notes import Notes
from .padding import check_padding, check_truncation
from .post_processors import read_post_processor
from .pre_tokenizers import read_pre_tokenizer

__all__ = ["FILE_NAME", "RULES", "read", "read_bytes"]

FILE_NAME = "tokenizer.json"
RULES = "tokenizers 0.23.3"
UNICODE = "tokenizers-0.23"
_KEYS = (
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
    "model",
)
_SLOW = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt", "tiktoken.model")


def read(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> TokenizerIR:
    """Read a tokenizer.json, or a folder that holds one with its companion files.

    Args:
        path: a file of any name, which is read alone, or a folder.
        limits: upper limits on what the files may ask for.

    Raises ReadError or FormatError when it cannot be read or the library refuses it, UnsupportedError for a component
    that is not known.
    """
    place = Path(path)
    folder = place if place.is_dir() else None
    file = place / FILE_NAME if folder else place
    if folder and not file.is_file():
        raise ReadError(f"the folder has no {FILE_NAME}", location=Location(str(place)), hint=_slow_hint(place))
    with map_file(file) as data:
        return _read(data, str(file), folder, limits)


def read_bytes(data: bytes | mmap.mmap, file: str | None = None, *, limits: Limits = DEFAULT) -> TokenizerIR:
    """As :func:`read`, from the bytes of a tokenizer.json."""
    return _read(data, file, None, limits)


def _slow_hint(folder: Path) -> str | None:
    slow = [name for name in _SLOW if (folder / name).is_file()]
    return f"there is {slow[0]}, of a tokenizer that was never saved as {FILE_NAME}" if slow else None


def _read(data: bytes | mmap.mmap, file: str | None, folder: Path | None, limits: Limits) -> TokenizerIR:
    notes = Notes()
    try:
        root = as_object(load(data, file, limits=limits).value, "", "struct Tokenizer")
        return _build(root, file, folder, limits, notes)
    except TokpackError as error:
        if file is not None:
            error.in_file(file)
        raise


def _build(root: Obj, file: str | None, folder: Path | None, limits: Limits, notes: Notes) -> TokenizerIR:
    get = root.data.get
    _check_top(root)
    if "model" not in root.data:
        raise FormatError("Model missing: there is no `model` key", hint="is this a tokenizer.json?")
    parts = read_model(get("model"), limits, notes)
    added = read_added_tokens(root.data.get("added_tokens", []), parts, limits, notes)
    normalizer = read_normalizer(get("normalizer"), notes)
    pre_tokenizer = read_pre_tokenizer(get("pre_tokenizer"), notes)
    post_processor = read_post_processor(get("post_processor"), notes)
    decoder = read_decoder(get("decoder"), notes)
    vocab = _vocab(parts, added)
    _note_reachable(parts, added, notes)
    check_truncation(get("truncation"), post_processor, notes)
    check_padding(get("padding"), notes)
    extras = {key: as_extra(root.data[key]) for key in ("truncation", "padding") if get(key) is not None}
    if get("post_processor") is not None:  # its template stands for the ids, not for offsets or spelling
        extras["post_processor"] = as_extra(get("post_processor"))
    companions = Companions()
    if folder is not None:
        companions = read_companions(folder, added, parts.ids, len(vocab), limits, notes)
    elif file is not None:
        _note_unread(Path(file), notes)
    _check_template_ids(post_processor, len(vocab), notes)
    ir = TokenizerIR(
        reference=Reference.HUGGINGFACE,
        rules=RULES,
        unicode=UNICODE,
        vocab=vocab,
        alphabet=Alphabet(_alphabet(normalizer, pre_tokenizer), parts.byte_fallback),
        model=parts.model,
        matching=Matching(MatchingRule.LEFTMOST_LONGEST),
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        decoder=decoder,
        post_processor=post_processor,
        added_tokens=added.tokens,
        specials=Specials(companions.roles, companions.eog, companions.suppress),
        chat_templates=companions.templates,
        source=Source("tokenizer.json", _facts(root, parts, companions)),
        extras=extras | companions.extras,
        findings=tuple(notes.findings),
    )
    return replace(limited(ir, limits), findings=(*ir.findings, *normal_form_findings(ir)))


def _check_top(root: Obj) -> None:
    """Keys of the file itself (tokenizer/serialization.rs); the library stops at one that it does not know."""
    for key in root.data:
        if key not in _KEYS:
            where = Location(None, root.at(key))
            hint = "the library cannot load a file with further keys; remove it"
            raise UnsupportedError(f"unknown key {key[:60]!r}", location=where, hint=hint)
    if "version" in root.data:
        version = root.string("version")
        if version != "1.0":
            what = f"Unknown tokenizer version {version[:60]!r}"
            raise UnsupportedError(what, location=Location(None, "version"), hint="only 1.0 exists")


def _vocab(parts: ModelParts, added: Added) -> Vocab:
    own = len(parts.pieces)
    size = max(own, 1 + max((token.id for token in added.tokens), default=-1))
    pieces = parts.pieces + [None] * (size - own)
    types = np.full(size, PieceType.NORMAL, dtype=np.uint8)
    attrs = np.zeros(size, dtype=np.uint16)
    in_model = np.fromiter((piece is not None for piece in parts.pieces), dtype=bool, count=own)
    attrs[:own][in_model] = PieceAttr.NORMAL
    for token in added.tokens:
        types[token.id] = PieceType.CONTROL if token.special else PieceType.USER_DEFINED
        attrs[token.id] |= PieceAttr.CONTROL if token.special else PieceAttr.USER_DEFINED
        if pieces[token.id] is None:
            pieces[token.id] = token.content
    scores: NDArray[Any] | None = None
    if parts.scores is not None:
        scores = np.zeros(size, dtype=np.float64)  # added tokens have no score; they are not NORMAL either
        scores[:own] = parts.scores
    return Vocab(tuple(pieces), types, attrs, scores)


def _alphabet(normalizer: tuple[NormalizerStep, ...], pre_tokenizer: tuple[PreTokenizerStep, ...]) -> AlphabetKind:
    byte_level = any(isinstance(step, (ByteLevel, ByteLevelNormalizer)) for step in (*normalizer, *pre_tokenizer))
    return AlphabetKind.BYTE_LEVEL if byte_level else AlphabetKind.UTF8


def _check_template_ids(post_processor: Any, size: int, notes: Notes) -> None:
    items = () if post_processor is None else (*post_processor.single, *post_processor.pair)
    outside = sorted({token_id for item in items for token_id in item.ids if token_id >= size})
    if outside:
        message = f"the post-processor adds id {outside[0]}, which is outside 0..{size - 1}"
        notes.warn("hf-template-id", message, "post_processor")


def _note_reachable(parts: ModelParts, added: Added, notes: Notes) -> None:
    """Special tokens that text gives although they are not looked for: Unigram has every piece in its trie."""
    own = set(parts.pieces) if isinstance(parts.model, Unigram) else set()
    found = [token.content for token in added.tokens if token.special and token.content in own]
    if found:
        shown = found[0].decode("utf-8", "replace")
        message = (
            f"{len(found)} special tokens, such as {shown!r}, are pieces of the model: text from outside may give them"
        )
        notes.info("hf-control-reachable", message, "added_tokens", "keep such texts out of prompts, or cut them")


def _note_unread(file: Path, notes: Notes) -> None:
    if file.name == FILE_NAME:
        beside = [name for name in NAMES if (file.parent / name).exists()]
        if beside:
            message = f"{', '.join(beside)} beside the file: not read"
            notes.info("hf-companions-unread", message, None, "give the folder instead of the file")


def _facts(root: Obj, parts: ModelParts, companions: Companions) -> dict[str, str | int | float | bool]:
    facts: dict[str, str | int | float | bool] = {"model": parts.kind, "model_typed": parts.typed}
    if "version" in root.data:
        facts["version"] = root.data["version"]
    if parts.merges_spelling is not None:
        facts["merges"] = parts.merges_spelling
    if companions.files:
        facts["companions"] = ", ".join(companions.files)
    tokenizer_class = companions.extras.get("tokenizer_config.tokenizer_class")
    if isinstance(tokenizer_class, list) and isinstance(tokenizer_class[1], str):
        facts["tokenizer_class"] = tokenizer_class[1]
    return facts
