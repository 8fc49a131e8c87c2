"""GGUF → TokenizerIR: what llama.cpp makes of the file, step by step in its order."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.findings import Severity
from tokpack.ir import (
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    NoModel,
    Reference,
    Source,
    Specials,
    TokenizerIR,
    Vocab,
)
from tokpack.ir.steps import BosEos
from tokpack.limits import DEFAULT, Limits, above

from .._cursor import map_file
from .._limited import limited
from .families import FAMILIES, Context
from .header import Header, ValueType, read_header
from .keys import Keys
from .rules import PreType, close_names, pre_names, pre_type, rules
from .vocab import VocabBuilder

__all__ = ["read", "read_bytes"]

_PREFIX = "tokenizer.ggml."


def read(path: str | os.PathLike[str], *, pre: str | None = None, limits: Limits = DEFAULT) -> TokenizerIR:
    """Read the tokenizer of a GGUF file; only the key-value section is touched.

    Args:
        path: a .gguf file of any size.
        pre: use this pre-tokenizer name instead of the file's ``tokenizer.ggml.pre``.
        limits: upper limits on what the file may ask for.

    Raises ReadError or FormatError when it cannot be read, UnsupportedError for a tokenizer model or pre-tokenizer
    that is not known.
    """
    with map_file(path) as data:
        return read_bytes(data, os.fspath(path), pre=pre, limits=limits)


def read_bytes(
    data: bytes | mmap.mmap, file: str | None = None, *, pre: str | None = None, limits: Limits = DEFAULT
) -> TokenizerIR:
    """As :func:`read`, from bytes."""
    header = read_header(data, file, limits)
    keys = Keys(header, file)
    model = keys.string(_PREFIX + "model")
    if model is None:
        hint = "the file holds no tokenizer: a model that was split, or not a language model"
        raise FormatError("there is no tokenizer.ggml.model key", location=Location(file, _PREFIX + "model"), hint=hint)
    family = rules()["models"].get(model)
    if family is None:
        entry = header.entries[_PREFIX + "model"]
        hint = f"known: {', '.join(rules()['models'])}"
        what = "is for llama.cpp's own tests" if model == "test" else "is not known to llama.cpp"
        raise UnsupportedError(
            f"tokenizer model {model!r} {what}", location=Location(file, entry.key, entry.offset), hint=hint
        )
    if family["type"] == "NONE":
        return limited(_without_vocabulary(keys, header, model, limits), limits, file)
    if family["type"] != "BPE" and pre is not None:
        hint = "leave --pre out"
        raise UnsupportedError(f"tokenizer model {model!r} has no pre-tokenizer", location=Location(file), hint=hint)
    kind = _pre_tokenizer(keys, pre or family.get("pre"), file) if family["type"] == "BPE" else None
    return limited(_with_vocabulary(keys, header, model, family, kind, limits, pre), limits, file)


def _pre_tokenizer(keys: Keys, forced: str | None, file: str | None) -> PreType:
    name = keys.string(_PREFIX + "pre")
    if forced is not None:
        name = forced
    elif not name:
        message = "tokenizer.ggml.pre is missing: llama.cpp falls back to 'default', which is right for few models"
        keys.find("gguf-pre-missing", Severity.WARN, message, _PREFIX + "pre", "--pre NAME sets it")
        name = "default"
    kind = pre_type(name)
    if kind is None:
        close = close_names(name)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        hint += f"--pre NAME overrides it; {len(pre_names())} names are known"
        entry = keys.header.entries.get(_PREFIX + "pre")
        where = Location(file, _PREFIX + "pre", None if entry is None else entry.offset)
        raise UnsupportedError(f"unknown pre-tokenizer {name!r}; llama.cpp does not load it", location=where, hint=hint)
    return kind


def _with_vocabulary(
    keys: Keys,
    header: Header,
    model: str,
    family: dict[str, Any],
    kind: PreType | None,
    limits: Limits,
    forced: str | None,
) -> TokenizerIR:
    texts = keys.strings(_PREFIX + "tokens")
    if texts is None:
        raise FormatError("there is no tokenizer.ggml.tokens key", location=Location(keys.file, _PREFIX + "tokens"))
    _check_sizes(keys, texts, limits)
    vocab = VocabBuilder(keys)
    vocab.read_pieces(texts, dna=model == "hybriddna")
    defaults = dict(family["ids"])
    if kind is not None and kind.no_bos_default:
        defaults.pop("bos", None)
    vocab.read_roles(defaults)
    post = _post_processor(keys, family, kind)
    prefix = keys.boolean(_PREFIX + "add_space_prefix")
    extra = keys.boolean(_PREFIX + "remove_extra_whitespaces")
    vocab.apply_texts()
    order = vocab.special_order()
    if family["type"] in ("BPE", "SPM", "UGM"):
        vocab.check_byte_pieces()
    name, architecture = keys.string("general.name"), keys.string("general.architecture")
    if architecture is None:
        message = "general.architecture is missing; llama.cpp does not load the file"
        keys.find("gguf-architecture-missing", Severity.REFUSE, message, "general.architecture")
    # the name in the file, not the one that the model forces; but --pre stands for another file
    file_pre = forced or keys.string(_PREFIX + "pre") or ""
    vocab.apply_strips(order, file_pre, (name or "").lower(), architecture or "")
    context = Context(
        keys,
        vocab,
        model,
        kind,
        add_space_prefix=family.get("add_space_prefix", False) if prefix is None else prefix,
        remove_extra_whitespaces=bool(extra),
        limits=limits,
        clean_spaces=family.get("clean_spaces", False) if kind is None else kind.clean_spaces,
    )
    parts = FAMILIES[family["type"]](context)
    keys.check_types()
    suppress = _suppressed(keys, len(vocab.pieces))
    templates = _templates(keys)
    extras = keys.unused("tokenizer.")
    _note_added(keys, vocab, post, parts.post_rule, byte_level=kind is not None)
    return TokenizerIR(
        reference=Reference.LLAMA_CPP,
        rules=rules()["version"],
        unicode="llamacpp-15.1",
        vocab=Vocab(tuple(vocab.pieces), vocab.types, vocab.attrs, vocab.scores),
        alphabet=parts.alphabet,
        model=parts.model,
        matching=Matching(MatchingRule.PASS_PER_TOKEN),
        normalizer=parts.normalizer,
        pre_tokenizer=parts.pre_tokenizer,
        decoder=(parts.decoder,),
        post_processor=BosEos(post.add_bos, post.add_eos, post.add_sep, rule=parts.post_rule),
        added_tokens=vocab.added_tokens(order),
        specials=Specials(vocab.roles, tuple(sorted(vocab.eog)), suppress),
        chat_templates=templates,
        source=Source("gguf", _facts(header, model, kind, name, architecture)),
        extras=extras,
        findings=tuple(keys.findings),
    )


def _post_processor(keys: Keys, family: dict[str, Any], kind: PreType | None) -> BosEos:
    """Flags: the model's defaults, then the pre-tokenizer's, then the keys (2638-2653)."""
    flags = {name: family.get(name, False) for name in ("add_bos", "add_eos", "add_sep")}
    if kind is not None:
        flags["add_bos"], flags["add_sep"] = kind.add_bos, kind.add_sep
    for name in flags:
        value = keys.boolean(f"{_PREFIX}{name}_token")
        if value is not None:
            flags[name] = value
    if kind is not None and kind.force_add_bos:
        flags["add_bos"] = True
    return BosEos(**flags)


def _note_added(keys: Keys, vocab: VocabBuilder, post: BosEos, rule: str, *, byte_level: bool) -> None:
    """Findings about special ids that are defaulted, or wanted without being there."""
    wanted = {"flags": (post.add_bos, post.add_eos, False), "cls-sep": (True, False, True)}.get(rule, (False,) * 3)
    for role, flag in zip(("bos", "eos", "sep"), wanted, strict=True):
        special = vocab.roles.get(role)
        if flag and special is None:
            message = f"{role.upper()} is to be added, but has no id: llama.cpp aborts when special ids are added"
            keys.find("gguf-special-id-missing", Severity.WARN, message, f"{_PREFIX}add_{role}_token")
    for role in ("bos", "eos"):
        special = vocab.roles.get(role)
        if special is not None and special.origin.startswith("default"):
            shown = vocab.pieces[special.id].decode("utf-8", "replace")
            message = f"there is no {role}_token_id: llama.cpp uses {special.id} ({shown!r})"
            # byte-level defaults hit an ordinary piece (11 is a comma); those of other models are what they look like
            severity = Severity.WARN if byte_level else Severity.INFO
            keys.find(f"gguf-{role}-default", severity, message, f"{_PREFIX}{role}_token_id")


def _check_sizes(keys: Keys, texts: Sequence[bytes], limits: Limits) -> None:
    where = Location(keys.file, _PREFIX + "tokens", keys.header.entries[_PREFIX + "tokens"].offset)
    if len(texts) > limits.pieces:
        raise above("pieces", f"{len(texts)} pieces are", limits, where)
    longest = max(map(len, texts), default=0)
    if longest > limits.piece_bytes:
        raise above("piece_bytes", f"a piece of {longest} bytes is", limits, where)
    if not texts:
        raise FormatError("the vocabulary is empty", location=where)


def _without_vocabulary(keys: Keys, header: Header, model: str, limits: Limits) -> TokenizerIR:
    """``none`` and ``no_vocab``: as many nameless ids as ``<arch>.vocab_size`` says (1962)."""
    name, architecture = keys.string("general.name"), keys.string("general.architecture")
    size = keys.integer(f"{architecture}.vocab_size") or 0
    if not 0 <= size <= limits.pieces:
        where = Location(keys.file, f"{architecture}.vocab_size")
        raise above("pieces", f"{size} pieces are", limits, where)
    templates = _templates(keys)
    extras = keys.unused("tokenizer.")
    message = f"tokenizer model {model!r}: the file has no vocabulary, nothing can be encoded"
    keys.find("gguf-no-vocabulary", Severity.REFUSE, message, _PREFIX + "model", "use the tokenizer of the text model")
    return TokenizerIR(
        reference=Reference.LLAMA_CPP,
        rules=rules()["version"],
        unicode="llamacpp-15.1",
        vocab=Vocab((None,) * size, np.zeros(size, dtype=np.uint8), np.zeros(size, dtype=np.uint16)),
        alphabet=Alphabet(AlphabetKind.UTF8),
        model=NoModel(),
        matching=Matching(MatchingRule.NONE),
        chat_templates=templates,
        source=Source("gguf", _facts(header, model, None, name, architecture)),
        extras=extras,
        findings=tuple(keys.findings),
    )


def _templates(keys: Keys) -> dict[str, str]:
    base = "tokenizer.chat_template"
    names = [base] + [key for key in keys.header.entries if key.startswith(base + ".")]
    templates = {}
    for key in names:
        raw = keys.raw_string(key)
        if raw is None:
            continue
        name = key[len(base) + 1 :] or "default"
        if name in templates:
            keys.used.discard(key)  # carried as it is, beside the unnamed one
            keys.find("gguf-template-name", Severity.WARN, f"{key} has the name of another template", key)
            continue
        try:
            templates[name] = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            keys.used.discard(key)  # carried as bytes
            keys.find("gguf-template-encoding", Severity.WARN, f"{key} is not UTF-8: {error.reason}", key)
    return templates


def _suppressed(keys: Keys, size: int) -> tuple[int, ...]:
    """Ids never to be sampled; those out of range are dropped (2665-2684)."""
    raw = keys.numbers(_PREFIX + "suppress_tokens", (ValueType.I32,), 0, whole=True)
    return () if raw is None else tuple(token for token in raw.tolist() if 0 <= token < size)


def _facts(
    header: Header, model: str, kind: PreType | None, name: str | None, architecture: str | None
) -> dict[str, str | int | bool]:
    facts: dict[str, str | int | bool] = {
        "gguf_version": header.version,
        "big_endian": header.big_endian,
        "tensors": header.tensor_count,
        "model": model,
    }
    if kind is not None:
        facts |= {"pre": kind.name, "pre_type": kind.type_name}
    if name is not None:
        facts["name"] = name
    if architecture is not None:
        facts["architecture"] = architecture
    return facts
