"""Sections of a tokenizer whose reference is the ``tokenizers`` library."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack.errors import UnsupportedError
from tokpack.ir import BPE, PieceAttr, TokenizerIR, Unigram, WordLevel, WordPiece
from tokpack.ir.steps import ByteLevel, Dialect, Replace, Split, UnicodeScripts
from tokpack.onig import translate
from tokpack.pack.hf_tables import normalizer_sections
from tokpack.pack.symbols import Sections, SymbolTable
from tokpack.pack.trie import build_trie
from tokpack.runtime.hf.pre_tokenizers import GPT2_PATTERN

__all__ = ["build_sections"]


@lru_cache(maxsize=1)
def _sets() -> tuple[Sections, Sections]:
    """(character sets, scripts)."""
    with np.load(Path(__file__).parents[1] / "unicode" / "hf_sets.npz") as data:
        masks, scripts = (_two_stage(_expand(data[name])) for name in ("masks", "scripts"))
    return (
        {"hf.sets.index": masks[0], "hf.sets.blocks": masks[1]},
        {"hf.scripts.index": scripts[0], "hf.scripts.blocks": scripts[1]},
    )


def _expand(runs: NDArray[np.uint32]) -> NDArray[np.uint8]:
    starts = runs[:, 0].astype(np.int64)
    return np.repeat(runs[:, 1].astype(np.uint8), np.diff(np.append(starts, 0x110000)))


def _two_stage(table: NDArray[np.uint8]) -> tuple[bytes, bytes]:
    blocks, index = np.unique(table.reshape(-1, 256), axis=0, return_inverse=True)
    return index.astype("<u2").reshape(-1).tobytes(), blocks.tobytes()


def _sources(ir: TokenizerIR) -> list[str]:
    """The Oniguruma patterns of all steps, each once, in order."""
    found: dict[str, None] = {}
    for step in (*ir.normalizer, *ir.pre_tokenizer, *ir.decoder):
        if isinstance(step, (Split, Replace)) and step.dialect is Dialect.ONIG:
            found[step.pattern] = None
        elif isinstance(step, ByteLevel) and step.use_regex:
            found[GPT2_PATTERN] = None
    return list(found)


def build_sections(ir: TokenizerIR, table: SymbolTable) -> tuple[dict[str, Any], Sections]:
    """Entries of the meta section, and sections.

    ``onig`` has [source, translated, whether it can match nothing] of each pattern, ``lowest_score`` (Unigram) the
    lowest score of the model's own pieces.
    """
    patterns, sections = _patterns(ir)
    meta: dict[str, Any] = {"onig": patterns}
    if isinstance(ir.model, Unigram) and ir.vocab.scores is not None:
        own = ir.vocab.scores[(ir.vocab.attrs & PieceAttr.NORMAL) != 0]
        meta["lowest_score"] = float(own.min()) if len(own) else 0.0
    return meta, sections | _others(ir, table)


def _patterns(ir: TokenizerIR) -> tuple[list[list[Any]], Sections]:
    sources = _sources(ir)
    if not sources:
        return [], {}
    translated = translate(sources)
    entries = [list(entry) for entry in zip(sources, translated.patterns, translated.can_be_empty, strict=True)]
    return entries, {
        "onig.index": translated.index.astype("<u2").tobytes(),
        "onig.blocks": translated.blocks.astype("<u2").tobytes(),
    }


def _others(ir: TokenizerIR, table: SymbolTable) -> Sections:
    """Everything besides pieces, added tokens and meta."""
    sets, scripts = _sets()
    if any(isinstance(step, UnicodeScripts) for step in ir.pre_tokenizer):
        sets = sets | scripts
    sections = {**sets, **normalizer_sections(ir.normalizer), **_model(ir, table)}
    if ir.vocab.scores is not None:
        sections["piece.scores64"] = ir.vocab.scores.astype("<f8").tobytes()
    return sections


def _model(ir: TokenizerIR, table: SymbolTable) -> Sections:
    if isinstance(ir.model, BPE):
        return _bpe(ir.model, table)
    if isinstance(ir.model, (Unigram, WordPiece)):
        own = (ir.vocab.attrs & PieceAttr.NORMAL) != 0
        return build_trie({t: i for i, t in enumerate(ir.vocab.pieces) if t is not None and own[i]})
    if isinstance(ir.model, WordLevel):
        return {}
    raise UnsupportedError(f"there is no runtime for {ir.model.kind} with the rules of {ir.reference}")


def _bpe(model: BPE, table: SymbolTable) -> Sections:
    from tokpack.pack.models import merge_sections

    symbols, cut = table.symbols, len(model.continuing_subword_prefix)
    pairs: Any = model.merges
    left = np.fromiter((symbols[pair[0]] for pair in pairs), dtype=np.int64, count=len(pairs))
    right = np.fromiter((symbols[pair[1]] for pair in pairs), dtype=np.int64, count=len(pairs))
    result = np.fromiter((symbols[pair[0] + pair[1][cut:]] for pair in pairs), dtype=np.int64, count=len(pairs))
    sections = merge_sections(left, right, np.arange(len(pairs)), result)
    if model.ranks is not None:
        sections["merge.source_rank"] = np.asarray(model.ranks, dtype="<u4").tobytes()
    return sections
