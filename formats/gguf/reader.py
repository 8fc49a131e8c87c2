"""GGUF → TokenizerIR: what llama.cpp makes of the file, step by step in its order."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.findings import Severity
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    Reference,
    Source,
    Specials,
    TokenizerIR,
    Vocab,
)
from tokpack.ir.steps import BosEos, LlamaDetokenize, Replace
from tokpack.limits import DEFAULT, Limits
from tokpack.unicode import byte_level

from .._cursor import map_file
from .header import Header, read_header
from .keys import Keys
from .rules import PreType, close_names, pre_names, pre_type, rules
from .vocab import VocabBuilder

__all__ = ["read", "read_bytes"]

_PREFIX = "tokenizer.ggml."
_LATER = ("llama", "bert", "t5", "rwkv", "plamo2", "gemma4", "hybriddna", "whitespace", "none", "no_vocab", "test")


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
    if model != "gpt2":
        known = "is not supported yet" if model in _LATER else "is not known to llama.cpp"
        entry = header.entries[_PREFIX + "model"]
        where = Location(file, entry.key, entry.offset)
        raise UnsupportedError(f"tokenizer model {model!r} {known}", location=where, hint="supported: gpt2")
    kind = _pre_tokenizer(keys, pre, file)
    return _byte_pair(keys, header, kind, limits)


def _pre_tokenizer(keys: Keys, forced: str | None, file: str | None) -> PreType:
    name = keys.string(_PREFIX + "pre")
    if forced is not None:
        name = forced
    elif not name:
        message = "tokenizer.ggml.pre is missing: llama.cpp falls back to 'default', which is right for few models"
        keys.find("gguf-pre-missing", Severity.WARN, message, None, "--pre NAME sets it")
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


def _byte_pair(keys: Keys, header: Header, kind: PreType, limits: Limits) -> TokenizerIR:
    texts = keys.strings(_PREFIX + "tokens")
    if texts is None:
        raise FormatError("there is no tokenizer.ggml.tokens key", location=Location(keys.file, _PREFIX + "tokens"))
    _check_sizes(keys, texts, limits)
    vocab = VocabBuilder(keys)
    vocab.read_pieces(texts)
    merges, ranks = _merges(keys, kind)
    defaults = dict(rules()["byte_level_defaults"])
    if kind.no_bos_default:
        del defaults["bos"]
    vocab.read_roles(defaults)
    _note_defaults(keys, vocab)
    add_bos = keys.boolean(_PREFIX + "add_bos_token")
    add_eos = keys.boolean(_PREFIX + "add_eos_token")
    add_sep = keys.boolean(_PREFIX + "add_sep_token")
    vocab.apply_texts()
    order = vocab.special_order()
    vocab.check_byte_pieces()
    file_pre = keys.string(_PREFIX + "pre") or ""
    name, architecture = keys.string("general.name"), keys.string("general.architecture")
    if architecture is None:
        keys.find("gguf-architecture-missing", Severity.WARN, "general.architecture is missing; llama.cpp demands it")
    vocab.apply_strips(order, file_pre, (name or "").lower(), architecture or "")
    post = BosEos(
        add_bos=kind.force_add_bos or (kind.add_bos if add_bos is None else add_bos),
        add_eos=bool(add_eos),
        add_sep=kind.add_sep if add_sep is None else add_sep,
    )
    for flag, role in ((post.add_bos, "bos"), (post.add_eos, "eos")):
        if flag and role not in vocab.roles:
            message = f"add_{role}_token is set, but there is no {role} id: llama.cpp aborts when special ids are added"
            keys.find("gguf-special-id-missing", Severity.WARN, message, f"{_PREFIX}add_{role}_token")
    _note_merges(keys, kind, vocab, merges)
    alphabet = AlphabetKind.BYTE_LEVEL if kind.byte_encode else AlphabetKind.UTF8
    return TokenizerIR(
        reference=Reference.LLAMA_CPP,
        rules=rules()["version"],
        unicode="llamacpp-15.1",
        vocab=Vocab(tuple(vocab.pieces), vocab.types, vocab.attrs, vocab.scores),
        alphabet=Alphabet(alphabet, byte_fallback=not kind.byte_encode),
        model=BPE(merges, ranks, ignore_merges=kind.ignore_merges, whole_newlines=kind.type_name == "GEMMA4"),
        matching=Matching(MatchingRule.PASS_PER_TOKEN),
        normalizer=(Replace(" ", "▁"),) if kind.escape_spaces else (),
        pre_tokenizer=kind.steps,
        decoder=(LlamaDetokenize(kind.clean_spaces, unescape_spaces=kind.escape_spaces),),
        post_processor=post,
        added_tokens=vocab.added_tokens(order),
        specials=Specials(vocab.roles, tuple(sorted(vocab.eog))),
        chat_templates=_templates(keys),
        source=Source("gguf", _facts(header, kind, name, architecture)),
        extras=keys.unused("tokenizer."),
        findings=tuple(keys.findings),
    )


def _check_sizes(keys: Keys, texts: Sequence[bytes], limits: Limits) -> None:
    where = Location(keys.file, _PREFIX + "tokens")
    if len(texts) > limits.pieces:
        raise FormatError(f"{len(texts)} pieces are above the limit of {limits.pieces}", location=where)
    longest = max(map(len, texts), default=0)
    if longest > limits.piece_bytes:
        raise FormatError(f"a piece of {longest} bytes is above the limit of {limits.piece_bytes}", location=where)
    if not texts:
        raise FormatError("the vocabulary is empty", location=where)


def _merges(keys: Keys, kind: PreType) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[int, ...] | None]:
    """Merge pairs in rank order, and their ranks when some lines do not count (``llama-vocab.cpp`` 2003-2030)."""
    key = _PREFIX + "merges"
    lines = keys.strings(key)
    if lines is None:
        if kind.type_name != "KIMI_K2":
            message = "tokenizer.ggml.merges is missing; llama.cpp does not load the file"
            fix = "--allow gguf-merges-missing encodes single characters only"
            keys.find("gguf-merges-missing", Severity.REFUSE, message, None, fix)
        return (), None
    table: dict[tuple[bytes, bytes], int] = {}
    malformed = duplicate = 0
    for rank, line in enumerate(lines):
        if 0 in line:
            line = line.split(b"\0", 1)[0]
        at = line.find(b" ", 1)
        if at < 0:
            malformed += 1
        elif table.setdefault((line[:at], line[at + 1 :]), rank) != rank:
            duplicate += 1
    if malformed:
        message = f"{malformed} merges have no space between two parts; they never apply"
        keys.find("gguf-merge-malformed", Severity.WARN, message, key)
    if duplicate:
        message = f"{duplicate} merges repeat an earlier pair; the first one counts"
        keys.find("gguf-merge-duplicate", Severity.INFO, message, key)
    return tuple(table), tuple(table.values()) if malformed or duplicate else None


def _note_defaults(keys: Keys, vocab: VocabBuilder) -> None:
    for role in ("bos", "eos"):
        special = vocab.roles.get(role)
        if special is not None and special.origin.startswith("default"):
            shown = vocab.pieces[special.id].decode("utf-8", "replace")
            message = f"there is no {role}_token_id: llama.cpp uses {special.id} ({shown!r})"
            keys.find(f"gguf-{role}-default", Severity.WARN, message)


def _note_merges(keys: Keys, kind: PreType, vocab: VocabBuilder, merges: Sequence[tuple[bytes, bytes]]) -> None:
    ids = vocab.ids
    lost = [(left, right) for left, right in merges if left + right not in ids]
    if lost:
        message = f"{len(lost)} merges make a text that is not a piece; its bytes are emitted one by one, or dropped"
        path = _PREFIX + "merges"
        keys.find("gguf-merge-result-missing", Severity.WARN, message, path)
    if kind.byte_encode:
        missing = [b for b, char in enumerate(byte_level.CHARS) if char.encode() not in ids]
        if missing:
            shown = ", ".join(f"0x{b:02X}" for b in missing[:8]) + (", …" if len(missing) > 8 else "")
            message = f"{len(missing)} bytes have no piece ({shown}); llama.cpp drops them without a word"
            keys.find("gguf-byte-missing", Severity.WARN, message, _PREFIX + "tokens")


def _templates(keys: Keys) -> dict[str, str]:
    base = "tokenizer.chat_template"
    names = [base] + [key for key in keys.header.entries if key.startswith(base + ".")]
    templates = {}
    for key in names:
        raw = keys.raw_string(key)
        if raw is None:
            continue
        try:
            templates[key[len(base) + 1 :] or "default"] = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            keys.used.discard(key)  # carried as bytes
            keys.find("gguf-template-encoding", Severity.WARN, f"{key} is not UTF-8: {error.reason}", key)
    return templates


def _facts(header: Header, kind: PreType, name: str | None, architecture: str | None) -> dict[str, str | int | bool]:
    facts: dict[str, str | int | bool] = {
        "gguf_version": header.version,
        "big_endian": header.big_endian,
        "tensors": header.tensor_count,
        "model": "gpt2",
        "pre": kind.name,
        "pre_type": kind.type_name,
    }
    if name is not None:
        facts["name"] = name
    if architecture is not None:
        facts["architecture"] = architecture
    return facts
