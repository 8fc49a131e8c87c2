"""Orders inherited from the GNU C++ library: known values, and a program compiled here for the rest."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tokpack.formats.gguf.libstdcxx import hash_strings, map_order, sort_descending

SEED = 20_240_607
PROGRAM = r"""
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>
// stdin: mode, count, then per item u32 length and bytes (h: hash, m: map order), or u32 key (s: sort)
static uint32_t number() { uint32_t n = 0; if (fread(&n, 4, 1, stdin) != 1) { n = 0; } return n; }
int main() {
    int mode = getchar();
    uint32_t count = number();
    std::vector<std::string> texts;
    std::vector<std::pair<uint32_t, uint32_t>> items;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = number();
        if (mode == 's') { items.emplace_back(n, i); continue; }
        std::string text(n, '\0');
        if (n && fread(&text[0], 1, n, stdin) != n) { return 1; }
        texts.push_back(text);
    }
    std::vector<uint64_t> out;
    if (mode == 'h') {
        for (auto & text : texts) { out.push_back(std::hash<std::string>{}(text)); }
    } else if (mode == 'm') {
        std::unordered_map<std::string, int32_t> map;
        for (uint32_t i = 0; i < count; i++) { map[texts[i]] = i; }
        for (auto & entry : map) { out.push_back(entry.second); }
    } else {
        std::sort(items.begin(), items.end(), [](const auto & a, const auto & b) { return a.first > b.first; });
        for (auto & item : items) { out.push_back(item.second); }
    }
    fwrite(out.data(), 8, out.size(), stdout);
}
"""
Ask = Callable[[str, Sequence[bytes] | Sequence[int]], list[int]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """The compiled program."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    folder: Path = tmp_path_factory.mktemp("orders")
    (folder / "orders.cpp").write_text(PROGRAM)
    command = [compiler, "-O1", "-std=c++17", "-o", str(folder / "orders"), str(folder / "orders.cpp")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if built.returncode:
        pytest.skip(f"g++ does not compile here: {built.stderr[-300:]}")

    def run(mode: str, items: Sequence[bytes] | Sequence[int]) -> list[int]:
        data = mode.encode() + struct.pack("<I", len(items))
        for item in items:
            data += struct.pack("<I", item) if isinstance(item, int) else struct.pack("<I", len(item)) + item
        done = subprocess.run([str(folder / "orders")], input=data, capture_output=True, timeout=60, check=True)
        return [value for (value,) in struct.iter_unpack("<Q", done.stdout)]

    return run


def random_texts(rng: random.Random, count: int, longest: int = 40) -> list[bytes]:
    texts = {rng.randbytes(rng.randint(0, longest)) for _ in range(3 * count)}
    ordered = sorted(texts)
    rng.shuffle(ordered)
    return ordered[:count]


# --- known values ----------------------------------------------------------------------------------------------------

# std::hash<std::string> of libstdc++ on a 64-bit machine
HASHES = {
    b"": 6142509188972423790,
    b"a": 4993892634952068459,
    b"abc": 3663726644998027833,
    b"<fim_prefix>": 5568981152113719214,
    b"12345678": 10113836418918046885,
}


def test_hashes_by_heart() -> None:
    assert hash_strings(list(HASHES)).tolist() == list(HASHES.values())


def test_orders_of_nothing_and_of_one() -> None:
    assert map_order([]).tolist() == []
    assert map_order([b"x"]).tolist() == [0]
    assert sort_descending([], int) == []
    assert sort_descending([7], int) == [7]


def test_up_to_16_items_the_sort_is_stable() -> None:
    rng = random.Random(SEED)
    for size in range(2, 17):
        keys = [rng.randint(0, 3) for _ in range(size)]
        assert sort_descending(range(size), keys.__getitem__) == sorted(range(size), key=lambda i: -keys[i])


def test_above_16_items_it_is_a_sort_but_not_a_stable_one() -> None:
    keys = [i % 3 for i in range(400)]
    order = sort_descending(range(400), keys.__getitem__)
    assert sorted(order) == list(range(400))
    assert [keys[i] for i in order] == sorted(keys, reverse=True)
    assert order != sorted(range(400), key=lambda i: -keys[i])


def test_a_map_order_names_every_text_once() -> None:
    texts = random_texts(random.Random(SEED), 3000)
    assert sorted(map_order(texts).tolist()) == list(range(3000))


# --- the compiled library --------------------------------------------------------------------------------------------


def test_hashes_of_all_lengths(ask: Ask) -> None:
    rng = random.Random(SEED)
    texts = [rng.randbytes(size) for size in [*range(70), 255, 256, 1000, 4099] for _ in range(3)]
    texts += [b"\0" * size for size in range(20)] + [b"\xff" * size for size in range(20)]
    assert hash_strings(texts).tolist() == ask("h", texts), f"seed {SEED}"


@pytest.mark.parametrize("size", [1, 2, 11, 12, 13, 14, 28, 29, 30, 59, 60, 127, 128, 257, 541, 1109, 1110, 2357, 3000])
def test_map_orders_around_every_growth(ask: Ask, size: int) -> None:
    for seed in range(SEED, SEED + 3):
        texts = random_texts(random.Random(seed * 10_007 + size), size)
        assert map_order(texts).tolist() == ask("m", texts), f"seed {seed}, size {size}"


def test_map_order_of_a_large_vocabulary(ask: Ask) -> None:
    texts = random_texts(random.Random(SEED), 40_000, 12)
    assert map_order(texts).tolist() == ask("m", texts), f"seed {SEED}"


@pytest.mark.parametrize("spread", [1, 2, 5, 40, 100_000])
def test_sorts_of_random_sizes(ask: Ask, spread: int) -> None:
    rng = random.Random(SEED + spread)
    for _ in range(12):
        size = rng.randint(2, 3000)
        keys = [rng.randrange(spread) for _ in range(size)]
        assert sort_descending(range(size), keys.__getitem__) == ask("s", keys), f"spread {spread}, size {size}"


@pytest.mark.parametrize("size", [*range(2, 40), 63, 64, 65, 1000])
def test_sorts_of_small_sizes(ask: Ask, size: int) -> None:
    rng = random.Random(SEED + size)
    for keys in ([rng.randrange(3) for _ in range(size)], list(range(size)), list(range(size, 0, -1)), [1] * size):
        assert sort_descending(range(size), keys.__getitem__) == ask("s", keys), f"size {size}"


def median_of_three_killer(size: int) -> list[int]:
    """Keys that make the pivot of every partition the second greatest: the sort falls back to a heap sort."""
    half = size // 2
    keys = [0] * size
    for i in range(1, half + 1):
        if i % 2:
            keys[i - 1] = i
            if i < half:
                keys[i] = half + i
        keys[half + i - 1] = 2 * i
    return [size - key for key in keys]


@pytest.mark.parametrize("size", [64, 500, 1000, 3000])
def test_sorts_that_fall_back_to_a_heap(ask: Ask, size: int) -> None:
    for keys in (median_of_three_killer(size), [key // 3 for key in median_of_three_killer(size)]):
        assert sort_descending(range(size), keys.__getitem__) == ask("s", keys), f"size {size}"
