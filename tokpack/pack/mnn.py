"""Sections of a tokenizer whose reference is the MNN engine.

Sections of its own, all little-endian:

``mnn.class.index``, ``mnn.class.blocks``
    two-stage table: folded byte of each code point beyond ASCII (``fold_text`` of ``unicode.cpp``).
``mnn.lower.from``, ``mnn.lower.to``
    u32 ``[n]`` each: code points and their lower case, where a normalizer needs it.
``mnn.same.id``, ``mnn.same.first``
    u32 and i32 ``[n]``: for texts with several ids, and texts that are added tokens only: the symbol of the text → the
    id that a lookup in the model's vocabulary gives, -1 for none.
``mnn.merge.rank``
    u32 ``[M]`` beside ``merge.key``, where merges share ranks.
``mnn.special.*``, ``mnn.added.*``
    byte tries: text of a special token → its first position in the header; of an added token → in the list.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import UnsupportedError
from tokpack.ir import BPE, LongestMatch, PieceType, ScoreMerge, TokenizerIR, Unigram, WordPiece
from tokpack.ir.steps import ByteLevelDecoder, MnnBertNormalizer, MnnHeader, Split, WordPieceDecoder
from tokpack.pack.models import merge_sections
from tokpack.pack.symbols import Sections, SymbolTable
from tokpack.pack.trie import build_trie
from tokpack.runtime.mnn.decoders import single_text
from tokpack.runtime.mnn.finder import make_finder
from tokpack.runtime.mnn.rows import read_rows
from tokpack.runtime.mnn.text_engines import decode_one
from tokpack.unicode.utf8 import split_characters

__all__ = ["build_sections"]

_PIPELINE, _SENTENCEPIECE, _BERT = 4, 0, 2
_NO_PIECE = 0xFFFFFFFF  # result of a merge that ends the work on a word
_BERT_UNK = 100  # BertTokenizer::word_piece, without a piece [UNK]
_BAD_BYTES = range(0xDC80, 0xDD00)  # how a byte that is not UTF-8 looks in a str


@lru_cache(maxsize=1)
def _tables() -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """(folded class of each code point, lower case pairs)."""
    with np.load(Path(__file__).parents[1] / "unicode" / "mnn.npz") as data:
        runs, lower = data["classes"], data["lower"]
    starts = runs[:, 0].astype(np.int64)
    classes = np.repeat(runs[:, 1].astype(np.uint8), np.diff(np.append(starts, 0x110000)))
    classes[_BAD_BYTES.start : _BAD_BYTES.stop] = classes[0xFFFD]
    return classes, lower


def _two_stage(table: NDArray[np.uint8]) -> Sections:
    blocks, index = np.unique(table.reshape(-1, 256), axis=0, return_inverse=True)
    return {"mnn.class.index": index.astype("<u2").reshape(-1).tobytes(), "mnn.class.blocks": blocks.tobytes()}


def build_sections(ir: TokenizerIR, table: SymbolTable) -> tuple[dict[str, Any], Sections]:
    """({"mnn": what lookups give} for the meta section, sections).

    Raises UnsupportedError for a pattern whose matches are not known.
    """
    header = ir.post_processor
    if not isinstance(header, MnnHeader):
        raise UnsupportedError("a tokenizer with the rules of MNN has no header")
    lookup = _lookup(ir, header)
    own = {
        "bytes": _byte_pieces(ir, header, lookup),
        "unk": _unknown(ir, header, lookup),
        "empty": any(piece == b"" for piece in ir.vocab.pieces),
    }
    sections = {**_model(ir, header, table, lookup), **_matched(ir, header), **_same(table, lookup)}
    if header.tokenizer_type == _PIPELINE:
        classes, lower = _tables()
        sections |= _two_stage(classes)
        for step in ir.pre_tokenizer:
            if isinstance(step, Split):
                make_finder(step.pattern, lambda code: int(classes[code]))
        if any(isinstance(step, MnnBertNormalizer) and step.lowercase for step in ir.normalizer):
            sections["mnn.lower.from"] = lower[:, 0].astype("<u4").tobytes()
            sections["mnn.lower.to"] = lower[:, 1].astype("<u4").tobytes()
    if ir.vocab.scores is not None and ir.vocab.scores.dtype == np.float64:
        sections["piece.scores64"] = ir.vocab.scores.astype("<f8").tobytes()
    return {"mnn": own}, sections


def _lookup(ir: TokenizerIR, header: MnnHeader) -> dict[bytes, int]:
    """Text → the id that the model finds for it."""
    found: dict[bytes, int] = {}
    types = ir.vocab.types.tolist()
    reserved: dict[bytes, int] = {}
    for index, piece in enumerate(ir.vocab.pieces[: header.pieces_end]):
        if piece is not None:
            other = header.tokenizer_type == _SENTENCEPIECE and types[index] != PieceType.NORMAL
            (reserved if other else found).setdefault(piece, index)
    for number, text in read_rows(header.aliases):
        found[text] = min(found.get(text, number), number)
    return {**found, **reserved}


def _byte_pieces(ir: TokenizerIR, header: MnnHeader, lookup: dict[bytes, int]) -> list[int]:
    missing = -1
    if isinstance(ir.model, ScoreMerge):
        missing = ir.model.unk_id or 0
    found = [lookup.get(b"<0x%02X>" % byte, missing) for byte in range(256)]
    return found if any(token >= 0 for token in found) or isinstance(ir.model, Unigram) else []


def _unknown(ir: TokenizerIR, header: MnnHeader, lookup: dict[bytes, int]) -> int:
    if isinstance(ir.model, WordPiece):
        return lookup.get(ir.model.unk_piece, _BERT_UNK if header.tokenizer_type == _BERT else -1)
    return -1


def _same(table: SymbolTable, lookup: dict[bytes, int]) -> Sections:
    pairs = sorted(
        (symbol, lookup.get(text, -1))
        for text, symbol in table.symbols.items()
        if lookup.get(text, -1) != (symbol if symbol < table.size else -1)
    )
    return {
        "mnn.same.id": np.array([a for a, _ in pairs], dtype="<u4").tobytes(),
        "mnn.same.first": np.array([b for _, b in pairs], dtype="<i4").tobytes(),
    }


def _matched(ir: TokenizerIR, header: MnnHeader) -> Sections:
    """Tries of what is cut out of the text."""
    special: dict[bytes, int] = {}
    for position, token in enumerate(header.special):
        text = _shown(ir, header, token)
        if b"\0" in text[:-1]:
            what = f"special token {token} decodes to a text with NUL, behind which MNN compares nothing"
            raise UnsupportedError(what, code="mnn-special-nul")
        special.setdefault(text, position)
    added: dict[bytes, int] = {}
    for position, entry in enumerate(ir.added_tokens):
        added.setdefault(entry.content, position)
    return {**build_trie(special, "mnn.special"), **build_trie(added, "mnn.added")}


def _shown(ir: TokenizerIR, header: MnnHeader, token: int) -> bytes:
    """``decode(int)``."""
    inside = 0 <= token < header.model_size
    piece = (ir.vocab.pieces[token] if inside else None) or b""
    if token >= header.pieces_end:
        piece = max((text for number, text in read_rows(header.aliases) if number == token), default=b"")
    if header.tokenizer_type != _PIPELINE:
        return decode_one(header.tokenizer_type, piece)
    if not inside:
        piece = _outside(ir, header)
    prefixes = [step.prefix.encode() for step in ir.decoder if isinstance(step, WordPieceDecoder)]
    spelled = any(isinstance(step, ByteLevelDecoder) for step in ir.decoder)
    return single_text(piece, prefixes[-1] if prefixes else None, spelled)


def _outside(ir: TokenizerIR, header: MnnHeader) -> bytes:
    if isinstance(ir.model, WordPiece):
        return ir.model.unk_piece
    if isinstance(ir.model, Unigram) and ir.model.unk_id is not None and 0 <= ir.model.unk_id < header.model_size:
        return ir.vocab.pieces[ir.model.unk_id] or b""
    return b""


def _model(ir: TokenizerIR, header: MnnHeader, table: SymbolTable, lookup: dict[bytes, int]) -> Sections:
    if isinstance(ir.model, BPE):
        return _bpe(ir.model, header, table, lookup)
    if isinstance(ir.model, ScoreMerge):
        return _score_merge(ir, table)
    if isinstance(ir.model, Unigram):
        return build_trie({text: token for text, token in lookup.items() if token != ir.model.unk_id})
    if isinstance(ir.model, LongestMatch):
        return build_trie(lookup)
    if isinstance(ir.model, WordPiece):
        return _word_piece(ir.model, header, lookup)
    raise UnsupportedError(f"there is no runtime for {ir.model.kind} with the rules of {ir.reference}")


def _word_piece(model: WordPiece, header: MnnHeader, lookup: dict[bytes, int]) -> Sections:
    prefix = model.continuing_subword_prefix
    usable = dict(lookup)
    if header.tokenizer_type == _PIPELINE:
        usable.pop(model.unk_piece, None)  # a match with the id of unknown counts as none
    rest = {text[len(prefix) :]: token for text, token in usable.items() if text.startswith(prefix)}
    return {**build_trie(usable), **build_trie(rest, "user")}


def _bpe(model: BPE, header: MnnHeader, table: SymbolTable, lookup: dict[bytes, int]) -> Sections:
    """Merges. The one of a .mtok joins ids and looks the result up; the one of type 3 joins texts."""
    symbols, count = table.symbols, len(model.merges)
    if header.tokenizer_type == _PIPELINE:
        symbols = {text: lookup.get(text, _NO_PIECE) for text in symbols}
    left = np.fromiter((symbols[pair[0]] for pair in model.merges), dtype=np.int64, count=count)
    right = np.fromiter((symbols[pair[1]] for pair in model.merges), dtype=np.int64, count=count)
    result = np.fromiter((symbols[pair[0] + pair[1]] for pair in model.merges), dtype=np.int64, count=count)
    sections = merge_sections(left, right, np.arange(count), result)
    if model.ranks is not None:
        sections["merge.source_rank"] = np.asarray(model.ranks, dtype="<u4").tobytes()
    if header.merge_ranks:
        by_key = np.frombuffer(sections["merge.rank"], dtype="<u4")
        sections["mnn.merge.rank"] = np.frombuffer(header.merge_ranks, dtype="<u4")[by_key].tobytes()
    return sections


def _score_merge(ir: TokenizerIR, table: SymbolTable) -> Sections:
    """Every pair of symbols whose texts make a normal piece; equal scores get equal ranks."""
    types = ir.vocab.types.tolist()
    scores = ir.vocab.scores if ir.vocab.scores is not None else np.zeros(len(ir.vocab), dtype=np.float32)
    normal: dict[bytes, int] = {}
    for index, piece in enumerate(ir.vocab.pieces):
        if piece is not None and types[index] == PieceType.NORMAL:
            normal.setdefault(piece, index)
    _, descending = np.unique(-scores, return_inverse=True)
    symbols = table.symbols
    rows: list[tuple[int, int, int, int]] = []
    for text, index in normal.items():
        ends = split_characters(text)
        for at, cut in enumerate(ends[:-1]):
            first, second = text[:cut], text[cut:]
            if (at == 0 or first in normal) and (at == len(ends) - 2 or second in normal):
                rows.append((symbols[first], symbols[second], int(descending[index]), symbols[text]))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return merge_sections(*columns.T)
