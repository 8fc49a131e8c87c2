"""Characters without a piece, for a model that has no unknown token of its own.

MNN's ``BPEModel::tokenize`` (tag 3.6.1) drops a character that has neither a piece nor ``<0xHH>`` pieces. So all such
characters are replaced before, by one character, which is the text of the unknown token in the body.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from tokpack.ir import BPE, AlphabetKind, TokenizerIR
from tokpack.ir import steps as ir_steps
from tokpack.ir.patterns import Dialect
from tokpack.onig.sets import CharSet, named

from .char_map import WHITE_SPACE
from .parts import Normalizer, Replace

__all__ = [
    "STAND_INS",
    "Unknown",
    "collapse",
    "map_unknown",
    "possible_characters",
    "single_pieces",
    "unknown_of_tokenizers",
]

STAND_INS = ("\u2047", *map(chr, range(0xE000, 0xF900)))  # the first is how sentencepiece prints an unknown token
_HALVINGS = 32  # of a run; a text of 4 GiB has no longer one


@cache
def possible_characters() -> tuple[str, ...]:
    """Characters that a text may hold: planes 0 and 1, and the assigned ones of others; NUL ends a text for MNN.

    Each takes 9 bytes or so in the body; the unassigned ones of planes 2 to 16 would take 8 MB more.
    """
    assigned, private = named("assigned"), named("co")
    assert assigned is not None
    assert private is not None
    outside = CharSet.of_ranges([(0, 0), (0xD800, 0xDFFF)])
    ranges = ((assigned - private | CharSet.of_ranges([(1, 0x1FFFF)])) - outside).ranges()
    return tuple(chr(code) for first, last in ranges for code in range(first, last + 1))


def single_pieces(pieces: Collection[bytes]) -> frozenset[str]:
    """Characters that are pieces."""
    texts = (piece.decode("utf-8", "replace") for piece in pieces if len(piece) <= 4)
    return frozenset(text for text in texts if len(text) == 1)


def map_unknown(mapping: Mapping[str, str], known: Collection[str], stand_in: str) -> dict[str, str]:
    """``mapping``, and then every character that is not in ``known`` as ``stand_in``."""
    unknown = dict.fromkeys((char for char in possible_characters() if char not in known), stand_in)
    unknown.pop(stand_in, None)
    texts = {char: "".join(c if c in known else stand_in for c in text) for char, text in mapping.items()}
    return unknown | texts


def collapse(stand_in: str) -> tuple[Normalizer, ...]:
    """Neighbouring unknown characters as one."""
    return (Replace(stand_in * 2, stand_in),) * _HALVINGS


@dataclass(frozen=True, slots=True)
class Unknown:
    """What becomes of unknown characters of a tokenizer of ``tokenizers``.

    Attributes:
        known: characters to be left alone.
        stand_in: what the others become; empty if they are dropped.
        piece: the unknown token, whose text in the body is ``stand_in``.
        fuse: neighbouring ones are one.
    """

    known: frozenset[str]
    stand_in: str
    piece: bytes | None
    fuse: bool


def unknown_of_tokenizers(ir: TokenizerIR, stored: Collection[bytes]) -> Unknown | None:
    """The plan for a byte-pair model without all ``<0xHH>`` pieces; None where nothing need or can be done.

    ``BPE::merge_word`` (tokenizers/src/models/bpe/model.rs) takes the bytes of a character if all have a piece, else
    the unknown token, and drops the character if there is none. The stand-in must not change how a text is split.
    """
    model = ir.model
    if not isinstance(model, BPE) or ir.alphabet.kind is AlphabetKind.BYTE_LEVEL:
        return None
    if not all(_by_spaces(step) for step in ir.pre_tokenizer):
        return None
    present = set(stored) if ir.alphabet.byte_fallback else set()
    has_piece = [b"<0x%02X>" % byte in present for byte in range(256)]
    if all(has_piece):
        return None
    known = single_pieces(stored) | {" ", *WHITE_SPACE}
    if not any(step.kind == "whitespace-split" for step in ir.pre_tokenizer):
        known = single_pieces(stored) | {" "}
    if any(has_piece):
        known |= {char for char in possible_characters() if all(has_piece[byte] for byte in char.encode())}
    if model.unk_piece is None:
        return Unknown(known, "", None, fuse=False)
    stand_in = next((char for char in STAND_INS if char not in known), None)
    return None if stand_in is None else Unknown(known, stand_in, model.unk_piece, model.fuse_unk)


def _by_spaces(step: object) -> bool:
    """Whether a pre-tokenizer looks for spaces only."""
    if isinstance(step, ir_steps.Split):
        return step.dialect is Dialect.LITERAL and step.pattern == " "
    return isinstance(step, (ir_steps.Metaspace, ir_steps.WhitespaceSplit))
