"""A merge list for targets that have one: one merge for each rank.

Why it is exact. Let p be a piece that merging makes in some word, of the pair (a, b). Nothing has crossed the ends of p
in that word, so what happened between them is what happens to the bytes of p alone: each merge there was the leftmost
of lowest rank in the whole word, hence also between the ends of p. The bytes of p alone therefore come to (a, b), too,
and then to p. So *every* p is only ever made of one pair, the last one that merging the bytes of p alone makes,
whatever the order of the ranks. A list of these pairs in the order of ranks leaves merging the same choice at each
step: the pair that the ranks choose is in the list, and no other pair of lower rank or further left is.

What the list does not say is that a word that is a piece becomes that piece. It follows where merging the bytes of each
piece gives the piece; the others (``unreachable``) need a target that looks up whole words first (``ignore_merges``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

from tokpack.errors import UsageError
from tokpack.ir import PieceAttr, RankMerge, TokenizerIR

__all__ = ["MergeList", "derive_merges", "last_merge", "merge_list"]

_NO_RANK = 1 << 62
_SHORT = 48  # parts up to which rescanning a list is cheaper than a heap

Pair = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class MergeList:
    """Merges, and what a target must do besides them.

    Attributes:
        merges: (left, right), in the order of the ranks of what they make.
        unreachable: pieces of two bytes and more that no merge makes; a whole word equal to one is that piece.
        missing: single bytes that have no rank: text with one that is left over is an error.
    """

    merges: tuple[Pair, ...]
    unreachable: tuple[bytes, ...]
    missing: tuple[int, ...]

    def is_exact(self, *, whole_words: bool) -> bool:
        """Whether a target with these merges gives the ids of the ranks for every word without missing bytes.

        Args:
            whole_words: the target gives a word that is a piece that piece before it merges.
        """
        return whole_words or not self.unreachable


def derive_merges(ir: TokenizerIR) -> tuple[Pair, ...]:
    """(left, right) in the order of ranks: of each piece that merging can make the only pair that makes it."""
    return merge_list(ir).merges


def merge_list(ir: TokenizerIR) -> MergeList:
    """The merge list of a vocabulary with ranks; UsageError for another model."""
    if not isinstance(ir.model, RankMerge):
        raise UsageError(f"merges are derived from ranks, this is {ir.model.kind}")
    control = ((ir.vocab.attrs & PieceAttr.CONTROL) != 0).tolist()
    ranks = {p: i for i, p in enumerate(ir.vocab.pieces) if p and not control[i]}
    merges: list[Pair] = []
    unreachable: list[bytes] = []
    for piece in ranks:  # ascending: pieces are listed by id
        if len(piece) == 1:
            continue
        pair = last_merge(piece, ranks)
        if pair is None:
            unreachable.append(piece)
        else:
            merges.append(pair)
    missing = tuple(byte for byte in range(256) if bytes([byte]) not in ranks)
    return MergeList(tuple(merges), tuple(unreachable), missing)


def last_merge(piece: bytes, ranks: Mapping[bytes, int]) -> Pair | None:
    """The two parts that merging the bytes of ``piece`` ends with before it is whole; None if it never is."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    if len(parts) > _SHORT:
        return _last_long(parts, ranks)
    while len(parts) > 2:
        best, at = min((ranks.get(a + b, _NO_RANK), i) for i, (a, b) in enumerate(pairwise(parts)))
        if best == _NO_RANK:
            return None
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _last_long(parts: list[bytes], ranks: Mapping[bytes, int]) -> Pair | None:
    """The same with a heap and a linked list: the work is not the square of the length."""
    count, live = len(parts), len(parts)
    following = list(range(1, count + 1))
    before = list(range(-1, count - 1))
    heap = [(ranks[joined], i, len(joined)) for i in range(count - 1) if (joined := parts[i] + parts[i + 1]) in ranks]
    heapify(heap)
    while heap:
        _, left, size = heappop(heap)
        right = following[left]
        # stale when either side has changed since the entry was made
        if not parts[left] or right >= count or len(parts[left]) + len(parts[right]) != size:
            continue
        if live == 2:
            return parts[left], parts[right]
        parts[left] += parts[right]
        parts[right] = b""
        live -= 1
        following[left] = after = following[right]
        if after < count:
            before[after] = left
        for first, second in ((left, after), (before[left], left)):
            if first >= 0 and second < count:
                joined = parts[first] + parts[second]
                if joined in ranks:
                    heappush(heap, (ranks[joined], first, len(joined)))
    return None
