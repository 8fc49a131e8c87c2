"""Normalizers, pre-tokenizers and decoders of a ``.mtok`` body: bytes → :mod:`~tokpack.formats.mnn.parts`.

A Sequence becomes its members, a null member nothing: so the engine runs them (``SequenceNormalizer`` and the other
two in ``tokenizer.cpp`` of MNN tag 3.6.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tokpack.errors import Location, UnsupportedError
from tokpack.findings import Finding, Severity

from .._cursor import Cursor
from .parts import (
    BertNormalizer,
    BertPreTokenizer,
    ByteFallbackDecoder,
    ByteLevel,
    ByteLevelDecoder,
    Decoder,
    Digits,
    FuseDecoder,
    Metaspace,
    MetaspaceDecoder,
    Normalizer,
    Prepend,
    PreTokenizer,
    Replace,
    ReplaceDecoder,
    Split,
    Strip,
    StripDecoder,
    TableNormalizer,
    WordPieceDecoder,
)

__all__ = ["StepReader"]

_NESTING = 32
_STEPS = 4096  # of one kind
_BEHAVIORS = {0: "isolated", 2: "merged-with-previous"}  # every other number is removed
_Step = TypeVar("_Step")


class StepReader:
    """Reads the three recursive sections.

    Attributes:
        findings: what would hang the engine.
        null_members: a Sequence of normalizers or pre-tokenizers has a member of type 0.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.findings: list[Finding] = []
        self.null_members = False

    def normalizer(self) -> list[Normalizer]:
        """The section of the normalizer."""
        steps: list[Normalizer] = []
        self._walk("normalizer", 4, self._one_normalizer, steps)
        return steps

    def pre_tokenizer(self) -> list[PreTokenizer]:
        """The section of the pre-tokenizer."""
        steps: list[PreTokenizer] = []
        self._walk("pre_tokenizer", 6, self._one_pre_tokenizer, steps)
        return steps

    def decoder(self) -> list[Decoder]:
        """The section of the decoder."""
        steps: list[Decoder] = []
        self._walk("decoder", 7, self._one_decoder, steps)
        return steps

    def _walk(
        self, name: str, sequence: int, one: Callable[[int], _Step | None], out: list[_Step], depth: int = 0
    ) -> None:
        cursor = self._cursor
        at = cursor.pos
        kind = cursor.number("u8", f"the type of a {name}")
        if kind != sequence:
            self.null_members |= bool(depth) and not kind and name != "decoder"
            step = one(kind)
            if step is not None:
                out.append(step)
        elif depth == _NESTING:
            what = f"Sequences are nested more than {_NESTING} deep"
            raise cursor.fail(what, path=f"mtok.{name}", offset=at)
        else:
            for _ in range(cursor.count("u32", f"the number of {name}s", 1, 1 << 24)):
                self._walk(name, sequence, one, out, depth + 1)
        if len(out) > _STEPS:
            raise cursor.fail(f"there are more than {_STEPS} {name}s", path=f"mtok.{name}", offset=at)

    def _unknown(self, name: str, kind: int) -> UnsupportedError:
        what = f"{name} type {kind} is unknown to MNN 3.6.1, which then misreads the rest of the file"
        where = Location(self._cursor.file, f"mtok.{name}", self._cursor.pos - 1)
        return UnsupportedError(what, location=where, code=f"mnn-{name.replace('_', '-')}")

    def _text(self, what: str) -> str:
        at = self._cursor.pos
        raw = self._cursor.string("u16", what, 65_535)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            where = Location(self._cursor.file, f"mtok.{what}", at)
            raise UnsupportedError("the text is not UTF-8", location=where, code="mnn-utf8") from error

    def _flag(self, what: str) -> bool:
        return bool(self._cursor.number("u8", what))

    def _table(self) -> tuple[tuple[int, str], ...]:
        cursor = self._cursor
        where = "mtok.normalizer.table"
        count = cursor.count("u32", "the number of table entries", 6, 0x110000)
        rows: list[tuple[int, str]] = []
        last = -1
        for index in range(count):
            at = cursor.pos
            code = cursor.number("u32", f"normalizer.table[{index}]")
            if code <= last:
                what = f"entry {index} is not in order of code points: MNN looks them up by halving and finds only some"
                raise UnsupportedError(what, location=Location(cursor.file, where, at), code="mnn-unsorted")
            rows.append((code, self._text("normalizer.table")))
            last = code
        return tuple(rows)

    def _one_normalizer(self, kind: int) -> Normalizer | None:
        if kind in (0, 1):
            return None  # 1 is NFKC with an empty table, which leaves texts as they are
        if kind == 2:
            return Prepend(self._text("normalizer.content"))
        if kind == 3:
            pattern, content = self._text("normalizer.pattern"), self._text("normalizer.content")
            return Replace(pattern, content) if pattern else None
        if kind in (5, 7):
            clean, chinese, strip, lower = (self._flag("normalizer.flags") for _ in range(4))
            return BertNormalizer(clean, chinese, strip, lower, self._table() if kind == 7 and strip else ())
        if kind == 6:
            table = self._table()
            return TableNormalizer(table) if table else None
        if kind == 8:
            return Strip(self._flag("normalizer.left"), self._flag("normalizer.right"))
        raise self._unknown("normalizer", kind)

    def _one_pre_tokenizer(self, kind: int) -> PreTokenizer | None:
        if kind == 0:
            return None
        if kind == 1:
            return ByteLevel(self._flag("pre_tokenizer.use_regex"))
        if kind == 2:
            return Digits(self._flag("pre_tokenizer.individual_digits"))
        if kind == 3:
            return Metaspace(self._text("pre_tokenizer.replacement"), self._flag("pre_tokenizer.add_prefix_space"))
        if kind == 4:
            pattern, invert = self._text("pre_tokenizer.pattern"), self._flag("pre_tokenizer.invert")
            behavior = self._cursor.number("u8", "pre_tokenizer.behavior")
            return Split(pattern, invert, _BEHAVIORS.get(behavior, "removed"))
        if kind == 5:
            return BertPreTokenizer()
        raise self._unknown("pre_tokenizer", kind)

    def _one_decoder(self, kind: int) -> Decoder | None:
        at = self._cursor.pos
        if kind == 0:
            return ByteLevelDecoder()
        if kind == 1:
            return ByteFallbackDecoder()
        if kind == 2:
            replacement = self._text("decoder.replacement")
            self._endless(replacement, "decoder.replacement", at)
            return MetaspaceDecoder(replacement, self._flag("decoder.add_prefix_space"))
        if kind == 3:
            return WordPieceDecoder(self._text("decoder.prefix"), self._flag("decoder.cleanup"))
        if kind == 4:
            return FuseDecoder()
        if kind == 5:
            pattern = self._text("decoder.pattern")
            self._endless(pattern, "decoder.pattern", at)
            return ReplaceDecoder(pattern, self._text("decoder.content"))
        if kind == 6:
            content = self._text("decoder.content")
            start, stop = (self._cursor.number("u32", "decoder.strip") for _ in range(2))
            return StripDecoder(content, start, stop)
        raise self._unknown("decoder", kind)

    def _endless(self, text: str, where: str, offset: int) -> None:
        if not text:
            message = "it is empty: MNN finds it again and again and never ends"
            self.findings.append(
                Finding("mnn-endless-decoder", Severity.REFUSE, message, Location(None, f"mtok.{where}", offset))
            )
