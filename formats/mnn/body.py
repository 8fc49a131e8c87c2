"""The body of a MNN ``.mtok`` file (tokenizer type 4), as data and as bytes.

The layout is the one that ``PipelineTokenizer::load_vocab_binary`` reads
(MNN tag 3.6.1, ``transformers/llm/engine/src/tokenizer/tokenizer.cpp``) and that
``transformers/llm/export/utils/tokenizer.py`` writes. The loader checks nothing: an id beyond the vocabulary writes
outside its array, a short file is read past its end. So whatever it relies on is checked here before a byte is made.

The dataclasses mirror the format and nothing else; what they mean for a tokenizer is decided in
:mod:`tokpack.formats.mnn.lower`.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokpack.errors import Location, LossError

from .parts import (
    AddedToken,
    BertPreTokenizer,
    Bpe,
    ByteFallbackDecoder,
    ByteLevel,
    ByteLevelDecoder,
    Decoder,
    Digits,
    FuseDecoder,
    Metaspace,
    MetaspaceDecoder,
    Model,
    Normalizer,
    Prepend,
    PreTokenizer,
    Replace,
    ReplaceDecoder,
    Strip,
    TableNormalizer,
    Unigram,
    WordPiece,
    WordPieceDecoder,
)

__all__ = ["MAGIC", "MAX_RANK", "PIPELINE", "MtokBody", "serialize"]

MAGIC = 430  # first number of the first line of every MNN tokenizer file
PIPELINE = 4  # second number: the binary format
MAX_RANK = 10**9  # BPEModel::tokenize looks for ranks below 1e9
_U16 = 0xFFFF
_ID_LIMIT = 1 << 31  # ids are C ints

# Split behaviour codes of the loader; every other value means Removed.
_BEHAVIORS = {"isolated": 0, "removed": 1, "merged-with-previous": 2}


@dataclass(frozen=True, slots=True, eq=False)
class MtokBody:
    """Everything in a ``.mtok`` file, in file order.

    Attributes:
        special: ids that stage 1 of encoding looks for, in matching order, and that ``decode(list)`` drops.
        stop: ids that end generation.
        prefix: ids put before every text.
        normalizer, pre_tokenizer, decoder: steps; none, one or a Sequence by their number.
        chat_template, eos, clean_up_spaces, bos: tail sections 1 to 4.
        post_ops: tail section 5: None is the sequence, a number the id of a special token.
    """

    model: Model
    special: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    normalizer: tuple[Normalizer, ...] = ()
    pre_tokenizer: tuple[PreTokenizer, ...] = ()
    decoder: tuple[Decoder, ...] = (ByteLevelDecoder(),)
    added_tokens: tuple[AddedToken, ...] = ()
    chat_template: bytes = b""
    eos: bytes = b""
    clean_up_spaces: bool = False
    bos: bytes = b""
    post_ops: tuple[int | None, ...] = ()


def serialize(body: MtokBody) -> bytes:
    """The bytes of ``body``: a function of its fields alone.

    Raises:
        LossError: for what the format cannot hold or what the loader would misread; one line that says where.
    """
    parts = [_header(body)]
    parts += _steps(4, [_normalizer(step) for step in body.normalizer])
    parts += _steps(6, [_pre_tokenizer(step) for step in body.pre_tokenizer])
    parts += _model(body.model)
    if not body.decoder:
        raise _loss("decoder", "is empty, and MNN reads that as ByteLevel", "mtok-no-decoder")
    parts += _steps(7, [_decoder(step) for step in body.decoder])
    parts += _added_tokens(body)
    parts += _tail(body)
    return b"".join(parts)


def _loss(where: str, what: str, code: str) -> LossError:
    return LossError(f"{where} {what}", location=Location(None, f"mtok.{where}"), code=code)


def _text(value: bytes | str, where: str) -> bytes:
    """A ``str`` of the format: u16 length, bytes."""
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    if len(raw) > _U16:
        raise _loss(where, f"has {len(raw)} bytes, the format allows {_U16}", "mtok-long-text")
    if 0 in raw:
        raise _loss(where, "holds a NUL byte, which ends a text for MNN", "mtok-nul")
    return struct.pack("<H", len(raw)) + raw


def _id(value: int, where: str, limit: int = _ID_LIMIT) -> int:
    if not 0 <= value < limit:
        raise _loss(where, f"is id {value}, outside 0..{limit - 1}", "mtok-id-range")
    return value


def _header(body: MtokBody) -> bytes:
    """Three text lines (``Tokenizer::createTokenizer`` and ``load_special``)."""
    ids: list[int] = []
    for name in ("special", "stop", "prefix"):
        ids += [_id(value, f"{name}[{index}]") for index, value in enumerate(getattr(body, name))]
    counts = f"{len(body.special)} {len(body.stop)} {len(body.prefix)}"
    return f"{MAGIC} {PIPELINE}\n{counts}\n{' '.join(map(str, ids))}\n".encode("ascii")


def _steps(sequence_type: int, steps: Sequence[bytes]) -> list[bytes]:
    """No step, one step, or a Sequence of several."""
    if not steps:
        return [b"\0"]
    if len(steps) == 1:
        return [steps[0]]
    return [struct.pack("<BI", sequence_type, len(steps)), *steps]


def _table(table: Iterable[tuple[int, str]], where: str) -> bytes:
    rows = sorted(table)
    if any(a[0] == b[0] for a, b in itertools.pairwise(rows)):
        raise _loss(where, "names a code point twice", "mtok-table")
    return struct.pack("<I", len(rows)) + b"".join(struct.pack("<I", cp) + _text(text, where) for cp, text in rows)


def _normalizer(step: Normalizer) -> bytes:
    if isinstance(step, Prepend):
        return b"\2" + _text(step.content, "normalizer.content")
    if isinstance(step, Replace):
        if not step.pattern:
            raise _loss("normalizer.pattern", "is empty", "mtok-empty-pattern")
        return b"\3" + _text(step.pattern, "normalizer.pattern") + _text(step.content, "normalizer.content")
    if isinstance(step, TableNormalizer):
        return b"\6" + _table(step.table, "normalizer.table")
    if isinstance(step, Strip):
        return bytes((8, step.left, step.right))
    flags = bytes((step.clean_text, step.chinese_chars, step.strip_accents, step.lowercase))
    if not step.table:
        return b"\5" + flags
    if not step.strip_accents:
        raise _loss("normalizer.table", "is only read together with strip_accents", "mtok-table")
    return b"\7" + flags + _table(step.table, "normalizer.table")


def _pre_tokenizer(step: PreTokenizer) -> bytes:
    if isinstance(step, ByteLevel):
        return bytes((1, step.use_regex))
    if isinstance(step, Digits):
        return bytes((2, step.individual_digits))
    if isinstance(step, Metaspace):
        return b"\3" + _text(step.replacement, "pre_tokenizer.replacement") + bytes((step.add_prefix_space,))
    if isinstance(step, BertPreTokenizer):
        return b"\5"
    if step.behavior not in _BEHAVIORS:
        raise _loss("pre_tokenizer.behavior", f"{step.behavior} has no code: MNN would delete text", "mtok-behavior")
    if not step.pattern:
        raise _loss("pre_tokenizer.pattern", "is empty", "mtok-empty-pattern")
    return b"\4" + _text(step.pattern, "pre_tokenizer.pattern") + bytes((step.invert, _BEHAVIORS[step.behavior]))


def _model(model: Model) -> list[bytes]:
    size = len(model.pieces)
    order = sorted(range(size), key=model.pieces.__getitem__)
    if not isinstance(model, Unigram):
        for before, after in itertools.pairwise(order):
            if model.pieces[before] == model.pieces[after]:
                raise _loss(f"piece {after}", f"is the same text as piece {before}", "mtok-duplicate-piece")
    keys = [_text(piece, f"piece {index}") for index, piece in enumerate(model.pieces)]
    if isinstance(model, Bpe):
        return _bpe(model, [(model.pieces[i], keys[i], i) for i in order])
    if isinstance(model, WordPiece):
        head = struct.pack("<BI", 1, size) + _text(model.unk_piece, "unk_piece") + _text(model.prefix, "prefix")
        return [head, struct.pack("<I", model.max_bytes), *(keys[i] + i.to_bytes(4, "little") for i in order)]
    if len(model.scores) != size:
        raise _loss("scores", f"has {len(model.scores)} entries for {size} pieces", "mtok-sizes")
    head = struct.pack("<BIIB", 2, size, _id(model.unk_id, "unk_id", size), model.byte_fallback)
    return [head, *(keys[i] + struct.pack("<Id", i, model.scores[i]) for i in order)]


def _bpe(model: Bpe, entries: list[tuple[bytes, bytes, int]]) -> list[bytes]:
    """``entries``: (text, text as it is stored, id) of the pieces, in the order of their texts."""
    if model.aliases:
        size = len(model.pieces) + len(model.aliases)
        for index, (text, number) in enumerate(model.aliases):
            entries.append((text, _text(text, f"alias {index}"), _id(number, f"alias {index}", size)))
        entries.sort()
        for before, after in itertools.pairwise(entries):
            if before[0] == after[0]:
                raise _loss(f"alias {after[0]!r}", "is the same text as another piece", "mtok-duplicate-piece")
    merges = _merges(model)
    flags = bytes((model.byte_fallback, model.byte_level))
    head = struct.pack("<BI", 0, len(entries)) + flags + struct.pack("<I", len(merges) // 12)
    return [head, *(key + number.to_bytes(4, "little") for _, key, number in entries), merges]


def _merges(model: Bpe) -> bytes:
    """Records of 12 bytes, ascending by (left id, right id), as ``std::lower_bound`` needs them."""
    import numpy as np

    merges = np.asarray(model.merges, dtype=np.uint32).reshape(-1, 3)
    pieces = model.text_of()
    size = len(pieces)
    if len(merges) == 0:
        return b""
    if int(merges[:, :2].max()) >= size:
        raise _loss("merges", f"name an id outside 0..{size - 1}", "mtok-id-range")
    if int(merges[:, 2].max()) >= MAX_RANK:
        raise _loss("merges", f"have a rank of {MAX_RANK} or more, which MNN never applies", "mtok-rank")
    keys = (merges[:, 0].astype(np.uint64) << np.uint64(32)) | merges[:, 1]
    order = np.argsort(keys, kind="stable")
    if bool((np.diff(keys[order]) == 0).any()):
        raise _loss("merges", "name one pair twice", "mtok-duplicate-merge")
    present = frozenset((*model.pieces, *(text for text, _ in model.aliases)))
    for left, right, rank in merges.tolist():
        if pieces[left] + pieces[right] not in present:
            # MNN would stop merging the whole word there: BPEModel::tokenize breaks out of its loop.
            raise _loss(f"merge of rank {rank}", f"({left}, {right}) gives no piece", "mtok-merge-result")
    return merges[order].astype("<u4").tobytes()


def _decoder(step: Decoder) -> bytes:
    if isinstance(step, ByteLevelDecoder):
        return b"\0"
    if isinstance(step, ByteFallbackDecoder):
        return b"\1"
    if isinstance(step, MetaspaceDecoder):
        return b"\2" + _text(step.replacement, "decoder.replacement") + bytes((step.add_prefix_space,))
    if isinstance(step, WordPieceDecoder):
        return b"\3" + _text(step.prefix, "decoder.prefix") + bytes((step.cleanup,))
    if isinstance(step, FuseDecoder):
        return b"\4"
    if isinstance(step, ReplaceDecoder):
        if not step.pattern:  # ReplaceDecoder::decode_chain finds it again and again while the content is empty
            raise _loss("decoder.pattern", "is empty, which hangs MNN", "mtok-empty-pattern")
        return b"\5" + _text(step.pattern, "decoder.pattern") + _text(step.content, "decoder.content")
    return b"\6" + _text(step.content, "decoder.content") + struct.pack("<II", step.start, step.stop)


def _added_tokens(body: MtokBody) -> list[bytes]:
    parts = [struct.pack("<I", len(body.added_tokens))]
    seen: set[bytes] = set()
    for index, token in enumerate(body.added_tokens):
        where = f"added_tokens[{index}]"
        if not token.content:
            raise _loss(where, "has an empty text", "mtok-empty-added-token")
        if token.content in seen:
            raise _loss(where, "has the text of an earlier entry", "mtok-duplicate-added-token")
        seen.add(token.content)
        flags = bytes((token.special, token.lstrip, token.rstrip))
        parts.append(struct.pack("<I", _id(token.id, where)) + flags + _text(token.content, where))
    return parts


def _tail(body: MtokBody) -> list[bytes]:
    """All five sections, so that nothing after the body is ever read as one of them."""
    if len(body.chat_template) >= 1 << 32:
        raise _loss("chat_template", "has 4 GiB or more", "mtok-long-text")
    operations = [
        b"\0" if value is None else b"\1" + struct.pack("<I", _id(value, f"post_ops[{index}]"))
        for index, value in enumerate(body.post_ops)
    ]
    if len(operations) > _U16:
        raise _loss("post_ops", f"has {len(operations)} entries", "mtok-long-text")
    program = b"".join(operations)
    if operations and len(program) == 4 * len(operations):
        # Engines that read this section take exactly 4 bytes per entry for an older layout; one more byte tells them.
        program += b"\0"
    return [
        struct.pack("<I", len(body.chat_template)) + body.chat_template,
        _text(body.eos, "eos"),
        bytes((body.clean_up_spaces,)),
        _text(body.bos, "bos"),
        struct.pack("<H", len(operations)) + program,
    ]
