"""Byte-pair merging, scalar path: integers only, near-linear on words of any length.

Rule (``llama-vocab.cpp``, ``llm_tokenizer_bpe_session``): repeatedly merge the neighbouring pair of lowest rank, the
leftmost of equal ones; a final symbol that is not a piece is emitted byte by byte, bytes without a piece vanish.
"""

from __future__ import annotations

import itertools
import sys
from bisect import bisect_left
from heapq import heapify, heappop, heappush

from tokpack.errors import EncodeError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.unicode.utf8 import split_characters

__all__ = ["MergeModel", "Merger", "PairTable"]

_NO_RANK = sys.maxsize
_DEAD = -2  # a symbol that was merged into the one before
_SHORT = 64  # symbols up to which rescanning a list is cheaper than a heap
_VERY_LONG = 1 << 16  # symbols from which on numpy does what it can first
_PAIR_CACHE = 1 << 18


class PairTable(dict[int, int]):
    """left << 32 | right → the value beside that key, or ``absent``; a bounded cache before the pack's sorted keys."""

    def __init__(self, keys: memoryview[int], values: memoryview[int], absent: int) -> None:
        super().__init__()
        self._keys = keys
        self._values = values
        self._absent = absent

    def __missing__(self, key: int) -> int:
        at = bisect_left(self._keys, key)
        found = at < len(self._keys) and self._keys[at] == key
        value = self._values[at] if found else self._absent
        if len(self) >= _PAIR_CACHE:
            self.clear()
        self[key] = value
        return value


class _CharTable(dict[bytes, int]):
    """Character → its symbol, or -1; bounded."""

    def __init__(self, pieces: PieceTable) -> None:
        super().__init__()
        self._pieces = pieces

    def __missing__(self, char: bytes) -> int:
        if len(self) >= _PAIR_CACHE:
            self.clear()
        symbol = self[char] = self._pieces.find_raw(char, False)
        return symbol


class Merger:
    """Merges neighbouring symbols by rank: the sorted keys of a pack.

    Args:
        view: the pack.
        pieces: its pieces.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        self._pieces = pieces
        keys, ranks, results = (view.array(name) for name in ("merge.key", "merge.rank", "merge.result"))
        if not len(keys) == len(ranks) == len(results):
            raise pieces.damaged("merge.key", "merge sections differ in length")
        self._sections = keys, ranks, results
        self._pairs = PairTable(keys, ranks, _NO_RANK)
        self._results = PairTable(keys, results, -1)

    def merge(self, symbols: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
        """Symbols (-1: one that takes part in no merge) and their ends after merging; may change its arguments."""
        if len(symbols) > _VERY_LONG:
            from tokpack.runtime.bulk.runs import merge_often

            symbols, ends = merge_often(symbols, ends, *self._sections)
            self._check(symbols)
        if len(symbols) > _SHORT:
            return self._merge_long(symbols, ends)
        if len(symbols) > 1:
            self._merge_short(symbols, ends)
        return symbols, ends

    def _merge_short(self, symbols: list[int], ends: list[int]) -> None:
        """Merge in place, by rescanning for the minimum."""
        pairs, results = self._pairs, self._results
        # the key of a symbol that is none is negative, and so no merge
        ranks = [pairs[left << 32 | right] for left, right in itertools.pairwise(symbols)]
        while ranks:
            best = min(ranks)
            if best == _NO_RANK:
                break
            at = ranks.index(best)
            symbol = symbols[at] = results[symbols[at] << 32 | symbols[at + 1]]
            del symbols[at + 1], ends[at], ranks[at]
            if at:
                ranks[at - 1] = pairs[symbols[at - 1] << 32 | symbol]
            if at < len(ranks):
                ranks[at] = pairs[symbol << 32 | symbols[at + 1]]
        self._check(symbols)

    def _merged(self, key: int) -> int:
        symbol = self._results[key]
        if symbol >= self._pieces.symbols:
            raise self._pieces.damaged("merge.result", f"symbol {symbol} is out of range")
        return symbol

    def _check(self, symbols: list[int]) -> None:
        """What a merge makes is only read as a key before; a damaged pack may name anything."""
        if symbols and max(symbols) >= self._pieces.symbols:
            raise self._pieces.damaged("merge.result", f"symbol {max(symbols)} is out of range")

    def _merge_long(self, symbols: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
        """The same rank by rank, with a linked list: near-linear where few ranks occur often.

        All places of the lowest rank are visited from the left. A merge makes new pairs beside it alone; those of no
        higher rank come next, as they are left of all places that wait.
        """
        pairs, results = self._pairs, self._results
        count = len(symbols)
        following = list(range(1, count + 1))
        before = list(range(-1, count - 1))
        places: dict[int, list[int]] = {}
        for place, (left, right) in enumerate(itertools.pairwise(symbols)):
            if left >= 0 and right >= 0:
                rank = pairs[left << 32 | right]
                if rank != _NO_RANK:
                    places.setdefault(rank, []).append(place)
        ranks = list(places)
        heapify(ranks)
        while ranks:
            lowest = heappop(ranks)
            for start in sorted(places.pop(lowest)):
                near = [(lowest, start)]
                while near:
                    rank, place = heappop(near)
                    right_place = following[place]
                    if right_place >= count:
                        continue
                    left, right = symbols[place], symbols[right_place]
                    key = left << 32 | right
                    if left < 0 or right < 0 or pairs[key] != rank:
                        continue  # one of the two has changed
                    symbols[place] = results[key]
                    symbols[right_place] = _DEAD
                    ends[place] = ends[right_place]
                    following[place] = after = following[right_place]
                    if after < count:
                        before[after] = place
                    for first, second in ((before[place], place), (place, after)):
                        if first < 0 or second >= count or symbols[first] < 0 or symbols[second] < 0:
                            continue
                        rank = pairs[symbols[first] << 32 | symbols[second]]
                        if rank <= lowest:
                            heappush(near, (rank, first))
                        elif rank in places:
                            places[rank].append(first)
                        elif rank != _NO_RANK:
                            places[rank] = [first]
                            heappush(ranks, rank)
        self._check(symbols)
        alive = [place for place in range(count) if symbols[place] != _DEAD]
        return [symbols[place] for place in alive], [ends[place] for place in alive]


class MergeModel:
    """Words to ids by merging: BPE, and llama.cpp's score merge, whose ranks come from the scores.

    Args:
        view: the pack.
        pieces: its pieces.
    """

    def __init__(self, view: PackView, pieces: PieceTable) -> None:
        model = view.meta["model"]
        self._pieces = pieces
        self._size = pieces.size
        self._byte_level = pieces.byte_level
        self._scored = model["kind"] == "ScoreMerge"
        self._chars = _CharTable(pieces)
        self._ignore_merges = bool(model.get("ignore_merges"))
        self._whole_newlines = bool(model.get("whole_newlines"))
        self._merger = Merger(view, pieces)
        self._reached = view.raw("bulk.words")  # bits: pieces that merging makes of their text, see pack/bulk.py
        emit = view.array("byte.emit")
        if len(emit) != 512:
            raise pieces.damaged("byte.emit", f"it has {len(emit)} elements, not 512")
        self._emit = [tuple(i for i in emit[2 * b : 2 * b + 2] if 0 <= i < pieces.size) for b in range(256)]
        self._first: list[int] = view.array("byte.symbol").tolist()
        if self._byte_level and len(self._first) != 256:
            raise pieces.damaged("byte.symbol", f"it has {len(self._first)} elements, not 256")

    def encode(self, word: bytes) -> list[int]:
        """Ids of a word (not empty): raw bytes, or escaped text for alphabets that are not byte-level."""
        if not word:
            return []
        whole = self._pieces.find_raw(word, self._byte_level)
        at = whole >> 3  # -1 for a word that is no piece
        if 0 <= at < len(self._reached) and self._reached[at] >> (whole & 7) & 1:
            return [whole]
        return [piece for piece, _ in self.encode_spans(word)]

    def encode_spans(self, word: bytes) -> list[tuple[int, int]]:
        """(id, end offset in ``word``) of each piece; bytes that vanish belong to no piece."""
        whole = self._whole(word)
        if whole >= 0:
            return [(whole, len(word))]
        return self._merge_spans(word)

    def merged(self, word: bytes) -> list[int]:
        """As :meth:`encode`, without looking the word up as a whole."""
        return [piece for piece, _ in self._merge_spans(word)] if word else []

    def _merge_spans(self, word: bytes) -> list[tuple[int, int]]:
        symbols, ends = self._symbols(word)
        symbols, ends = self._merger.merge(symbols, ends)
        size = self._size
        out = []
        start = 0
        for symbol, end in zip(symbols, ends, strict=True):
            if 0 <= symbol < size:
                out.append((symbol, end))
            else:
                self._emit_bytes(word, start, end, out)
            start = end
        return out

    def _emit_bytes(self, word: bytes, start: int, end: int, out: list[tuple[int, int]]) -> None:
        for at in range(start, end):
            emitted = self._emit[word[at]]
            if self._scored and not emitted:
                what = f"there is no piece for byte 0x{word[at]:02X}, on which llama.cpp dies"
                raise EncodeError(what, hint="the vocabulary lacks byte pieces")
            out.extend((piece, at + 1) for piece in emitted)

    def _whole(self, word: bytes) -> int:
        if self._ignore_merges or (self._whole_newlines and not word.strip(b"\n")):
            found = self._pieces.find_raw(word, self._byte_level)
            if found < self._size:
                return found
        return -1

    def _symbols(self, word: bytes) -> tuple[list[int], list[int]]:
        """First symbols (-1: a character that no piece or merge names) and their end offsets."""
        if self._byte_level:
            return list(map(self._first.__getitem__, word)), list(range(1, len(word) + 1))
        ends = split_characters(word)
        symbols = [self._chars[word[start:end]] for start, end in zip([0, *ends], ends, strict=False)]
        if not self._scored and len(ends) > 1 and b" " in word:
            # a pair is looked up as soon as two symbols meet, and the lookup does not accept a space in either
            raise EncodeError("llama.cpp aborts on a space inside a word of this pre-tokenizer (find_bpe_rank)")
        return symbols, ends
