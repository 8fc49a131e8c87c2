"""What the file's own normalizer does to its added tokens, and to the library itself.

The check runs the real normalizer, from a pack that holds nothing but these tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tokpack.errors import EncodeError, Location
from tokpack.findings import Finding, Severity
from tokpack.ir import AddedToken, TokenizerIR, Vocab, WordLevel
from tokpack.ir.steps import Dialect, Replace
from tokpack.onig import translate
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.hf.pipeline import HfPipeline

from .added import same_normal_forms
from .getters import describe

__all__ = ["normal_form_findings"]


def normal_form_findings(ir: TokenizerIR) -> list[Finding]:
    """``refuse`` findings: tokens with one normal form or an empty one, replacements of nothing."""
    tokens = [token for token in ir.added_tokens if token.normalized]
    found = _empty_matches(ir)
    if tokens and ir.normalizer:
        try:
            normalize = _normalizer(ir, tokens)
            found += _empty_forms(tokens, normalize)
            found += same_normal_forms(tokens, normalize)
        except EncodeError as error:
            message = f"the normalizer fails on an added token, on which tokenizers aborts as it loads: {error.what}"
            found.append(Finding("hf-panic", Severity.REFUSE, message, Location(None, "normalizer")))
    return found


def _normalizer(ir: TokenizerIR, tokens: Sequence[AddedToken]) -> Callable[[str], str]:
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
    return HfPipeline(PackView(build_pack(small))).normalize


def _empty_forms(tokens: Sequence[AddedToken], normalize: Callable[[str], str]) -> list[Finding]:
    """A pattern without characters matches everywhere: the library panics, or never ends (observed on 0.23.3)."""
    empty = [token for token in tokens if token.content and not normalize(token.content.decode("utf-8"))]
    if not empty:
        return []
    shown = describe(empty[0].content.decode("utf-8"))
    message = f"nothing is left of added token {shown} after the normalizer: tokenizers panics on most texts"
    fix = 'set "normalized": false'
    return [Finding("hf-panic", Severity.REFUSE, message, Location(None, "added_tokens"), fix)]


def _empty_matches(ir: TokenizerIR) -> list[Finding]:
    """A Replace of empty matches puts the library's offsets out of step with its text (observed on 0.23.3)."""
    for index, step in enumerate(ir.normalizer):
        if isinstance(step, Replace):
            empty = not step.pattern
            if step.dialect is Dialect.ONIG and step.pattern:
                empty = translate([step.pattern]).can_be_empty[0]
            if empty:
                message = (
                    f"normalizer step {index} replaces matches without characters: tokenizers then panics on some texts"
                    " and gives ids by offsets that do not fit"
                )
                where = Location(None, "normalizer")
                return [Finding("hf-panic", Severity.REFUSE, message, where, "use a pattern that takes a character")]
    return []
