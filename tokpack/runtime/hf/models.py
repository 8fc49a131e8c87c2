"""The four models of the library (``models/{bpe,unigram,wordpiece,wordlevel}``): a word to (id, end) pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import NORMAL, PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.bpe import Merger
from tokpack.runtime.errors import bytes_of
from tokpack.runtime.steps import TrieSteps
from tokpack.typed import Any
from tokpack.unicode import byte_level

__all__ = ["BpeModel", "Model", "UnigramModel", "WordPieceModel", "make_model"]

Tokens = list[tuple[int, int]]  # id, end in characters


class Model:
    """A model of a pack.

    Args:
        view, pieces: the pack.
        plain: the model's parameters as the meta section has them.
    """

    def __init__(self, view: PackView, pieces: PieceTable, plain: Mapping[str, Any]) -> None:
        self._view = view
        self._pieces = pieces
        self._plain = plain
        self._byte_fallback = bool(view.meta["byte_fallback"])
        self._ids: dict[str, int] = {}

    def encode(self, word: str) -> Tokens:
        """Ids of a word that is not empty, each with the character behind it."""
        raise NotImplementedError

    def find(self, text: str) -> int:
        """Id of a piece of the model's own vocabulary, or -1."""
        found = self._ids.get(text)
        if found is None:
            found = self._pieces.find_text(text.encode("utf-8"))
            if found >= 0 and not self._pieces.attrs[found] & NORMAL:
                found = -1  # an added token that the model does not know
            if len(self._ids) >= 1 << 16:
                self._ids.clear()
            self._ids[text] = found
        return found

    def _unknown(self, name: str) -> int:
        """Id of the unknown piece that parameter ``name`` gives, -1 if it names none; EncodeError if it is no piece."""
        piece = self._plain.get(name)
        if piece is None:
            return -1
        text = piece.decode("utf-8") if isinstance(piece, bytes) else str(piece)
        found = self.find(text)
        if found < 0:
            raise EncodeError(f"the unknown token {text!r} is not in the vocabulary: the library fails on this text")
        return found

    def _bytes_of(self, text: str) -> list[int]:
        """Byte pieces of ``text``, or nothing when one is missing."""
        ids = [self.find(f"<0x{byte:02X}>") for byte in text.encode("utf-8")]
        return [] if -1 in ids else ids

    def own_pieces(self) -> dict[str, int]:
        """The model's own vocabulary: of equal pieces the last id."""
        pieces = self._pieces
        texts = ((token, pieces.text(token)) for token in range(pieces.size) if pieces.attrs[token] & NORMAL)
        return {text.decode("utf-8", "replace"): token for token, text in texts if not pieces.is_hole(token)}


class BpeModel(Model):
    """``BPE::merge_word``: characters to ids, unknowns and byte fallback first, then merging."""

    def __init__(self, view: PackView, pieces: PieceTable, plain: Mapping[str, Any]) -> None:
        super().__init__(view, pieces, plain)
        self._merger = Merger(view, pieces)
        self._ignore_merges = bool(plain["ignore_merges"])
        self._prefix = bytes_of(plain, "continuing_subword_prefix").decode()
        self._suffix = bytes_of(plain, "end_of_word_suffix").decode()
        self._fuse = bool(plain["fuse_unk"])
        self._reached = view.raw("bulk.words")  # bits: pieces that merging makes of their text, see pack/bulk.py

    def encode(self, word: str) -> Tokens:
        """See :meth:`Model.encode`."""
        if self._ignore_merges:
            whole = self.find(word)
            if whole >= 0:
                return [(whole, len(word))]
        return self.merged(word)

    def ids(self, word: str) -> Sequence[int]:
        """Ids of a word; to byte-level vocabularies as it is, not yet spelled as bytes."""
        raw = word.encode("utf-8")
        byte_pieces = self._pieces.byte_level
        whole = self._pieces.find_raw(raw, byte_pieces)
        at = whole >> 3  # -1 for a word that is no piece
        if 0 <= at < len(self._reached) and self._reached[at] >> (whole & 7) & 1:
            return (whole,)
        return [token for token, _ in self.encode(byte_level.encode(raw) if byte_pieces else word)]

    @property
    def plain(self) -> bool:
        """Whether a word is merged as it is, without marks at its beginning or end."""
        return not self._prefix and not self._suffix

    @property
    def looks_up(self) -> bool:
        """Whether a word that is a piece becomes that piece."""
        return self._ignore_merges

    @property
    def byte_ids(self) -> list[int]:
        """The byte pieces, -1 for one that is missing."""
        return [self.find(f"<0x{byte:02X}>") for byte in range(256)]

    @property
    def falls_back(self) -> bool:
        """Whether every character that is no piece becomes bytes."""
        return self._byte_fallback and -1 not in self.byte_ids

    def merged(self, word: str) -> Tokens:
        """As :meth:`encode`, without looking the word up as a whole."""
        symbols, ends = self._symbols(word)
        symbols, ends = self._merger.merge(symbols, ends)
        return list(zip(symbols, ends, strict=True))

    def _symbols(self, word: str) -> tuple[list[int], list[int]]:
        if self.plain:
            get = self._ids.get
            found = [get(char, -1) for char in word]
            if -1 not in found:
                return found, list(range(1, len(found) + 1))
        symbols: list[int] = []
        ends: list[int] = []
        unknown: tuple[int, int] | None = None  # one that waits to be fused with the next
        last = len(word) - 1
        for at, char in enumerate(word):
            text = char
            if at and self._prefix:
                text = self._prefix + text
            if at == last and self._suffix:
                text += self._suffix
            token = self.find(text)
            if token >= 0:
                _flush(unknown, symbols, ends)
                unknown = None
                symbols.append(token)
                ends.append(at + 1)
                continue
            fallback = self._bytes_of(text) if self._byte_fallback else []
            if fallback:
                # a waiting unknown is not put before these: so the library does it
                symbols += fallback
                ends += [at + 1] * len(fallback)
                continue
            unk = self._unknown("unk_piece")
            if unk < 0:
                continue  # dropped; what is left and right of it may merge
            if unknown is not None and self._fuse:
                unknown = (unk, at + 1)
            else:
                _flush(unknown, symbols, ends)
                unknown = (unk, at + 1)
        _flush(unknown, symbols, ends)
        return symbols, ends


def _flush(unknown: tuple[int, int] | None, symbols: list[int], ends: list[int]) -> None:
    if unknown is not None:
        symbols.append(unknown[0])
        ends.append(unknown[1])


class UnigramModel(Model):
    """``Unigram::encode_optimized``: Viterbi in doubles, forward, first found wins; unknowns fuse."""

    def __init__(self, view: PackView, pieces: PieceTable, plain: Mapping[str, Any]) -> None:
        super().__init__(view, pieces, plain)
        self._trie = Trie.of(view, "trie")
        self._steps = TrieSteps(self._trie)
        self._values = view.array("trie.value")
        self._scores = view.array("piece.scores64")
        if len(self._scores) != pieces.size:
            raise pieces.damaged("piece.scores64", "its length is not the vocabulary size")
        lowest = view.meta.get("lowest_score")  # looking for it takes longer than all else
        if not isinstance(lowest, float):
            model_scores = (self._scores[i] for i in range(pieces.size) if pieces.attrs[i] & NORMAL)
            lowest = min(model_scores, default=0.0)
        self._unk_score = lowest - float(plain["unk_penalty"])
        unk = plain["unk_id"]
        self._unk = -1 if unk is None else int(unk)

    @property
    def unknown(self) -> tuple[float, int]:
        """(score, id) of a character without a piece; the id is -1 if there is none."""
        return self._unk_score, self._unk

    def scored_pieces(self) -> dict[str, tuple[float, int]]:
        """Piece → (score, id)."""
        return {text: (float(self._scores[token]), token) for text, token in self.own_pieces().items()}

    def encode(self, word: str) -> Tokens:
        """See :meth:`Model.encode`."""
        text = word.encode("utf-8")
        starts, tokens = self._best_path(word, text)
        pieces: list[tuple[int, int, bool]] = []  # start, end, unknown; in bytes
        end = len(text)
        while end > 0:
            start = starts[end]
            unknown = tokens[end] == self._unk and self._unk >= 0
            if unknown and pieces and pieces[-1][2]:
                pieces[-1] = (start, pieces[-1][1], True)
            else:
                pieces.append((start, end, unknown))
            end = start
        out: Tokens = []
        at = 0
        for start, end, _ in reversed(pieces):
            part = text[start:end].decode("utf-8")
            at += len(part)
            out += [(token, at) for token in self._resolve(part)]
        return out

    def _resolve(self, part: str) -> list[int]:
        token = self.find(part)
        if token >= 0:
            return [token]
        fallback = self._bytes_of(part) if self._byte_fallback else []
        if fallback:
            return fallback
        if self._unk < 0:
            raise EncodeError("a character has no piece and the model no unknown id: the library fails on this text")
        return [self._unk]

    def _best_path(self, word: str, text: bytes) -> tuple[list[int], list[int]]:
        size = len(text)
        score = [0.0] * (size + 1)
        starts = [-1] * (size + 1)
        tokens = [-1] * (size + 1)
        steps, values, scores = self._steps, self._values, self._scores
        at = 0
        for char in word:
            behind = at + len(char.encode("utf-8"))
            here, single, end, node = score[at], False, at, 0
            while end < size:
                node = steps[node << 8 | text[end]]
                if node < 0:
                    break
                end += 1
                token = values[node]
                if token >= 0:
                    if token >= self._pieces.size:
                        raise self._pieces.damaged("trie.value", f"id {token} is out of range")
                    challenger = scores[token] + here
                    if starts[end] < 0 or challenger > score[end]:
                        score[end], starts[end], tokens[end] = challenger, at, token
                    if end == behind:
                        single = True
            if not single:
                if self._unk < 0:
                    what = "a character has no piece and the model no unknown id: the library fails on this text"
                    raise EncodeError(what)
                challenger = self._unk_score + here
                if starts[behind] < 0 or challenger > score[behind]:
                    score[behind], starts[behind], tokens[behind] = challenger, at, self._unk
            at = behind
        return starts, tokens


class WordPieceModel(Model):
    """``WordPiece::tokenize``: greedy longest pieces, all or unknown."""

    def __init__(self, view: PackView, pieces: PieceTable, plain: Mapping[str, Any]) -> None:
        super().__init__(view, pieces, plain)
        self._trie = Trie.of(view, "trie")
        self._steps = TrieSteps(self._trie)
        self._values = view.array("trie.value")
        self._prefix = bytes_of(plain, "continuing_subword_prefix")
        self._longest = int(plain["max_input_chars_per_word"])

    def encode(self, word: str) -> Tokens:
        """See :meth:`Model.encode`."""
        if len(word) > self._longest:
            return [(self._required(), len(word))]
        text = word.encode("utf-8")
        out: Tokens = []
        at = chars = 0
        while at < len(text):
            end, token = self._longest_piece(text, at)
            if token < 0:
                return [(self._required(), len(word))]
            chars += len(text[at:end].decode("utf-8", "replace"))
            at = end
            out.append((token, chars))
        return out

    def _longest_piece(self, text: bytes, at: int) -> tuple[int, int]:
        """(end, id) of the longest piece there; the id is -1 if there is none."""
        steps, values, size = self._steps, self._values, len(text)
        node = self._inner if at else 0
        found, stop = -1, at
        while at < size and node >= 0:
            node = steps[node << 8 | text[at]]
            at += 1
            if node >= 0 and values[node] >= 0:
                found, stop = values[node], at
        if found >= self._pieces.size:
            raise self._pieces.damaged("trie.value", f"id {found} is out of range")
        return stop, found

    @cached_property
    def _inner(self) -> int:
        """The node behind the prefix, -1 if no piece begins with it."""
        node = 0
        for byte in self._prefix:
            node = self._steps[node << 8 | byte] if node >= 0 else -1
        return node

    @property
    def prefix(self) -> str:
        """What is in front of the pieces of a word but the first."""
        return self._prefix.decode("utf-8", "replace")

    @property
    def longest(self) -> int:
        """Characters of a word that is not unknown."""
        return self._longest

    def required(self) -> int:
        """Id of an unknown word; EncodeError if there is none."""
        return self._required()

    def _required(self) -> int:
        return self._unknown("unk_piece")


class WordLevelModel(Model):
    """``WordLevel::tokenize``: a word is a piece or unknown."""

    def encode(self, word: str) -> Tokens:
        """See :meth:`Model.encode`."""
        found = self.find(word)
        return [(found if found >= 0 else self._unknown("unk_piece"), len(word))]


_MODELS = {"BPE": BpeModel, "Unigram": UnigramModel, "WordPiece": WordPieceModel, "WordLevel": WordLevelModel}


def make_model(view: PackView, pieces: PieceTable) -> Model:
    """The model of a pack; UnsupportedError for one that the library does not have."""
    plain = view.meta["model"]
    kind = _MODELS.get(plain["kind"])
    if kind is None:
        raise UnsupportedError(f"a pack with the model {plain['kind']!r} under the library's rules")
    return kind(view, pieces, plain)
