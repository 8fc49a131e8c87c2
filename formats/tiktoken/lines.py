"""The lines of a rank file: ``base64 rank`` (``load_tiktoken_bpe``, tiktoken/load.py), or the bytes themselves."""

from __future__ import annotations

import base64
import binascii
import mmap
from collections.abc import Iterator

from tokpack.errors import FormatError, Location
from tokpack.limits import Limits, above, hint_for

from .._limited import check_file

__all__ = ["parse_ranks"]

_MAX_HOLES = 1 << 20
_MAX_DIGITS = 12
_HINT = "a line is `base64 rank`, or `bytes rank` in files that do not use base64"


class _BadLineError(Exception):
    """(reason, offset)."""


def parse_ranks(data: bytes | mmap.mmap, file: str | None, limits: Limits) -> tuple[dict[bytes, int], bool]:
    """(piece → rank in the order of the file, whether the file is in base64).

    A file is in base64 if every line is; it is raw if fewer than half of its lines are, else it is damaged. ``=`` is
    the empty piece, as in the vocabulary of Whisper.

    Raises FormatError for a line that cannot be read, a repeated piece or rank, and ranks beyond the limits.
    """
    check_file(len(data), limits, file)
    lines = list(_lines(bytes(data)))
    if not lines:
        raise FormatError("the file holds no ranks", location=Location(file, None, 0), hint=_HINT)
    found, first_bad, bad = [], None, 0
    for offset, line in lines:
        try:
            found.append((offset, *_base64_line(line)))
        except ValueError as error:  # noqa: PERF203
            first_bad = first_bad or (str(error), offset)
            bad += 1
    if first_bad is not None:
        if 2 * bad <= len(lines):
            raise FormatError(
                f"not a line of ranks: {first_bad[0]}", location=Location(file, None, first_bad[1]), hint=_HINT
            )
        found = [_raw_line(offset, line, file) for offset, line in lines]
    return _checked(found, file, limits), first_bad is None


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, line) as bytes.splitlines has them, without empty ones."""
    offset = 0
    for line in data.splitlines(keepends=True):
        text = line.rstrip(b"\r\n")
        if text:
            yield offset, text
        offset += len(line)


def _rank(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        raise ValueError(f"{digits[:20]!r} is not a rank")
    return int(digits)


def _base64_line(line: bytes) -> tuple[bytes, int]:
    parts = line.split()
    if len(parts) != 2:
        raise ValueError(f"{len(parts)} fields instead of 2")
    if parts[0] == b"=":
        return b"", _rank(parts[1])
    if len(parts[0]) % 4:
        raise ValueError("the base64 is cut off")
    try:
        return base64.b64decode(parts[0], validate=True), _rank(parts[1])
    except binascii.Error as error:
        raise ValueError(f"invalid base64: {error}") from error


def _raw_line(offset: int, line: bytes, file: str | None) -> tuple[int, bytes, int]:
    piece, space, digits = line.rpartition(b" ")
    try:
        if not space or not piece:
            raise ValueError("no piece and rank with a space between them")
        return offset, piece, _rank(digits)
    except ValueError as error:
        what = f"not a line of ranks: {error}"
        raise FormatError(what, location=Location(file, None, offset), hint=_HINT) from error


def _checked(found: list[tuple[int, bytes, int]], file: str | None, limits: Limits) -> dict[bytes, int]:
    if len(found) > limits.pieces:
        raise above("pieces", f"{len(found)} pieces are", limits, Location(file))
    ranks: dict[bytes, int] = {}
    taken: set[int] = set()
    for offset, piece, rank in found:
        where = Location(file, None, offset)
        if rank >= len(found) + _MAX_HOLES:
            raise FormatError(f"rank {rank} in a file of {len(found)} pieces", location=where, hint="is it damaged?")
        if rank >= limits.pieces:
            what = f"rank {rank} is not below the limit of {limits.pieces} pieces"
            raise FormatError(what, location=where, hint=hint_for("pieces"))
        if len(piece) > limits.piece_bytes:
            raise above("piece_bytes", f"a piece of {len(piece)} bytes is", limits, where)
        if piece in ranks:
            raise FormatError(f"the piece {piece[:40]!r} has two ranks, {ranks[piece]} and {rank}", location=where)
        if rank in taken:
            raise FormatError(f"rank {rank} occurs twice", location=where, hint="tiktoken refuses this, too")
        ranks[piece] = rank
        taken.add(rank)
    return ranks
