"""Text → ids and back by the rules of the MNN engine (``Tokenizer::encode`` and what it calls)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import bytes_of, meta_errors
from tokpack.runtime.mnn.decoders import hex_byte, make_chain, single_text
from tokpack.runtime.mnn.rows import read_rows
from tokpack.runtime.mnn.special import AddedMatcher, Fragment, SpecialMatcher
from tokpack.runtime.mnn.text_engines import TextEngine, make_text_engine
from tokpack.runtime.mnn.words import WordEngine
from tokpack.runtime.spans import Spans
from tokpack.runtime.stream import PieceStream
from tokpack.typed import Any

__all__ = ["MnnDetokenizer", "MnnPipeline"]

_PIPELINE = 4


class MnnPipeline:
    """Everything between a text and its ids; each stage is made when it is first used.

    Attributes:
        pieces: the vocabulary.
        detokenizer: the way back.
    """

    def __init__(self, view: PackView) -> None:
        self.pieces = PieceTable(view)
        self._view = view
        if view.meta["matching"] != "header-order":
            raise UnsupportedError(f"a pack with the matching rule {view.meta['matching']!r}")
        header: dict[str, Any] = view.meta["post_processor"]
        self._type = int(header["tokenizer_type"])
        self._special = [int(token) for token in header["special"]]
        self._prefix = [int(token) for token in header["prefix"]]
        # ids are C ints in the engine
        self._applied = [None if op < 0 else op - ((op & 1 << 31) << 1) for op in map(int, header["applied"])]
        self.detokenizer = MnnDetokenizer(view, self.pieces, header, frozenset(self._special))

    @cached_property
    def _matcher(self) -> SpecialMatcher:
        with meta_errors(self._view.file):
            return SpecialMatcher(self._view, self._special)

    @cached_property
    def _added(self) -> AddedMatcher:
        with meta_errors(self._view.file):
            return AddedMatcher(self._view, frozenset(self._special))

    @cached_property
    def _has_special(self) -> bool:
        return len(self._view.array("mnn.special.value")) > 1

    @cached_property
    def _engine(self) -> WordEngine | TextEngine:
        with meta_errors(self._view.file):
            if self._type == _PIPELINE:
                return WordEngine(self._view, self.pieces)
            return make_text_engine(self._type, self._view, self.pieces)

    def stream(self, special: bool) -> PieceStream:
        """A decoder for ids that come one by one; the engine's (``decode(int)``) leaves none out, whatever is asked."""
        return PieceStream(self.detokenizer, True)

    def fragments(self, raw: bytes, parse_special: bool) -> list[Fragment]:
        """Special tokens, added tokens and the text between them."""
        # a text format without special tokens encodes even the empty text: type 0 puts U+2581 before it
        first: list[Fragment] = [(-1, 0, len(raw))] if raw or not self._has_special else []
        if parse_special and self._has_special:
            first = list(self._matcher.cut(raw))
        if self._type != _PIPELINE:
            return first
        out: list[Fragment] = []
        for token, start, end in first:
            if token >= 0:
                out.append((token, start, end))
            else:
                out += self._added.cut(raw, start, end, parse_special)
        return out

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`.

        The engine always parses special tokens and always adds its prefix; without ``parse_special`` the special
        tokens of the header and of the added tokens stay text, without ``add_special`` nothing is added.
        """
        raw = _raw(text)
        ids: list[int] = []
        for token, start, end in self.fragments(raw, parse_special):
            if token >= 0:
                ids.append(token)
            else:
                ids += self._engine.encode(raw[start:end])
        return self._around(ids) if add_special else ids

    def _around(self, ids: list[int]) -> list[int]:
        """Prefix, then the program of the post-processor section, whose sequence includes the prefix."""
        ids = self._prefix + ids
        if not self._applied:
            return ids
        out: list[int] = []
        for op in self._applied:
            out += ids if op is None else [op]
        return out

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> Spans:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes."""
        raw = _raw(text)
        spans: Spans = []
        for token, start, end in self.fragments(raw, parse_special):
            if token >= 0:
                spans.append((token, start, end))
            else:
                spans += [
                    (piece, start + first, start + last)
                    for piece, first, last in self._engine.encode_spans(raw[start:end])
                ]
        if isinstance(text, str):
            spans = _in_characters(text, spans)
        return self._surround(spans, len(text)) if add_special else spans

    def _surround(self, spans: Spans, size: int) -> Spans:
        inside = [(token, 0, 0) for token in self._prefix] + spans
        if not self._applied:
            return inside
        out: Spans = []
        at = 0
        for op in self._applied:
            out += inside if op is None else [(op, at, at)]
            at = size if op is None else at
        return out


def _raw(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def _in_characters(text: str, spans: Spans) -> Spans:
    if text.isascii():
        return spans
    offsets = [0]
    for char in text:
        offsets.append(offsets[-1] + len(char.encode("utf-8", "surrogatepass")))
    return [
        (token, bisect_right(offsets, start) - 1, max(bisect_left(offsets, end), bisect_right(offsets, start) - 1))
        for token, start, end in spans
    ]


class MnnDetokenizer:
    """Ids to bytes.

    Args:
        view, pieces: the pack.
        header: the :class:`tokpack.ir.mnn.MnnHeader` as the meta section has it.
        special: ids that decoding a list leaves out.
    """

    def __init__(self, view: PackView, pieces: PieceTable, header: dict[str, Any], special: frozenset[int]) -> None:
        self._view = view
        self._pieces = pieces
        self._type = int(header["tokenizer_type"])
        self._size = int(header["model_size"])
        self._end = int(header["pieces_end"])
        self._clean_up = bool(header["clean_up_spaces"])
        self._prefix = [int(token) for token in header["prefix"]]
        self._special = special
        if self._end > pieces.size:
            raise ValueError("pieces_end")

    @cached_property
    def _steps(self) -> list[dict[str, Any]]:
        return list(self._view.meta["decoder"])

    @cached_property
    def _chain(self) -> Any:
        with meta_errors(self._view.file):
            return make_chain(self._steps, self._clean_up)

    @cached_property
    def _missing(self) -> bytes:
        """What an id outside the model decodes to: nothing in BPE, the text of the unknown piece else."""
        with meta_errors(self._view.file):
            model = self._view.meta["model"]
            if model["kind"] == "WordPiece":
                return bytes_of(model, "unk_piece")
            unk = model.get("unk_id")
            return self._pieces.text(unk) if model["kind"] == "Unigram" and 0 <= unk < self._pieces.size else b""

    @cached_property
    def _single(self) -> tuple[bytes | None, bool]:
        with meta_errors(self._view.file):
            prefixes = [step["prefix"].encode() for step in self._steps if step["kind"] == "wordpiece-decoder"]
            spelled = any(step["kind"] == "byte-level-decoder" for step in self._steps)
            return (prefixes[-1] if prefixes else None), spelled

    def _text(self, token: int) -> bytes:
        """``id_to_token``."""
        if not 0 <= token < self._size:
            return self._missing
        if token >= self._end:
            return self._late.get(token, b"")
        return b"" if self._pieces.is_hole(token) else self._pieces.text(token)

    @cached_property
    def _late(self) -> dict[int, bytes]:
        """Texts of the ids behind a gap in the vocabulary."""
        texts: dict[int, bytes] = {}
        with meta_errors(self._view.file):
            for number, text in read_rows(self._view.meta["post_processor"]["aliases"]):
                texts[number] = max(texts.get(number, b""), text)
        return texts

    def piece(self, token: int, special: bool) -> bytes:
        """``decode(int)``: what the engine streams for an id; empty for special ids unless ``special``."""
        if not isinstance(token, int) or not 0 <= token < self._pieces.size:
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}")
        if token in self._special and not special:
            return b""
        if self._type != _PIPELINE:
            text = self._plain(token)
            # Llm::tokenizer_decode makes a byte of what is left of byte fallback
            byte = hex_byte(text, 0) if len(text) == 6 and text.endswith(b">") else None
            return text if byte is None else bytes((byte,))
        return single_text(self._text(token), *self._single)

    def _plain(self, token: int) -> bytes:
        from tokpack.runtime.mnn.text_engines import decode_one

        return decode_one(self._type, self._text(token)) if 0 <= token < self._size else b""

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        """``decode(const std::vector<int>&)``; ids of no piece give nothing, or the unknown text, as in the engine.

        The engine leaves special ids out for .mtok files and never for text files; ``unparse_special`` keeps them.
        """
        if remove_special and self._prefix and list(ids[: len(self._prefix)]) == self._prefix:
            ids = ids[len(self._prefix) :]
        if self._type != _PIPELINE:
            return b"".join(self._plain(token) for token in ids)
        skip = frozenset() if unparse_special else self._special
        found: bytes = self._chain([self._text(token) for token in ids if token not in skip])
        return found
