"""Long texts are normalized block by block: the same as all at once, wherever the blocks end."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokpack
from tests.conftest import FIXTURES
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.bulk.normalize import LongNormalizer
from tokpack.runtime.hf.normalize_unicode import UnicodeNormalizer

# marks of several classes, what composes and decomposes, Hangul and its parts, singletons, NUL, lone surrogates
HARD = "ab \n\x00é゙゚́̂̃̀̈́ͅかがアガｶﾞ가각힣각़क़ािै😀\ufb01Å①K\ud800\udfff"
texts = st.text(st.one_of(st.sampled_from(HARD), st.characters()), max_size=80)


FILES = {"NFC": "qwen2", "NFD": "normalizers", "NFKC": "word-level", "NFKD": "superwords"}  # with the form's tables


@cache
def normalizer(form: str) -> UnicodeNormalizer:
    pack = build_pack(tokpack.read(FIXTURES / "hf" / f"{FILES[form]}.json"))
    return UnicodeNormalizer(PackView(pack), form)


@pytest.mark.parametrize("form", FILES)
@settings(deadline=None)  # the first of a form makes the pack
@given(text=texts, block=st.integers(1, 64))
def test_blocks_of_any_size(form: str, text: str, block: int) -> None:
    one = normalizer(form)
    assert LongNormalizer(one).apply(text, block) == one.apply(text)


def test_what_does_not_change_is_the_same_object() -> None:
    text = "naïve 日本 " * 9
    assert LongNormalizer(normalizer("NFC")).apply(text, 16) is text
