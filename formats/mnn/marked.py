"""Byte-pair models with a word suffix (``</w>``) or a continuing prefix (``##``), which MNN's has not.

MNN 3.6.1 has nothing that puts a text behind a word, but it can put one before each (Metaspace), and a table can put
one behind each character. So:

* Prefix: every word gets a mark in front. The first character of a word is "mark and character", which merges of rank 0
  join; a piece that continues a word is stored as its text, one that begins a word with the mark before it.
* Suffix: every character (byte-level: every byte of it) gets a mark behind, and a last Split takes the mark from the
  end of each word (:mod:`~tokpack.formats.mnn.marks`). A piece is stored with the mark behind each character, one with
  the suffix without the last mark; merges of rank 0 join a character to its mark.

Several texts may stand for one id: MNN looks all of them up and goes on with the last one in byte order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import BPE, AlphabetKind, PieceAttr, TokenizerIR
from tokpack.ir import steps as ir_steps
from tokpack.ir.patterns import Behavior, Dialect
from tokpack.onig.nodes import Node, Repeat, Set
from tokpack.onig.sets import named

from .char_map import WHITE_SPACE, map_chars
from .core import refuse
from .hf_chars import lower_normalizer
from .hf_patterns import parse_pattern
from .hf_splits import GPT2, lower_pre_tokenizer, punctuation
from .marks import Marks
from .parts import Bpe, Decoder, FuseDecoder, Metaspace, Normalizer, PreTokenizer, ReplaceDecoder, Split, StripDecoder
from .unknown import Unknown

__all__ = ["Marked", "lower_marked"]

_CUTTING = (ir_steps.WhitespaceSplit, ir_steps.BertPreTokenizer, ir_steps.WhitespaceWords)
_FRONT, _UNKNOWN = "\x0e", "\x0f"
_Rule = tuple[Node, Behavior, bool]


@dataclass(slots=True)
class Marked:
    """The parts of a body, and what differs."""

    model: Bpe
    normalizer: tuple[Normalizer, ...]
    pre_tokenizer: tuple[PreTokenizer, ...]
    decoder: tuple[Decoder, ...]
    findings: list[Finding] = field(default_factory=list)


def lower_marked(ir: TokenizerIR, stored: Sequence[bytes]) -> Marked:
    """The parts of a body for a byte-pair model of ``tokenizers`` with a prefix or a suffix.

    Args:
        ir: the tokenizer.
        stored: texts of the pieces; those that the model does not have, and added tokens, keep theirs.

    Raises UnsupportedError for a model with both, and for pre-tokenizers that cannot be said on marked text.
    """
    model = ir.model
    assert isinstance(model, BPE)
    table = _Table(ir, model, list(stored))
    if model.continuing_subword_prefix and model.end_of_word_suffix:
        raise refuse("MNN's byte-pair model has no form for a prefix and a suffix together", "model", "mtok-affix")
    return _prefixed(table) if model.continuing_subword_prefix else _suffixed(table)


class _Table:
    """A vocabulary in the making: texts by id, further texts, merges."""

    def __init__(self, ir: TokenizerIR, model: BPE, texts: list[bytes]) -> None:
        self.ir, self.model, self.texts = ir, model, texts
        own = (ir.vocab.attrs & int(PieceAttr.NORMAL)) != 0
        self.pieces = {p: i for i, p in enumerate(ir.vocab.pieces) if p is not None and own[i]}
        self.added = {token.id for token in ir.added_tokens}
        self.aliases: dict[bytes, int] = {}
        self.rows: dict[tuple[int, int], int] = {}
        self.findings: list[Finding] = []
        self.unknown = None if model.unk_piece is None else self.pieces.get(model.unk_piece)
        self._next = len(texts)

    def store(self, number: int, text: bytes) -> None:
        """The text of a piece; added tokens keep theirs, by which they are found."""
        if number not in self.added:
            self.texts[number] = text

    def new_id(self, text: str) -> int:
        """An id behind the vocabulary, for a text that merges always take away."""
        self.aliases[text.encode()] = self._next
        self._next += 1
        return self._next - 1

    def lose(self, code: str, message: str, severity: Severity = Severity.IDS) -> None:
        self.findings.append(Finding(code, severity, message, Location(None, "model")))

    def bpe(self) -> Bpe:
        """The model, with the file's merges one rank later."""
        taken = set(self.texts)
        aliases = {text: number for text, number in self.aliases.items() if text not in taken}
        present = taken.union(aliases)
        cut = len(self.model.continuing_subword_prefix)
        lost: list[bytes] = []
        ranks = self.model.ranks or range(len(self.model.merges))
        for (left, right), rank in zip(self.model.merges, ranks, strict=True):
            first, second = self.pieces.get(left), self.pieces.get(right)
            if first is None or second is None or self.texts[first] + self.texts[second] not in present:
                lost.append(left + right[cut:])
            else:
                self.rows.setdefault((first, second), rank + 1)
        if lost:
            shown = ascii(lost[0].decode("utf-8", "replace"))
            message = f"{len(lost)} merges, such as the one that gives {shown}, cannot be said with marks"
            self.lose("mtok-merge-result", message)
        merges = np.array([(*pair, rank) for pair, rank in self.rows.items()], dtype=np.uint32).reshape(-1, 3)
        message = "MNN's merging takes time that grows with the square of a word's length"
        self.lose("mtok-slow-words", message, Severity.INFO)
        return Bpe(tuple(self.texts), merges, aliases=tuple(aliases.items()))


# --- prefix -----------------------------------------------------------------------------------------------------


def _prefixed(table: _Table) -> Marked:
    ir, prefix = table.ir, table.model.continuing_subword_prefix
    if ir.alphabet.kind is AlphabetKind.BYTE_LEVEL or not any(isinstance(s, _CUTTING) for s in ir.pre_tokenizer):
        raise refuse("only words without spaces can be marked in front", "pre_tokenizer", "mtok-affix")
    for piece, number in table.pieces.items():
        inside = piece.startswith(prefix) and piece != prefix
        table.store(number, piece[len(prefix) :] if inside else _FRONT.encode() + piece)
    inner = {p[len(prefix) :] for p in table.pieces if p.startswith(prefix) and _single(p[len(prefix) :])}
    front = table.new_id(_FRONT)
    for char in inner:
        table.rows[front, table.pieces[prefix + char]] = 0
        if char not in table.pieces and table.unknown is not None:
            table.aliases[_FRONT.encode() + char] = table.unknown
    if table.unknown is not None:
        table.rows[front, table.unknown] = 0
        text = table.texts[table.unknown]
        for unknown in (_UNKNOWN.encode(), (_FRONT + _UNKNOWN).encode(), _FRONT.encode() + text):
            table.aliases[unknown] = table.unknown
    alone = _alone(ir)
    only_first = {p for p in table.pieces if _single(p) and p not in inner and table.pieces[p] not in table.added}
    words_of_one = {p for p in only_first if p.decode() in alone}
    for char in sorted(words_of_one):
        table.rows[front, table.new_id(char.decode())] = 0
    inner |= words_of_one
    if only_first - words_of_one:
        message = f"{len(only_first - words_of_one)} characters have a piece at the beginning of a word only"
        table.lose("mtok-affix", f"{message}: they are unknown to MNN")
    words = lower_pre_tokenizer(ir.pre_tokenizer, no_spaces=False)
    known = frozenset(char.decode() for char in inner) | {" ", *WHITE_SPACE}
    stand_in = "" if table.unknown is None else _UNKNOWN
    plan = Unknown(known, stand_in, table.model.unk_piece, table.model.fuse_unk)
    normalized = lower_normalizer(ir.normalizer, known | {_UNKNOWN}, bytes_known=False, unknown=plan)
    table.lose("mtok-unknown-characters", "unassigned characters beyond U+1FFFF are dropped by MNN")
    return Marked(
        table.bpe(),
        (*normalized.steps, *words.normalizer),
        (*words.steps, Metaspace(_FRONT, add_prefix_space=True)),
        (ReplaceDecoder(_FRONT, " "), FuseDecoder(), StripDecoder(" ", 1, 0)),
        [*table.findings, *normalized.findings, *words.findings],
    )


def _alone(ir: TokenizerIR) -> frozenset[str]:
    """Characters that are always words of their own."""
    for step in ir.pre_tokenizer:
        isolated = isinstance(step, ir_steps.Punctuation) and step.behavior is Behavior.ISOLATED
        if isolated or isinstance(step, ir_steps.BertPreTokenizer):
            ranges = punctuation().ranges()
            return frozenset(chr(code) for first, last in ranges for code in range(first, last + 1))
    return frozenset()


def _single(text: bytes) -> bool:
    return len(text) <= 4 and len(text.decode("utf-8", "replace")) == 1


# --- suffix -----------------------------------------------------------------------------------------------------


def _suffixed(table: _Table) -> Marked:
    ir, suffix = table.ir, table.model.end_of_word_suffix
    byte = ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
    both = frozenset(p.decode() for p in table.pieces if _single(p) and p + suffix in table.pieces)
    rules = [rule for step in ir.pre_tokenizer for rule in _rules(step)]
    marks = Marks([tree for tree, _, _ in rules], None if byte else both)
    main = marks.main
    for piece, number in table.pieces.items():
        last = piece.endswith(suffix)
        symbols = piece[: len(piece) - len(suffix) if last else None].decode("utf-8", "replace")
        table.store(number, (main.join(symbols) + ("" if last else main)).encode())
    ids = {mark: table.new_id(mark) for mark in marks.behind}
    missing = 0
    for symbol, followers in marks.symbols():
        inside, final = table.pieces.get(symbol.encode()), table.pieces.get(symbol.encode() + suffix)
        if inside is None or final is None:
            missing += 1
            continue
        for mark in followers:
            table.rows[final, ids[mark]] = 0
            table.aliases[(symbol + mark).encode()] = inside
    for text in marks.unknown:
        if table.unknown is not None:
            table.aliases[text.encode()] = table.unknown
    if missing:
        table.lose("mtok-affix", f"{missing} characters or bytes lack a piece inside of a word, or at its end")
    if not byte and table.model.fuse_unk and table.unknown is not None:
        table.lose("mtok-unknown-characters", "MNN gives one unknown token per character, tokenizers one for several")
    normalized = lower_normalizer(ir.normalizer, frozenset(), bytes_known=True)
    table.lose("mtok-unknown-characters", "unassigned characters beyond U+1FFFF are dropped by MNN")
    message = "MNN prints no space behind a word: the end of a word has no text of its own"
    table.lose("mtok-decoder", message, Severity.TEXT)
    splits = [Split(marks.pattern(tree), invert, _BEHAVIOR[behavior]) for tree, behavior, invert in rules]
    return Marked(
        table.bpe(),
        (*normalized.steps, *map_chars(marks.table(), frozenset())),
        (*splits, Split(marks.end(), behavior="removed")),
        (ReplaceDecoder(main, ""), FuseDecoder()),
        [*table.findings, *normalized.findings],
    )


_BEHAVIOR = {Behavior.ISOLATED: "isolated", Behavior.REMOVED: "removed"}


def _rules(step: ir_steps.PreTokenizerStep) -> list[_Rule]:
    """(tree, behaviour, invert) of what a pre-tokenizer looks for."""
    space, number = named("space"), named("n")
    assert space is not None
    assert number is not None
    blank: _Rule = (Repeat(Set(space), 1, None), Behavior.REMOVED, False)
    if isinstance(step, ir_steps.Split) and step.behavior in _BEHAVIOR:
        if step.invert and step.behavior is Behavior.ISOLATED:
            return [(parse_pattern(step.pattern, step.dialect), Behavior.ISOLATED, False)]
        return [(parse_pattern(step.pattern, step.dialect), step.behavior, step.invert)]
    if isinstance(step, ir_steps.ByteLevel) and not step.add_prefix_space:
        return [(parse_pattern(GPT2, Dialect.ONIG), Behavior.ISOLATED, False)] if step.use_regex else []
    if isinstance(step, ir_steps.WhitespaceSplit):
        return [blank]
    if isinstance(step, ir_steps.WhitespaceWords):
        return [(parse_pattern(r"\w+|[^\w\s]+", Dialect.ONIG), Behavior.REMOVED, True)]
    if isinstance(step, ir_steps.BertPreTokenizer):
        return [blank, (Set(punctuation()), Behavior.ISOLATED, False)]
    if isinstance(step, ir_steps.Punctuation) and step.behavior in _BEHAVIOR:
        return [(Set(punctuation()), step.behavior, False)]
    if isinstance(step, ir_steps.Digits):
        tree = Set(number) if step.individual_digits else Repeat(Set(number), 1, None)
        return [(tree, Behavior.ISOLATED, False)]
    raise refuse(f"the pre-tokenizer {step.kind} has no form on marked text", "pre_tokenizer", "mtok-affix")
