"""The four text formats (``Sentencepiece``, ``Tiktoken``, ``BertTokenizer``, ``HuggingfaceTokenizer`` in
``tokenizer.cpp``): fragments to ids, and ids to text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.mnn.merging import Merger, read_same
from tokpack.runtime.spans import Spans
from tokpack.unicode import byte_level
from tokpack.unicode.utf8 import split_characters

__all__ = ["TextEngine", "decode_one", "make_text_engine", "wide"]

_MARK = "▁".encode()
_CHARS = 1 << 16  # characters and words that are remembered
_LONGEST = 64
# BertTokenizer::encode: runs of ASCII letters and digits, what begins like a character of several bytes, other ASCII
_BERT_WORDS = re.compile(
    rb"[0-9A-Za-z]+|[\xc0-\xdf][\x00-\xff]|[\xe0-\xef][\x00-\xff]{2}|[\xf0-\xf7][\x00-\xff]{3}|[\x80-\xbf\xf8-\xff]"
    rb"|[\x00-\x08\x0e-\x1f\x7f!-/:-@\[-`{-~]",
    re.DOTALL,
)
# HuggingfaceTokenizer::encode, the std::regex of every model, on bytes in the "C" locale
_HF_WORDS = re.compile(
    rb"(?:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    re.IGNORECASE,
)


class TextEngine:
    """Fragments to ids."""

    def encode(self, raw: bytes) -> list[int]:
        """Ids of a fragment."""
        return [token for token, _, _ in self.encode_spans(raw)]

    def encode_spans(self, raw: bytes) -> Spans:
        """(id, start, end) of each token, in bytes."""
        raise NotImplementedError


class _Sentencepiece(TextEngine):
    """Type 0: merging by score, whatever the model was; unknowns become byte pieces."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._merger = Merger(view, pieces, stops=False)
        self._same = read_same(view)
        self._unk = int(view.meta["model"]["unk_id"])
        self._bytes = [int(value) for value in view.meta["mnn"]["bytes"]]
        if len(self._bytes) != 256:
            raise ValueError("mnn.bytes")
        self._chars: dict[bytes, int] = {}

    def _char(self, char: bytes) -> int:
        symbol = self._chars.get(char)
        if symbol is None:
            if len(self._chars) >= _CHARS:
                self._chars.clear()
            symbol = self._chars[char] = self._pieces.find_raw(char, False)
        return symbol

    def encode_spans(self, raw: bytes) -> Spans:
        text = _MARK + raw.replace(b" ", _MARK)
        ends = split_characters(text)
        symbols = [self._char(text[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        found, places = self._merger.merge(symbols, ends)
        origin = self._origin(raw)
        out: Spans = []
        start = 0
        for symbol, end in zip(found, places or [], strict=True):
            token = self._unk
            if 0 <= symbol < self._pieces.size:
                token = self._same.get(symbol, symbol)
            if token == self._unk:
                out += [(self._bytes[text[at]], origin[at][0], origin[at][1]) for at in range(start, end)]
            else:
                out.append((token, origin[start][0], origin[end - 1][1]))
            start = end
        return out

    def _origin(self, raw: bytes) -> list[tuple[int, int]]:
        origin = [(0, 0)] * 3
        for at, byte in enumerate(raw):
            origin += [(at, at + 1)] * (3 if byte == 0x20 else 1)
        return origin


class _Tiktoken(TextEngine):
    """Type 1: longest match from the left; bytes without a token are dropped."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._trie = Trie.of(view, "trie")
        self._pieces = pieces
        self._endless = bool(view.meta["mnn"]["empty"])

    def encode_spans(self, raw: bytes) -> Spans:
        trie, size = self._trie, len(raw)
        out: Spans = []
        at = 0
        while at < size:
            node, place = 0, at
            token, end = -1, at + 1
            while place < size:
                node = trie.child(node, raw[place : place + 1])
                if node < 0:
                    break
                place += 1
                value = trie.value(node)
                if value >= 0:
                    token, end = value, place
            if node >= 0 and trie.child(node, b"\0") >= 0:
                raise EncodeError("the text ends where a token goes on with NUL: MNN reads behind its end")
            if token >= self._pieces.size:
                raise self._pieces.damaged("trie.value", f"id {token} is out of range")
            if token >= 0:
                out.append((token, at, end))
            elif self._endless:
                raise EncodeError("a byte has no token and the vocabulary has an empty one, on which MNN never ends")
            at = end
        return out


class _Bert(TextEngine):
    """Type 2: ASCII lower case, every other character a word of its own."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._first = Trie.of(view, "trie")
        self._rest = Trie.of(view, "user")
        self._pieces = pieces
        self._unk = int(view.meta["mnn"]["unk"])

    def encode_spans(self, raw: bytes) -> Spans:
        out: Spans = []
        for match in _BERT_WORDS.finditer(raw):
            word, base = match[0].lower(), match.start()
            at = 0
            while at < len(word):
                end, token = (self._rest if at else self._first).longest(word, at)
                if token < 0:
                    out.append((self._unk, base + at, base + len(word)))
                    break
                if token >= self._pieces.size:
                    raise self._pieces.damaged("trie.value", f"id {token} is out of range")
                out.append((token, base + at, base + end))
                at = end
        return out


class _Huggingface(TextEngine):
    """Type 3: one pattern for every model, then merging."""

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        self._merger = Merger(view, pieces, stops=False)
        self._same = read_same(view)
        self._first: list[int] = view.array("byte.symbol").tolist()
        if len(self._first) != 256:
            raise pieces.damaged("byte.symbol", f"it has {len(self._first)} elements, not 256")
        self._words: dict[bytes, list[tuple[int, int]]] = {}

    def encode_spans(self, raw: bytes) -> Spans:
        out: Spans = []
        for match in _HF_WORDS.finditer(raw):
            base, start = match.start(), 0
            for token, end in self._word(match[0]):
                out.append((token, base + start, base + end))
                start = end
        return out

    def _word(self, word: bytes) -> list[tuple[int, int]]:
        known = self._words.get(word)
        if known is not None:
            return known
        symbols, ends = self._merger.merge(list(map(self._first.__getitem__, word)), list(range(1, len(word) + 1)))
        found = []
        for symbol, end in zip(symbols, ends or [], strict=True):
            token = self._same.get(symbol, symbol)
            if not 0 <= token < self._pieces.size:
                raise EncodeError("a part of a word is no piece of the vocabulary: MNN throws std::out_of_range")
            found.append((token, end))
        if len(word) <= _LONGEST:
            if len(self._words) >= _CHARS:
                self._words.clear()
            self._words[word] = found
        return found


_ENGINES: dict[int, Callable[[PackView, PieceTable], TextEngine]] = {
    0: _Sentencepiece,
    1: _Tiktoken,
    2: _Bert,
    3: _Huggingface,
}


def make_text_engine(number: int, view: PackView, pieces: PieceTable) -> TextEngine:
    """The engine of a tokenizer type."""
    if number not in _ENGINES:
        raise UnsupportedError(f"a pack with the MNN tokenizer type {number}")
    return _ENGINES[number](view, pieces)


def decode_one(number: int, piece: bytes) -> bytes:
    """``decode(int)`` of a tokenizer type, for a piece."""
    if number == 0:
        at = piece.find(_MARK)
        # std::string::replace takes a length where the original gives an end
        return piece if at < 0 else piece[:at] + b" " + piece[at + at + 3 :]
    if number == 3:
        chars = wide(piece)
        return bytes(byte_level.BYTES[char] for char in chars if char in byte_level.BYTES)
    return piece


def wide(text: bytes) -> str:
    """``utf8_to_wstring`` of ``tokenizer.cpp``, which checks nothing; what is no code point becomes U+FFFD."""
    out = []
    at, size = 0, len(text)
    while at < size:
        first = text[at]
        length = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4 if first < 0xF8 else 0
        if not length:
            at += 1
            continue
        if at + length <= size:
            code = first if length == 1 else first & (0x7F >> length)
            for byte in text[at + 1 : at + length]:
                code = code << 6 | byte & 0x3F
            out.append(chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd")
        at += length
    return "".join(out)
