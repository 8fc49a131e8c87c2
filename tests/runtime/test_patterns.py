"""The runtime runs the patterns of llama.cpp and no others."""

from __future__ import annotations

import json

import pytest

import tokpack
from tests.conftest import ROOT
from tokpack.runtime.split import ClassMap, Splitter


def test_the_list_is_that_of_the_gguf_reader() -> None:
    types = json.loads((ROOT / "formats/gguf/pre_types.json").read_text(encoding="utf-8"))["types"]
    dialects = {"collapsed": "std-regex-collapsed", "wregex": "std-wregex"}
    wanted = {(dialects[e], p) for kind in types.values() for e, p in kind["splits"] if e in dialects}
    listed = json.loads((ROOT / "tokpack/runtime/patterns.json").read_text(encoding="utf-8"))
    assert {tuple(entry) for entry in listed} == wanted
    assert len(listed) == len(wanted)


def test_another_pattern_is_refused() -> None:
    step = {"kind": "split", "pattern": "(?:a+)+b", "dialect": "std-wregex", "behavior": "isolated", "invert": False}
    with pytest.raises(tokpack.UnsupportedError, match="is not one of"):
        Splitter([step], ClassMap([0] * 0x1100, [0] * 256), {})
