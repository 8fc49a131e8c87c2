"""One tokenizer used by eight threads at once, and after fork: the same ids, text and offsets; and flat memory.

    TOKPACK_CACHE_MB=1000 pytest -m slow tests/property/test_threads.py -k memory

runs a gigabyte of text that never repeats through each model instead of 1 to 8 MB (some models take hours
for it), and leaves the caches as large as they are.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES, ROOT, read_texts

THREADS = 8
# a fixture for each model and reference, those with caches of their own first
NAMES = (
    "hf/t5.json", "hf/normalizers.json", "hf/llama3.json", "hf/bert-uncased.json", "hf/unigram-bytes.json",
    "sentencepiece/unigram.model", "sentencepiece/bpe.model", "sentencepiece/rules.model", "sentencepiece/word.model",
    "tiktoken/plain.tiktoken", "llama-bpe.gguf", "gemma4.gguf", "spm.gguf", "ugm.gguf", "wpm.gguf", "rwkv.gguf",
    "plamo2.gguf", "hybriddna.gguf",
)  # fmt: skip
QUICK = NAMES[:3] + NAMES[5:6] + NAMES[9:11] + NAMES[12:14]
MEGABYTES = int(os.environ.get("TOKPACK_CACHE_MB", "0"))

names = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)


def load(name: str) -> tokpack.Tokenizer:
    if name.endswith(".tiktoken"):
        return tokpack.load(FIXTURES / name, format="tiktoken", pattern=r"\w+|[^\w\s]+|\s+")
    return tokpack.load(FIXTURES / name)


@cache
def texts() -> list[str]:
    """Probe texts, and one long enough for the way that long texts take."""
    found = [text for text in read_texts(FIXTURES / "texts.jsonl") if isinstance(text, str)][::14]
    found = [text.encode("utf-8", "ignore").decode() for text in found]
    corpus = (FIXTURES / "corpus.txt").read_text(encoding="utf-8")
    return [*found, (corpus * 3)[:40_000], corpus[:3000]]


def all_answers(tokenizer: tokpack.Tokenizer, order: list[int]) -> dict[int, Any]:
    """Everything that is asked of a tokenizer about each text, in some order."""
    found: dict[int, Any] = {}
    for number in order:
        text = texts()[number]
        try:
            ids = tokenizer.encode(text, add_special_tokens=False)
            stream = tokenizer.stream()
            streamed = "".join(map(stream.push, ids[:200])) + stream.flush()
            places = [(piece.id, piece.start, piece.end) for piece in tokenizer.pieces(text[:500])]
            found[number] = (ids, tokenizer.decode(ids), streamed, places)
        except tokpack.EncodeError as error:
            found[number] = str(error)
    return found


@contextmanager
def hasty_switches() -> Iterator[None]:
    """Threads take turns a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@names
def test_threads_agree(name: str) -> None:
    """A new tokenizer, whose stages are made and whose caches are filled by all threads at once."""
    expected = all_answers(load(name), list(range(len(texts()))))
    shared, start = load(name), threading.Barrier(THREADS)

    def work(number: int) -> dict[int, Any]:
        order = random.Random(number).sample(range(len(texts())), len(texts()) // 3)
        start.wait()
        return all_answers(shared, order)

    with hasty_switches(), ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(work, range(THREADS)):
            for number, answers in found.items():
                assert answers == expected[number], texts()[number][:100]


@names
def test_threads_agree_while_caches_are_emptied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of three entries, which are emptied all the time."""
    expected = all_answers(load(name), list(range(len(texts()))))
    assert shrink(monkeypatch) > 10
    shared = load(name)
    orders = [random.Random(number).sample(range(len(texts()) - 2), len(texts()) // 6) for number in range(4)]
    with hasty_switches(), ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda order: all_answers(shared, order), orders):
            for number, answers in found.items():
                assert answers == expected[number], texts()[number][:100]


LIMITS = ("_CACHE", "_CACHE_SIZE", "_CACHED_WORDS", "_PAIR_CACHE")


def shrink(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make every limit of a cache three; returns how many there are."""
    changed = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("tokpack.runtime"):
            for limit in LIMITS:
                if isinstance(getattr(module, limit, None), int):
                    monkeypatch.setattr(module, limit, 3)
                    changed += 1
    return changed


class Emptied(dict[str, Any]):
    """A cache that another thread empties whenever it has been asked whether something is there."""

    def __contains__(self, key: object) -> bool:
        there = super().__contains__(key)
        self.clear()
        return there


def test_a_cache_that_is_emptied_between_two_looks() -> None:
    """The charsmap's cache asked first and fetched then: a KeyError when another thread came between."""
    tokenizer = load("hf/t5.json")
    text = "ﬁx e\u0301 … ﬁx e\u0301 …"
    expected = tokenizer.encode(text)
    caches = [step for step in normalizers(tokenizer) if isinstance(getattr(step, "_cache", None), dict)]
    assert caches
    for step in caches:
        step._cache = Emptied(step._cache)
    assert tokenizer.encode(text) == expected
    assert tokenizer.encode(text) == expected


def normalizers(tokenizer: tokpack.Tokenizer) -> list[Any]:
    """All objects of the normalizers below a tokenizer."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [tokenizer._pipeline]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not type(one).__module__.startswith(("tokpack.runtime", "builtins")):
            continue
        seen[id(one)] = one
        if isinstance(one, (list, tuple)):
            waiting += one[:20]
        elif hasattr(one, "__self__"):
            waiting.append(one.__self__)
        elif hasattr(one, "__dict__"):
            waiting += list(vars(one).values())
    return [one for one in seen.values() if "ormaliz" in type(one).__name__]


# --- fork ------------------------------------------------------------------------------------------------------------


def in_child(call: Callable[[], bool]) -> int:
    """Exit code of a forked process: 0 if ``call`` is true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of numpy, which are at rest
        child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if call() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", ["llama-bpe.gguf", "hf/t5.json", "sentencepiece/unigram.model"])
@pytest.mark.parametrize("packed", [False, True], ids=["in memory", "mapped"])
def test_a_forked_process_gives_the_same_ids(name: str, packed: bool, tmp_path: Path) -> None:
    """Both before and after the parent has used it, and the parent goes on as before."""
    path = FIXTURES / name
    if packed:
        path = tmp_path / "case.tokpack"
        tokpack.convert(FIXTURES / name, path)
    some = [*range(0, len(texts()), 7)]
    expected = all_answers(tokpack.load(FIXTURES / name), some)
    shared = tokpack.load(path)
    assert in_child(lambda: all_answers(shared, some) == expected) == 0
    assert all_answers(shared, some) == expected
    assert in_child(lambda: all_answers(shared, some[::-1]) == expected) == 0
    assert all_answers(shared, some) == expected


# --- memory ----------------------------------------------------------------------------------------------------------

PROGRAM = """
import resource, sys
from pathlib import Path
import tokpack

name, megabytes = sys.argv[1], float(sys.argv[2])
options = {"format": "tiktoken", "pattern": r"\\w+|[^\\w\\s]+|\\s+"} if name.endswith(".tiktoken") else {}
tokenizer = tokpack.load(name, **options)
number = 0
if sys.argv[3] == "small":  # caches of a sixteenth of their size are full in no time
    tokenizer.encode("a b " * 20_000)  # all modules are there then
    for module in [module for name, module in sys.modules.items() if name.startswith("tokpack.runtime")]:
        for limit in ("_CACHE", "_CACHE_SIZE", "_CACHED_WORDS", "_PAIR_CACHE"):
            if isinstance(getattr(module, limit, None), int):
                setattr(module, limit, getattr(module, limit) // 16)


def unique(size):
    '''Text whose words never come again, of letters from many alphabets, with long words among them.'''
    global number
    words = []
    while size > 0:
        number += 1
        state, word = number * 0x9E3779B97F4A7C15 % (1 << 64), []
        for _ in range(3 + number % 9):
            base = (0x61, 0x430, 0x3B1, 0x4E00, 0xAC00)[state % 5]
            word.append(chr(base + state // 5 % (24 if base < 0x4E00 else 5000)))
            state = state * 6364136223846793005 % (1 << 64) + 1
        words.append("".join(word))
        size -= 3 * len(word)
    return " ".join(words)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def run(amount):
    done = peak = 0
    while done < amount:
        text = unique(20_000) if number % 2 else unique(120_000)  # both ways of encoding
        ids = tokenizer.encode(text)
        tokenizer.decode(ids[:1000])
        tokenizer.pieces(text[:200])
        done += len(text.encode())
        peak = max(peak, resident())
    return peak


print(run(megabytes * 5e5), run(megabytes * 5e5))
"""
# fixture → megabytes, for some seconds each
MEMORY = {
    "llama-bpe.gguf": 8, "gemma4.gguf": 6, "hf/llama3.json": 12, "spm.gguf": 6, "sentencepiece/bpe.model": 3,
    "tiktoken/plain.tiktoken": 3, "wpm.gguf": 2, "hf/bert-uncased.json": 2, "ugm.gguf": 1, "hf/t5.json": 1,
    "sentencepiece/unigram.model": 0.5,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", MEMORY)
def test_memory_stays_flat_over_unique_text(name: str) -> None:
    """The peak of the second half of the text is that of the first, which has filled the caches."""
    amount = MEGABYTES or MEMORY[name]
    command = [sys.executable, "-c", PROGRAM, str(FIXTURES / name), str(amount), "full" if MEGABYTES else "small"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 + 300 * amount, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-800:]
    before, after = map(float, done.stdout.split())
    print(f"{name}: {before:.0f} MB, then {after:.0f} MB")
    assert after - before < 40
