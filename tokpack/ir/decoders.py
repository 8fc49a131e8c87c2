"""Steps from ids back to text, and what is added around ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tokpack.ir.mnn import MnnHeader
from tokpack.ir.normalizers import Replace

__all__ = [
    "BosEos",
    "BpeDecoder",
    "ByteFallbackDecoder",
    "ByteLevelDecoder",
    "BytesDecoder",
    "CtcDecoder",
    "DecoderStep",
    "FuseDecoder",
    "LlamaDetokenize",
    "MetaspaceDecoder",
    "PostProcessor",
    "SentencePieceDecoder",
    "StripDecoder",
    "Template",
    "TemplateItem",
    "WordPieceDecoder",
]


@dataclass(frozen=True, slots=True)
class LlamaDetokenize:
    """llama.cpp's llama_detokenize.

    Attributes:
        clean_spaces: the three passes that remove spaces before ``?!.,``, around ``'`` and before ``'s 'm 're 've``.
        unescape_spaces: U+2581 in normal pieces becomes a space.
        hidden_suffix: taken off the end of a piece that holds more than that (k-mers of hybriddna).
        plain: every piece is its text, or the byte that a byte piece names, whatever its type (PLaMo2).
        strip_space: one leading space of the first piece is removed (add_space_prefix).
    """

    kind: ClassVar[str] = "llama-detokenize"
    clean_spaces: bool
    unescape_spaces: bool = False
    strip_space: bool = False
    plain: bool = False
    hidden_suffix: str = ""


@dataclass(frozen=True, slots=True)
class ByteLevelDecoder:
    """GPT-2's characters to bytes."""

    kind: ClassVar[str] = "byte-level-decoder"


@dataclass(frozen=True, slots=True)
class ByteFallbackDecoder:
    """Runs of ``<0xXX>`` to text."""

    kind: ClassVar[str] = "byte-fallback-decoder"


@dataclass(frozen=True, slots=True)
class BytesDecoder:
    """Join the bytes of the pieces (tiktoken)."""

    kind: ClassVar[str] = "bytes-decoder"


@dataclass(frozen=True, slots=True)
class SentencePieceDecoder:
    """sentencepiece's ``Decode``: U+2581 to space, the dummy prefix dropped, byte pieces joined, then the denormalizer.

    Attributes:
        unk_surface: text of an unknown token.
        strip_prefix: one U+2581 at the beginning of the first piece is dropped (add_dummy_prefix or
            remove_extra_whitespaces of the normalizer).
        charsmap: of the denormalizer; empty when there is none.
        strip_each: as long as there is no text, one U+2581 of each piece is dropped (remove_extra_whitespaces).
        add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces: of the denormalizer, as in
            :class:`SentencePieceNormalizer`; they count when it has a charsmap.
    """

    kind: ClassVar[str] = "sentencepiece-decoder"
    unk_surface: str
    strip_prefix: bool
    charsmap: bytes = b""
    strip_each: bool = False
    add_dummy_prefix: bool = False
    remove_extra_whitespaces: bool = False
    escape_whitespaces: bool = False


@dataclass(frozen=True, slots=True)
class FuseDecoder:
    """Join all tokens."""

    kind: ClassVar[str] = "fuse-decoder"


@dataclass(frozen=True, slots=True)
class MetaspaceDecoder:
    """``replacement`` to space; dropped in the first token unless the scheme is never."""

    kind: ClassVar[str] = "metaspace-decoder"
    replacement: str = "▁"
    prepend_scheme: str = "always"


@dataclass(frozen=True, slots=True)
class WordPieceDecoder:
    """Join ``prefix`` pieces, space the others, optionally clean up."""

    kind: ClassVar[str] = "wordpiece-decoder"
    prefix: str = "##"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class BpeDecoder:
    """``suffix`` to space."""

    kind: ClassVar[str] = "bpe-decoder"
    suffix: str = "</w>"


@dataclass(frozen=True, slots=True)
class CtcDecoder:
    """Drop repeats and pads."""

    kind: ClassVar[str] = "ctc-decoder"
    pad_token: str = "<pad>"
    word_delimiter_token: str = "|"
    cleanup: bool = True


@dataclass(frozen=True, slots=True)
class StripDecoder:
    """Remove up to ``start`` and ``stop`` copies of ``content`` at the ends of each token."""

    kind: ClassVar[str] = "strip-decoder"
    content: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class BosEos:
    """llama.cpp: what is added when special ids are asked for.

    Attributes:
        add_bos, add_eos: the flags; ``add_sep`` is reported, never applied.
        rule: ``flags`` adds BOS before and EOS after by the flags; ``cls-sep`` always adds BOS (CLS) and SEP; with
            ``never`` the flags are reported only.
    """

    kind: ClassVar[str] = "bos-eos"
    add_bos: bool
    add_eos: bool
    add_sep: bool = False
    rule: str = "flags"


@dataclass(frozen=True, slots=True)
class TemplateItem:
    """A sequence (``"A"`` or ``"B"``) or the ids of a special token, with its type id."""

    kind: ClassVar[str] = "template-item"
    sequence: str | None
    ids: tuple[int, ...] = ()
    type_id: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """What surrounds one sequence, and two."""

    kind: ClassVar[str] = "template"
    single: tuple[TemplateItem, ...]
    pair: tuple[TemplateItem, ...] = ()


DecoderStep = (
    LlamaDetokenize
    | ByteLevelDecoder
    | ByteFallbackDecoder
    | FuseDecoder
    | MetaspaceDecoder
    | WordPieceDecoder
    | BpeDecoder
    | CtcDecoder
    | StripDecoder
    | BytesDecoder
    | SentencePieceDecoder
    | Replace
)
PostProcessor = BosEos | Template | MnnHeader
