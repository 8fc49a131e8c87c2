"""Rank file → TokenizerIR: what tiktoken makes of it, with a pattern and special tokens from elsewhere."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tokpack.errors import Location, TokpackError
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    AddedToken,
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    RankMerge,
    Reference,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
)
from tokpack.ir.steps import BosEos, BytesDecoder, Dialect, Split
from tokpack.limits import DEFAULT, Limits

from .._cursor import map_file
from .._limited import limited
from .encodings import Encoding, encoding, fitting, names
from .lines import parse_ranks
from .specials import check_specials, read_specials

__all__ = ["RULES", "UNICODE", "build_vocab", "missing_bytes", "overlaps", "read", "read_bytes"]

RULES = "tiktoken 0.14.0"
UNICODE = "tiktoken-0.14"
_NAME = re.compile(r"[A-Za-z0-9_.-]{2,}")
_ROOM = 1 << 20  # ids behind all ranks
_END = "<|endoftext|>"


def read(
    path: str | os.PathLike[str],
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | str | None = None,
    *,
    limits: Limits = DEFAULT,
) -> TokenizerIR:
    """Read a rank file.

    Args:
        path: the file.
        pattern: the name of a public encoding (``cl100k_base``, …), which also has special tokens, or a regular
            expression in tiktoken's dialect.
        special_tokens: a map text → id, a JSON file, the name of an encoding, or ``none``; by default those of the
            encoding that ``pattern`` names.
        limits: upper limits on what the file may ask for.

    Without a pattern the vocabulary can be looked at, and the finding ``tiktoken-no-pattern`` refuses the rest; who
    allows it gets every text as one word.

    Raises ReadError or FormatError when it cannot be read, RefusedError for special tokens that do not go with it,
    UsageError for an unknown name.
    """
    name = os.fspath(path)
    with map_file(name) as data:
        return read_bytes(data, name, pattern, special_tokens, limits=limits)


def read_bytes(
    data: bytes | mmap.mmap,
    file: str | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | str | None = None,
    *,
    limits: Limits = DEFAULT,
) -> TokenizerIR:
    """As :func:`read`, from the bytes of the file."""
    named = _encoding(pattern)
    try:
        ranks, is_base64 = parse_ranks(data, file, limits)
        digest = hashlib.sha256(data).hexdigest()
        findings = _pattern_findings(pattern, named, special_tokens, len(ranks), digest)
        if special_tokens is not None:
            special = read_specials(special_tokens, limits)
        else:
            special = dict(named.special_tokens) if named is not None and not _refused(findings) else {}
        by_id = {rank: piece for piece, rank in ranks.items()}
        public = named is not None and special == named.special_tokens
        check_specials(special, by_id, max(by_id) + _ROOM, may_share=public)
    except TokpackError as error:
        if file is not None and error.location.file is None:
            error.in_file(file)
        raise
    if not is_base64:
        what = "the pieces are not in base64: tiktoken itself does not read this file"
        findings.append(Finding("tiktoken-raw-spelling", Severity.WARN, what))
    source = named.pattern if named is not None else pattern
    ir = TokenizerIR(
        reference=Reference.TIKTOKEN,
        rules=RULES,
        unicode=UNICODE,
        vocab=build_vocab(by_id, {number: token.encode() for token, number in reversed(special.items())}),
        alphabet=Alphabet(AlphabetKind.RAW_BYTES),
        model=RankMerge(first_id=0, rank_count=max(by_id) + 1),
        matching=Matching(MatchingRule.LEFTMOST),
        pre_tokenizer=() if source is None else (Split(source, Dialect.PCRE),),
        decoder=(BytesDecoder(),),
        post_processor=BosEos(False, False),
        added_tokens=tuple(AddedToken(number, token.encode()) for token, number in special.items()),
        specials=_roles(special, named),
        source=Source("tiktoken", {"sha256": digest, "ranks": len(ranks), "pattern": _shown(pattern)}),
        findings=(*findings, *missing_bytes(ranks), *overlaps(list(special))),
    )
    return limited(ir, limits, file)


def _shown(pattern: str | None) -> str:
    return "none" if pattern is None else pattern


def _encoding(pattern: str | None) -> Encoding | None:
    """The encoding that ``pattern`` names, None for a regular expression; UsageError for what looks like a name."""
    if pattern is None or (pattern not in names() and not _NAME.fullmatch(pattern)):
        return None
    return encoding(pattern)


def _refused(findings: Sequence[Finding]) -> bool:
    return any(finding.severity is Severity.REFUSE for finding in findings)


def _pattern_findings(
    pattern: str | None, named: Encoding | None, special_tokens: Any, ranks: int, digest: str
) -> list[Finding]:
    fits, sure = fitting(ranks, digest)
    if pattern is None:
        known = f"known encodings: {', '.join(names())}"
        if fits:
            known = f"this is the vocabulary of {' or '.join(fits)}{'' if sure else ', by its size'}; {known}"
        what = "a rank file does not say how text is cut into words"
        return [Finding("tiktoken-no-pattern", Severity.REFUSE, what, fix=f"give --pattern NAME or REGEX; {known}")]
    if named is None or digest == named.sha256:
        return []
    if ranks != named.ranks:
        what = (
            f"{named.name} has {named.ranks} ranks, this file {ranks}: the ids of its special tokens do not go with it"
        )
        if special_tokens is not None:
            return [Finding("tiktoken-other-vocabulary", Severity.INFO, what)]
        fix = "give special_tokens (a JSON file, or none)"
        return [Finding("tiktoken-other-vocabulary", Severity.REFUSE, what, fix=fix)]
    if named.sha256 is None:
        return []
    what = f"the file is not that of {named.name}, only as large: its digest is another one"
    return [Finding("tiktoken-other-digest", Severity.WARN, what)]


def build_vocab(by_id: Mapping[int, bytes], special: Mapping[int, bytes]) -> Vocab:
    """Pieces by id, special tokens as control pieces; what has no piece is unused."""
    size = max((*by_id, *special), default=-1) + 1
    pieces: list[bytes | None] = [None] * size
    types = np.full(size, PieceType.UNUSED, dtype=np.uint8)
    attrs = np.full(size, PieceAttr.UNUSED, dtype=np.uint16)
    for found, kind, attr in (
        (by_id, PieceType.NORMAL, PieceAttr.NORMAL),
        (special, PieceType.CONTROL, PieceAttr.CONTROL),
    ):
        ids = list(found)
        types[ids] = kind
        attrs[ids] = attr
        for number, piece in found.items():
            pieces[number] = piece
    return Vocab(tuple(pieces), types, attrs)


def _roles(special: Mapping[str, int], named: Encoding | None) -> Specials:
    wanted = named.roles if named is not None else {"eos": _END}
    eog = named.eog if named is not None else (_END,)
    origin = "Encoding.eot_token" if named is None else named.source
    return Specials(
        {role: SpecialId(special[token], origin) for role, token in wanted.items() if token in special},
        tuple(sorted(special[token] for token in eog if token in special)),
    )


def missing_bytes(ranks: Mapping[bytes, int]) -> list[Finding]:
    """A finding if single bytes have no rank."""
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if not missing:
        return []
    shown = ", ".join(f"0x{byte:02X}" for byte in missing[:8]) + (", …" if len(missing) > 8 else "")
    what = f"{len(missing)} bytes have no rank ({shown}): text that needs one is an error, as tiktoken panics on it"
    return [Finding("tiktoken-missing-bytes", Severity.WARN, what)]


def overlaps(special: Sequence[str]) -> list[Finding]:
    """A finding if a special token begins with another one: tiktoken takes the one that its hash map has first."""
    ordered = sorted(special)
    for first, second in pairwise(ordered):
        if second.startswith(first):
            what = f"{second[:60]!r} begins with {first[:60]!r}: which one tiktoken takes is not defined"
            fix = "text that holds it is an error with parse_special"
            where = Location(None, f"special_tokens[{second[:60]!r}]")
            return [Finding("tiktoken-overlapping-specials", Severity.WARN, what, where, fix)]
    return []
