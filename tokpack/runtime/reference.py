r"""The reference runtime: byte-pair encoding as llama.cpp does it, as slowly and plainly as its rules read.

Nothing is shared with the runtime that is fast: the two are compared on everything. This one works on an IR, not on a
pack. Each part names the function of llama.cpp that it follows, at the commit that ``TokenizerIR.rules`` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial, partialmethod
from itertools import pairwise

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.ir import BPE, AlphabetKind, PieceAttr, Reference, TokenizerIR
from tokpack.ir.steps import BosEos, Dialect, LlamaDetokenize, Replace, ScannerSplit, Split
from tokpack.unicode import byte_level
from tokpack.unicode.llamacpp import CodepointFlag, flags, whitespace

__all__ = ["ReferenceTokenizer", "code_points"]

_WHITE_SPACE = frozenset(whitespace().tolist())
_C_ISSPACE = b" \t\n\v\f\r"
_DECODABLE = re.compile(rb"[\xC0-\xDF][\x80-\xBF]|[\xE0-\xEF][\x80-\xBF]{2}|[\xF0-\xF7][\x80-\xBF]{3}|.", re.DOTALL)


def code_points(raw: bytes) -> list[int]:
    """``unicode_cpts_from_utf8`` (``src/unicode.cpp``): a byte that starts nothing decodable becomes U+FFFD.

    Overlong forms and surrogates are taken as they are; what is above U+10FFFF can be read, but not written again.
    """
    found = []
    for lead, *rest in _DECODABLE.findall(raw):
        value = lead & (0x7F, 0x1F, 0x0F, 0x07)[len(rest)]
        for byte in rest:
            value = value << 6 | byte & 0x3F
        if value > 0x10FFFF:
            raise EncodeError(f"code point {value:X} is above U+10FFFF: llama.cpp aborts")
        found.append(0xFFFD if lead >= 0x80 and not rest else value)
    return found


def _utf8(points: Iterable[int]) -> bytes:
    """``unicode_cpt_to_utf8``, joined; surrogates are written too."""
    return "".join(map(chr, points)).encode("utf-8", "surrogatepass")


class _Segment:
    """Code points of one segment. Outside of it there is nothing, so every question about a place there is False."""

    def __init__(self, points: list[int]) -> None:
        self.points = points

    def at(self, i: int) -> int:
        return self.points[i] if i < len(self.points) else -1

    def _has(self, flag: CodepointFlag, i: int) -> bool:
        return i < len(self.points) and bool(int(flags()[self.points[i]]) & flag)

    letter = partialmethod(_has, CodepointFlag.LETTER)
    number = partialmethod(_has, CodepointFlag.NUMBER)
    mark = partialmethod(_has, CodepointFlag.ACCENT_MARK)

    def space(self, i: int) -> bool:
        return self.at(i) in _WHITE_SPACE

    def newline(self, i: int) -> bool:
        return self.at(i) in (0x0A, 0x0D)

    def other(self, i: int) -> bool:
        r"""``[^\s\p{L}\p{N}]``."""
        return i < len(self.points) and not (self.space(i) or self.letter(i) or self.number(i))

    def optional(self, i: int) -> bool:
        r"""``[^\r\n\p{L}\p{N}]``."""
        return not (self.newline(i) or self.letter(i) or self.number(i))

    def han(self, i: int) -> bool:
        """``unicode_cpt_is_han``: whole blocks, assigned or not."""
        c = self.at(i)
        bmp = 0x3400 <= c <= 0x4DBF or 0x4E00 <= c <= 0x9FFF or 0xF900 <= c <= 0xFAFF
        return bmp or 0x20000 <= c <= 0x2A6DF or 0x2A700 <= c <= 0x2EBEF or 0x2F800 <= c <= 0x2FA1F


def _run(test: Callable[[int], bool], i: int, most: int | None = None) -> int:
    """The end of the run of places from ``i`` that pass ``test``, of at most ``most`` places."""
    end = i
    while (most is None or end < i + most) and test(end):
        end += 1
    return end


def _contraction(s: _Segment, i: int, *, fold: bool) -> int:
    """The end of ``'s|'t|'re|'ve|'m|'ll|'d`` at ``i``, or ``i``. Only ASCII folds to these letters."""
    if s.at(i) != ord("'"):
        return i
    after = "".join(chr(s.at(k)) if 0 <= s.at(k) < 0x80 else "\0" for k in (i + 1, i + 2))
    after = after.lower() if fold else after
    if after[0] in "stmd":
        return i + 2
    return i + 3 if after in ("re", "ve", "ll") else i


def _white(s: _Segment, i: int) -> int:
    r"""``\s+(?!\S)|\s+``, and one code point when nothing matches."""
    end = _run(s.space, i)
    return end - 1 if end - i > 1 and end < len(s.points) else max(end, i + 1)


def _gpt2(s: _Segment, i: int) -> int:
    r"""``'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+``."""
    end = _contraction(s, i, fold=False)
    start = i + 1 if s.at(i) == ord(" ") else i
    for kind in (s.letter, s.number, s.other):
        if end == i and kind(start):
            end = _run(kind, start)
    return end if end > i else _white(s, i)


def _after_words(s: _Segment, i: int, other: Callable[[int], bool], digits: int) -> int:
    r"""``\p{N}{1,digits}| ?[other]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+``."""
    if s.number(i):
        return _run(s.number, i, digits)
    start = i + 1 if s.at(i) == ord(" ") else i
    if other(start):
        return _run(s.newline, _run(other, start))
    newlines = [k for k in range(i, _run(s.space, i)) if s.newline(k)]
    return newlines[-1] + 1 if newlines else _white(s, i)


def _llama3(s: _Segment, i: int, digits: int = 3, marks: bool = False) -> int:
    r"""``(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[letter]+|\p{N}{1,digits}| ?[^\s\p{N}letter]+[\r\n]*|…``."""

    def letter(k: int) -> bool:  # [\p{L}], with marks [\p{L}\p{M}]
        return s.letter(k) or (marks and s.mark(k))

    end = _contraction(s, i, fold=True)
    if end > i:
        return end
    for start in (i, i + 1) if s.optional(i) else (i,):
        if letter(start):
            return _run(letter, start)
    return _after_words(s, i, lambda k: s.other(k) and not letter(k), digits)


def _kimi_k2(s: _Segment, i: int) -> int:
    """Runs of Han; words of other letters with an optional character before and contraction after; as llama3."""

    def letter(k: int) -> bool:
        return s.letter(k) and not s.han(k)

    if s.han(i):
        return _run(s.han, i)
    start = i + 1 if s.optional(i) else i
    if letter(start):
        return _contraction(s, _run(letter, start), fold=True)
    return _after_words(s, i, s.other, 3)


def _afmoe_digits(s: _Segment, i: int) -> int:
    """Runs of n numbers: n % 3 of them, then threes. What stands before a run stays with its first group."""
    start = _run(lambda k: k < len(s.points) and not s.number(k), i)
    count = _run(s.number, start) - start
    return start + (count % 3 or min(count, 3))


def _newlines(s: _Segment, i: int) -> int:
    r"""``[^\n]+|[\n]+``."""
    return _run(lambda k: k < len(s.points) and (s.at(k) == 0x0A) == (s.at(i) == 0x0A), i)


_SCANNERS: dict[str, Callable[[_Segment, int], int]] = {
    "gpt2": _gpt2,
    "llama3": _llama3,
    "qwen2": partial(_llama3, digits=1),
    "qwen35": partial(_llama3, digits=1, marks=True),
    "kimi_k2": _kimi_k2,
    "afmoe_digits": _afmoe_digits,
    "newlines": _newlines,
}


def _scan(name: str, points: list[int]) -> list[list[int]]:
    """One segment through ``unicode_regex_split_custom_*`` (``src/unicode.cpp``)."""
    segment, ends = _Segment(points), [0]
    while ends[-1] < len(points):
        ends.append(_SCANNERS[name](segment, ends[-1]))
    return [points[start:end] for start, end in pairwise(ends)]


# flag, byte of the class in the collapsed text, ASCII members as they are written into the pattern
_CLASSES = {
    "N": (CodepointFlag.NUMBER, "\xd1", "0-9"),
    "L": (CodepointFlag.LETTER, "\xd2", "A-Za-z"),
    "P": (CodepointFlag.PUNCTUATION, "\xd3", r"!-#%-*,-/:-;?-@\[-\]_\{\}"),
    "M": (CodepointFlag.ACCENT_MARK, "\xd4", ""),
    "S": (CodepointFlag.SYMBOL, "\xd5", r"\$+<=>\^`|~"),
}
_CLASSES.update(dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo"), _CLASSES["L"]))


def _collapse(point: int) -> str:
    """One character per code point: ASCII itself, other White_Space as U+000B, the rest by category."""
    if point < 0x80:
        return chr(point)
    if point in _WHITE_SPACE:
        return "\x0b"
    return next((byte for flag, byte, _ in _CLASSES.values() if int(flags()[point]) & flag), "\xd0")


def _collapse_pattern(pattern: str) -> str:
    r"""Each ``\p{X}`` becomes its byte and ASCII members, in brackets outside of a bracket expression."""
    out, inside = "", False
    for part in re.findall(r"\\p\{\w+\}|\\.|.", pattern, re.DOTALL):
        if part.startswith("\\p{"):
            _, byte, members = _CLASSES[part[3:-1]]
            part = byte + members if inside else f"[{byte}{members}]"
        elif part in "[]":
            inside = part == "["
        out += part
    return out


def _regex(step: Split, points: list[int]) -> list[list[int]]:
    """One segment through ``unicode_regex_split_stl``: matches, empty ones too, and gaps; its end is the text's end."""
    if step.dialect is Dialect.STD_COLLAPSED:
        text, pattern = "".join(map(_collapse, points)), _collapse_pattern(step.pattern)
    else:
        text = "".join("\x0b" if c >= 0x80 and c in _WHITE_SPACE else chr(c) for c in points)
        pattern = step.pattern
    words, at = [], 0
    for match in re.finditer(pattern, text, re.ASCII):
        if match.start() > at:
            words.append(points[at : match.start()])
        words.append(points[match.start() : match.end()])
        at = match.end()
    if at < len(points):
        words.append(points[at:])
    return words


class ReferenceTokenizer:
    """Encodes and decodes as llama.cpp's BPE does; see the module."""

    def __init__(self, ir: TokenizerIR) -> None:
        model, post = ir.model, ir.post_processor
        self.steps = [step for step in ir.pre_tokenizer if isinstance(step, Split | ScannerSplit)]
        known = ir.reference is Reference.LLAMA_CPP and len(self.steps) == len(ir.pre_tokenizer)
        if not known or not isinstance(model, BPE):
            raise UnsupportedError(f"the reference runtime has no such {model.kind} of {ir.reference}")
        assert isinstance(post, BosEos)
        (detokenize,) = ir.decoder
        assert isinstance(detokenize, LlamaDetokenize)
        self.ir, self.model, self.post, self.detokenizer = ir, model, post, detokenize
        self.byte_level = ir.alphabet.kind is AlphabetKind.BYTE_LEVEL
        self.attrs: list[int] = ir.vocab.attrs.tolist()
        self.ids = {piece: token for token, piece in enumerate(ir.vocab.pieces) if piece is not None}
        ranks = range(len(model.merges)) if model.ranks is None else model.ranks
        self.ranks = dict(zip(model.merges, ranks, strict=True))

    def encode(self, text: str | bytes, add_special_tokens: bool = True, parse_special: bool = True) -> list[int]:
        """``llama_vocab::impl::tokenize`` (``src/llama-vocab.cpp``)."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        ids = self._role("bos") if add_special_tokens and self.post.add_bos else []
        for fragment in self._partition(raw, parse_special):
            ids += [fragment] if isinstance(fragment, int) else self._encode_fragment(fragment)
        return ids + (self._role("eos") if add_special_tokens and self.post.add_eos else [])

    def _role(self, role: str) -> list[int]:
        token = self.ir.specials.get(role)
        if token is None:
            raise EncodeError(f"{role} is to be added, but there is none: llama.cpp aborts")
        return [token]

    def _partition(self, raw: bytes, parse_special: bool) -> list[bytes | int]:
        """``tokenizer_st_partition``: one pass over the text that is left for each added token."""
        fragments: list[bytes | int] = [raw] if raw else []
        for token in self.ir.added_tokens:
            attr = self.attrs[token.id]
            if not parse_special and attr & (PieceAttr.CONTROL | PieceAttr.UNKNOWN):
                continue
            cut: list[bytes | int] = []
            for fragment in fragments:
                rest: bytes | int = fragment
                while isinstance(rest, bytes) and token.content in rest:
                    left, _, rest = rest.partition(token.content)
                    if attr & PieceAttr.LSTRIP:
                        left = left.rstrip(_C_ISSPACE)
                    if attr & PieceAttr.RSTRIP:
                        rest = rest.lstrip(_C_ISSPACE)
                    cut += [left, token.id] if left else [token.id]
                cut += [rest] if rest != b"" else []
            fragments = cut
        return fragments

    def words(self, text: str) -> list[str]:
        """``unicode_regex_split`` before the bytes are spelled: the pre-tokenizer alone, empty words included."""
        return ["".join(map(chr, word)) for word in self._split([ord(char) for char in text])]

    def _split(self, points: list[int]) -> list[list[int]]:
        segments = [points] if points else []
        for step in self.steps:
            cut = partial(_scan, step.scanner) if isinstance(step, ScannerSplit) else partial(_regex, step)
            segments = [word for segment in segments for word in cut(segment)]
        return segments

    def _encode_fragment(self, raw: bytes) -> list[int]:
        """``llm_tokenizer_bpe_session::tokenize`` on one raw fragment, spaces escaped before."""
        for step in self.ir.normalizer:
            assert isinstance(step, Replace)
            raw = raw.replace(step.pattern.encode(), step.content.encode())
        ids = []
        for points in self._split(code_points(raw)):
            word = _utf8(points)
            spelled = byte_level.encode(word).encode() if self.byte_level else word
            for symbol in self._merge(spelled):
                ids += self._emit(symbol)
        return ids

    def _merge(self, word: bytes) -> list[bytes]:
        """Symbols of a word: a whole piece where the model says so, else characters merged by lowest rank, leftmost."""
        whole = self.model.ignore_merges or (self.model.whole_newlines and set(word) == {0x0A})
        if whole and word in self.ids:
            return [word]
        symbols = [_utf8([point]) for point in code_points(word)]
        if len(symbols) > 1 and b" " in symbols:
            raise EncodeError("a space beside another character in one word: llama.cpp aborts (find_bpe_rank)")
        while True:
            found = [(self.ranks[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in self.ranks]
            if not found:
                return symbols
            _, at = min(found)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]

    def _emit(self, symbol: bytes) -> list[int]:
        """The piece, else a piece for each byte; a byte without one is dropped."""
        if symbol in self.ids:
            return [self.ids[symbol]]
        spelled = [bytes([byte]) if self.byte_level else b"<0x%02X>" % byte for byte in symbol]
        return [self.ids[piece] for piece in spelled if piece in self.ids]

    def piece(self, token: int, special: bool) -> bytes:
        """``llama_vocab::impl::token_to_piece``."""
        if not 0 <= token < len(self.attrs):
            raise EncodeError(f"id {token} is outside 0..{len(self.attrs) - 1}")
        attr, text = self.attrs[token], self.ir.vocab.pieces[token] or b""
        if not special and attr & (PieceAttr.UNKNOWN | PieceAttr.CONTROL):
            return b""
        if attr & (PieceAttr.UNKNOWN | PieceAttr.CONTROL | PieceAttr.USER_DEFINED):
            return text
        if attr & PieceAttr.NORMAL:
            return text.replace("▁".encode(), b" ") if self.detokenizer.unescape_spaces else _decode_text(text)
        if attr & PieceAttr.BYTE:  # strtol of two characters in base 16: 0 when they do not begin with a number
            digits = re.match(rb"[ \t\n\v\f\r]*([+-]?[0-9a-fA-F]+)", text[3:5])
            return bytes([int(digits[1], 16) & 0xFF if digits else 0])
        return b""

    def detokenize(self, ids: Iterable[int], remove_special: bool = False, unparse_special: bool = False) -> bytes:
        """``llama_vocab::impl::detokenize``."""
        left, strip, specials = list(ids), self.detokenizer.strip_space, self.ir.specials
        if remove_special and self.post.add_bos and left and left[0] == specials.get("bos"):
            left, strip = left[1:], False
        if remove_special and self.post.add_eos and left and left[-1] == specials.get("eos"):
            del left[-1]
        pieces = [self.piece(token, unparse_special) for token in left]
        if strip and pieces and pieces[0].startswith(b" "):
            pieces[0] = pieces[0][1:]
        text = b"".join(pieces)
        return _clean_spaces(text) if self.detokenizer.clean_spaces else text


def _decode_text(text: bytes) -> bytes:
    """``llama_decode_text``: GPT-2's characters to bytes."""
    out = b""
    for point in code_points(text):
        byte = byte_level.BYTES.get(chr(point))
        out += b"[UNK_BYTE_0x" + _utf8([point]).hex().encode() + text + b"]" if byte is None else bytes([byte])
    return out


def _clean_spaces(text: bytes) -> bytes:
    """The three passes of ``detokenize``, each in place: ``buffer[:total]`` is what a pass has written so far."""
    for number in (1, 2, 3):
        buffer = bytearray(text)
        total = i = 1 if text else 0
        while i < len(buffer):
            char, before = buffer[i], buffer[i - 1]
            if number == 1 and before == 0x20 and char in b"?!.,":
                total -= 1
            elif number == 2 and buffer[i - 1 : i + 2] == b" ' ":
                total -= 1
                i += 1
                buffer[i] = 0  # no longer a space before the next apostrophe
            elif number == 3 and before == 0x20 and re.match(rb"'(?:[sm]|re|ve)", buffer[i : i + 3]):
                total -= 1
            buffer[total] = char
            total, i = total + 1, i + 1
        text = bytes(buffer[:total])
    return text
