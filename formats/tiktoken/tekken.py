"""tekken.json → TokenizerIR: what mistral-common makes of it (``Tekkenizer``, tokens/tokenizers/tekken.py).

The ids of special tokens come first; a rank plus their number is an id. Of the vocabulary only as many entries count as
``default_vocab_size`` leaves room for.
"""

from __future__ import annotations

import base64
import binascii
import json
import mmap
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokpack.errors import FormatError, Location, RefusedError, TokpackError, UnsupportedError
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    RankMerge,
    Reference,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
)
from tokpack.ir.steps import BosEos, BytesDecoder, Dialect, Split
from tokpack.limits import DEFAULT, Limits, above

from .._cursor import map_file
from .._limited import limited
from ..hf.extras import as_extra
from ..hf.json import load
from .ranks import UNICODE, build_vocab

__all__ = ["RULES", "read", "read_bytes"]

RULES = "mistral-common 1.13.1"
_MAX_SPECIAL = 1 << 20
_ENTRY = {"rank", "token_bytes", "token_str"}
_TOP = {"config", "vocab", "special_tokens"}
_KNOWN = {"version", "type", "image", "multimodal", "audio", "model_settings_builder"}
_CONFIG = {"pattern", "num_vocab_tokens", "default_vocab_size", "default_num_special_tokens", "version"}


@lru_cache(maxsize=1)
def _rules() -> dict[str, Any]:
    rules: dict[str, Any] = json.loads(Path(__file__).with_name("tekken_rules.json").read_text(encoding="utf-8"))
    return rules


def read(path: str | os.PathLike[str], *, limits: Limits = DEFAULT) -> TokenizerIR:
    """Read a tekken.json of any name.

    Raises ReadError or FormatError when it cannot be read, RefusedError when mistral-common refuses it,
    UnsupportedError for an unknown version.
    """
    name = os.fspath(path)
    with map_file(name) as data:
        return read_bytes(data, name, limits=limits)


def read_bytes(data: bytes | mmap.mmap, file: str | None = None, *, limits: Limits = DEFAULT) -> TokenizerIR:
    """As :func:`read`, from the bytes of the file."""
    try:
        root = _object(load(data, file, limits=limits).value, "")
        return limited(_build(root, limits), limits)
    except TokpackError as error:
        if file is not None:
            error.in_file(file)
        raise


def _build(root: dict[str, Any], limits: Limits) -> TokenizerIR:
    config = _object(_key(root, "config", ""), "config")
    version = config.get("version")
    versions = _rules()["versions"]
    if version not in versions:
        hint = f"known: {', '.join(versions)}"
        raise UnsupportedError(f"unknown version {version!r}", location=Location(None, "config.version"), hint=hint)
    age = versions.index(version)
    _check_sections(root, age)
    pattern = _key(config, "pattern", "config")
    if not isinstance(pattern, str):
        raise _bad("the pattern is no text", "config.pattern")
    count = _count(config, "default_num_special_tokens", _MAX_SPECIAL)
    size = _count(config, "default_vocab_size", limits.pieces + _MAX_SPECIAL)
    vocab = _list(_key(root, "vocab", ""), "vocab")
    if not count <= size <= len(vocab) + count:
        what = f"default_vocab_size {size} does not fit {len(vocab)} entries and {count} special tokens"
        raise RefusedError(what, location=Location(None, "config.default_vocab_size"), code="tekken-vocab-size")
    if max(count, len(vocab)) > limits.pieces:
        raise above("pieces", f"{max(count, len(vocab))} pieces are", limits, Location(None, "vocab"))
    special = _special(root, age, count)
    by_id = {count + rank: piece for rank, piece in enumerate(_pieces(vocab[: size - count], limits))}
    content = {number: token.encode() for number, token in enumerate(special)}
    longest = max(map(len, content.values()), default=0)
    if longest > limits.piece_bytes:
        where = Location(None, "special_tokens")
        raise above("piece_bytes", f"a special token of {longest} bytes is", limits, where)
    facts: dict[str, str | int | float | bool] = {
        "version": str(version),
        "ranks": size - count,
        "special_tokens": count,
        "entries": len(vocab),
    }
    return TokenizerIR(
        reference=Reference.TIKTOKEN,
        rules=RULES,
        unicode=UNICODE,
        vocab=build_vocab(by_id, content),
        alphabet=Alphabet(AlphabetKind.RAW_BYTES),
        model=RankMerge(first_id=count, rank_count=size - count),
        matching=Matching(MatchingRule.NONE),
        pre_tokenizer=(Split(pattern, Dialect.PCRE),),
        decoder=(BytesDecoder(),),
        post_processor=BosEos(False, False),
        added_tokens=tuple(AddedToken(number, token) for number, token in content.items()),
        specials=_roles(special),
        source=Source("tekken", facts),
        extras={key: as_extra(root[key]) for key in root if key not in _TOP},
        findings=tuple(_notes(root, config)),
    )


def _bad(what: str, path: str) -> FormatError:
    return FormatError(what, location=Location(None, path), hint="is this a tekken.json?")


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _bad("not an object", path)
    return value


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _bad("not an array", path)
    return value


def _key(owner: dict[str, Any], key: str, path: str) -> Any:
    if key not in owner:
        raise _bad(f"the key {key!r} is missing", path)
    return owner[key]


def _count(config: dict[str, Any], key: str, limit: int) -> int:
    value = _key(config, key, "config")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise _bad(f"{str(value)[:40]} is no number from 0 to {limit}", f"config.{key}")
    return value


def _check_sections(root: dict[str, Any], age: int) -> None:
    """What belongs to other versions (``Tekkenizer.from_file``)."""
    rules = _rules()
    version = rules["versions"][age]
    if root.get("multimodal") and age > rules["versions"].index(rules["multimodal_up_to"]):
        what = f"version {version} names its images `image`, not `multimodal`"
        raise RefusedError(what, location=Location(None, "multimodal"), code="tekken-section")
    if root.get("model_settings_builder") is not None and age < rules["versions"].index(rules["model_settings_from"]):
        what = f"version {version} has no model settings"
        raise RefusedError(what, location=Location(None, "model_settings_builder"), code="tekken-section")


def _special(root: dict[str, Any], age: int, count: int) -> list[str]:
    """Texts of the special tokens, by id; the list of the file is filled up."""
    rules = _rules()
    given = root.get("special_tokens")
    if given is None:
        if age > rules["versions"].index(rules["special_tokens_optional_up_to"]):
            what = f"version {rules['versions'][age]} needs special_tokens"
            raise RefusedError(what, location=Location(None, "special_tokens"), code="tekken-no-specials")
        tokens = list(rules["default_special_tokens"])
    else:
        tokens = [_special_text(item, place) for place, item in enumerate(_list(given, "special_tokens"))]
    if len(tokens) > count:
        what = f"{len(tokens)} special tokens, default_num_special_tokens is {count}"
        raise RefusedError(what, location=Location(None, "special_tokens"), code="tekken-specials")
    tokens += [rules["filler"].format(number) for number in range(len(tokens), count)]
    if len(set(tokens)) != len(tokens):
        what = "special tokens must be unique"
        raise RefusedError(what, location=Location(None, "special_tokens"), code="tekken-specials")
    return tokens


def _special_text(item: Any, place: int) -> str:
    path = f"special_tokens[{place}]"
    text = _key(_object(item, path), "token_str", path)
    if not isinstance(text, str) or not text:
        raise _bad("token_str is no text, or empty", path)
    rank = _key(item, "rank", path)
    if rank != place or isinstance(rank, bool):
        what = f"rank {str(rank)[:40]} at place {place}: mistral-common encodes by one and decodes by the other"
        raise RefusedError(what, location=Location(None, path), code="tekken-special-order")
    return text


def _pieces(vocab: list[Any], limits: Limits) -> list[bytes]:
    """Pieces by rank (``_reload_mergeable_ranks``)."""
    pieces: list[bytes] = []
    seen: set[bytes] = set()
    for rank, item in enumerate(vocab):
        path = f"vocab[{rank}]"
        if not isinstance(item, dict) or item.keys() != _ENTRY:
            raise _bad(f"an entry has {', '.join(sorted(_ENTRY))} and nothing else", path)
        if item["rank"] != rank or isinstance(item["rank"], bool):
            raise _bad(f"rank {str(item['rank'])[:40]} at place {rank}", path)
        try:
            piece = base64.b64decode(item["token_bytes"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise _bad(f"token_bytes is no base64: {error}", path) from error
        if rank < 256 and piece != bytes([rank]):
            raise _bad(f"rank {rank} is not the byte {rank}", path)
        if piece in seen:
            raise _bad(f"the piece {piece[:40]!r} occurs twice", path)
        if len(piece) > limits.piece_bytes:
            raise above("piece_bytes", f"a piece of {len(piece)} bytes is", limits, Location(None, path))
        seen.add(piece)
        pieces.append(piece)
    return pieces


def _roles(special: list[str]) -> Specials:
    ids = {token: number for number, token in enumerate(special)}
    roles = {role: SpecialId(ids[token], token) for role, token in _rules()["roles"].items() if token in ids}
    return Specials(roles, (roles["eos"].id,) if "eos" in roles else ())


def _notes(root: dict[str, Any], config: dict[str, Any]) -> list[Finding]:
    found = []
    for owner, known, prefix in ((root, _TOP | _KNOWN, ""), (config, _CONFIG, "config.")):
        for key in owner:
            if key not in known:
                what = f"the key {prefix}{key[:60]} is not known; mistral-common ignores it"
                found.append(Finding("tekken-unknown-key", Severity.WARN, what, Location(None, f"{prefix}{key[:60]}")))
    return found
