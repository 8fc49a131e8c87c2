"""What added tokens look like after the file's own normalizer: of two that look alike the library takes one at random.

The check runs the real normalizer, from a pack that holds nothing but these tokens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tokpack.findings import Finding
from tokpack.ir import TokenizerIR, Vocab, WordLevel
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.hf.pipeline import HfPipeline

from .added import same_normal_forms

__all__ = ["normal_form_findings"]


def normal_form_findings(ir: TokenizerIR) -> list[Finding]:
    """A ``refuse`` finding for each pair of added tokens with one normal form."""
    tokens = [token for token in ir.added_tokens if token.normalized]
    if len(tokens) < 2 or not ir.normalizer:
        return []
    size = len(tokens)
    small = replace(
        ir,
        vocab=Vocab(tuple(t.content for t in tokens), np.zeros(size, np.uint8), np.zeros(size, np.uint16)),
        model=WordLevel(b""),
        added_tokens=tuple(replace(token, id=index) for index, token in enumerate(tokens)),
        pre_tokenizer=(),
        decoder=(),
        post_processor=None,
        extras={},
        findings=(),
    )
    normalize = HfPipeline(PackView(build_pack(small))).normalize
    return same_normal_forms(tokens, normalize)
