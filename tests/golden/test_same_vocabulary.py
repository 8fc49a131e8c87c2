"""One vocabulary shipped in several formats: the same ids, up to the differences of the references, which are named."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

import tokpack
from tests.conftest import SharedData
from tests.golden.test_huggingface import corpus

pytestmark = pytest.mark.slow

# what tells the two references apart on a text; the rest must be equal
Differs = Callable[[str], bool]


def never(text: str) -> bool:
    """No text."""
    del text
    return False


# added tokens of qwen3 that are not special, and so are always looked for
QWEN3_WORDS = re.compile(r"</?(?:think|tool_call|tool_response)>|<\|(?:fim_\w+|repo_name|file_sep)\|>")


def qwen(text: str) -> bool:
    """tokenizer.json: NFC (of its own Unicode version), and added tokens that the rank file does not have."""
    composed = unicodedata.is_normalized("NFC", text) and all(unicodedata.category(char) != "Cn" for char in text)
    return not composed or QWEN3_WORDS.search(text) is not None


def t5(text: str) -> bool:
    """What the two implementations of Unigram do otherwise.

    tokenizers looks grapheme clusters up in the charsmap, strips other white space, and finds control pieces in the
    text; sentencepiece sums floats, so that rounding decides between paths of equal totals, as runs have them.
    """
    odd = any(unicodedata.category(char)[0] in "MCZ" or ord(char) > 0x2FF for char in text)
    return odd or re.search(r"(.{1,2})\1{15}|<pad>|</s>|<unk>|<extra_id", text) is not None


PAIRS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], Differs]] = {
    "r50k": (
        "data/tiktoken/r50k_base.tiktoken",
        {"pattern": "r50k_base"},
        "data/hf/gpt2/tokenizer.json",
        {},
        never,
    ),
    "whisper": (
        "data/tiktoken/whisper_gpt2.tiktoken",
        {"pattern": "gpt2"},
        "data/tiktoken/r50k_base.tiktoken",
        {"pattern": "r50k_base"},
        never,
    ),
    "llama3": ("data/tiktoken/llama3.tiktoken", {"pattern": "llama3"}, "data/hf/llama3/tokenizer.json", {}, never),
    "mistral": ("data/spm/mistral_v1.model", {}, "data/hf/llama2/tokenizer.json", {}, never),
    "qwen": ("data/tiktoken/qwen.tiktoken", {"pattern": "qwen"}, "data/hf/qwen3/tokenizer.json", {}, qwen),
    "t5": ("data/spm/t5_torchtune.model", {}, "data/hf/t5_small/tokenizer.json", {}, t5),
}


@pytest.mark.parametrize("name", PAIRS)
def test_same_ids(name: str, shared_data: SharedData) -> None:
    first, first_options, second, second_options, differs = PAIRS[name]
    one = tokpack.load(shared_data(first), **first_options)
    other = tokpack.load(shared_data(second), **second_options)
    texts = [text for text in corpus() if len(text) < 20_000]
    different = [
        text
        for text in texts
        if one.encode(text, add_special_tokens=False, parse_special=False)
        != other.encode(text, add_special_tokens=False, parse_special=False)
    ]
    unexplained = [text for text in different if not differs(text)]
    print(f"\n{name}: {len(different)} of {len(texts)} texts differ, {len(unexplained)} unexplained")
    assert not unexplained, [ascii(text[:60]) for text in itertools.islice(unexplained, 5)]
    if differs is not never:
        assert different, "the references do not differ: say so"
