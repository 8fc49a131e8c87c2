"""Writing ``tokenizer.txt``: the four older formats of MNN, each with one fixed algorithm (``tokenizer.cpp``, 3.6.1).

* 0, SENTENCEPIECE: byte-pair merging by score on U+2581 text, whatever the model was; for score-merge models.
* 1, TIKTOKEN: the longest piece at each byte, no merging; for RWKV, which does just that.
* 2, BERT: WordPiece on ASCII classes, lower case; nothing is exactly that.
* 3, HUGGINGFACE: byte-level merges behind one fixed pattern over ASCII classes; nothing is exactly that.

The type follows from the model. What the fixed algorithm does otherwise is a loss of severity ``ids``, so that such a
file is written only if the loss is allowed by its code.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from tokpack.errors import Location, LossError
from tokpack.findings import Finding, Severity
from tokpack.ir import (
    BPE,
    AlphabetKind,
    GreedyTrie,
    PieceAttr,
    PieceType,
    RankMerge,
    Reference,
    ScoreMerge,
    TokenizerIR,
    Unigram,
    WordPiece,
    WordPieceGreedy,
)
from tokpack.ir import steps as ir_steps
from tokpack.rendered import Rendered
from tokpack.unicode import byte_level, rwkv

from . import losses
from .body import MAGIC
from .core import SPACE_MARK, refuse
from .lower import around, filled_pieces
from .tiktoken import as_tokenizers

__all__ = ["render"]

_DROPPED = int(PieceAttr.CONTROL | PieceAttr.UNKNOWN)
_SPACE = ir_steps.Replace(" ", SPACE_MARK)
_Lines = tuple[int, list[bytes], list[Finding]]


def render(ir: TokenizerIR) -> Rendered:
    """The file, and what MNN does otherwise than ``ir``'s reference.

    Raises:
        UnsupportedError: a model that no type comes near to.
        LossError: for what the format cannot hold, or what MNN would crash on.
    """
    if ir.reference is Reference.TIKTOKEN and isinstance(ir.model, RankMerge):
        ir = as_tokenizers(ir)
    write = _TYPES.get(type(ir.model))
    if write is None:
        raise refuse(f"MNN's tokenizer.txt has no type that comes near a {ir.model.kind} model", code="mnn-txt-family")
    pieces = list(filled_pieces(ir))
    number, lines, findings = write(ir, pieces)
    header, more = _header(ir)
    findings += [*more, *losses.not_kept(ir), *_not_kept(ir)]
    content = b"\n".join([b"%d %d" % (MAGIC, number), *header, *lines]) + b"\n"
    return Rendered((("", content),), tuple(findings), exact=False)


def _loss(code: str, message: str, severity: Severity = Severity.IDS, where: str = "model") -> Finding:
    return Finding(code, severity, message, Location(None, where))


def _header(ir: TokenizerIR) -> tuple[list[bytes], list[Finding]]:
    """Counts and ids: specials in matching order (the first that fits wins, so longest first), stop ids, prefix."""
    tokens = [token for token in ir.added_tokens if int(ir.vocab.attrs[token.id]) & _DROPPED or token.special]
    special = [token.id for token in sorted(tokens, key=lambda token: -len(token.content))]
    prefix, after = around(ir)
    ids = [*special, *ir.specials.eog, *prefix]
    findings = []
    plain = [token for token in ir.added_tokens if token.id not in set(special)]
    if plain:
        message = f"{len(plain)} added tokens are not special, and MNN looks for special ones only, such as id"
        findings.append(_loss("mnn-txt-added", f"{message} {plain[0].id}", where="added_tokens"))
    if any(token.lstrip or token.rstrip or token.single_word for token in ir.added_tokens):
        message = "MNN knows no lstrip, rstrip or single_word of added tokens"
        findings.append(_loss("mnn-txt-strip", message, where="added_tokens"))
    if after:
        message = "MNN puts nothing behind a text: what the post-processor adds there is missing"
        findings.append(_loss("mnn-txt-add-eos", message, where="post_processor"))
    counts = b"%d %d %d" % (len(special), len(ir.specials.eog), len(prefix))
    return [counts, " ".join(map(str, ids)).encode()], findings


def _not_kept(ir: TokenizerIR) -> list[Finding]:
    findings = [_loss("mnn-txt-text-limits", "MNN keeps invalid UTF-8 as bytes, and ends a text at NUL", Severity.INFO)]
    if ir.chat_templates:
        message = "tokenizer.txt has no place for a chat template"
        findings.append(_loss("mnn-txt-chat-template", message, Severity.INFO, "chat_templates"))
    return findings


# --- type 0 -----------------------------------------------------------------------------------------------------


def _scored(ir: TokenizerIR, pieces: list[bytes]) -> _Lines:
    """``base64 score type`` per piece."""
    findings = []
    if not isinstance(ir.model, ScoreMerge):
        message = "MNN merges by score, the reference looks for the best path through the text: most words differ"
        findings.append(_loss("mnn-txt-merging", message))
    elif not _spaces_only(ir):
        message = "MNN puts one space before a text and marks spaces; what else the normalizer does is lost"
        findings.append(_loss("mnn-txt-normalizer", message, where="normalizer"))
    types = ir.vocab.types.tolist()
    if PieceType.USER_DEFINED in types and ir.reference is Reference.SENTENCEPIECE:
        message = "user-defined pieces are found as special tokens only, and dropped when a list is decoded"
        findings.append(_loss("mnn-txt-added", message, where="vocab"))
    inner = sum(SPACE_MARK.encode() in piece[1:] for piece in pieces)
    if inner:
        message = f"MNN prints the first U+2581 of a piece as a space, and garbles {inner} pieces with others"
        findings.append(_loss("mnn-txt-piece-text", message, Severity.TEXT, "decoder"))
    scores = [0.0] * len(pieces) if ir.vocab.scores is None else ir.vocab.scores.tolist()
    lines = [b"%d" % len(pieces)]
    for number, piece in enumerate(pieces):
        kind = int(PieceType.UNUSED) if ir.vocab.pieces[number] is None else types[number]
        lines.append(b64encode(piece) + f" {scores[number]!r} {kind}".encode())
    return 0, lines, findings


def _spaces_only(ir: TokenizerIR) -> bool:
    step = ir.normalizer[0] if ir.normalizer else None
    if isinstance(step, ir_steps.SentencePieceNormalizer):
        plain = not step.charsmap and step.escape_whitespaces and not step.treat_whitespace_as_suffix
        return plain and step.add_dummy_prefix and not step.remove_extra_whitespaces
    return ir.normalizer == (ir_steps.SpacePrefix(), _SPACE)


# --- types 1 and 2 ----------------------------------------------------------------------------------------------


def _greedy(ir: TokenizerIR, pieces: list[bytes]) -> _Lines:
    """The bytes of one piece in base64 per line; of equal ones MNN finds the first, llama.cpp the last."""
    texts = [rwkv.unescape(piece) if ir.alphabet.kind is AlphabetKind.ESCAPED else piece for piece in pieces]
    last = {text: number for number, text in enumerate(texts)}
    hidden = [number for number, text in enumerate(texts) if last[text] != number]
    for number in hidden:
        texts[number] = b"[HIDDEN_%d]" % number
    findings = []
    absent = [byte for byte in range(1, 256) if bytes((byte,)) not in last]
    if absent:
        message = (
            f"{len(absent)} bytes have no piece of their own, such as 0x{absent[0]:02X}: MNN drops them where no "
            "longer piece holds them, llama.cpp gives the unknown token"
        )
        findings.append(_loss("mnn-txt-byte-pieces", message, where="vocab"))
    if hidden:
        message = f"{len(hidden)} pieces, such as id {hidden[0]}, have the text of a later one and lose it"
        findings.append(_loss("mnn-txt-duplicate-piece", message, Severity.TEXT, "vocab"))
    return 1, [b"%d" % len(texts), *map(b64encode, texts)], findings


def _words(ir: TokenizerIR, pieces: list[bytes]) -> _Lines:
    message = (
        "MNN lowers ASCII letters, cuts at ASCII classes and takes every other character for a word of its own: words "
        "with characters beyond ASCII differ"
    )
    if b"[UNK]" not in pieces:
        what = "there is no piece [UNK], and MNN would give the id 100"
        raise LossError(what, location=Location(None, "vocab"), code="mnn-txt-unknown")
    spelled = pieces
    if isinstance(ir.model, WordPieceGreedy):
        mark = SPACE_MARK.encode()
        attrs = ir.vocab.attrs.tolist()
        # llama.cpp's vocabulary marks the beginning of a word, BERT's its continuation
        spelled = [
            piece
            if attrs[number] & (_DROPPED | int(PieceAttr.USER_DEFINED))
            else piece[len(mark) :]
            if piece.startswith(mark)
            else b"##" + piece
            for number, piece in enumerate(pieces)
        ]
    elif isinstance(ir.model, WordPiece) and ir.model.continuing_subword_prefix != b"##":
        raise refuse("MNN's BERT type knows no continuing prefix but ##", "model", "mnn-txt-prefix")
    return 2, [b"%d" % len(spelled), *map(b64encode, spelled)], [_loss("mnn-txt-words", message)]


# --- type 3 -----------------------------------------------------------------------------------------------------


def _merged(ir: TokenizerIR, pieces: list[bytes]) -> _Lines:
    """Pieces and merges as they are spelled, one per line."""
    model = ir.model
    assert isinstance(model, BPE)
    if ir.alphabet.kind is not AlphabetKind.BYTE_LEVEL:
        raise refuse("MNN's HUGGINGFACE type has byte-level pieces only", "vocab", "mnn-txt-family")
    present = set(pieces)
    for byte, char in enumerate(byte_level.CHARS):
        if char.encode() not in present:
            what = f"byte 0x{byte:02X} has no piece: MNN would end the program on a text with it"
            raise LossError(what, location=Location(None, "vocab"), code="mnn-txt-byte-pieces")
    bad = next((number for number, piece in enumerate(pieces) if b"\n" in piece), None)
    if bad is not None:
        what = "a piece holds a line end, and the format has one piece per line"
        raise LossError(what, location=Location(None, f"vocab.pieces[{bad}]"), code="mnn-txt-line-end")
    merges = [left + b" " + right for left, right in model.merges if left + right in present]
    if any(b"\n" in line or line.count(b" ") != 1 for line in merges):
        raise LossError(
            "a merge holds a space or a line end", location=Location(None, "model"), code="mnn-txt-line-end"
        )
    findings = [
        _loss(
            "mnn-txt-pattern",
            "MNN cuts words by one fixed pattern over ASCII classes, single digits; the pre-tokenizer is lost",
            where="pre_tokenizer",
        ),
        _loss(
            "mnn-txt-long-runs",
            "MNN's std::regex ends the program on a run of some 20,000 letters or spaces",
            Severity.REFUSE,
            "pre_tokenizer",
        ),
    ]
    if len(merges) < len(model.merges):
        message = f"{len(model.merges) - len(merges)} merges give a text that is not a piece and are left out"
        findings.append(_loss("mnn-txt-merge-result", message))
    if ir.normalizer:
        findings.append(_loss("mnn-txt-normalizer", "MNN does not normalize here", where="normalizer"))
    return 3, [b"%d %d" % (len(pieces), len(merges)), *pieces, *merges], findings


_TYPES: dict[type, Callable[[TokenizerIR, list[bytes]], _Lines]] = {
    ScoreMerge: _scored,
    Unigram: _scored,
    GreedyTrie: _greedy,
    WordPiece: _words,
    WordPieceGreedy: _words,
    BPE: _merged,
}
