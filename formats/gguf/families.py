"""What each value of ``tokenizer.ggml.model`` makes of the vocabulary: alphabet, model, steps, and its own checks.

Source: ``llama_vocab::impl::load`` and the ``llm_tokenizer_*`` constructors of ``llama-vocab.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tokpack.findings import Severity
from tokpack.ir import (
    BPE,
    Alphabet,
    AlphabetKind,
    GreedyTrie,
    MinCost,
    Model,
    PieceAttr,
    PieceType,
    ScoreMerge,
    Unigram,
    WordPieceGreedy,
)
from tokpack.ir.steps import (
    BertNormalizer,
    DnaTags,
    LlamaDetokenize,
    NormalizerStep,
    Precompiled,
    PreTokenizerStep,
    Replace,
    SpacePrefix,
    WhitespaceSplit,
)
from tokpack.limits import Limits
from tokpack.unicode import rwkv

from .header import ValueType
from .keys import Keys
from .merges import note_merges, read_merges
from .rules import PreType
from .vocab import KMER_MARK, VocabBuilder

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FAMILIES", "Context", "Parts"]

_PREFIX = "tokenizer.ggml."
_ESCAPE = Replace(" ", "▁")
_LONGEST_TRIED = 64  # bytes of a control piece whose merging is tried; the time grows with the square
_UGM_UNK = 2  # id of the unknown piece where a file names none


@dataclass(frozen=True)
class Context:
    """What a family works with.

    Attributes:
        keys: the file's keys.
        vocab: pieces, types and roles.
        model: value of ``tokenizer.ggml.model``.
        pre: the pre-tokenizer (byte-pair models only).
        add_space_prefix, remove_extra_whitespaces: default and key taken together.
        clean_spaces: constant of the model or pre-tokenizer.
        limits: upper limits.
    """

    keys: Keys
    vocab: VocabBuilder
    model: str
    pre: PreType | None
    add_space_prefix: bool
    remove_extra_whitespaces: bool
    clean_spaces: bool
    limits: Limits


@dataclass(frozen=True)
class Parts:
    """The pieces of a TokenizerIR that depend on the family."""

    alphabet: Alphabet
    model: Model
    decoder: LlamaDetokenize
    normalizer: tuple[NormalizerStep, ...] = ()
    pre_tokenizer: tuple[PreTokenizerStep, ...] = ()
    post_rule: str = "flags"
    extra: dict[str, Any] = field(default_factory=dict)


def _byte_pair(context: Context) -> Parts:
    pre, keys, vocab = context.pre, context.keys, context.vocab
    assert pre is not None
    merges, ranks = read_merges(keys, context.limits, required=pre.type_name != "KIMI_K2")
    note_merges(keys, vocab, merges, byte_level_alphabet=pre.byte_encode)
    steps: tuple[PreTokenizerStep, ...] = pre.steps
    if context.model == "whitespace":
        lowercase = keys.boolean(_PREFIX + "normalizer.lowercase")
        steps = (WhitespaceSplit(pre.lowercase if lowercase is None else lowercase), *steps)
    elif context.model == "hybriddna":
        steps = (*_dna(vocab), *steps)
    kind = AlphabetKind.BYTE_LEVEL if pre.byte_encode else AlphabetKind.UTF8
    return Parts(
        Alphabet(kind, byte_fallback=not pre.byte_encode),
        BPE(merges, ranks, ignore_merges=pre.ignore_merges, whole_newlines=pre.type_name == "GEMMA4"),
        LlamaDetokenize(
            context.clean_spaces,
            unescape_spaces=pre.escape_spaces,
            strip_space=context.add_space_prefix,
            hidden_suffix=KMER_MARK.decode() if vocab.dna_tags is not None else "",
        ),
        normalizer=(_ESCAPE,) if pre.escape_spaces else (),
        pre_tokenizer=steps,
    )


def _dna(vocab: VocabBuilder) -> tuple[DnaTags, ...]:
    """The k-mer step, when all three of its pieces exist (1653)."""
    if vocab.dna_tags is None:
        return ()
    opened, closed, oov = vocab.dna_tags
    kmers = tuple((text.decode("utf-8", "replace"), index) for text, index in vocab.kmers)
    return (DnaTags(opened, closed, oov, 6, kmers),)


def _score_merge(context: Context) -> Parts:
    keys, vocab = context.keys, context.vocab
    missing = [b for b in range(256) if b"<0x%02X>" % b not in vocab.ids and bytes([b]) not in vocab.ids]
    if missing:
        shown = ", ".join(f"0x{b:02X}" for b in missing[:8]) + (", …" if len(missing) > 8 else "")
        message = f"{len(missing)} bytes have no piece ({shown}); llama.cpp dies on a text that needs one"
        fix = (
            "the model may be byte-level BPE under a wrong name"
            if "tokenizer.ggml.merges" in keys.header.entries
            else None
        )
        keys.find("gguf-byte-missing", Severity.WARN, message, _PREFIX + "tokens", fix)
    _refuse_nan(context)
    _note_reachable(context)
    prefix = (SpacePrefix(),) if context.add_space_prefix else ()
    return Parts(
        Alphabet(AlphabetKind.UTF8, byte_fallback=True),
        ScoreMerge(),
        LlamaDetokenize(context.clean_spaces, unescape_spaces=True, strip_space=context.add_space_prefix),
        normalizer=(*prefix, _ESCAPE),
    )


def _note_reachable(context: Context) -> None:
    """Control pieces that text gives although special tokens are not looked for: SPM merges to any piece."""
    ids, scores = context.vocab.ids, context.vocab.scores
    control = np.flatnonzero((context.vocab.attrs & int(PieceAttr.CONTROL)) != 0).tolist()
    texts = [context.vocab.pieces[token] for token in control if len(context.vocab.pieces[token]) <= _LONGEST_TRIED]
    found = [text for text in texts if _merged(text, ids, scores) == [text]]
    if found:
        shown = found[0].decode("utf-8", "replace")
        message = (
            f"{len(found)} control pieces, such as {shown!r}, come out of text from outside: llama.cpp merges to them"
        )
        fix = "keep such texts out of prompts, or cut them"
        context.keys.find("gguf-control-reachable", Severity.INFO, message, _PREFIX + "token_type", fix)


def _merged(text: bytes, ids: Mapping[bytes, int], scores: NDArray[np.float32] | None) -> list[bytes]:
    """``text`` merged as ``llm_tokenizer_spm`` does: the neighbours with the best score, the leftmost of equal ones."""
    symbols = [char.encode() for char in text.decode("utf-8", "replace")]
    while len(symbols) > 1:
        pairs = (ids.get(left + right) for left, right in pairwise(symbols))
        ranked = [(0.0 if scores is None else -float(scores[i]), at) for at, i in enumerate(pairs) if i is not None]
        if not ranked:
            break
        at = min(ranked)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols


def _refuse_nan(context: Context) -> None:
    scores = context.vocab.scores
    if scores is not None and np.isnan(scores).any():
        first = int(np.flatnonzero(np.isnan(scores))[0])
        message = f"the score of piece {first} is not a number; llama.cpp's order of merges is then undefined"
        context.keys.find("gguf-score-nan", Severity.REFUSE, message, f"{_PREFIX}scores[{first}]")


def _word_piece(context: Context) -> Parts:
    keys = context.keys
    lowercase = keys.boolean(_PREFIX + "normalizer.lowercase")
    lowercase = True if lowercase is None else lowercase
    strip = keys.boolean(_PREFIX + "normalizer.strip_accents")
    byte_pieces = np.flatnonzero(context.vocab.types == PieceType.BYTE)
    if byte_pieces.size:
        message = f"piece {byte_pieces[0]} is a byte piece; llama.cpp aborts on one in a WordPiece vocabulary"
        keys.find("gguf-byte-piece-wordpiece", Severity.REFUSE, message, f"{_PREFIX}token_type[{byte_pieces[0]}]")
    unk = context.vocab.roles.get("unk")
    return Parts(
        Alphabet(AlphabetKind.UTF8),
        WordPieceGreedy(None if unk is None else unk.id),
        LlamaDetokenize(context.clean_spaces, unescape_spaces=True, strip_space=context.add_space_prefix),
        normalizer=(BertNormalizer(strip_accents=lowercase if strip is None else strip, lowercase=lowercase),),
        post_rule="cls-sep",
    )


def _unigram(context: Context) -> Parts:
    keys = context.keys
    raw = keys.numbers(_PREFIX + "precompiled_charsmap", (ValueType.U8, ValueType.I8), 0, whole=True)
    charsmap = b"" if raw is None else raw.astype(np.int64).astype(np.uint8).tobytes()
    cut_off = raw is not None and (len(charsmap) < 5 or int.from_bytes(charsmap[:4], "little") + 4 >= len(charsmap))
    if cut_off:
        message = "the charsmap is shorter than its trie; llama.cpp does not load the file"
        keys.find("gguf-charsmap", Severity.REFUSE, message, _PREFIX + "precompiled_charsmap")
        charsmap = b""
    pieces = context.vocab.pieces
    if len(pieces) <= _UGM_UNK and b"\n" not in pieces:
        # before it reads its keys, llama.cpp takes the id of a newline, which is the default unknown id then, and looks
        # it up with .at() when it prints what it has loaded (llama_vocab::impl::load, print_info)
        message = (
            f"{len(pieces)} pieces, without a newline: llama.cpp looks id {_UGM_UNK} up and does not load the file"
        )
        keys.find("gguf-unigram-small", Severity.REFUSE, message, _PREFIX + "tokens")
    unk = context.vocab.roles.get("unk")
    return Parts(
        Alphabet(AlphabetKind.UTF8),
        Unigram(None if unk is None else unk.id),
        LlamaDetokenize(context.clean_spaces, unescape_spaces=True, strip_space=context.add_space_prefix),
        normalizer=(Precompiled(charsmap, context.remove_extra_whitespaces, context.add_space_prefix), _ESCAPE),
    )


def _greedy_trie(context: Context) -> Parts:
    vocab, keys = context.vocab, context.keys
    texts = [rwkv.unescape(piece) for piece in vocab.pieces]
    single = {text for text in texts if len(text) == 1}
    lost = sorted({text[:1] for text in texts if text and text[:1] not in single})
    if lost:
        message = (
            f"{len(lost)} bytes begin a piece without being one (such as 0x{lost[0].hex()}): llama.cpp never ends on a "
            "text that leaves the path of such a piece"
        )
        keys.find("gguf-rwkv-path", Severity.REFUSE, message, _PREFIX + "tokens")
    unk = vocab.roles.get("unk")
    if unk is None:
        message = "there is no unknown id: llama.cpp emits -1 for a byte that begins no piece"
        keys.find("gguf-unk-missing", Severity.WARN, message)
    return Parts(
        Alphabet(AlphabetKind.ESCAPED),
        GreedyTrie(None if unk is None else unk.id),
        LlamaDetokenize(context.clean_spaces, strip_space=context.add_space_prefix),
        post_rule="never",
    )


def _min_cost(context: Context) -> Parts:
    vocab, keys = context.vocab, context.keys
    bytes_found = {
        int(text[3:5], 16)
        for text, kind in zip(vocab.pieces, vocab.types.tolist(), strict=True)
        if kind == PieceType.BYTE and len(text) == 6 and text.startswith(b"<0x") and _is_hex(text[3:5])
    }
    if len(bytes_found) < 256:
        message = f"{256 - len(bytes_found)} byte pieces <0xXX> are missing; llama.cpp does not load the file"
        keys.find("gguf-byte-missing-plamo2", Severity.REFUSE, message, _PREFIX + "tokens")
    return Parts(
        Alphabet(AlphabetKind.UTF8, byte_fallback=True),
        MinCost(),
        LlamaDetokenize(context.clean_spaces, strip_space=context.add_space_prefix, plain=True),
    )


def _is_hex(digits: bytes) -> bool:
    try:
        int(digits, 16)
    except ValueError:
        return False
    return True


FAMILIES: dict[str, Callable[[Context], Parts]] = {
    "BPE": _byte_pair,
    "SPM": _score_merge,
    "WPM": _word_piece,
    "UGM": _unigram,
    "RWKV": _greedy_trie,
    "PLAMO2": _min_cost,
}
