"""The format ``mnn-txt``: MNN's text tokenizers, types 0 to 3, with the ids of the MNN engine.

Read as leniently as the engine reads them (the ``load_vocab`` of each class in ``tokenizer.cpp`` of MNN tag 3.6.1):
base64 passes over foreign characters, missing lines are what ``std::getline`` leaves behind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.errors import FormatError, Location
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    LongestMatch,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Reference,
    ScoreMerge,
    Source,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
    WordPiece,
)
from tokpack.ir.steps import MnnHeader
from tokpack.limits import DEFAULT, Limits, above
from tokpack.runtime.mnn.text_engines import wide
from tokpack.unicode import byte_level

from .._cursor import map_file
from .._limited import check_file, limited
from .base64 import decode_base64
from .numbers import to_float, to_int
from .read_header import Header, Lines, check_engine, read_header
from .to_ir import UNICODE, collect, piece_types
from .write_text import render

if TYPE_CHECKING:
    from tokpack.ir import Model

__all__ = ["read", "render"]

_NAMES = ("SentencePiece", "tiktoken", "BERT", "Hugging Face")
_MISSING = 65_536  # lines that a count may promise beyond those that are there
_STOI = re.compile(rb"[ \t\n\v\f\r]*[+-]?[0-9]+")
_ATTRS = {
    PieceType.NORMAL: PieceAttr.NORMAL,
    PieceType.UNKNOWN: PieceAttr.UNKNOWN,
    PieceType.CONTROL: PieceAttr.CONTROL,
    PieceType.USER_DEFINED: PieceAttr.USER_DEFINED,
    PieceType.UNUSED: PieceAttr.UNUSED,
    PieceType.BYTE: PieceAttr.BYTE,
}


def read(path: str | os.PathLike[str], engine: str = "v361", *, limits: Limits = DEFAULT) -> TokenizerIR:
    """The tokenizer that MNN makes of a ``tokenizer.txt``.

    Args:
        path: the file.
        engine: as in :func:`tokpack.formats.mnn.plain.read`; both engines read these files alike.
        limits: upper limits on what the file may ask for.

    Raises:
        FormatError: damaged.
        UsageError: another engine.
    """
    rules = check_engine(engine)
    name = os.fspath(path)
    with map_file(name) as data:
        check_file(len(data), limits, name)
        lines = Lines(bytes(data))
        header = read_header(lines, name, limits)
        if header.tokenizer_type == 4:
            where = Location(name, "mnn.header", 0)
            raise FormatError("tokenizer type 4 is a .mtok, not text", location=where, hint="--from mnn reads it")
        return limited(_Reader(lines, header, name, len(data), limits).read(rules), limits, name)


class _Reader:
    """Reads one file behind its header."""

    def __init__(self, lines: Lines, header: Header, name: str, size: int, limits: Limits) -> None:
        self._limits = limits
        self._lines = lines
        self._header = header
        self._name = name
        self._left = size - lines.pos
        self._findings: list[Finding] = []

    def read(self, rules: str) -> TokenizerIR:
        header = self._header
        kind = header.tokenizer_type
        readers: tuple[Callable[[], tuple[Vocab, Model]], ...] = (
            self._sentencepiece,
            self._tiktoken,
            self._bert,
            self._huggingface,
        )
        vocab, model = readers[kind]()
        self._check_lengths(vocab)
        alphabets = (AlphabetKind.UTF8, AlphabetKind.RAW_BYTES, AlphabetKind.UTF8, AlphabetKind.BYTE_LEVEL)
        size = len(vocab)
        outside = [token for token in (*header.special, *header.stop, *header.prefix) if not 0 <= token < size]
        if outside:
            message = f"{len(outside)} ids of the header are outside the vocabulary, the first is {outside[0]}"
            self._note("mnn-header-ids", Severity.WARN, message, "header")
        unknown = model.unk_id if isinstance(model, ScoreMerge) else None
        return TokenizerIR(
            reference=Reference.MNN,
            rules=rules,
            unicode=UNICODE,
            vocab=vocab,
            alphabet=Alphabet(alphabets[kind], byte_fallback=kind == 0),
            model=model,
            matching=Matching(MatchingRule.HEADER_ORDER),
            post_processor=MnnHeader(kind, header.special, header.stop, header.prefix, size, size),
            specials=Specials(
                {} if unknown is None else {"unk": SpecialId(unknown, "type 2")},
                tuple(sorted({token for token in header.stop if 0 <= token < size})),
            ),
            source=Source("mnn-txt", {"tokenizer_type": kind, "kind": _NAMES[kind]}),
            findings=tuple(self._findings),
        )

    def _note(self, code: str, severity: Severity, message: str, path: str, offset: int | None = None) -> None:
        self._findings.append(Finding(code, severity, message, Location(None, f"mnn.{path}", offset)))

    def _fail(self, what: str, offset: int) -> FormatError:
        return FormatError(what, location=Location(self._name, "mnn.vocab", offset))

    def _count(self, value: int, at: int, name: str) -> int:
        if not 0 <= value <= self._left + _MISSING:
            raise self._fail(f"the number of {name} {value} does not fit in the {self._left} bytes that are left", at)
        if value > getattr(self._limits, name):
            raise above(name, f"{value} {name} are", self._limits, Location(self._name, "mnn.vocab", at))
        return value

    def _check_lengths(self, vocab: Vocab) -> None:
        longest = max((len(piece) for piece in vocab.pieces if piece is not None), default=0)
        if longest > self._limits.piece_bytes:
            where = Location(self._name, "mnn.vocab")
            raise above("piece_bytes", f"a piece of {longest} bytes is", self._limits, where)

    def _one_count(self) -> int:
        """``std::stoi`` of the first line."""
        at = self._lines.pos
        line = self._lines.next(b"")
        if not _STOI.match(line):
            raise self._fail("the line behind the header is not the number of pieces", at)
        count = self._count(to_int(line), at, "pieces")
        if not count:
            raise self._fail("the vocabulary is empty", at)
        return count

    def _missing(self, missing: int) -> None:
        if missing:
            message = f"{missing} lines of the vocabulary are missing at the end of the file"
            self._note("mnn-missing-lines", Severity.WARN, message, "vocab")

    # --- the four types ---

    def _sentencepiece(self) -> tuple[Vocab, Model]:
        count = self._one_count()
        pieces: list[bytes | None] = [None] * count
        types = np.full(count, PieceType.UNUSED, dtype=np.uint8)
        scores = np.zeros(count, dtype=np.float32)
        unknown, skipped, line = 0, 0, b""
        for index in range(count):
            at = self._lines.pos
            line = self._lines.next(line)
            first = line.find(b" ")
            second = line.find(b" ", first + 1)
            if first < 0 or second < 0:
                skipped += 1
                continue
            pieces[index] = decode_base64(line[:first])
            scores[index] = to_float(line[first + 1 :])
            if np.isnan(scores[index]):
                self._note("mnn-scores", Severity.REFUSE, "a score is not a number", f"vocab[{index}]", at)
            number = to_int(line[second + 1 :])
            types[index] = number if 0 <= number < 256 else 0
            unknown = index if number == PieceType.UNKNOWN else unknown
        if skipped:
            message = f"{skipped} of {count} pieces have no line of their own: MNN leaves them empty"
            self._note("mnn-missing-lines", Severity.INFO, message, "vocab")
        self._note_spaces(pieces)
        kinds = [_ATTRS.get(PieceType(kind), 0) if 1 <= kind <= 6 else 0 for kind in types.tolist()]
        return Vocab(tuple(pieces), types, np.array(kinds, dtype=np.uint16), scores), ScoreMerge(unknown)

    def _note_spaces(self, pieces: list[bytes | None]) -> None:
        mark = "▁".encode()
        spaced = sum(piece is not None and b" " in piece for piece in pieces)
        marked = sum(piece is not None and mark in piece for piece in pieces)
        if spaced and not marked:
            message = (
                f"{spaced} pieces are spelled with spaces: releases of MNN up to 3.2.3 find them, later ones look for "
                f"U+2581 and do not"
            )
            self._note("mnn-txt-spaces", Severity.WARN, message, "vocab")

    def _base64_lines(self) -> Vocab:
        count = self._one_count()
        pieces: list[bytes | None] = []
        line, missing = b"", 0
        for _ in range(count):
            missing += self._lines.ended or self._lines.pos >= self._lines.size
            line = self._lines.next(line)
            pieces.append(decode_base64(line))
        self._missing(missing)
        return self._plain_vocab(pieces)

    def _plain_vocab(self, pieces: list[bytes | None]) -> Vocab:
        bits = collect(pieces, self._header.special, -1)
        return Vocab(tuple(pieces), piece_types(bits), np.array(bits, dtype=np.uint16))

    def _tiktoken(self) -> tuple[Vocab, Model]:
        vocab = self._base64_lines()
        if b"" in vocab.pieces:
            message = "there is an empty token: MNN never ends on a byte without a token"
            self._note("mnn-empty-token", Severity.WARN, message, "vocab")
        return vocab, LongestMatch()

    def _bert(self) -> tuple[Vocab, Model]:
        return self._base64_lines(), WordPiece(b"[UNK]", b"##", (1 << 31) - 1)

    def _huggingface(self) -> tuple[Vocab, Model]:
        at = self._lines.pos
        counts = [int(part) for part in re.findall(rb"[+-]?[0-9]{1,18}", self._lines.next(b""))[:2]]
        count, merge_count = [*counts, 0, 0][:2]
        self._count(count, at, "pieces")
        self._count(merge_count, at, "merges")
        if not count:
            raise self._fail("the vocabulary is empty", at)
        pieces: list[bytes | None] = []
        missing = 0
        for _ in range(count):
            missing += self._lines.ended or self._lines.pos >= self._lines.size
            pieces.append(self._lines.next(b""))  # the engine moves its string away: an empty one is left behind
        self._missing(missing)
        return self._plain_vocab(pieces), self._merges(merge_count)

    def _merges(self, count: int) -> BPE:
        """Of equal pairs the first; those with characters that no text becomes are left out."""
        merges: dict[tuple[bytes, bytes], int] = {}
        line, idle = b"", 0
        for rank in range(count):
            line = self._lines.next(line)
            left, space, right = line.partition(b" ")
            parts = wide(left), wide(right)
            if not space or not all(part and set(part) <= byte_level.BYTES.keys() for part in parts):
                idle += 1
                continue
            merges.setdefault((parts[0].encode(), parts[1].encode()), rank)
        if idle:
            message = f"{idle} of {count} merge lines never apply, such as '#version: 0.2'; they count as ranks"
            self._note("mnn-idle-merges", Severity.INFO, message, "merges")
        ranks: Any = tuple(merges.values())
        return BPE(tuple(merges), None if ranks == tuple(range(len(ranks))) else ranks)
