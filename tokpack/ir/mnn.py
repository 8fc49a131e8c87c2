"""What only tokenizer files of the MNN engine have.

Other parts of such a file are steps that more formats know (``Replace``, ``Split``, ``Metaspace`` …); what the engine
makes of them is told by ``reference`` and ``rules``, not by the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["MnnBertNormalizer", "MnnHeader", "MnnTableNormalizer"]


@dataclass(frozen=True, slots=True)
class MnnTableNormalizer:
    """Per code point; control and format characters become spaces first (``NFKCNormalizer``, type 6).

    Attributes:
        table: entries as in the file, ascending: u32 code point, u16 length, UTF-8; little-endian.
    """

    kind: ClassVar[str] = "mnn-table-normalizer"
    table: bytes


@dataclass(frozen=True, slots=True)
class MnnBertNormalizer:
    """``BertNormalizer``, types 5 (no table) and 7.

    Attributes:
        clean_text, chinese_chars, lowercase: the flags.
        strip_accents: decompose by ``table`` and drop all marks; without a table it does nothing.
        table: as in :class:`MnnTableNormalizer`.
    """

    kind: ClassVar[str] = "mnn-bert-normalizer"
    clean_text: bool
    chinese_chars: bool
    strip_accents: bool
    lowercase: bool
    table: bytes = b""


@dataclass(frozen=True, slots=True)
class MnnHeader:
    """The text header of a tokenizer file, and what of the rest has no other place.

    Attributes:
        tokenizer_type: 0 SentencePiece, 1 tiktoken, 2 BERT, 3 Hugging Face (all text), 4 pipeline (.mtok).
        special: ids that are found in the text before everything else, in this order, by what each decodes to.
        stop: ids that end generation.
        prefix: ids before every text.
        model_size: ids from here on have no text in the model; they are added tokens.
        pieces_end: the ids below are the model's pieces; what its vocabulary holds besides is in ``aliases``.
        aliases: further texts of the model's vocabulary, for an id that has one already or one behind a gap: u32 id,
            u16 length, bytes of each; little-endian. An id is printed and merged as the last of its texts.
        post_ops: the post-processor section as written: -1 is the sequence, a number the id of a special token (u32).
        applied: what the engine makes of it; empty where it does not read that section.
        merge_ranks: where merges share ranks, the rank of each merge of the model, u32 ``[n]``: the leftmost pair of
            equal ranks is merged first.
        byte_level: the BPE model itself maps bytes to GPT-2's characters.
        clean_up_spaces: decoding removes spaces in English contractions.
        eos, bos: texts for the chat template.
    """

    kind: ClassVar[str] = "mnn-header"
    tokenizer_type: int
    special: tuple[int, ...]
    stop: tuple[int, ...]
    prefix: tuple[int, ...]
    model_size: int
    pieces_end: int
    post_ops: tuple[int, ...] = ()
    applied: tuple[int, ...] = ()
    aliases: bytes = b""
    merge_ranks: bytes = b""
    byte_level: bool = False
    clean_up_spaces: bool = False
    eos: bytes = b""
    bos: bytes = b""
