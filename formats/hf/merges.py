"""BPE merges, in both spellings (tokenizers/src/models/bpe/)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokpack.errors import FormatError, Location
from tokpack.limits import Limits, above

from .getters import describe
from .notes import Notes

__all__ = ["Merges", "read_merges"]

_PATH = "model.merges"


@dataclass(frozen=True, slots=True)
class Merges:
    """Merges in rank order.

    Attributes:
        pairs: (left, right), each pair once.
        ranks: the source's own numbers, or None when they are the index.
        spelling: ``pairs`` or ``strings``.
    """

    pairs: tuple[tuple[bytes, bytes], ...]
    ranks: tuple[int, ...] | None
    spelling: str


def read_merges(value: Any, vocab: dict[str, bytes], prefix: str, limits: Limits, notes: Notes) -> Merges:
    """The ``merges`` key: a list of pairs, or of strings with one space.

    Args:
        value: what the key holds.
        vocab: token → its UTF-8; every part and every result must be in it.
        prefix: ``continuing_subword_prefix``: its length is cut from the right part, whatever stands there.
        limits: ``merges`` bounds the count.
        notes: for findings.
    """
    if not isinstance(value, list):
        raise _no_variant(describe(value), _PATH)
    if len(value) > limits.merges:
        raise above("merges", f"{len(value)} merges are", limits, Location(None, _PATH))
    spelling = "strings" if value and isinstance(value[0], str) else "pairs"
    if spelling == "strings":
        texts, rows = _split_strings(value)
    else:
        texts, rows = _check_pairs(value), None
    pairs = _in_vocabulary(texts, rows, vocab, prefix)
    last = dict(zip(pairs, range(len(pairs)), strict=True))
    if len(last) == len(pairs):
        return Merges(tuple(pairs), None, spelling)
    message = f"{len(pairs) - len(last)} merges are repeated; the last occurrence sets the rank"
    notes.warn("hf-duplicate-merge", message, _PATH)
    ordered = sorted(last.items(), key=lambda item: item[1])
    return Merges(tuple(pair for pair, _ in ordered), tuple(rank for _, rank in ordered), spelling)


def _no_variant(found: str, path: str) -> FormatError:
    what = f"data did not match any variant of untagged enum MergeType: found {found}"
    hint = 'merges are [left, right] pairs throughout, or "left right" strings throughout'
    return FormatError(what, location=Location(None, path), hint=hint)


def _check_pairs(value: list[Any]) -> list[tuple[str, str]]:
    for at, row in enumerate(value):
        if type(row) is not list or len(row) != 2 or type(row[0]) is not str or type(row[1]) is not str:
            found = f"an array of {len(row)}" if isinstance(row, list) else describe(row)
            if isinstance(row, list) and len(row) == 2:
                found = f"[{describe(row[0])}, {describe(row[1])}]"
            raise _no_variant(found, f"{_PATH}[{at}]")
    return value


def _split_strings(value: list[Any]) -> tuple[list[tuple[str, str]], list[int] | None]:
    """Lines that begin with ``#version`` are no merges and have no rank; errors count lines without them from 1."""
    texts: list[tuple[str, str]] = []
    rows: list[int] = []
    for at, line in enumerate(value):
        if type(line) is not str:
            raise _no_variant(describe(line), f"{_PATH}[{at}]")
        if line.startswith("#version"):
            continue
        left, space, right = line.partition(" ")
        if not space or " " in right:
            what = f"Merges text file invalid at line {len(texts) + 1}: {describe(line)} is not two parts"
            hint = 'tokens with spaces need the spelling ["left", "right"]'
            raise FormatError(what, location=Location(None, f"{_PATH}[{at}]"), hint=hint)
        texts.append((left, right))
        rows.append(at)
    return texts, rows if len(rows) < len(value) else None


def _in_vocabulary(
    texts: list[tuple[str, str]], rows: list[int] | None, vocab: dict[str, bytes], prefix: str
) -> list[tuple[bytes, bytes]]:
    pairs: list[tuple[bytes, bytes]] = []
    append = pairs.append
    left = right = ""
    cut = len(prefix.encode("utf-8"))
    results = set(vocab.values()) if cut else set()
    try:
        if cut:
            for left, right in texts:
                first, second = vocab[left], vocab[right]
                if len(second) < cut or first + second[cut:] not in results:
                    raise KeyError
                append((first, second))
        else:
            for left, right in texts:
                append((vocab[left], vocab[right]))
                if left + right not in vocab:
                    raise KeyError
    except KeyError:
        at = len(pairs) - (0 if cut or left not in vocab or right not in vocab else 1)
        path = f"{_PATH}[{at if rows is None else rows[at]}]"
        raise _out_of_vocabulary(left, right, vocab, cut, path) from None
    return pairs


def _out_of_vocabulary(left: str, right: str, vocab: dict[str, bytes], cut: int, path: str) -> FormatError:
    for part in (left, right):
        if part not in vocab:
            return FormatError(f"Token `{part[:60]}` out of vocabulary", location=Location(None, path))
    if len(vocab[right]) < cut:
        what = f"the right part {right!r} is shorter than continuing_subword_prefix; tokenizers aborts"
        return FormatError(what, location=Location(None, path))
    result = (vocab[left] + vocab[right][cut:]).decode("utf-8", "replace")
    return FormatError(f"Token `{result[:60]}` out of vocabulary", location=Location(None, path))
