"""Scores that are no numbers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

import tokpack
from tests.conftest import FIXTURES
from tokpack.pack.build import build_pack


def test_a_signalling_nan_among_the_scores_of_plamo2_is_quiet() -> None:
    """It makes even a cast to float64 warn."""
    ir = tokpack.read(str(FIXTURES / "plamo2.gguf"))
    assert ir.vocab.scores is not None
    scores = ir.vocab.scores.copy()
    scores.view(np.uint32)[-1] = 0x7F80_0001
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build_pack(replace(ir, vocab=replace(ir.vocab, scores=scores)))
