"""sentencepiece's stages (``sentencepiece_processor.cc``): its normalizer, its model, unknown pieces joined."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokpack.analysis.explanation.common import MergeRecorder, step, tokens
from tokpack.analysis.explanation.lattice import Edges, best_path, single_precision
from tokpack.analysis.explanation.trace import Action, Part, Post, Word
from tokpack.errors import UnsupportedError
from tokpack.pack.pieces import NORMAL, USER_DEFINED, PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.sentencepiece.charsmap import Charsmap
from tokpack.runtime.sentencepiece.models import CharacterModel, WordModel
from tokpack.runtime.sentencepiece.normalizer import Normalizer
from tokpack.runtime.sentencepiece.resegment import UnusedMerger
from tokpack.runtime.sentencepiece.user import PrefixMatcher
from tokpack.unicode.utf8 import character_length, is_utf8, split_characters

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["trace"]

_RESET = 100000.0  # kScoreResetThreshold

Found = tuple[int, int, int]  # id or -1, start, end


def trace(
    tokenizer: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool
) -> tuple[list[Part], Post, list[str]]:
    """The parts of a text (there is only one), what is added (nothing), and notes."""
    raw = text.encode() if isinstance(text, str) else bytes(text)
    post = Post("sentencepiece adds nothing by itself")
    if not raw:
        return [], post, []
    tracer = _Tracer(tokenizer.view)
    normalized = tracer.normalize(raw)
    steps = tuple(step("normalizer", plain, [raw], [normalized]) for plain in tokenizer.view.meta["normalizer"])
    words = tuple(tracer.words(normalized)) if normalized else ()
    return [Part("text", raw, 0, len(raw), None, steps, (), words)], post, []


class _Tracer:
    def __init__(self, view: PackView) -> None:
        self._view = view
        self._pieces = pieces = PieceTable(view)
        self._facts: dict[str, Any] = view.meta["sentencepiece"]
        self._unk = int(self._facts["unk"])
        self._fallback = bool(view.meta["byte_fallback"])
        self._kind = view.meta["model"]["kind"]
        self._user = PrefixMatcher(view, pieces, is_text=bool(self._facts["user_text"]))
        self._trie = Trie.of(view, "trie")

    def normalize(self, raw: bytes) -> bytes:
        """The text as the model sees it."""
        charsmap = Charsmap(self._view.raw("charsmap"), self._view.file)
        (plain,) = self._view.meta["normalizer"]
        return Normalizer(plain, charsmap, self._user, user_spaces=bool(self._facts["user_spaces"])).trace(raw)[0]

    def words(self, text: bytes) -> list[Word]:
        """The words of a normalized text, unknown pieces joined across them."""
        out: list[Word] = []
        was_unknown = False
        for word in self._model(text):
            kept: list[int] = []
            for token in (token.id for token in word.tokens):
                if token != self._unk or not was_unknown or self._fallback:
                    kept.append(token)
                was_unknown = token == self._unk
            if len(kept) < len(word.tokens):
                note = "neighbouring unknown characters become one token"
                word = replace(word, tokens=tokens(self._pieces, kept), note=word.note or note)
            out.append(word)
        return out

    def _model(self, text: bytes) -> Iterable[Word]:
        if self._kind == "Unigram":
            return self._unigram(text)
        if self._kind == "ScoreMerge":
            return self._merges_with_unused(text) if self._facts["unused"] else self._merges(text)
        valid = is_utf8(text)
        if self._kind == "WordLevel":
            found = WordModel(self._view, self._pieces).encode(text, valid=valid)
        elif self._kind == "Characters":
            found = CharacterModel(self._view, self._pieces, self._user).encode(text, valid=valid)
        else:
            raise UnsupportedError(f"a pack with the model {self._kind!r} and the rules of sentencepiece")
        starts = [0, *(end for _, end in found)]
        return [
            self._word(text[start:end], "lookup", [(token, 0, end - start)])
            for start, (token, end) in zip(starts, found, strict=False)
        ]

    def _word(
        self,
        text: bytes,
        method: str,
        found: list[Found],
        symbols: Iterable[bytes] = (),
        actions: Iterable[Action] = (),
    ) -> Word:
        """A word with the ids of what was found in it: those of bytes, or unknown, for what is no piece."""
        ids: list[int] = []
        unknown = 0
        emit = self._view.array("byte.emit")
        for token, start, end in found:
            if token >= 0 and token != self._unk:
                ids.append(token)
                continue
            unknown += 1
            ids += [int(emit[2 * byte]) for byte in text[start:end]] if self._fallback else [self._unk]
        note = None
        if unknown:
            note = "what is no piece becomes its bytes" if self._fallback else "what is no piece is unknown"
        return Word(text, method, tokens(self._pieces, ids), tuple(symbols), tuple(actions), note)

    # --- merging ---

    def _cut(self, text: bytes) -> list[bytes]:
        """Where merges cannot reach over spaces, the words; else the text."""
        rule = str(self._facts["cut"]) if self._user.empty and is_utf8(text) else ""
        if not rule:
            return [text]
        (plain,) = self._view.meta["normalizer"]
        space = "▁" if plain["escape_whitespaces"] else " "
        pattern = f"{space}*[^{space}]+|{space}+" if rule == "before" else f"[^{space}]+{space}*|{space}+"
        return [word.encode() for word in re.findall(pattern, text.decode())]

    def _merges(self, text: bytes) -> Iterable[Word]:
        recorder = MergeRecorder(self._view, self._pieces)
        seen: dict[bytes, Word] = {}
        for whole in self._cut(text):
            for token, start, end in self._user.split(whole, valid=is_utf8(whole)):
                part = whole[start:end]
                if token >= 0:
                    yield Word(part, "lookup", tokens(self._pieces, [token]), note="a user-defined piece")
                    continue
                if part not in seen:
                    seen[part] = self._merged(recorder, part)
                yield seen[part]

    def _merged(self, recorder: MergeRecorder, part: bytes) -> Word:
        symbols, ends = self._symbols(part)
        shown = [part[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        merges, symbols, ends = recorder.merge(symbols, ends)
        found = [(self._piece(s), a, b) for s, a, b in zip(symbols, [0, *ends], ends, strict=False)]
        return self._word(part, "merges", found, shown, merges)

    def _symbols(self, text: bytes) -> tuple[list[int], list[int]]:
        ends = split_characters(text)
        starts = [0, *ends]
        return [self._pieces.find_raw(text[a:b], False) for a, b in zip(starts, ends, strict=False)], ends

    def _piece(self, symbol: int) -> int:
        usable = 0 <= symbol < self._pieces.size and self._pieces.attrs[symbol] & (NORMAL | USER_DEFINED)
        return symbol if usable else -1

    def _merges_with_unused(self, text: bytes) -> Iterable[Word]:
        """The whole text at once: an unused piece is cut as it was last made anywhere in it."""
        symbols: list[int] = []
        ends: list[int] = []
        fixed: set[int] = set()
        for token, start, stop in self._user.split(text, valid=is_utf8(text)):
            if token >= 0:
                fixed.add(len(symbols))
                symbols.append(token)
                ends.append(stop)
            else:
                part, places = self._symbols(text[start:stop])
                symbols += part
                ends += [start + place for place in places]
        shown = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        free = [-1 if place in fixed else symbol for place, symbol in enumerate(symbols)]
        merges, _, _ = MergeRecorder(self._view, self._pieces).merge(free, ends)
        merger = UnusedMerger(self._view, self._pieces)
        found: list[Found] = []
        start = 0
        for symbol, end in merger.merge_and_cut(symbols, ends, fixed):
            kept = symbol > 0 and bool(symbol & UnusedMerger.KEPT)
            found.append((symbol & ~UnusedMerger.KEPT if kept else self._piece(symbol), start, end))
            start = end
        word = self._word(text, "merges", found, shown, merges)
        cut = "unused pieces are cut into what they were made of"
        return [replace(word, note=f"{word.note}; {cut}" if word.note else cut)]

    # --- Viterbi ---

    def _unigram(self, text: bytes) -> Iterable[Word]:
        path = best_path(
            text,
            lambda at: self._edges(text, at),
            lambda here, score: single_precision(score + here),
            reset=_RESET,
        )
        return [self._word(text, "viterbi", [(c.id, c.start, c.end) for c in path], (), path)]

    def _edges(self, text: bytes, at: int) -> Edges:
        length = min(character_length(text[at]), len(text) - at)
        found = [(end - at, self._score(token, end - at), token) for end, token in self._trie.prefixes(text, at)]
        if all(size != length for size, _, _ in found):
            found.append((length, float(self._facts["unk_score"]), -1))
        return length, found

    def _score(self, token: int, length: int) -> float:
        if self._pieces.attrs[token] & USER_DEFINED:
            return single_precision(0.1 * (length - 1))  # GetUserDefinedScore
        return float(self._pieces.scores[token]) if len(self._pieces.scores) else 0.0
