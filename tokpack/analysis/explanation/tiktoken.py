"""tiktoken's stages (``src/lib.rs``): special tokens, the pattern, merging by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokpack.analysis.explanation.common import MergeRecorder, step, tokens, utf8
from tokpack.analysis.explanation.trace import Part, Post, Word
from tokpack.pack.pieces import CONTROL, PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.tiktoken.specials import SpecialMatcher
from tokpack.runtime.tiktoken.words import Words

if TYPE_CHECKING:
    from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["trace"]

_SPACES = frozenset(b" \n\t")


def trace(
    tokenizer: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool
) -> tuple[list[Part], Post, list[str]]:
    """The parts of a text, what is added (nothing), and notes."""
    view = tokenizer.view
    tracer = _Tracer(view)
    post = Post("tiktoken adds nothing by itself")
    if not isinstance(text, str):
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            note = "bytes that are not UTF-8: no special tokens are looked for"
            return _invalid(text, error.start, tracer), post, [note]
        text = decoded
    valid = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # as tiktoken's encode does
    parts: list[Part] = []
    place = 0
    matches = parse_special and view.meta["matching"] == "leftmost"
    fragments = SpecialMatcher(view, tracer.pieces.size).split(valid) if matches else [(-1, 0, len(valid))]
    for token, start, end in fragments:
        raw = utf8(valid[start:end])
        if token >= 0:
            parts.append(Part("token", raw, place, place + len(raw), tokens(tracer.pieces, [token])[0]))
        elif raw:
            parts.append(tracer.part(valid[start:end], place))
        place += len(raw)
    notes = ["surrogate pairs were joined, lone ones became U+FFFD"] if valid != text else []
    return parts, post, notes


class _Tracer:
    def __init__(self, view: PackView) -> None:
        self._view = view
        self.pieces = PieceTable(view)
        self._words = Words(view, self.pieces)
        self._recorder = MergeRecorder(view, self.pieces)
        self._first: list[int] = view.array("byte.symbol").tolist()
        self._seen: dict[bytes, Word] = {}

    def part(self, text: str, place: int) -> Part:
        """A text between special tokens that begins at byte ``place``."""
        raw = utf8(text)
        words = [utf8(text[start:end]) for start, end in self._words.cut(text)]
        steps = tuple(step("pre-tokenizer", plain, [raw], words) for plain in self._view.meta["pre_tokenizer"])
        return Part("text", raw, place, place + len(raw), None, steps, (), tuple(map(self.word, words)))

    def is_space(self, token: int) -> bool:
        """Whether a token is nothing but white space, as tiktoken sees it."""
        return _SPACES.issuperset(self.pieces.raw(token))

    def word(self, raw: bytes) -> Word:
        """The trace of a word; the same object for the same word."""
        found = self._seen.get(raw)
        if found is None:
            found = self._seen[raw] = self._trace(raw)
        return found

    def _trace(self, raw: bytes) -> Word:
        pieces = self.pieces
        whole = pieces.find_raw(raw, False)
        if 0 <= whole < pieces.size and not pieces.attrs[whole] & CONTROL and not pieces.is_hole(whole):
            return Word(raw, "lookup", tokens(pieces, [whole]), note="the word is a piece: no merging")
        symbols = [self._first[byte] for byte in raw]
        merges, ids, _ = self._recorder.merge(symbols, list(range(1, len(raw) + 1)))
        return Word(raw, "merges", tokens(pieces, ids), tuple(raw[i : i + 1] for i in range(len(raw))), tuple(merges))


def _invalid(raw: bytes, start: int, tracer: _Tracer) -> list[Part]:
    """``CoreBPE::_encode_bytes``: the last word before the invalid bytes and all behind it are one word.

    If that word begins with a token of white space, the tokens of white space before it belong to it, too
    (``_increase_last_piece_token_len``).
    """
    before = tracer.part(raw[:start].decode("utf-8"), 0)
    own = [token.id for word in before.words for token in word.tokens]
    unstable = len(before.words[-1].tokens) if before.words else 0
    if unstable and tracer.is_space(own[-unstable]):
        while unstable < len(own) and tracer.is_space(own[-unstable - 1]):
            unstable += 1
    stable = len(own) - unstable
    words: list[Word] = []
    kept = 0
    for word in before.words[:-1]:
        count = min(len(word.tokens), stable - kept)
        if count == len(word.tokens):
            words.append(word)
        elif count:
            note = "its other tokens are white space, which goes with what follows"
            words.append(Word(word.text, word.method, word.tokens[:count], word.symbols, word.actions, note))
        kept += count
    rest = b"".join(map(tracer.pieces.raw, own[stable:])) + raw[start:]
    words.append(tracer.word(rest))
    return [Part("text", raw, 0, len(raw), None, before.steps, (), tuple(words))]
