"""llama.cpp's Unigram (``llm_tokenizer_ugm_session``): charsmap, spaces, then Viterbi over bytes."""

from __future__ import annotations

import math
from struct import Struct

from tokpack.errors import EncodeError
from tokpack.pack.pieces import USER_DEFINED, PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.steps import TrieSteps
from tokpack.unicode.utf8 import character_length, sequence_length

__all__ = ["CharsMap", "UnigramModel"]

_NONE = -1.7976931348623157e308  # -DBL_MAX
_NO_NORMAL_SCORE = 3.4028234663852886e38  # FLT_MAX: the minimum over no pieces
_FLOAT = Struct("f")
_SPACE = "▁".encode()


class CharsMap:
    """XOR-compressed double array of a sentencepiece charsmap, and its replacements.

    A unit is ``offset << 10 | shift flag << 9 | leaf << 8 | label``, or a value with the top bit clear. Indices that
    leave the array are an error, as in llama.cpp.
    """

    def __init__(self, blob: bytes) -> None:
        size = int.from_bytes(blob[:4], "little") if len(blob) > 4 else 0
        self._units = memoryview(blob[4 : 4 + size // 4 * 4]).cast("I") if size else memoryview(b"")
        self._texts = blob[4 + size :]

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """(bytes matched, replacement) of the longest key that begins at ``start``; (0, b"") for none."""
        units = self._units
        if not len(units):
            return 0, b""
        node = _base(units[0])
        matched, offset = 0, 0
        for at in range(start, len(text)):
            char = text[at]
            if char == 0:
                break
            node ^= char
            unit = self._unit(node)
            if unit & 0x800000FF != char:
                break
            node ^= _base(unit)
            if unit >> 8 & 1:
                matched = at - start + 1
                offset = self._unit(node) & 0x7FFFFFFF
        if not matched:
            return 0, b""
        if offset >= len(self._texts):
            raise EncodeError("the charsmap points behind its replacements: llama.cpp throws on this text")
        end = self._texts.find(b"\0", offset)
        return matched, self._texts[offset : end if end >= 0 else len(self._texts)]

    def _unit(self, node: int) -> int:
        if node >= len(self._units):
            raise EncodeError("the charsmap points outside its array: llama.cpp throws on this text")
        return int(self._units[node])


def _base(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6) & 0xFFFFFFFF


class UnigramModel:
    """Fragments to ids.

    Args:
        view, pieces: the pack.
        unk: id of the unknown piece, -1 for none.
        space_prefix, merge_spaces: add_space_prefix and remove_extra_whitespaces.
    """

    def __init__(self, view: PackView, pieces: PieceTable, unk: int, space_prefix: bool, merge_spaces: bool) -> None:
        self._pieces = pieces
        self._trie = Trie.of(view, "trie")
        self._steps = TrieSteps(self._trie)
        self._values = view.array("trie.value")
        self._user = Trie.of(view, "user")
        self._charsmap = CharsMap(bytes(view.raw("charsmap")))
        self._unk = unk
        self._space_prefix = space_prefix
        self._merge_spaces = merge_spaces
        lowest = _NO_NORMAL_SCORE
        for index in range(pieces.size):
            # raw types: the minimum is taken before pieces are declared special by their text
            if pieces.types[index] == 1 and self._file_score(index) < lowest:
                lowest = self._file_score(index)
        self._unk_score = _to_float32(lowest - 10.0)

    def _file_score(self, index: int) -> float:
        scores = self._pieces.scores
        return float(scores[index]) if len(scores) else 0.0

    def _score(self, index: int) -> float:
        return 0.0 if self._pieces.attrs[index] & USER_DEFINED else self._file_score(index)

    def normalize(self, text: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """The normalized text, and for each of its bytes where it comes from: (start, end) in ``text``."""
        out = bytearray()
        origin: list[tuple[int, int]] = []
        prepended = in_word = False
        at, size = 0, len(text)
        while at < size:
            replacement, used = self._normalize_prefix(text, at)
            span = (at, at + used)
            for byte in replacement:
                if byte != 0x20:
                    if not in_word:
                        in_word = True
                        if (self._space_prefix and not prepended) or self._merge_spaces:
                            out += _SPACE
                            origin += [(at, at)] * 3
                            prepended = True
                    out.append(byte)
                    origin.append(span)
                else:
                    in_word = False
                    if not self._merge_spaces:
                        out += _SPACE
                        origin += [span] * 3
            at += used
        return bytes(out), origin

    def _normalize_prefix(self, text: bytes, at: int) -> tuple[bytes, int]:
        walked = self._user.depth(text, at)  # counts even if no piece ends there
        if walked:
            return text[at : at + walked], walked
        matched, replacement = self._charsmap.longest(text, at)
        if matched:
            return replacement, matched
        length = sequence_length(text, at)
        if length:
            return text[at : at + length], length
        return "�".encode(), 1

    def encode_spans(self, text: bytes) -> list[tuple[int, int, int]]:
        """(id, start, end) of each token of a fragment, in its bytes."""
        normalized, origin = self.normalize(text)
        out = []
        for token, start, end in self._best_path(normalized):
            out.append((token, origin[start][0], max(origin[end - 1][1], origin[start][0])))
        return out

    def encode(self, text: bytes) -> list[int]:
        """Ids of a fragment."""
        return [token for token, _, _ in self._best_path(self.normalize(text)[0])]

    def _best_path(self, text: bytes) -> list[tuple[int, int, int]]:
        size = len(text)
        if not size:
            return []
        unk = self._unk
        score = [0.0] + [_NONE] * size
        token = [unk] * (size + 1)
        origin = [0] * (size + 1)
        steps, values, pieces = self._steps, self._values, self._pieces.size
        at = 0
        while at < size:
            behind = at + min(character_length(text[at]), size - at)
            here, single, end, node = score[at], False, at, 0
            while end < size:
                node = steps[node << 8 | text[end]]
                if node < 0:
                    break
                end += 1
                index = values[node]
                if index >= 0:
                    if index >= pieces:
                        raise self._pieces.damaged("trie.value", f"id {index} is out of range")
                    if end == behind:
                        single = True
                    challenger = here + self._score(index)
                    if challenger > score[end]:
                        score[end], token[end], origin[end] = challenger, index, at
            if not single:
                challenger = here + self._unk_score
                if challenger > score[behind]:
                    score[behind], token[behind], origin[behind] = challenger, unk, at
            at = behind
        return self._backtrack(token, origin, size)

    def _backtrack(self, token: list[int], origin: list[int], size: int) -> list[tuple[int, int, int]]:
        """From the end; neighbouring unknowns become one."""
        out: list[tuple[int, int, int]] = []
        end = size
        while True:
            start, index = origin[end], token[end]
            if out and index == self._unk == out[-1][0]:
                out[-1] = (index, start, out[-1][2])
            else:
                out.append((index, start, end))
            if start == 0:
                break
            end = start
        out.reverse()
        return out


def _to_float32(value: float) -> float:
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
