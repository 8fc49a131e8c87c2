"""Every public encoding against tiktoken itself, and tekken.json against mistral-common: random texts, bytes and ids.

TOKPACK_LIVE_TEXTS sets the number of texts for each encoding, TOKPACK_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import SharedData
from tests.runtime.tiktoken import fancy_patterns
from tests.seeds import run_seed
from tokpack.errors import EncodeError, RefusedError, UnsupportedError
from tokpack.formats.tiktoken.encodings import encoding, names
from tokpack.onig.fancy import translate_fancy

COUNT = int(os.environ.get("TOKPACK_LIVE_TEXTS", "80"))
SEED = run_seed()
FILES = {
    **{name: name for name in ("cl100k_base", "o200k_base", "r50k_base", "llama3", "qwen")},
    "gpt2": "r50k_base",
    "o200k_harmony": "o200k_base",
    "llama3.1": "llama3",
    "whisper-gpt2": "r50k_base",
}
QUICK = ("cl100k_base", "qwen", "whisper-gpt2")
PARTS = [
    *" \t\n\r.,!?'\"-/_0123456789aAbBzZéßſKΣςDžǅʰªªⅧ½٣中文あ한ไทัย\u0301\u200d\xa0\u3000\u2028\x85\x00😀🏽\ufffd",
    *(
        "'s",
        "'LL",
        "'ſ",
        "don't",
        " the",
        " ",
        "  ",
        "\n\n",
        "\r\n",
        "<|endoftext|>",
        "<|fim_",
        "123456",
        "ÀÉ",
        "HELLOworld",
    ),
    *("<|im_start|>", "<|eot_id|>", "<|0.02|>", "中国", "नमस्ते", " \u00e9t\u00e9", "ǅungla", "()", "//", "==\n"),
]


def texts(rnd: random.Random, count: int) -> list[str]:
    return ["".join(rnd.choice(PARTS) for _ in range(rnd.choice((1, 3, 8, 30)))) for _ in range(count)]


def encodings() -> Any:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES]


@pytest.mark.parametrize("name", encodings())
def test_encoding(name: str, shared_data: SharedData) -> None:
    tiktoken = pytest.importorskip("tiktoken", "0.9", reason="the live comparison needs tiktoken")
    load = pytest.importorskip("tiktoken.load")
    path = shared_data(f"data/tiktoken/{FILES[name]}.tiktoken")
    facts = encoding(name)
    theirs = tiktoken.Encoding(
        name,
        pat_str=facts.pattern,
        mergeable_ranks=load.load_tiktoken_bpe(str(path)),
        special_tokens=dict(facts.special_tokens),
    )
    ours = tokpack.load(path, pattern=name)
    assert ours.vocab_size == theirs.n_vocab
    special = [*facts.special_tokens.values()]
    assert ours.decode_bytes(special, False) == theirs.decode_bytes(special)
    assert ours.decode_bytes(special) == b""
    print(f"seed {SEED}")
    rnd = random.Random(SEED)
    for text in texts(rnd, COUNT):
        ids = theirs.encode(text, allowed_special="all")
        assert ours.encode(text) == ids, text
        assert ours.encode(text, parse_special=False) == theirs.encode_ordinary(text), text
        assert ours.decode_bytes(ids, False) == theirs.decode_bytes(ids)
        for source in (text, text.encode()):
            assert [piece.id for piece in ours.pieces(source)] == ids
        assert b"".join(text.encode()[p.start : p.end] for p in ours.pieces(text.encode())) == text.encode()
        stream = ours.stream(skip_special_tokens=False)
        assert "".join(map(stream.push, ids)) + stream.flush() == theirs.decode(ids)
        raw = bytearray(text.encode() + b" \n\n"[: rnd.randrange(4)])
        raw[rnd.randrange(len(raw)) :] = bytes(rnd.choice(b"\xff\x80\xe4 \n a\xb8") for _ in range(rnd.randrange(1, 6)))
        expected = theirs._encode_bytes(bytes(raw))
        assert ours.encode(bytes(raw), parse_special=False) == expected, raw
        broken = text + rnd.choice(("\ud800", "\udc00x", "\ud83d\ude00", "a\ud800\ud800"))
        assert ours.encode(broken) == theirs.encode(broken, allowed_special="all")
        assert [piece.id for piece in ours.pieces(broken)] == ours.encode(broken)
        assert ours.pieces(broken)[-1].end == len(broken)


def test_the_facts_about_public_encodings_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public", reason="the comparison needs tiktoken")
    digests: list[Any] = []

    def load(_url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        digests.append(expected_hash)
        return {}

    monkeypatch.setattr(public, "load_tiktoken_bpe", load)
    monkeypatch.setattr(public, "data_gym_to_mergeable_bpe_ranks", lambda **_: {})
    for name, make in public.ENCODING_CONSTRUCTORS.items():
        digests.clear()
        facts, ours = make(), encoding(name)
        assert (ours.pattern, dict(ours.special_tokens)) == (facts["pat_str"], facts["special_tokens"])
        assert digests in ([], [ours.sha256])
        if "explicit_n_vocab" in facts:
            assert ours.ranks + len(ours.special_tokens) == facts["explicit_n_vocab"]


def test_every_public_pattern_is_translated() -> None:
    assert len(names()) >= 12
    for name in names():
        facts = encoding(name)
        translate_fancy([facts.pattern])
        ids = list(facts.special_tokens.values())
        shared = {i for i in ids if ids.count(i) > 1}
        assert shared == ({200018} if name == "o200k_harmony" else set())
        assert set(facts.roles.values()) | set(facts.eog) <= set(facts.special_tokens)


def test_random_patterns() -> None:
    """Matches of translated patterns are those of fancy-regex: every substring is a token, so each match is one id."""
    tiktoken = pytest.importorskip("tiktoken", "0.9", reason="the live comparison needs tiktoken")
    print(f"seed {SEED}")
    rnd = random.Random(SEED)
    oracle = fancy_patterns.Oracle(tiktoken)
    done = 0
    for _ in range(4 * COUNT):
        pattern = fancy_patterns.pattern(rnd, rnd.randint(1, 3))
        try:
            made = translate_fancy([pattern])
        except UnsupportedError:
            continue
        except RefusedError:
            assert not oracle.accepts(pattern), pattern
            continue
        done += 1
        for text in (fancy_patterns.text(rnd, 10) for _ in range(2)):
            found = fancy_patterns.matches(made, 0, text)
            pieces = None if found is None else [text[start:end] for start, end in found]
            assert pieces == oracle.pieces(pattern, text), (pattern, text)
    assert done > COUNT


def test_overlapping_special_tokens(tmp_path: Path) -> None:
    """Which of two that match at one place tiktoken takes is not defined: an error, and only there."""
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"YQ== 0\nYg== 1\nPA== 2\nPg== 3\n")
    ours = tokpack.load(path, pattern=r"(?s:.)", special_tokens={"<a>": 10, "<a>b": 11, "a>": 12})
    assert [f.code for f in ours.findings if "overlapping" in f.code] == ["tiktoken-overlapping-specials"]
    assert ours.encode("<a>a>a") == [10, 12, 0]
    with pytest.raises(EncodeError, match="not defined"):
        ours.encode("a<a>b")
    assert ours.encode("a<a>b", parse_special=False) == [0, 2, 0, 3, 1]


def test_an_empty_match_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"YQ== 0\nYg== 1\n")
    ours = tokpack.load(path, pattern="a*")
    assert ours.encode("aa") == [0, 0]
    with pytest.raises(EncodeError, match="empty text"):
        ours.encode("ba")
    path.write_bytes(b"YQ== 0\nYg== 1\n= 2\n")  # the empty piece of Whisper's vocabulary
    assert tokpack.load(path, pattern="a*").encode("ba") == [2, 0]


@pytest.mark.slow
def test_tekken_against_mistral_common(shared_data: SharedData) -> None:
    tekken = pytest.importorskip("mistral_common.tokens.tokenizers.tekken", reason="needs mistral-common")
    path = shared_data("data/tiktoken/tekken_240911.json")
    compare_tekken(tekken, path, COUNT)


def compare_tekken(tekken: Any, path: Path, count: int) -> None:
    theirs, ours = tekken.Tekkenizer.from_file(path), tokpack.load(path)
    policy = tekken.SpecialTokenPolicy
    rnd = random.Random(SEED)
    print(f"seed {SEED}")
    assert ours.vocab_size == theirs.n_words
    for role in ("bos", "eos", "pad", "unk"):
        assert ours.special_id(role) == getattr(theirs, f"{role}_id")
    for text in texts(rnd, count):
        ids = theirs.encode(text, bos=False, eos=False)
        assert ours.encode(text) == ours.encode(text, parse_special=False) == ids
        mixed = [rnd.choice([*ids, rnd.randrange(theirs.n_words), rnd.randrange(30)]) for _ in range(12)]
        for some in (ids, mixed):
            for skip, name in ((True, policy.IGNORE), (False, policy.KEEP)):
                expected = theirs.decode(some, name)
                assert ours.decode(some, skip) == expected
                stream = ours.stream(skip)
                assert "".join(map(stream.push, some)) + stream.flush() == expected
