"""sentencepiece (0.2.3) as a MNN body.

* The normalizer (``src/normalizer.cc``) becomes the charsmap one character at a time, and the spaces.
* BPE (``bpe_model.cc``) merges by score, as llama.cpp's SPM does: :mod:`~tokpack.formats.mnn.score_merge`.
* Unigram (``unigram_model.cc``) is MNN's Unigram, which sums in doubles where sentencepiece has floats.
* Word and char are WordPiece whose words do not go on, and byte-pair encoding without merges.

User-defined pieces are cut out of the text by MNN's stage 2. Control pieces, which sentencepiece never finds in a text,
are in the header all the same: a prompt comes to MNN as text only, and the decoding of a list leaves them out.
"""

from __future__ import annotations

import numpy as np

from tokpack.errors import Location, LossError
from tokpack.findings import Finding, Severity
from tokpack.ir import AlphabetKind, Characters, PieceType, ScoreMerge, TokenizerIR, WordLevel
from tokpack.ir import Unigram as UnigramIR
from tokpack.ir.steps import SentencePieceDecoder, SentencePieceNormalizer

from . import losses
from .body import MtokBody
from .char_map import SPACED, map_chars
from .charsmap import entries, pairs
from .core import SPACE_MARK, char_in_pieces, refuse
from .cuts import exact_cuts
from .hf_chars import composites
from .parts import (
    AddedToken,
    Bpe,
    ByteFallbackDecoder,
    Decoder,
    FuseDecoder,
    Metaspace,
    Model,
    Normalizer,
    Prepend,
    PreTokenizer,
    Replace,
    ReplaceDecoder,
    Split,
    StripDecoder,
    Unigram,
    WordPiece,
)
from .score_merge import LONGEST, derive_merges
from .specials import shown
from .unigram import NOT_MATCHED
from .unknown import STAND_INS, collapse, map_unknown, single_pieces

__all__ = ["lower_sentencepiece"]

_HALVINGS = 32  # of runs of spaces; a text of 4 GiB has no longer one
_END_SPACES = r" +(?!.|\n)"  # those at the end of a text
_BYTES = range(256)


def lower_sentencepiece(ir: TokenizerIR) -> tuple[MtokBody, list[Finding]]:
    """The body that makes MNN's ids as close to sentencepiece's as they can be, and what still differs.

    Raises:
        UnsupportedError: for a tokenizer that MNN has no form for.
        LossError: for what the format cannot hold.
    """
    return _Lowering(ir).body()


class _Lowering:
    """One tokenizer on its way to a body."""

    def __init__(self, ir: TokenizerIR) -> None:
        step = ir.normalizer[0] if len(ir.normalizer) == 1 else None
        decoder = ir.decoder[0] if len(ir.decoder) == 1 else None
        if not isinstance(step, SentencePieceNormalizer) or not isinstance(decoder, SentencePieceDecoder):
            raise refuse("a tokenizer of sentencepiece has its normalizer and its decoder, and nothing else")
        self.ir, self.step, self.decoder = ir, step, decoder
        self.types = ir.vocab.types
        self.findings: list[Finding] = []
        self.pieces = self._pieces()
        self.index = {piece: number for number, piece in enumerate(self.pieces)}
        self.known = char_in_pieces(
            piece
            for piece, kind in zip(self.pieces, self.types.tolist(), strict=True)
            if kind in (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)
        )
        self.pre: list[PreTokenizer] = []
        self.stand_in = ""  # what unknown characters become, where the model has no unknown token

    def lose(self, code: str, message: str, severity: Severity = Severity.IDS, where: str = "model") -> None:
        self.findings.append(Finding(code, severity, message, Location(None, where)))

    def _pieces(self) -> list[bytes]:
        pieces = [piece or b"" for piece in self.ir.vocab.pieces]
        bad = next((number for number, piece in enumerate(pieces) if not piece or b"\0" in piece), None)
        if bad is not None:
            what = "a piece is empty or holds a NUL, where MNN ends a text"
            raise LossError(what, location=Location(None, f"vocab.pieces[{bad}]"), code="mtok-nul-piece")
        return pieces

    def body(self) -> tuple[MtokBody, list[Finding]]:
        """Everything, in an order that lets the model decide what becomes of unknown characters."""
        model = self._model()
        normalizer = self._normalizer()
        if self.step.escape_whitespaces:
            self.pre.append(Metaspace(SPACE_MARK, add_prefix_space=False))
        added = self._added()
        self._say_what_else()
        return MtokBody(
            model=model,
            special=self._header(),
            stop=self.ir.specials.eog,
            normalizer=normalizer,
            pre_tokenizer=tuple(self.pre),
            decoder=self._decoder(),
            added_tokens=added,
            eos=self._text("eos"),
            bos=self._text("bos"),
        ), self.findings

    # --- models ---

    def _model(self) -> Model:
        model = self.ir.model
        if isinstance(model, UnigramIR):
            return self._unigram(model)
        if isinstance(model, ScoreMerge):
            return self._merges(model.unk_id)
        if isinstance(model, Characters):
            empty = np.zeros((0, 3), dtype=np.uint32)
            return Bpe(self._with_unknown(model.unk_id), empty, byte_fallback=self.ir.alphabet.byte_fallback)
        if isinstance(model, WordLevel):
            return self._words(model)
        raise refuse(f"no .mtok body can be made for a {model.kind} model of sentencepiece")

    def _unigram(self, model: UnigramIR) -> Unigram:
        if model.unk_id is None:
            raise refuse("there is no unknown id, and MNN would read a score before its array", code="mtok-no-unknown")
        raw = self.ir.vocab.scores
        single = np.zeros(len(self.pieces), np.float32) if raw is None else raw.astype(np.float32)
        normal = self.types == PieceType.NORMAL
        worst = float(single[normal].min(initial=np.float32(0)) - np.float32(model.unk_penalty))
        scores = np.where(normal, single.astype(np.float64), NOT_MATCHED)
        scores[model.unk_id] = worst
        fallback = self.ir.alphabet.byte_fallback
        if fallback:
            # an unknown character costs the same, whatever bytes it has: the first one bears the cost
            for byte in _BYTES:
                scores[self.index[b"<0x%02X>" % byte]] = 0.0 if 0x80 <= byte < 0xC0 else worst
        self.lose(
            "mtok-unigram-ties",
            "MNN sums scores in doubles, sentencepiece in floats, so that paths of nearly the same total may fall "
            "otherwise; and MNN tries the unknown piece only where no other ends",
        )
        return Unigram(tuple(self.pieces), tuple(scores.tolist()), model.unk_id, byte_fallback=fallback)

    def _merges(self, unk: int | None) -> Bpe:
        usable = self.types == PieceType.NORMAL
        unused = int((self.types == PieceType.UNUSED).sum())
        if unused:
            self.lose("mtok-unused-pieces", f"sentencepiece merges through {unused} unused pieces, MNN does not")
        index = {piece: number for piece, number in self.index.items() if usable[number]}
        raw = self.ir.vocab.scores
        scores = [0.0] * len(self.pieces) if raw is None else raw.tolist()
        texts = [piece if usable[number] else b"" for number, piece in enumerate(self.pieces)]
        merges, no_part, long = derive_merges(texts, scores, index)
        self.findings += losses.merge_losses(no_part, ())
        if long:
            message = (
                f"{len(long)} pieces of more than {LONGEST} bytes, such as id {long[0]}, are not reached by merges"
            )
            self.lose("mtok-long-pieces", message)
        if self.step.escape_whitespaces:
            cuts = exact_cuts(texts[left] + texts[right] for left, right, _ in merges.tolist())
            self.findings += losses.pattern_losses(cuts)
            self.pre += cuts
        message = "MNN's merging takes time that grows with the square of a word's length; words end at spaces only"
        self.lose("mtok-slow-words", message, Severity.INFO)
        return Bpe(self._with_unknown(unk), merges, byte_fallback=self.ir.alphabet.byte_fallback)

    def _words(self, model: WordLevel) -> WordPiece:
        """WordPiece whose words do not go on: no piece has the prefix, so a word is one piece or unknown."""
        prefix = next(char for char in STAND_INS[1:] if char not in self.known)
        if self.step.escape_whitespaces:
            self.pre.append(Split(r" [^ ]*"))
        message = "sentencepiece gives one unknown token for several unknown words, MNN one for each"
        self.lose("mtok-unknown-words", message)
        longest = min(max(map(len, self.pieces)), 4096)
        return WordPiece(tuple(self.pieces), model.unk_piece, prefix.encode(), longest)

    def _with_unknown(self, unk: int | None) -> tuple[bytes, ...]:
        """Texts of the pieces; the unknown token gets a text that unknown characters are replaced by."""
        stored = list(self.pieces)
        if not self.ir.alphabet.byte_fallback and unk is not None:
            self.stand_in = next(char for char in STAND_INS if char not in self.known)
            self.known = single_pieces(self.pieces)
            stored[unk] = self.stand_in.encode()
            message = "MNN knows no unknown token here: unassigned characters beyond U+1FFFF are dropped"
            self.lose("mtok-unknown-characters", message)
        return tuple(stored)

    # --- text ---

    def _normalizer(self) -> tuple[Normalizer, ...]:
        table = entries(self.step.charsmap)
        together = pairs(table, self.known | composites())
        left = len(table.several) + table.longer - len(together)
        if left:
            message = (
                f"{left} entries of the charsmap replace several characters together, such as a letter and its "
                "accents; MNN replaces single characters, and the pairs that become a character of the vocabulary"
            )
            self.lose("mtok-charsmap", message, where="normalizer")
        mapping = {char: text for char, text in table.single.items() if char != "\0"}
        if self.step.escape_whitespaces and self.step.charsmap:
            mapping.setdefault(SPACE_MARK, SPACE_MARK)
        known = self.known | ({" "} if SPACE_MARK in self.known or self.step.escape_whitespaces else set())
        if self.ir.alphabet.byte_fallback:
            known |= set(SPACED)
        steps: list[Normalizer] = [Replace(key, text) for key, text in together]
        if self.stand_in:
            mapping = map_unknown(mapping, known, self.stand_in)
            steps += map_chars(mapping, known | {self.stand_in})
            steps += collapse(self.stand_in)
        else:
            steps += map_chars(mapping, known)
        return (*steps, *self._spaces())

    def _spaces(self) -> list[Normalizer]:
        """One space before the text, runs as one, none at the end, as the flags say."""
        steps: list[Normalizer] = []
        prefix = self.step.add_dummy_prefix and not self.step.treat_whitespace_as_suffix
        suffix = self.step.add_dummy_prefix and self.step.treat_whitespace_as_suffix
        if suffix:
            message = (
                "the dummy prefix is a suffix here, and MNN cannot put anything behind a text: its last word differs"
            )
            self.lose("mtok-space-suffix", message, where="normalizer")
        if prefix:
            steps.append(Prepend(" "))
        if self.step.remove_extra_whitespaces:
            steps += [Replace("  ", " ")] * _HALVINGS
            self.pre.insert(0, Split(_END_SPACES, behavior="removed"))
            if not prefix:
                self.pre.insert(0, Split(r"[^ ](?:.|\n)*", invert=True, behavior="removed"))
        return steps

    def _header(self) -> tuple[int, ...]:
        """Control pieces, longest first: MNN takes the first that fits."""
        control = np.flatnonzero(self.types == PieceType.CONTROL).tolist()
        plain = [number for number in control if shown(self.pieces[number], AlphabetKind.UTF8) == self.pieces[number]]
        if plain:
            first = self.pieces[plain[0]].decode("utf-8", "replace")
            message = (
                f"MNN always reads the {len(plain)} control pieces, such as {first!a}, in a text; sentencepiece never"
            )
            self.findings.append(
                Finding("mtok-control-text", Severity.IDS, message, Location(None, "vocab"), example=first)
            )
        return tuple(sorted(plain, key=lambda number: (-len(self.pieces[number]), number)))

    def _added(self) -> tuple[AddedToken, ...]:
        user = np.flatnonzero(self.types == PieceType.USER_DEFINED).tolist()
        if user and self.step.add_dummy_prefix and not self.step.treat_whitespace_as_suffix:
            message = "MNN puts a space before the text behind each user-defined piece too, not only at the beginning"
            self.lose("mtok-prefix-space", message, where="normalizer")
        return tuple(AddedToken(number, self.pieces[number]) for number in user)

    def _decoder(self) -> tuple[Decoder, ...]:
        steps: list[Decoder] = [ReplaceDecoder(SPACE_MARK, " ")]
        if self.ir.alphabet.byte_fallback:
            steps.append(ByteFallbackDecoder())
        steps.append(FuseDecoder())
        if self.decoder.strip_prefix:
            steps.append(StripDecoder(" ", 1, 0))
        if self.decoder.charsmap:
            self.lose("mtok-decoder", "MNN has no form for the denormalizer", Severity.TEXT, "decoder")
        return tuple(steps)

    def _say_what_else(self) -> None:
        message = "MNN keeps invalid UTF-8 as bytes, and ends a text at NUL"
        self.lose("mtok-text-limits", message, Severity.INFO, "normalizer")
        self.findings += losses.not_kept(self.ir)

    def _text(self, role: str) -> bytes:
        number = self.ir.specials.get(role)
        return b"" if number is None else self.pieces[number]
