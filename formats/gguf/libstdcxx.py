"""Two orders that llama.cpp inherits from libstdc++: of an unordered_map's iteration, and of an unstable std::sort.

They decide which of several candidate texts gets a role (``llama-vocab.cpp``, loops over ``token_to_id``) and in which
order special tokens of equal length are searched (``cache_special_tokens``). Both are facts about the compiled
reference program, so they are reproduced: ``std::hash<std::string>`` is ``_Hash_bytes`` with seed 0xc70f6907
(``libsupc++/hash_bytes.cc``), the table grows by ``_Prime_rehash_policy``, ``std::sort`` is the introsort of
``bits/stl_algo.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["map_order", "sort_descending"]

_MUL = np.uint64(0xC6A4A7935BD1E995)
_SEED = 0xC70F6907
# bucket counts that doubling picks from the library's list of primes, starting with the first insertion
_BUCKETS = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679,
    5967347, 12117689, 24607243,
)  # fmt: skip


def hash_strings(texts: Sequence[bytes]) -> NDArray[np.uint64]:
    """``std::hash<std::string>`` of each text, uint64 ``[len(texts)]``."""
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    result = np.empty(len(texts), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for size in np.unique(sizes).tolist():
            where = np.flatnonzero(sizes == size)
            full, tail = divmod(size, 8)
            padded = b"".join(texts[i] + bytes(-size % 8) for i in where.tolist())
            words = np.frombuffer(padded, dtype="<u8").reshape(len(where), full + (tail > 0))
            state = np.full(len(where), np.uint64(_SEED) ^ (np.uint64(size) * _MUL), dtype=np.uint64)
            for column in range(full):
                state = (state ^ (_mix(words[:, column] * _MUL) * _MUL)) * _MUL
            if tail:
                state = (state ^ words[:, full]) * _MUL
            result[where] = _mix(_mix(state) * _MUL)
    return result


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = value ^ (value >> np.uint64(47))
    return mixed


def map_order(texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Indices of ``texts`` (distinct, inserted in order) as ``std::unordered_map`` iterates over them.

    A new element goes to the front of its bucket, a new bucket to the front of the list; a rehash walks the list and
    inserts again by the same rule. So each stage is one sort.
    """
    hashes = hash_strings(texts)
    order: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    inserted = 0
    for buckets in _BUCKETS:
        upto = min(len(texts), buckets)
        sequence = np.concatenate([order, np.arange(inserted, upto, dtype=np.int64)])
        bucket = (hashes[sequence] % np.uint64(buckets)).astype(np.int64)
        first = np.full(buckets, len(sequence), dtype=np.int64)
        position = np.arange(len(sequence), dtype=np.int64)
        np.minimum.at(first, bucket, position)
        order = sequence[np.lexsort((-position, -first[bucket]))]
        inserted = upto
        if inserted == len(texts):
            return order
    raise ValueError("more texts than the table of primes covers")


def sort_descending(items: Sequence[int], key: Callable[[int], int]) -> list[int]:
    """``std::sort`` with the comparison ``key(a) > key(b)``: the same permutation for equal keys, too."""
    values = [(key(item), item) for item in items]
    size = len(values)
    if size > 1:
        _introsort(values, 0, size, 2 * (size.bit_length() - 1))
        _insertion_sort(values, 0, min(16, size))
        for index in range(16, size):
            _linear_insert(values, index)
    return [item for _, item in values]


_Item = tuple[int, int]


def _before(a: _Item, b: _Item) -> bool:
    return a[0] > b[0]


def _introsort(v: list[_Item], first: int, last: int, depth: int) -> None:
    while last - first > 16:
        if depth == 0:
            _heap_sort(v, first, last)
            return
        depth -= 1
        mid = first + (last - first) // 2
        _median_to_first(v, first, first + 1, mid, last - 1)
        cut = _partition(v, first + 1, last, first)
        _introsort(v, cut, last, depth)
        last = cut


def _median_to_first(v: list[_Item], result: int, a: int, b: int, c: int) -> None:
    if _before(v[a], v[b]):
        pick = b if _before(v[b], v[c]) else c if _before(v[a], v[c]) else a
    else:
        pick = a if _before(v[a], v[c]) else c if _before(v[b], v[c]) else b
    v[result], v[pick] = v[pick], v[result]


def _partition(v: list[_Item], first: int, last: int, pivot: int) -> int:
    while True:
        while _before(v[first], v[pivot]):
            first += 1
        last -= 1
        while _before(v[pivot], v[last]):
            last -= 1
        if first >= last:
            return first
        v[first], v[last] = v[last], v[first]
        first += 1


def _linear_insert(v: list[_Item], last: int) -> None:
    value = v[last]
    while _before(value, v[last - 1]):
        v[last] = v[last - 1]
        last -= 1
    v[last] = value


def _insertion_sort(v: list[_Item], first: int, last: int) -> None:
    for index in range(first + 1, last):
        if _before(v[index], v[first]):
            v[first : index + 1] = [v[index], *v[first:index]]
        else:
            _linear_insert(v, index)


def _heap_sort(v: list[_Item], first: int, last: int) -> None:
    size = last - first
    for parent in range((size - 2) // 2, -1, -1):
        _adjust_heap(v, first, parent, size, v[first + parent])
    while last - first > 1:
        last -= 1
        value = v[last]
        v[last] = v[first]
        _adjust_heap(v, first, 0, last - first, value)


def _adjust_heap(v: list[_Item], first: int, hole: int, size: int, value: _Item) -> None:
    top = hole
    child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if _before(v[first + child], v[first + child - 1]):
            child -= 1
        v[first + hole] = v[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        v[first + hole] = v[first + child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and _before(v[first + parent], value):
        v[first + hole] = v[first + parent]
        hole = parent
        parent = (hole - 1) // 2
    v[first + hole] = value
