"""The Unigram of a ``.mtok`` (``UnigramModel::tokenize``): Viterbi over bytes, with the engine's own treatment of
unknowns, which begin and end at any byte.
"""

from __future__ import annotations

from tokpack.errors import EncodeError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.trie import Trie
from tokpack.pack.view import PackView
from tokpack.runtime.mnn.edits import to_bytes

__all__ = ["UnigramModel"]

_NONE = -1e18
_UNREACHED = -1e17


class UnigramModel:
    """Words to ids.

    Args:
        view, pieces: the pack; ``trie`` holds the pieces that a lookup finds, without the unknown one.
        unk: id of the unknown piece.
        byte_pieces: with byte fallback, the id of ``<0xHH>`` for each byte, -1 for none; else empty.
    """

    def __init__(self, view: PackView, pieces: PieceTable, unk: int, byte_pieces: list[int]) -> None:
        self._trie = Trie.of(view, "trie")
        self._scores = view.array("piece.scores64")
        if len(self._scores) != pieces.size:
            raise pieces.damaged("piece.scores64", "its length is not the vocabulary size")
        if not 0 <= unk < pieces.size:
            raise EncodeError(f"the unknown id {unk} is outside the vocabulary, where MNN reads beside its arrays")
        self._pieces = pieces
        self._unk = unk
        self._unk_score = float(self._scores[unk])
        self._byte_pieces = byte_pieces

    def encode(self, word: str) -> list[int]:
        """Ids of a word that is not empty."""
        return [token for token, _ in self.spans(word)]

    def spans(self, word: str) -> list[tuple[int, int]]:
        """The same, each with its end in the word's bytes."""
        text = to_bytes(word)
        best, tokens, starts = self.paths(text)
        size = len(text)
        if best[size] <= _UNREACHED:
            return []
        out: list[tuple[int, int]] = []
        end = size
        while end > 0:
            token = tokens[end]
            if not out or token != self._unk or out[-1][0] != token:
                out.append((token, end))
            end = starts[end]
        out.reverse()
        return out

    def paths(self, text: bytes) -> tuple[list[float], list[int], list[int]]:
        """Score, last id and its start for the best path to each byte."""
        size = len(text)
        best = [_NONE] * (size + 1)
        tokens = [-1] * (size + 1)
        starts = [0] * (size + 1)
        # the candidates that end at a place, by ascending start; the engine looks at the last start first
        waiting: list[list[tuple[int, int]] | None] = [None] * (size + 1)
        best[0] = 0.0
        scores = self._scores
        for at in range(size + 1):
            candidates = waiting[at]
            if candidates is not None:
                waiting[at] = None
                score = _NONE
                for start, token in reversed(candidates):
                    challenger = best[start] + scores[token]
                    if challenger > score or score <= _UNREACHED:
                        score, tokens[at], starts[at] = challenger, token, start
                best[at] = score
            if at and best[at] <= _UNREACHED:
                self._unknown(text, at, best, tokens, starts)
            if at < size and not best[at] <= _UNREACHED:
                self._extend(text, at, waiting)
        return best, tokens, starts

    def _extend(self, text: bytes, at: int, waiting: list[list[tuple[int, int]] | None]) -> None:
        found = self._trie.prefixes(text, at)
        if self._byte_pieces and (not found or found[0][0] != at + 1):
            token = self._byte_pieces[text[at]]
            if token < 0:
                what = f"there is no piece <0x{text[at]:02X}>: MNN reads beside its arrays"
                raise EncodeError(what, hint="the vocabulary lacks byte pieces")
            found.append((at + 1, token))
        for end, token in found:
            if token >= self._pieces.size:
                raise self._pieces.damaged("trie.value", f"id {token} is out of range")
            candidates = waiting[end]
            if candidates is None:
                waiting[end] = [(at, token)]
            else:
                candidates.append((at, token))

    def _unknown(self, text: bytes, at: int, best: list[float], tokens: list[int], starts: list[int]) -> None:
        """No piece ends here: unknown is the character before, or the byte."""
        size = 1
        for back in range(1, min(4, at) + 1):
            byte = text[at - back]
            if byte & 0xC0 != 0x80:
                expected = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
                size = back if expected == back else 1
                break
        before = best[at - size]
        if before > _UNREACHED:
            best[at] = before + self._unk_score
            starts[at] = at - size
            tokens[at] = self._unk
