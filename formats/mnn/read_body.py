"""The bytes of a ``.mtok`` → :class:`~tokpack.formats.mnn.body.MtokBody`: the inverse of ``body.serialize``.

The engine (``PipelineTokenizer::load_vocab_binary`` in ``tokenizer.cpp`` of MNN tag 3.6.1) checks nothing. What would
make it read or write outside its arrays is an error here, or a finding of severity ``refuse`` where the file can still
be looked at. Nothing behind the fifth tail section is read.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.findings import Finding, Severity
from tokpack.limits import DEFAULT, Limits, hint_for

from .._cursor import Cursor
from .body import MAX_RANK, MtokBody
from .parts import AddedToken, Bpe, Model, Unigram, WordPiece
from .read_header import Lines, read_header
from .read_steps import StepReader

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BodyFile", "parse", "read_body"]

_ROOM = 1 << 16  # ids behind the arrays that are still looked at


@dataclass(slots=True)
class BodyFile:
    """A body, and what a body that we write never has.

    Attributes:
        body: the parts.
        count: the number of entries that the vocabulary declares; ids from here on are written outside the engine's
            arrays.
        misread_ops: what engines that read section 5 make of it when they take it for an older layout, else None.
        broken_ops: why those engines cannot read section 5, else None.
        null_members: a Sequence has a member of type 0.
        findings: what is odd.
        end: offset behind the last byte that was read.
    """

    body: MtokBody
    count: int
    misread_ops: tuple[int, ...] | None = None
    broken_ops: str | None = None
    null_members: bool = False
    findings: list[Finding] = field(default_factory=list)
    end: int = 0


def read_body(data: bytes | mmap.mmap, file: str | None = None, limits: Limits = DEFAULT) -> MtokBody:
    """The body at the start of ``data``.

    Raises:
        FormatError: cut off or damaged; says where.
        UnsupportedError: a component that no engine knows, or on which the engine's ids cannot be told.
    """
    return parse(data, file, limits).body


def parse(data: bytes | mmap.mmap, file: str | None = None, limits: Limits = DEFAULT) -> BodyFile:
    """As :func:`read_body`, with everything that is odd about the file."""
    lines = Lines(data)
    header = read_header(lines, file, limits)
    if header.tokenizer_type != 4:
        what = f"tokenizer type {header.tokenizer_type} is text, a .mtok has type 4"
        raise FormatError(what, location=Location(file, "mnn.header", 0), hint="--from mnn-txt reads it")
    cursor = Cursor(data, file)
    cursor.pos = lines.pos
    return _BodyReader(cursor, limits).read(header)


class _BodyReader:
    """Reads one body; a cursor and the findings so far."""

    def __init__(self, cursor: Cursor, limits: Limits) -> None:
        self._cursor = cursor
        self._limits = limits
        self._steps = StepReader(cursor)
        self._findings = self._steps.findings
        self._count = 0

    def read(self, header: Any) -> BodyFile:
        normalizer, pre_tokenizer = self._steps.normalizer(), self._steps.pre_tokenizer()
        model = self._model()
        decoder = self._steps.decoder()
        added = self._added_tokens()
        template, eos, clean, bos = self._tail()
        ops, misread, broken = self._post_ops()
        body = MtokBody(
            model,
            special=header.special,
            stop=header.stop,
            prefix=header.prefix,
            normalizer=tuple(normalizer),
            pre_tokenizer=tuple(pre_tokenizer),
            decoder=tuple(decoder),
            added_tokens=added,
            chat_template=template,
            eos=eos,
            clean_up_spaces=clean,
            bos=bos,
            post_ops=ops,
        )
        return BodyFile(
            body,
            self._count,
            misread,
            broken,
            self._steps.null_members,
            self._findings,
            self._cursor.pos,
        )

    def _refuse(self, code: str, message: str, path: str, offset: int | None = None) -> None:
        where = Location(None, path, self._cursor.pos if offset is None else offset)
        self._findings.append(Finding(code, Severity.REFUSE, message, where))

    # --- model ---

    def _model(self) -> Model:
        cursor = self._cursor
        at = cursor.pos
        kind = cursor.number("u8", "the model type")
        readers: dict[int, Callable[[], Model]] = {0: self._bpe, 1: self._word_piece, 2: self._unigram}
        if kind not in readers:
            what = f"model type {kind} is unknown to MNN, which then has no model and crashes on the first text"
            raise UnsupportedError(what, location=Location(cursor.file, "mtok.model", at), code="mnn-model")
        size, limit = 14 if kind == 2 else 6, self._limits.pieces
        self._count = cursor.count("u32", "the number of vocabulary entries", size, limit, "pieces")
        if not self._count:
            raise cursor.fail("the vocabulary is empty", path="mtok.model", offset=at)
        return readers[kind]()

    def _bpe(self) -> Bpe:
        cursor = self._cursor
        fallback, byte_level = cursor.number("u8", "byte_fallback"), cursor.number("u8", "byte_level")
        # the entries stand between this count and the merges, so their own size is part of the check
        at = cursor.pos
        merges = cursor.count("u32", "the number of merges", 12, self._limits.merges, "merges")
        if merges * 12 + self._count * 6 > cursor.left:
            raise cursor.fail(f"{merges} merges do not fit", path="mtok.model.merges", offset=at)
        ids, texts, _, offsets = self._entries(0)
        self._check_order(ids, texts, offsets)
        pieces, aliases = self._texts_of(ids, texts, offsets)
        model = Bpe(pieces, np.empty((0, 3), dtype=np.uint32), bool(byte_level), bool(fallback), aliases)
        return replace(
            model, merges=self._merges(merges, model, dict(zip(reversed(texts), reversed(ids), strict=True)))
        )

    def _word_piece(self) -> WordPiece:
        cursor = self._cursor
        unk, prefix = cursor.string("u16", "unk_token", 65_535), cursor.string("u16", "the word-piece prefix", 65_535)
        longest = cursor.number("u32", "max_chars")
        return WordPiece(self._pieces(0)[0], unk, prefix, longest)

    def _unigram(self) -> Unigram:
        cursor = self._cursor
        at = cursor.pos
        unk, fallback = cursor.number("u32", "unk_id"), bool(cursor.number("u8", "byte_fallback"))
        pieces, scores = self._pieces(8)
        if unk >= self._count:
            message = f"the unknown id {unk} is outside the {self._count} entries: MNN reads beside its arrays"
            self._refuse("mnn-unk-id", message, "mtok.model.unk_id", at)
        if any(math.isnan(score) for score in scores):
            self._refuse("mnn-scores", "a score is not a number", "mtok.model", at)
        return Unigram(pieces, tuple(scores), unk, fallback)

    def _pieces(self, extra: int) -> tuple[tuple[bytes, ...], list[float]]:
        """Texts by id and, with ``extra`` bytes per entry, scores by id."""
        ids, texts, scores, offsets = self._entries(extra)
        self._check_order(ids, texts, offsets)
        return self._by_id(ids, texts, scores, offsets)

    def _check_order(self, ids: list[int], texts: list[bytes], offsets: list[int]) -> None:
        for index in range(1, len(texts)):
            before, after = texts[index - 1], texts[index]
            if before > after or (before == after and ids[index - 1] >= ids[index]):
                what = f"vocabulary entry {index} is not in order: MNN looks texts up by halving and finds only some"
                where = Location(self._cursor.file, f"mtok.model.vocab[{index}]", offsets[index])
                raise UnsupportedError(what, location=where, code="mnn-unsorted")

    def _entries(self, extra: int) -> tuple[list[int], list[bytes], list[float], list[int]]:
        """Ids, texts, scores and offsets of the entries, in file order. Written out: there are 250,000 of them."""
        cursor = self._cursor
        data, pos, end = cursor.data, cursor.pos, cursor.end
        size, tail = struct.Struct("<H").unpack_from, struct.Struct("<Id" if extra else "<I")
        unpack, width = tail.unpack_from, tail.size
        ids: list[int] = []
        texts: list[bytes] = []
        scores: list[float] = []
        offsets: list[int] = []
        for index in range(self._count):
            start = pos + 2
            stop = start + size(data, pos)[0] if start <= end else end + 1
            if stop + width > end:
                where = f"mtok.model.vocab[{index}]"
                raise cursor.fail("the file ends inside this entry", path=where, offset=pos)
            texts.append(data[start:stop])
            offsets.append(pos)
            values = unpack(data, stop)
            ids.append(values[0])
            if extra:
                scores.append(values[1])
            pos = stop + width
        cursor.pos = pos
        longest = max(map(len, texts))
        if longest > self._limits.piece_bytes:
            what = f"a piece of {longest} bytes is above the limit of {self._limits.piece_bytes}"
            raise cursor.fail(what, path="mtok.model", hint=hint_for("piece_bytes"))
        return ids, texts, scores, offsets

    def _texts_of(
        self, ids: list[int], texts: list[bytes], offsets: list[int]
    ) -> tuple[tuple[bytes, ...], tuple[tuple[bytes, int], ...]]:
        """(texts of the ids before the first one without a text, all other texts with their ids).

        An id may have several texts: the engine finds it by each, and prints and merges it as the last one.
        """
        last = {value: index for index, value in enumerate(ids)}
        self._check_range(ids, offsets)
        gap = next(i for i in range(len(last) + 1) if i not in last)
        pieces = tuple(texts[last[i]] for i in range(gap))
        if gap == len(ids):
            return pieces, ()
        own = frozenset(last[i] for i in range(gap))
        return pieces, tuple((text, ids[i]) for i, text in enumerate(texts) if i not in own)

    def _check_range(self, ids: list[int], offsets: list[int]) -> None:
        """Refuse ids outside the engine's arrays; far outside there is nothing that could still be looked at."""
        count = self._count
        highest = max(ids)
        if highest < count:
            return
        index = next(i for i, value in enumerate(ids) if value >= count)
        where = f"mtok.model.vocab[{index}]"
        message = f"id {ids[index]} in a vocabulary of {count} entries: MNN writes beside its arrays"
        if highest >= count + _ROOM:
            raise UnsupportedError(
                message, location=Location(self._cursor.file, where, offsets[index]), code="mnn-id-range"
            )
        self._refuse("mnn-id-range", message, where, offsets[index])

    def _by_id(
        self, ids: list[int], texts: list[bytes], scores: list[float], offsets: list[int]
    ) -> tuple[tuple[bytes, ...], list[float]]:
        """Texts and scores by id, of models that have one text for each id."""
        count = self._count
        order = sorted(range(count), key=ids.__getitem__)
        for place, index in enumerate(order):
            if ids[index] != place:
                twice = place and ids[order[place - 1]] == ids[index]
                what = f"id {ids[index]} " + ("stands twice in the vocabulary" if twice else f"follows id {place - 1}")
                where = Location(self._cursor.file, f"mtok.model.vocab[{index}]", offsets[index])
                hint = "MNN reads or writes beside its arrays, or leaves ids without a text"
                raise UnsupportedError(what, location=where, code="mnn-id-range", hint=hint)
        return tuple(texts[i] for i in order), [scores[i] for i in order] if scores else []

    def _merges(self, count: int, model: Bpe, lookup: dict[bytes, int]) -> Any:
        """Merges that can apply, uint32 ``[n, 3]``; of equal pairs the first, which ``std::lower_bound`` finds.

        Args:
            count: number of merges in the file.
            model: the pieces.
            lookup: text → id.
        """
        cursor = self._cursor
        at = cursor.pos
        cursor.need(count * 12, "the merges")
        merges = cursor.array("u32", count * 3, "the merges").astype(np.uint32).reshape(-1, 3)
        keys = merges[:, 0].astype(np.uint64) << np.uint64(32) | merges[:, 1]
        back = np.flatnonzero(keys[1:] < keys[:-1])
        if back.size:
            index = int(back[0]) + 1
            where = Location(cursor.file, f"mtok.model.merges[{index}]", at + 12 * index)
            what = "the merges are not in order of their ids: MNN looks them up by halving and finds only some"
            raise UnsupportedError(what, location=where, code="mnn-unsorted")
        found = np.fromiter(lookup.values(), dtype=np.int64, count=len(lookup))
        usable = (merges[:, 2] < MAX_RANK) & np.isin(merges[:, :2], found).all(axis=1)
        usable[1:] &= keys[1:] != keys[:-1]
        idle = count - int(usable.sum())
        if idle:
            message = (
                f"{idle} of {count} merges never apply: their pair stands before, or a part or rank is out of range"
            )
            self._findings.append(Finding("mnn-idle-merges", Severity.INFO, message, Location(None, "mtok.model", at)))
        kept = merges[usable]
        self._check_merges(kept, model, lookup, at)
        return kept

    def _check_merges(self, merges: Any, model: Bpe, lookup: dict[bytes, int], at: int) -> None:
        texts = _printed(model)
        where = Location(self._cursor.file, "mtok.model.merges", at)
        used = np.unique(merges[:, :2]).tolist()
        if any(lookup.get(texts[i]) != i for i in used):
            what = "a merge names an id whose text is that of another one"
            raise UnsupportedError(what, location=where, code="mnn-duplicate-pieces")
        lengths = np.zeros(1 + max(used, default=0), dtype=np.int64)
        lengths[used] = [len(texts[i]) for i in used]
        if used and int((lengths[merges[:, 0]] + lengths[merges[:, 1]]).max()) > 65_535:
            what = "a merge makes a text of more than 65,535 bytes, whose length wraps around in MNN"
            raise UnsupportedError(what, location=where, code="mnn-long-merge")

    # --- what follows ---

    def _added_tokens(self) -> tuple[AddedToken, ...]:
        cursor = self._cursor
        count = cursor.count("u32", "the number of added tokens", 9, self._limits.pieces, "pieces")
        found = []
        for index in range(count):
            what = f"added_tokens[{index}]"
            number = cursor.number("i32", what)
            flags = [bool(cursor.number("u8", what)) for _ in range(3)]
            text = cursor.string("u16", what, self._limits.piece_bytes, "piece_bytes")
            found.append(AddedToken(number, text, *flags))
        return tuple(found)

    def _tail(self) -> tuple[bytes, bytes, bool, bytes]:
        """Sections 1 to 4; each may be missing, with all that follow."""
        cursor = self._cursor
        template = eos = bos = b""
        clean = False
        if cursor.left:
            template = cursor.string("u32", "the chat template", self._limits.template_bytes, "template_bytes")
            if cursor.left:
                eos = cursor.string("u16", "the text of eos", 65_535)
        if cursor.left:
            clean = bool(cursor.number("u8", "the flags") & 1)
        if cursor.left:
            bos = cursor.string("u16", "the text of bos", 65_535)
        return template, eos, clean, bos

    def _post_ops(self) -> tuple[tuple[int | None, ...], tuple[int, ...] | None, str | None]:
        """(program, ids of the older layout that it is taken for, what is wrong): MNN 3.6.1 never comes here."""
        cursor = self._cursor
        if not cursor.left:
            return (), None, None
        if cursor.left < 2:
            return (), None, "its count is cut off"
        count = cursor.number("u16", "the number of post-processor operations")
        start = cursor.pos
        misread: tuple[int, ...] | None = None
        if count and cursor.left == 4 * count:
            misread = struct.unpack(f"<{count}i", cursor.take(4 * count, "the operations"))
            cursor.pos = start
        ops: list[int | None] = []
        try:
            for _ in range(count):
                kind = cursor.number("u8", "an operation")
                if kind > 1:
                    return (), misread, f"operation {kind} at byte {cursor.pos - 1} is unknown"
                ops.append(cursor.number("i32", "an operation") if kind else None)
        except FormatError as error:
            return (), misread, error.what
        return tuple(ops), misread, None


def _printed(model: Bpe) -> dict[int, bytes]:
    """The text that the engine prints and merges for each id that has one: the last in byte order."""
    texts = dict(enumerate(model.pieces))
    for text, number in model.aliases:
        texts[number] = max(texts.get(number, b""), text)
    return texts
