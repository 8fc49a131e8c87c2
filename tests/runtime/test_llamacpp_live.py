"""Random texts: our ids and text against those of llama.cpp itself, asked through its C interface.

Each run tries other texts; TOKPACK_SEED repeats one, TOKPACK_LIVE_TEXTS sets how many texts there are per vocabulary,
TOKPACK_LIVE_NAMES how many pre-tokenizer names are drawn.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import random
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.property.strategies import BROKEN, GROUPS
from tests.runtime.llamacpp_worker import MODES
from tests.seeds import run_seed

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="needs the package xllamacpp (extra `oracles`)"
)

WORKER = Path(__file__).with_name("llamacpp_worker.py")
NAMES = (
    "demo", "gpt-4o", "tekken", "deepseek-v3", "jina-v2-code", "phi-3", "sarvam-moe", "kimi-k2", "odd-tokens",
    "odd-merges", "missing-bytes", "overlapping-specials", "superbpe",
)  # fmt: skip
COUNT = int(os.environ.get("TOKPACK_LIVE_TEXTS", "150"))
PRE_COUNT = int(os.environ.get("TOKPACK_LIVE_NAMES", "8"))  # of the 91 pre-tokenizer names
CHARACTER_LEVEL = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")  # their words are not spelled in bytes


def new_seed() -> int:
    return run_seed()


def random_texts(rng: random.Random, specials: list[bytes]) -> list[str | bytes]:
    """Texts of a few atoms, with special tokens and parts of them; one in five with broken UTF-8."""
    texts: list[str | bytes] = []
    for _ in range(COUNT):
        parts = [rng.choice(rng.choice(GROUPS)).encode("utf-8", "surrogatepass") for _ in range(rng.randrange(14))]
        parts = [part * rng.choice((1, 1, 1, 2, 5)) for part in parts]
        for _ in range(rng.choice((0, 0, 1, 2)) if specials else 0):
            special = rng.choice(specials)
            parts.insert(rng.randint(0, len(parts)), rng.choice((special, special, special[:-1], special[1:])))
        if rng.random() < 0.2:
            parts.insert(rng.randint(0, len(parts)), rng.choice(BROKEN))
        texts.append(_str_if_possible(b"".join(parts)))
    return texts


def _str_if_possible(raw_text: bytes) -> str | bytes:
    try:
        return raw_text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw_text


def raw(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def ask(path: Path, texts: list[str | bytes]) -> subprocess.CompletedProcess[str]:
    request = json.dumps({"path": str(path), "texts": [b64encode(raw(text)).decode() for text in texts]})
    command = [sys.executable, str(WORKER)]
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    return subprocess.run(
        command, input=request, capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def compare(path: Path, seed: int) -> None:
    tokenizer, ir = tokpack.load(path), tokpack.read(path)
    texts = random_texts(random.Random(f"{seed} {path.stem}"), [token.content for token in ir.added_tokens])
    texts = [text for text in texts if not refused(tokenizer, text)]  # llama.cpp would end there
    assert len(texts) > COUNT // 2
    done = ask(path, texts)
    assert done.returncode == 0, f"llama.cpp ended; TOKPACK_SEED={seed}: {done.stderr[-500:]}"
    answers: dict[str, Any] = json.loads(done.stdout)
    wrong: list[tuple[Any, ...]] = []
    for text, ids_of, decoded_of in zip(texts, answers["ids"], answers["decoded"], strict=True):
        for (add, parse), ids, decoded in zip(MODES, ids_of, decoded_of, strict=True):
            if tokenizer.encode(text, add, parse) != ids:
                wrong.append((text, add, parse, tokenizer.encode(text, add, parse), ids))
            for (remove, unparse), expected in zip(MODES, decoded, strict=True):
                got = tokenizer.detokenize(ids, remove, unparse)
                if got != b64decode(expected):
                    wrong.append((ids, "detokenize", remove, unparse, got, b64decode(expected)))
    assert not wrong, (
        f"TOKPACK_SEED={seed}: {len(wrong)} differences, first: {min(wrong, key=lambda item: len(item[0]))}"
    )


def refused(tokenizer: tokpack.Tokenizer, text: str | bytes) -> bool:
    """Whether there are no ids in some mode."""
    try:
        for parse in (False, True):
            tokenizer.encode(text, False, parse)
    except tokpack.EncodeError:
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_fixtures(name: str) -> None:
    compare(FIXTURES / f"{name}.gguf", new_seed())


def test_pre_tokenizers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few names each time, drawn at random, on vocabularies that show where they cut."""
    from tokpack.formats.gguf.rules import pre_names

    seed = new_seed()
    for name in random.Random(seed).sample(pre_names(), PRE_COUNT):
        compare(vocabulary(name, tmp_path, monkeypatch), seed)


def vocabulary(pre: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(FIXTURES)
    vocabularies = importlib.import_module("vocabularies")
    base = vocabularies.sarvam_moe() if pre in CHARACTER_LEVEL else vocabularies.boundaries()
    path = folder / f"{pre}.gguf"
    path.write_bytes(dataclasses.replace(base, pre=pre).to_bytes())
    return path


@pytest.mark.parametrize(
    ("pre", "text"),
    [
        ("gpt-2", b"a\xf4\x90\x80\x80"),
        ("sarvam-moe", b"\xf7\xbf\xbf\xbf"),
        ("sarvam-moe", b"a\xc0\xa0b"),
        ("whitespace", "a  b"),
        ("whitespace", "a\t b"),
    ],
)
def test_texts_on_which_llamacpp_ends(
    pre: str, text: str | bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = vocabulary(pre, tmp_path, monkeypatch)
    assert ask(path, [text]).returncode < 0
    with pytest.raises(tokpack.EncodeError):
        tokpack.load(path).encode(text)


def test_a_key_that_takes_a_leading_space_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``tokenizer.ggml.add_space_prefix`` does nothing to a BPE's ids, but to the text that they give."""
    monkeypatch.syspath_prepend(FIXTURES)
    base = importlib.import_module("vocabularies").boundaries()
    path = tmp_path / "add-space-prefix.gguf"
    path.write_bytes(dataclasses.replace(base, flags={"add_space_prefix": True}).to_bytes())
    compare(path, new_seed())
    assert tokpack.load(path).decode(tokpack.load(path).encode(" a")) == "a"
