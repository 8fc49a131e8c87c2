"""The pieces of a tokenizer as columns: what each stands for, and what is known about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.analysis.show import readable
from tokpack.analysis.summary import type_name
from tokpack.api import open_view
from tokpack.errors import RefusedError
from tokpack.ir.vocab import PieceAttr
from tokpack.pack.layout import HOLE, LSTRIP, NORMALIZED, RSTRIP, SINGLE_WORD
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Vocabulary", "open_vocabulary"]

_MARK = "▁"
_Bytes = bytes  # the vocabulary has a property of that name
_NAMED_ATTRS = (
    (PieceAttr.UNKNOWN, "unknown"),
    (PieceAttr.UNUSED, "unused"),
    (PieceAttr.CONTROL, "control"),
    (PieceAttr.USER_DEFINED, "user-defined"),
    (PieceAttr.BYTE, "byte"),
)
_NAMED_FLAGS = ((LSTRIP, "lstrip"), (RSTRIP, "rstrip"), (NORMALIZED, "normalized"), (SINGLE_WORD, "single-word"))


def open_vocabulary(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Vocabulary:  # noqa: A002
    """The vocabulary of a file in any readable format; arguments as for :func:`tokpack.read`.

    What the reference refuses to load can be looked at. Raises as :func:`tokpack.read` does.
    """
    view, _ = open_view(path, format, **options)
    with meta_errors(view.file):
        return Vocabulary(view)


class Vocabulary:
    """Pieces by id; columns are made when they are first used.

    Attributes:
        file: the file, or None.
        size: number of ids, holes included; V below.
        pieces: the table of the pack.
        attrs: uint16 ``[V]``, :class:`tokpack.ir.PieceAttr` bits in effect.
        types: uint8 ``[V]``, the source's type numbers.
        holes: bool ``[V]``, ids without a piece.
    """

    def __init__(self, view: PackView) -> None:
        self.view = view
        self.file = view.file
        self.pieces = PieceTable(view)
        self.size = self.pieces.size
        size = self.size
        offset = np.frombuffer(view.raw("piece.offset"), dtype="<u4")
        if offset[-1] > len(view.raw("piece.blob")) or (offset[1:] < offset[:-1]).any():
            # all pieces are looked at: together they must not be more than there is
            raise self.pieces.damaged("piece.offset", "offsets do not ascend, or leave the texts")
        self.attrs: NDArray[np.uint16] = np.frombuffer(view.raw("piece.attrs"), dtype="<u2", count=size)
        self.types: NDArray[np.uint8] = np.frombuffer(view.raw("piece.types"), dtype=np.uint8, count=size)
        flags = np.frombuffer(view.raw("piece.flags"), dtype=np.uint8)[:size]
        self.holes: NDArray[np.bool_] = (flags & HOLE) != 0

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """What encodes; None when nothing can be encoded."""
        try:
            return Tokenizer(self.view)
        except RefusedError:
            return None

    @cached_property
    def scores(self) -> NDArray[np.float64] | None:
        """float64 ``[V]``, or None when the source has no scores."""
        for name, kind in (("piece.scores64", "<f8"), ("piece.scores", "<f4")):
            raw = self.view.raw(name)
            if len(raw):
                if len(raw) != np.dtype(kind).itemsize * self.size:
                    raise self.pieces.damaged(name, "its length is not the vocabulary size")
                return np.frombuffer(raw, dtype=kind).astype(np.float64)
        return None

    @cached_property
    def ranks(self) -> NDArray[np.int64] | None:
        """Lowest rank of a merge that makes each piece, int64 ``[V]``, -1 for none; None for models without ranks."""
        model = self.view.meta["model"]
        if model["kind"] == "RankMerge":
            ranks = np.arange(self.size, dtype=np.int64) - int(model["first_id"])
            ranked = (self.attrs & PieceAttr.NORMAL) != 0
            return np.where((ranks >= 0) & ranked & ~self.holes, ranks, -1)
        if model["kind"] != "BPE":
            return None
        result = np.frombuffer(self.view.raw("merge.result"), dtype="<u4").astype(np.int64)
        rank = np.frombuffer(self.view.raw("merge.rank"), dtype="<u4").astype(np.int64)
        if len(result) != len(rank):
            raise self.pieces.damaged("merge.rank", "it differs in length from merge.result")
        source = np.frombuffer(self.view.raw("merge.source_rank"), dtype="<u4").astype(np.int64)
        if source.size:
            if source.size != rank.size or rank.max(initial=0) >= source.size:
                raise self.pieces.damaged("merge.source_rank", "it does not hold a rank for each merge")
            rank = source[rank]
        none = np.iinfo(np.int64).max
        lowest = np.full(self.size, none, dtype=np.int64)
        inside = result < self.size
        np.minimum.at(lowest, result[inside], rank[inside])
        return np.where(lowest == none, -1, lowest)

    @cached_property
    def texts(self) -> list[bytes]:
        """Text of each piece as the source spells it; empty for holes."""
        return list(map(self.pieces.text, range(self.size)))

    @cached_property
    def bytes(self) -> list[bytes]:
        """What each piece stands for inside a text, ``[V]``.

        Byte-level spelling is undone, ``<0x41>`` is the byte, U+2581 is a space where the tokenizer writes spaces so.
        What only a decoder does to the first token of a text, or between words, is not done.
        """
        return list(map(self._llama_bytes if self._llama is not None else self._bytes_of, range(self.size)))

    @cached_property
    def _llama(self) -> Tokenizer | None:
        return self.tokenizer if self.view.meta["reference"] == "llama.cpp" else None

    def _llama_bytes(self, token: int) -> _Bytes:
        """``llama_token_to_piece``; the text where that says nothing."""
        assert self._llama is not None
        shown = self._llama.id_to_piece(token)
        return shown if shown and b"[UNK_BYTE_0x" not in shown else self._bytes_of(token)

    def _bytes_of(self, token: int) -> _Bytes:
        text = self.texts[token]
        if self.attrs[token] & (PieceAttr.CONTROL | PieceAttr.UNKNOWN):
            return text
        byte = _byte_of(text) if self.is_byte(token) else None
        if byte is not None:
            return byte
        if self.pieces.spelled(token):
            return self.pieces.raw(token)
        return text.replace(_MARK.encode(), b" ") if self._spaces else text

    @cached_property
    def _spaces(self) -> bool:
        return _writes_spaces(self.view.meta)

    def is_byte(self, token: int) -> bool:
        """Whether a piece stands for one byte of a character that has no piece."""
        if self.attrs[token] & PieceAttr.BYTE:
            return True
        # the tokenizers library has no types: there the name and the model's flag decide
        named = self.view.meta["byte_fallback"] and self.view.meta["reference"] in ("huggingface", "mnn")
        return bool(named) and token not in self.added and _byte_of(self.texts[token]) is not None

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """int32 ``[V]``, length of :attr:`bytes`."""
        return np.fromiter(map(len, self.bytes), dtype=np.int32, count=self.size)

    @cached_property
    def added(self) -> dict[int, int]:
        """Id → flags (:mod:`tokpack.pack.layout`) of the tokens that are cut out of a text before anything else."""
        ids, flags = self.view.array("added.id"), self.view.raw("added.flags")
        return dict(zip(ids.tolist(), flags.tolist(), strict=False))

    @cached_property
    def roles(self) -> dict[int, list[str]]:
        """Id → its roles, such as ``bos``; ``eog`` for ids that end generation."""
        meta = self.view.meta
        found: dict[int, list[str]] = {}
        for role, token in meta["specials"].items():
            found.setdefault(token, []).append(role)
        for token in meta["eog"]:
            found.setdefault(token, []).append("eog")
        return found

    def text(self, token: int) -> str:
        """A piece as a person reads it: escaped, see :func:`tokpack.analysis.show.readable`."""
        return readable(self.bytes[token])

    def type_of(self, token: int) -> str:
        """Name of the source's type; ``hole`` for an id without a piece."""
        return "hole" if self.holes[token] else type_name(int(self.types[token]))

    def flags(self, token: int) -> list[str]:
        """What else there is to say about a piece.

        Roles, ``added``, the flags of added tokens, and what it effectively is where the source's type says otherwise.
        """
        if self.holes[token]:
            return []
        attr, kind = int(self.attrs[token]), self.type_of(token)
        found = [name for bit, name in _NAMED_ATTRS if attr & bit and name != kind]
        if token in self.added:
            found.append("added")
            found += [name for bit, name in _NAMED_FLAGS if self.added[token] & bit]
        return found + self.roles.get(token, [])

    def row(self, token: int) -> dict[str, Any]:
        """All of it, JSON-ready: ``text`` with U+FFFD for what is not UTF-8, ``readable``, ``bytes`` in hexadecimal."""
        with meta_errors(self.file):
            return self._row(token)

    def _row(self, token: int) -> dict[str, Any]:
        raw = self.bytes[token]
        scores, ranks = self.scores, self.ranks
        return {
            "id": token,
            "piece": self.texts[token].decode("utf-8", "replace"),
            "text": raw.decode("utf-8", "replace"),
            "readable": readable(raw),
            "bytes": raw.hex(),
            "type": self.type_of(token),
            "score": None if scores is None or not np.isfinite(scores[token]) else float(scores[token]),
            "rank": None if ranks is None or ranks[token] < 0 else int(ranks[token]),
            "flags": self.flags(token),
        }


def _byte_of(text: bytes) -> bytes | None:
    """The byte that ``<0x41>`` names."""
    if len(text) == 6 and text.startswith(b"<0x") and text.endswith(b">"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return None
    return None


def _writes_spaces(meta: Mapping[str, Any]) -> bool:
    """Whether U+2581 in a piece stands for a space."""
    for step in meta["decoder"]:
        kind = step["kind"]
        if kind == "metaspace-decoder" and step.get("replacement") == _MARK:
            return True
        if kind == "sentencepiece-decoder":
            return True
        if kind in ("replace", "replace-decoder") and step.get("pattern") == _MARK and step.get("content") == " ":
            return True
    return any(step["kind"] == "metaspace" and step.get("replacement") == _MARK for step in meta["pre_tokenizer"])
