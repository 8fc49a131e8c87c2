"""Random models of a small alphabet, so that everything collides, and texts for them."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tests.conftest import FIXTURES


def _fixture_module(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FIXTURES / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


proto = _fixture_module("fixture_model_proto", "sentencepiece/model_proto.py")
make_charsmap: Callable[[dict[bytes, bytes]], bytes] = _fixture_module("fixture_charsmap", "charsmap.py").charsmap

LETTERS = ["a", "b", "c", "▁", "▁", " ", "é", "日", "\u0301", "ﬁ", "\U0001f600", "\n"]
ODD = [b"\xff", b"\xe3\x81", b"\x81", b"\xf0\x9f", b"\xc3"]
KEYS = ["a", "ab", "abc", "é", "e\u0301", "ﬁ", "日", "\n", "\t", "\u3000", "▁", "b ", " ", "c", "\0", "aa"]
VALUES = ["", " ", "  ", "a", "b", "fi", " \u0301", "b ", "日日", "▁", "é", " a b"]
SCORES = [-1.0, -1.0, -2.0, -2.0, -3.0, 0.0, -0.0, 1.0, 2.5, -0.1, -0.30000001, -100.0]


def random_text(rng: random.Random, longest: int, odd: float = 0.0) -> bytes:
    """Up to ``longest`` letters; with ``odd`` some of them are not UTF-8."""
    out = bytearray()
    for _ in range(rng.randint(1, longest)):
        out += rng.choice(ODD) if rng.random() < odd else rng.choice(LETTERS).encode()
    return bytes(out)


def random_charsmap(rng: random.Random) -> bytes:
    """A handful of rules, at times with keys and values that are no whole characters."""
    keys = [key.encode() for key in rng.sample(KEYS, rng.randint(1, 8))]
    if rng.random() < 0.2:
        keys.append(rng.choice([b"\xe6\x97", b"\xff", b"a\xc3", b"\xc3"]))
    table = {}
    for key in keys:
        value = rng.choice(VALUES).encode()
        table[key] = rng.choice(ODD) if rng.random() < 0.05 else value
    return make_charsmap({key: value for key, value in table.items() if b"\0" not in key})


def random_flags(rng: random.Random) -> dict[str, Any]:
    """The three flags of a normalizer, each present or not."""
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    return {name: rng.random() < 0.6 for name in names if rng.random() < 0.7}


def random_model(rng: random.Random) -> Any:
    """A model that sentencepiece loads, most of the time."""
    kind = rng.randint(1, 4)
    fallback = rng.random() < 0.3
    same = rng.random() < 0.2  # all scores equal
    odd = 0.1 if rng.random() < 0.15 else 0.0
    share = rng.choice([0.0, 0.1, 0.4])
    texts: dict[bytes, tuple[float, int]] = {}
    for _ in range(rng.randint(1, 60)):
        text = random_text(rng, rng.choice([1, 2, 3, 5, 8]), odd)
        piece_type = rng.choice([4, 5, 3]) if rng.random() < share else 1
        texts[text] = (-1.0 if same else rng.choice(SCORES) if rng.random() < 0.7 else rng.uniform(-20, 1), piece_type)
    pieces = [(text, *rest) for text, rest in texts.items()]
    if rng.random() < 0.15 and kind != proto.BPE:  # a control piece may be spelled like another one
        pieces.append((pieces[0][0], -1.0, 3 if pieces[0][2] in (1, 4, 5) else 1))
    if not fallback or rng.random() < 0.8:
        pieces.append((rng.choice([b"<unk>", b"<unk>", "▁u".encode()]), 0.0, 2))
    pieces += [(b"<s>", 0.0, 3), (b"</s>", 0.0, rng.choice([3, 3, 1]))]
    if fallback:
        pieces += [(text.encode(), score, form) for text, score, form in proto.byte_pieces()]
    if rng.random() < 0.05:
        pieces.append((b"\0", 0.0, 5))
    rng.shuffle(pieces)
    trainer: dict[str, Any] = {"model_type": kind, "byte_fallback": fallback}
    if rng.random() < 0.3:
        trainer["treat_whitespace_as_suffix"] = True
    if rng.random() < 0.3:
        trainer["unk_surface"] = rng.choice(["", "?", " "])
    if rng.random() < 0.2:
        trainer["bos_piece"] = rng.choice(["", "a", "</s>", "<unk>", "none"])
        trainer["unk_piece"] = rng.choice(["", "a", "<s>", "none"])
    normalizer = random_flags(rng)
    if rng.random() < 0.6:
        normalizer["precompiled_charsmap"] = random_charsmap(rng)
    denormalizer = None
    if rng.random() < 0.3:
        denormalizer = random_flags(rng)
        if rng.random() < 0.8:
            denormalizer["precompiled_charsmap"] = random_charsmap(rng)
    return proto.Model(pieces, trainer, normalizer, denormalizer)


def texts_for(rng: random.Random, model: Any, count: int) -> list[str | bytes]:
    """Texts of letters and of pieces, some of them not UTF-8."""
    own = [text if isinstance(text, bytes) else text.encode() for text, _, _ in model.pieces]
    out: list[str | bytes] = ["", " ", "  a  b ", "▁"]
    for _ in range(count):
        parts = []
        for _ in range(rng.choice([1, 3, 8, 30])):
            chance = rng.random()
            if chance < 0.4:
                parts.append(rng.choice(own))
            elif chance < 0.5:
                parts.append(b" " * rng.randint(1, 3))
            elif chance < 0.55:
                parts.append(rng.choice([b"\t", b"\0", "\u3000".encode(), b"z", "é".encode(), b"<unk>", b"A"]))
            else:
                parts.append(random_text(rng, 4, 0.2 if rng.random() < 0.05 else 0.0))
        raw = b"".join(parts)
        try:
            out.append(raw.decode() if rng.random() < 0.8 else raw)
        except UnicodeDecodeError:
            out.append(raw)
    return out
