"""Damaged documents: a clean error or an IR, in bounded time, and the library's verdict where it is there to ask."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.formats.hf.hf_documents import BPE, COMPONENTS, UNIGRAM, WORD_LEVEL, WORD_PIECE, added, document
from tokpack.errors import TokpackError
from tokpack.formats.hf import read_bytes
from tokpack.ir import TokenizerIR

VALUES: list[Any] = [None, True, False, 0, 1, -1, 1 << 32, 1 << 64, 1.0, 0.5, "", "a", "zz", "Fixed", [], {}]
VALUES += [["a"], [1, 2], {"a": 1}, "Removed", "never", "Sequence", "BPE", ["a", "b"], [["a", "b"]], "NFC", 3]
SECTIONS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from paths(value[at], (*path, at))


def whole_document(rng: random.Random) -> dict[str, Any]:
    sections = {}
    for section in SECTIONS:
        samples = [sample for name, sample, _ in COMPONENTS if name == section]
        sections[section] = rng.choice(samples) if rng.random() < 0.6 else None
    model = rng.choice([BPE, BPE, WORD_PIECE, WORD_LEVEL, UNIGRAM])
    tokens = [added("x", id=4), added("a", normalized=True)]
    return document(**sections, model=model, added_tokens=tokens)


def mutate(value: Any, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(list(paths(value)))
        owner = value
        for key in path[:-1]:
            owner = owner[key]
        key, dice = path[-1], rng.random()
        if dice < 0.3:
            del owner[key]
        elif dice < 0.8:
            owner[key] = copy.deepcopy(rng.choice(VALUES))
        elif isinstance(owner, dict):
            owner[rng.choice(["foo", "id", "type", "content", "vocab", "merges", "String"])] = owner.pop(key)
        else:
            owner.append(copy.deepcopy(owner[key]))


def attempt(data: bytes) -> TokenizerIR | TokpackError:
    """Anything but an IR or an error of ours fails the test."""
    try:
        ir = read_bytes(data, "x.json")
    except TokpackError as error:
        found = error
    else:
        ir.validate()
        return ir
    assert str(found).startswith("x.json")
    return found


def test_mutated_documents() -> None:
    seed = 4
    rng = random.Random(seed)
    start = time.process_time()
    kinds = set()
    for step in range(6000):
        value = whole_document(rng)
        mutate(value, rng)
        data = json.dumps(value).encode()
        try:
            kinds.add(type(attempt(data)).__name__)
        except Exception:
            print(f"seed {seed}, step {step}: {data.decode()}")
            raise
    assert {"TokenizerIR", "FormatError", "UnsupportedError"} <= kinds
    assert kinds <= {"TokenizerIR", "FormatError", "UnsupportedError", "RefusedError"}
    assert time.process_time() - start < 60


# what is refused here and loaded by the library, each with its reason in the docs
STRICTER = ("expected a ", "expected a map", "a template that is to be put around", "the sequences stand in another")


def test_the_library_has_the_same_verdict() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    seed = 5
    rng = random.Random(seed)
    for step in range(3000):
        value = whole_document(rng)
        if (value["normalizer"] or {}).get("type") == "Precompiled":
            value["normalizer"] = None  # its small trie makes the library abort on the added token
        mutate(value, rng)
        text = json.dumps(value)
        try:
            tokenizers.Tokenizer.from_str(text)
            refused = None
        except BaseException as error:  # a panic is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            refused = str(error)
        ours = attempt(text.encode())
        if (refused is not None) == isinstance(ours, TokpackError):
            continue
        stricter = isinstance(ours, TokpackError) and any(reason in ours.what for reason in STRICTER)
        assert stricter, f"seed {seed}, step {step}: library {refused!r}, here {ours}: {text}"


@pytest.mark.parametrize("seed", range(3))
def test_truncated_documents(seed: int) -> None:
    rng = random.Random(seed)
    data = json.dumps(whole_document(rng)).encode()
    for cut in range(len(data)):
        assert isinstance(attempt(data[:cut]), TokpackError), (seed, cut)


def test_truncated_at_sampled_bytes_of_a_larger_one() -> None:
    seed = 6
    rng = random.Random(seed)
    vocab = {f"t{at}é": at for at in range(3000)}
    data = json.dumps(document(model=WORD_LEVEL | {"vocab": vocab, "unk_token": "t1é"}), ensure_ascii=False).encode()
    assert isinstance(attempt(data), TokenizerIR)
    for cut in rng.sample(range(len(data)), 300):
        assert isinstance(attempt(data[:cut]), TokpackError), (seed, cut)


def test_changed_bytes() -> None:
    seed = 7
    rng = random.Random(seed)
    start = time.process_time()
    for step in range(4000):
        data = bytearray(json.dumps(whole_document(rng)).encode())
        for _ in range(rng.choice([1, 1, 2, 5])):
            data[rng.randrange(len(data))] = rng.choice(
                [0, 0x22, 0x2C, 0x5B, 0x5C, 0x7B, 0x7D, 0x80, 0xFF, rng.randrange(256)]
            )
        try:
            attempt(bytes(data))
        except Exception:
            print(f"seed {seed}, step {step}: {bytes(data)!r}")
            raise
    assert time.process_time() - start < 60


@pytest.mark.parametrize("key", ["normalizers", "pretokenizers", "decoders", "processors"])
def test_nested_sequences(key: str) -> None:
    section = {"normalizers": "normalizer", "pretokenizers": "pre_tokenizer", "decoders": "decoder"}.get(
        key, "post_processor"
    )
    deep = f'{{"type":"Sequence","{key}":['
    for levels, fine in ((62, True), (64, False), (5000, False)):
        text = f'{{"model":{json.dumps(BPE)},"{section}":{deep * levels}{"]}" * levels}}}'
        assert isinstance(attempt(text.encode()), TokenizerIR) == fine


def test_many_strips_of_work() -> None:
    """Nothing is quadratic: long strings, many merges of one pair, many components."""
    start = time.process_time()
    for value in (
        document(model=BPE | {"merges": [["a", "b"]] * 200_000}),
        document(model=BPE | {"merges": ["a b"] * 200_000}),
        document(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 50_000}),
        document(model=UNIGRAM | {"vocab": [["a", -1]] * 200_000}),
        document(added_tokens=[added("x")] * 50_000),
        document(added_tokens=[added("x", special=at % 2 == 0) for at in range(20_000)]),
        document(normalizer={"type": "Prepend", "prepend": "x" * 10_000_000}),
        document(model=BPE | {"merges": ["a" + " " * 5_000_000]}),
    ):
        attempt(json.dumps(value).encode())
    assert time.process_time() - start < 30
