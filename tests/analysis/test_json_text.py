"""JSON that is safe to print and to put into a page, and reads back the same."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokpack.analysis.json_text import json_text


@given(st.text(st.characters(codec=None), max_size=20), st.booleans())
def test_reads_back_the_same(text: str, markup: bool) -> None:
    shown = json_text({"a": [text]}, markup=markup)
    assert json.loads(shown) == {"a": [text]}
    shown.encode("utf-8")  # no lone surrogates
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", shown)
    if markup:
        assert not re.search("[<>&]", shown)


def test_numbers_that_json_lacks_are_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("inf"))
