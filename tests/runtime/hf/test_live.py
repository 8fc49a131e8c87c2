"""Ids and text equal those of the installed tokenizers library, on texts that nobody wrote down.

TOKPACK_EXAMPLES sets the number of texts for each fixture. TOKPACK_LIVE_TEXTS sets the number of random strings over
the tokenizers of ../shared: all of these then, else a few strings on a few of them. TOKPACK_SEED repeats a run.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES, SHARED, SharedData
from tests.property.pairs import budget
from tests.property.strategies import GROUPS, texts
from tests.seeds import run_seed

VERSION = "0.23.3"
tokenizers = pytest.importorskip("tokenizers", reason=f"compares with the PyPI package tokenizers {VERSION}")
if tokenizers.__version__ != VERSION:
    pytest.skip(f"compares with tokenizers {VERSION}, not {tokenizers.__version__}", allow_module_level=True)

FOLDER = FIXTURES / "hf"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if not path.stem.startswith("refused-"))
CHANGING = {"syn_added_dup_norm"}  # the library's own ids change from run to run; refused here
SHARED_NAMES = sorted({path.name for path in (SHARED / "data/hf").glob("*") if path.is_dir()} - CHANGING)
FEW_NAMES, FEW_TEXTS = 8, 240
FAILED = "failed"


def unicode_only(text: str) -> str:
    """The text without surrogates, which the library does not take."""
    return text.encode("utf-8", "ignore").decode()


def library_says(call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    try:
        return call(*arguments, **more)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the library is no Exception
        return FAILED


def we_say(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except tokpack.EncodeError as error:
        return f"EncodeError: {error}"


@dataclass(frozen=True)
class Both:
    """One tokenizer, theirs and ours."""

    name: str
    theirs: Any
    ours: tokpack.Tokenizer
    added: list[str]

    def differences(self, text: str) -> list[Any]:
        """What differs for a text: (what, ours, the library's)."""
        found: list[Any] = []
        ids: list[int] = []
        for special in (False, True):
            answer = library_says(self.theirs.encode, text, add_special_tokens=special)
            if answer == FAILED:  # what ours does then is documented, not compared
                return found
            got, expected = we_say(self.ours.encode, text, special), answer.ids
            if got != expected:
                found.append((f"ids, add_special_tokens={special}", got, expected))
            ids = expected
        return found + self.decode_differences(ids)

    def decode_differences(self, ids: Sequence[int]) -> list[Any]:
        """What differs for the text of ids."""
        found: list[Any] = []
        for skip in (True, False):
            expected = library_says(self.theirs.decode, list(ids), skip_special_tokens=skip)
            got = we_say(self.ours.decode, ids, skip)
            if expected not in (FAILED, got):
                found.append((f"decode {list(ids)}, skip_special_tokens={skip}", got, expected))
        return found


def both(name: str, path: Path) -> Both:
    theirs = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    theirs.no_truncation()
    theirs.no_padding()
    added = [token.content for token in theirs.get_added_tokens_decoder().values()]
    return Both(name, theirs, tokpack.load(path), added)


@cache
def fixture(name: str) -> Both:
    return both(name, FOLDER / f"{name}.json")


def test_there_are_fixtures() -> None:
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_text(name: str) -> None:
    pair = fixture(name)
    specials = [content.encode() for content in pair.added]

    @budget()
    @given(texts(specials).map(unicode_only))
    def check(text: str) -> None:
        assert pair.differences(text) == []

    check()


@pytest.mark.parametrize("name", NAMES)
def test_text_of_any_ids(name: str) -> None:
    pair = fixture(name)
    size = pair.ours.vocab_size
    added = list(pair.theirs.get_added_tokens_decoder()) or [0]

    @budget()
    @given(st.lists(st.one_of(st.integers(0, size - 1), st.sampled_from(added), st.integers(0, 9)), max_size=12))
    def check(ids: list[int]) -> None:
        assert pair.decode_differences(ids) == []

    check()


# --- the tokenizers beside the project -------------------------------------------------------------------------------


@cache
def corpus() -> list[str]:
    lines = (SHARED / "data/corpus_hf.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line)["text"] for line in lines if line]


def random_text(rng: random.Random, added: Sequence[str]) -> str:
    """A string of a few parts: listed ones, added tokens and pieces of them, code points, cuts of other texts."""
    parts: list[str] = []
    for _ in range(rng.randint(1, 10)):
        kind = rng.random()
        if kind < 0.5:
            parts.append(rng.choice(rng.choice(GROUPS)))
        elif kind < 0.65 and added:
            token = rng.choice(added)
            parts.append(rng.choice([token, token, " " + token + " ", token[:-1], token[1:], token.upper()]))
        elif kind < 0.8:
            parts.append(chr(rng.choice([rng.randrange(0x300), rng.randrange(0x3200), rng.randrange(0x20000)])))
        else:
            text = rng.choice(corpus())
            begin = rng.randrange(len(text) + 1)
            parts.append(text[begin : begin + rng.randint(1, 30)])
        if rng.random() < 0.2:
            parts.append(parts[-1] * rng.randint(1, 3))
    return unicode_only("".join(parts))


def test_random_strings_over_the_shared_tokenizers(shared_data: SharedData) -> None:
    if not SHARED_NAMES:
        pytest.skip("needs ../shared/data/hf, which is not part of the project")
    seed = run_seed()
    print(f"random strings with TOKPACK_SEED={seed}")
    rng = random.Random(seed)
    total = int(os.environ.get("TOKPACK_LIVE_TEXTS") or 0)
    names = SHARED_NAMES if total else rng.sample(SHARED_NAMES, FEW_NAMES)
    each = -(-(total or FEW_TEXTS) // len(names))
    wrong: list[Any] = []
    for name in names:
        pair = both(name, shared_data(f"data/hf/{name}/tokenizer.json"))
        for _ in range(each):
            text = random_text(rng, pair.added)
            wrong += [(name, text, *difference) for difference in pair.differences(text)]
            ids = [rng.randrange(pair.ours.vocab_size) for _ in range(rng.randint(0, 8))]
            wrong += [(name, "", *difference) for difference in pair.decode_differences(ids)]
    assert not wrong, f"{len(wrong)} differences in {sorted({entry[0] for entry in wrong})}, first: {wrong[:3]}"
