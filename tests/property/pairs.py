"""A fixture as the fast runtime and as the reference runtime hold it, and what must be equal between the two."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

from hypothesis import settings

import tokpack
from tests.conftest import FIXTURES
from tokpack.findings import Severity
from tokpack.formats import gguf
from tokpack.ir import BPE, AlphabetKind, PieceAttr, TokenizerIR
from tokpack.runtime.bpe import MergeModel
from tokpack.runtime.reference import ReferenceTokenizer
from tokpack.unicode import byte_level

__all__ = ["FIXTURE_NAMES", "Pair", "budget", "outcome", "pair"]

Text = str | bytes


def budget(factor: float = 1.0) -> settings:
    """Hypothesis settings: ``factor`` times TOKPACK_EXAMPLES examples; a failure prints how to repeat it."""
    examples = max(1, round(factor * int(os.environ.get("TOKPACK_EXAMPLES", "20"))))
    return settings(max_examples=examples, deadline=None, derandomize=False, print_blob=True)


def outcome(call: Callable[[], list[int]]) -> list[int] | str:
    """The ids, or that there are none."""
    try:
        return call()
    except tokpack.EncodeError:
        return "EncodeError"


@dataclass(frozen=True)
class Pair:
    """One tokenizer, twice."""

    fast: tokpack.Tokenizer
    slow: ReferenceTokenizer
    ir: TokenizerIR

    @cached_property
    def specials(self) -> list[bytes]:
        return [token.content for token in self.ir.added_tokens]

    @cached_property
    def complete(self) -> bool:
        """Whether ids hold all of a text: each piece stands for what it was cut from, each byte has one."""
        pieces, attrs = self.ir.vocab.pieces, self.ir.vocab.attrs.tolist()
        added = {token.id for token in self.ir.added_tokens}
        strips = PieceAttr.LSTRIP | PieceAttr.RSTRIP
        if self.ir.alphabet.kind is not AlphabetKind.BYTE_LEVEL or any(attr & strips for attr in attrs):
            return False
        for token, piece in enumerate(pieces):
            raw = byte_level.decode(piece or b"")
            allowed = {raw} if token not in added else {None, piece}
            if raw not in allowed or (token not in added and self.slow.piece(token, True) != raw):
                return False
        model = self.ir.model
        assert isinstance(model, BPE)
        merged = all(left + right in self.slow.ids for left, right in model.merges)
        return merged and all(char.encode() in self.slow.ids for char in byte_level.CHARS)

    def words(self, text: str) -> list[str]:
        """The fast runtime's words of ``text``, empty ones left out."""
        fragments = self.fast._pipeline._words
        assert fragments is not None
        return [word for word in fragments._splitter.words(text) if word]

    @cached_property
    def merging(self) -> MergeModel:
        """The fast runtime's way from a word to ids."""
        fragments = self.fast._pipeline._words
        assert fragments is not None
        return fragments._model

    def check(self, text: Text, add: bool, parse: bool) -> list[int] | None:
        """Equal ids, or refused by both; spans that agree. Returns the ids."""
        fast = outcome(lambda: self.fast.encode(text, add, parse))
        slow = outcome(lambda: self.slow.encode(text, add, parse))
        assert fast == slow, f"{text!r}, add_special_tokens={add}, parse_special={parse}"
        spans = outcome(lambda: [piece.id for piece in self.fast.pieces(text, add, parse)])
        assert spans == fast, "pieces() differs from encode()"
        if isinstance(fast, str):
            return None
        self._check_spans(text, add, parse)
        return fast

    def _check_spans(self, text: Text, add: bool, parse: bool) -> None:
        pieces = self.fast.pieces(text, add, parse)
        assert all(0 <= piece.start <= piece.end <= len(text) for piece in pieces)
        assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(pieces))
        assert all(piece.bytes == self.slow.piece(piece.id, True) for piece in pieces)
        if not self.complete or not isinstance(text, str):
            return
        raw = text.encode("utf-8", "surrogatepass")
        in_bytes = self.fast.pieces(raw, add, parse)
        assert b"".join(raw[piece.start : piece.end] for piece in in_bytes) == raw
        assert all(b.start == a.end for a, b in pairwise(in_bytes))
        starts = [0]
        for char in text:
            starts.append(starts[-1] + len(char.encode("utf-8", "surrogatepass")))
        for piece, part in zip(pieces, in_bytes, strict=True):
            assert piece.id == part.id
            if part.start == part.end:  # BOS, EOS
                assert piece.start == piece.end
                continue
            assert part.bytes == raw[part.start : part.end]
            # a piece that holds part of a character spans the whole of it
            assert piece.start == bisect_right(starts, part.start) - 1
            assert piece.end == bisect_left(starts, part.end)

    def check_text(self, ids: list[int]) -> None:
        """Equal detokenization, in all modes."""
        for remove in (False, True):
            for unparse in (False, True):
                assert self.fast.detokenize(ids, remove, unparse) == self.slow.detokenize(ids, remove, unparse)
        assert self.fast.decode_bytes(ids) == self.slow.detokenize(ids)


@cache
def pair(name: str, pre: str | None = None) -> Pair:
    """The fixture ``name``, with another pre-tokenizer if ``pre`` is given."""
    path = FIXTURES / f"{name}.gguf"
    ir = gguf.read(path, pre=pre)
    return Pair(tokpack.load(path, pre=pre), ReferenceTokenizer(ir), ir)


def _fixture_names() -> list[str]:
    names = []
    for path in sorted(FIXTURES.glob("*.gguf")):
        try:
            ir = gguf.read(path)
            ReferenceTokenizer(ir)
        except tokpack.UnsupportedError:
            continue
        refused = any(finding.severity is Severity.REFUSE for finding in (*ir.findings, *ir.validate()))
        if not refused:
            names.append(path.stem)
    return names


FIXTURE_NAMES = _fixture_names()
