"""Where each special token of llama.cpp goes in a ``.mtok`` file, and how its piece is spelled there.

llama.cpp (``tokenizer_st_partition`` in ``src/llama-vocab.cpp``) cuts special tokens out of the text longest first, one
pass per token. MNN 3.6.1 (``Tokenizer::encode`` and ``PipelineTokenizer::encode`` in
``transformers/llm/engine/src/tokenizer/tokenizer.cpp``) knows two stages:

* stage 1 tries the ids of the header list at each position, first in the list first, with the text that ``decode(id)``
  gives and without any stripping. ``decode(list)`` drops these ids.
* stage 2 looks in what is left for the added tokens, leftmost then longest, with lstrip and rstrip.

So control and unknown tokens go into the header in llama.cpp's order, user-defined ones, which detokenizing keeps, into
the added tokens; and a token that stage 1 would spell wrongly, not strip, or cut out of a longer user-defined token
goes into the added tokens too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tokpack.findings import Finding, Severity
from tokpack.ir import AddedToken as SpecialToken
from tokpack.ir import AlphabetKind, PieceAttr, TokenizerIR
from tokpack.unicode import byte_level

from .parts import AddedToken

__all__ = ["Placement", "place", "respell", "shown"]

_DROPPED = int(PieceAttr.CONTROL | PieceAttr.UNKNOWN)  # what llama.cpp's detokenizer leaves out
_LONGEST_CHECKED = 256  # longer special tokens are not searched for overlaps; no real one has half of that
_PAIRS_CHECKED = 20_000  # beyond, an overlap is reported without a look at what becomes of it
_SPACE_MARK = "▁".encode()


@dataclass(slots=True)
class Placement:
    """Result of :func:`place`.

    Attributes:
        header: ids of stage 1, in order.
        added: tokens of stage 2.
        spelling: id → text to store instead of the piece's own.
        findings: what differs from llama.cpp.
    """

    header: list[int] = field(default_factory=list)
    added: list[AddedToken] = field(default_factory=list)
    spelling: dict[int, bytes] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def shown(piece: bytes, alphabet: AlphabetKind) -> bytes | None:
    """What ``PipelineTokenizer::decode(int)`` prints for ``piece``; None when its ``sscanf`` for ``<0xHH>`` may act."""
    if b"<0x" in piece:
        return None
    text = piece.replace(_SPACE_MARK, b" ")
    if alphabet is not AlphabetKind.BYTE_LEVEL:
        return text
    out = bytearray()
    for char in text.decode("utf-8", "surrogateescape"):
        byte = byte_level.BYTES.get(char)
        out += char.encode("utf-8", "surrogateescape") if byte is None else bytes((byte,))
    return bytes(out)


def place(ir: TokenizerIR, pieces: Sequence[bytes], merges: Iterable[tuple[bytes, bytes]]) -> Placement:
    """Decide for every added token of ``ir`` (in llama.cpp's matching order)."""
    result = Placement()
    result.spelling = respell(ir, pieces, merges)
    header: list[SpecialToken] = []
    later: list[SpecialToken] = []
    for token in ir.added_tokens:
        piece = result.spelling.get(token.id, pieces[token.id])
        plain = not (token.lstrip or token.rstrip) and shown(piece, ir.alphabet.kind) == token.content
        dropped = bool(int(ir.vocab.attrs[token.id]) & _DROPPED)
        (header if dropped and plain else later).append(token)
    # A control text inside a longer user-defined token: llama.cpp cuts the longer one, stage 1 would cut the inner one.
    texts = b"\0".join(token.content for token in later)
    inner = {token.id for token in header if token.content in texts}
    stage_two = {token.id for token in later} | inner
    result.header = [token.id for token in header if token.id not in inner]
    result.added = [
        AddedToken(
            token.id,
            token.content,
            special=bool(int(ir.vocab.attrs[token.id]) & _DROPPED),
            lstrip=token.lstrip,
            rstrip=token.rstrip,
        )
        for token in ir.added_tokens
        if token.id in stage_two
    ]
    result.findings += _overlaps(ir.added_tokens, stage_two)
    kept = [token for token in result.added if token.special]
    if kept:
        result.findings.append(
            Finding(
                "mtok-special-shown",
                Severity.TEXT,
                f"{len(kept)} control tokens, such as id {kept[0].id}, are no specials of the MNN header, because it "
                "could not match them there: MNN's decoding of a list does not leave them out",
            )
        )
    return result


def respell(ir: TokenizerIR, pieces: Sequence[bytes], merges: Iterable[tuple[bytes, bytes]]) -> dict[int, bytes]:
    """Spell special tokens byte-level where MNN would otherwise print and match another text.

    A special token of a GGUF file is spelled as it is; MNN maps every piece back through GPT-2's alphabet and turns
    U+2581 into a space. The byte-level spelling comes out right. It must not be the text of another piece, and a
    piece that merges make or use keeps its own spelling.
    """
    if ir.alphabet.kind is not AlphabetKind.BYTE_LEVEL:
        return {}
    kind = ir.alphabet.kind
    wrong = [token for token in ir.added_tokens if shown(pieces[token.id], kind) != token.content]
    if not wrong:
        return {}
    taken = set(pieces)
    own = {pieces[token.id] for token in wrong}
    used: set[bytes] = set()
    for left, right in merges:
        used |= own.intersection((left, right, left + right))
    spelling: dict[int, bytes] = {}
    for token in wrong:
        text = byte_level.encode(token.content).encode()
        if text not in taken and pieces[token.id] not in used and shown(text, kind) == token.content:
            spelling[token.id] = text
            taken.add(text)
    return spelling


def _overlaps(tokens: Sequence[SpecialToken], stage_two: set[int]) -> list[Finding]:
    """A finding when two special tokens can overlap in a text and MNN takes the other one of them."""
    begins: dict[bytes, list[int]] = {}
    for position, token in enumerate(tokens):
        for end in range(1, min(len(token.content), _LONGEST_CHECKED)):
            begins.setdefault(token.content[:end], []).append(position)
    left = _PAIRS_CHECKED
    for position, token in enumerate(tokens):
        for start in range(max(1, len(token.content) - _LONGEST_CHECKED), len(token.content)):
            shared = token.content[start:]
            for other in begins.get(shared, ()):
                if other == position or token.content == tokens[other].content:
                    continue
                left -= 1
                if left > 0 and _agree(tokens, position, other, len(shared), stage_two):
                    continue
                message = (
                    f"the special tokens {token.id} and {tokens[other].id} can overlap in a text: llama.cpp takes the "
                    "longer one, MNN the one that starts first, but any token of its header before others"
                )
                return [Finding("mtok-special-overlap", Severity.IDS, message)]
    return []


def _agree(tokens: Sequence[SpecialToken], first: int, second: int, shared: int, stage_two: set[int]) -> bool:
    """Whether both programs cut the text in which ``second`` begins with the last ``shared`` bytes of ``first``."""
    text = tokens[first].content + tokens[second].content[shared:]
    if len(text) > 2 * _LONGEST_CHECKED:
        return False  # not worth the time: reported as if they did not
    pair = [tokens[position] for position in sorted((first, second))]  # llama.cpp's order
    passes = [[pair[0]], [pair[1]]]  # one pass per token
    longest = sorted(pair, key=lambda token: -len(token.content))
    stages = [[t for t in pair if t.id not in stage_two], [t for t in longest if t.id in stage_two]]
    return _cut(text, passes) == _cut(text, stages)


def _cut(text: bytes, passes: list[list[SpecialToken]]) -> list[bytes | int]:
    """``text`` cut by passes; in each, at each position, the first token of the pass that matches wins."""
    fragments: list[bytes | int] = [text]
    for tokens in passes:
        cut: list[bytes | int] = []
        for fragment in fragments:
            if isinstance(fragment, int):
                cut.append(fragment)
                continue
            begin = position = 0
            while position < len(fragment):
                found = next((t for t in tokens if fragment.startswith(t.content, position)), None)
                if found is None:
                    position += 1
                    continue
                cut += [fragment[begin:position], found.id]
                begin = position = position + len(found.content)
            cut.append(fragment[begin:])
        fragments = [fragment for fragment in cut if fragment != b""]
    return fragments
