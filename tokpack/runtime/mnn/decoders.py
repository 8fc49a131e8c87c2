"""Ids to text: the decoder chain (``decode_chain`` in ``tokenizer.cpp``) and the text of a single id."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.typed import Any
from tokpack.unicode import byte_level

__all__ = ["Chain", "byte_level_text", "hex_byte", "make_chain", "single_text"]

Tokens = list[bytes]
Chain = Callable[[Tokens], Tokens]

_MARK = "▁".encode()
_BYTE_OF = {char.encode(): bytes((byte,)) for char, byte in byte_level.BYTES.items()}
# one character as ``utf8_decode`` takes it; what is not UTF-8 stays byte by byte
_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\x00-\xff]",
    re.DOTALL,
)
_HEX = b"0123456789abcdefABCDEF"
_SPACES = b" \t\n\v\f\r"
_INT_MAX = (1 << 31) - 1
_PUNCTUATION = ((b" .", b"."), (b" ?", b"?"), (b" !", b"!"), (b" ,", b","))
_CONTRACTIONS = (
    (b" ' ", b"'"),
    (b" n't", b"n't"),
    (b" 'm", b"'m"),
    (b" 's", b"'s"),
    (b" 've", b"'ve"),
    (b" 're", b"'re"),
)


def hex_byte(text: bytes, at: int) -> int | None:
    """What ``sscanf(text + at, "<0x%02X>")`` reads; None when it reads nothing. The end is not compared."""
    if not text.startswith(b"<0x", at):
        return None
    at += 3
    while at < len(text) and text[at] in _SPACES:
        at += 1
    window = text[at : at + 2]
    sign = -1 if window[:1] == b"-" else 1
    if window[:1] in (b"+", b"-"):
        window = window[1:]
    elif window in (b"0x", b"0X"):
        return 0
    digits = window[: next((i for i, digit in enumerate(window) if digit not in _HEX), len(window))]
    return sign * int(digits, 16) & 0xFF if digits else None


def byte_level_text(text: bytes) -> bytes:
    """GPT-2's characters to their bytes; other characters stay."""
    decoded = byte_level.decode(text)
    if decoded is not None:
        return decoded
    return b"".join(_BYTE_OF.get(char, char) for char in _CHARACTER.findall(text))


def single_text(token: bytes, word_prefix: bytes | None, spelled: bool) -> bytes:
    """``PipelineTokenizer::decode(int)``, the text of one id as the engine streams it.

    Args:
        token: text of the piece.
        word_prefix: of the WordPiece decoder, None when there is none.
        spelled: there is a ByteLevel decoder.
    """
    out = bytearray()
    at = 0
    while at < len(token):
        if token.startswith(_MARK, at):
            out += b" "
            at += 3
            continue
        byte = hex_byte(token, at) if at + 6 <= len(token) else None
        if byte is None:
            out.append(token[at])
            at += 1
        else:
            out.append(byte)
            at += 6
    text = bytes(out)
    if word_prefix is not None:
        return text[len(word_prefix) :] if word_prefix and text.startswith(word_prefix) else b" " + text
    return byte_level_text(text) if spelled else text


def _byte_level(tokens: Tokens) -> Tokens:
    return [byte_level_text(token) for token in tokens]


def _byte_fallback(tokens: Tokens) -> Tokens:
    found = [hex_byte(token, 0) for token in tokens]
    return [token if byte is None else bytes((byte,)) for token, byte in zip(tokens, found, strict=True)]


def _fuse(tokens: Tokens) -> Tokens:
    return [b"".join(tokens)] if len(tokens) > 1 else tokens


def _replace(pattern: bytes, content: bytes, tokens: Tokens) -> Tokens:
    if not pattern and tokens:
        raise EncodeError("the Replace decoder of this file has an empty pattern, on which MNN never ends")
    return [token.replace(pattern, content) for token in tokens]


def _strip(content: bytes, start: bool, stop: bool, tokens: Tokens) -> Tokens:
    """One copy at each end of the whole list."""
    if not tokens:
        return tokens
    tokens = list(tokens)
    if start and tokens[0]:
        tokens[0] = tokens[0].removeprefix(content)
    if stop and tokens[-1]:
        tokens[-1] = tokens[-1].removesuffix(content)
    return tokens


def _word_piece(prefix: bytes, tokens: Tokens) -> Tokens:
    parts = []
    for at, token in enumerate(tokens):
        if token.startswith(prefix):
            parts.append(token[len(prefix) :])
        else:
            parts.append(b" " + token if at else token)
    return [b"".join(parts)]


def _metaspace(replacement: bytes, drop: bool, tokens: Tokens) -> Tokens:
    if not replacement and any(tokens):
        raise EncodeError("the Metaspace decoder of this file has an empty replacement, on which MNN never ends")
    out = [token.replace(replacement, b" ") for token in tokens]
    if drop and out and out[0].startswith(b" "):
        out[0] = out[0][1:]
    return out


def _step(plain: Mapping[str, Any]) -> Chain:
    kind = plain["kind"]
    if kind == "byte-level-decoder":
        return _byte_level
    if kind == "byte-fallback-decoder":
        return _byte_fallback
    if kind == "fuse-decoder":
        return _fuse
    if kind == "replace":
        return partial(_replace, plain["pattern"].encode(), plain["content"].encode())
    if kind == "strip-decoder":
        start, stop = (0 < int(plain[name]) <= _INT_MAX for name in ("start", "stop"))
        return partial(_strip, plain["content"].encode(), start, stop)
    if kind == "wordpiece-decoder":
        return partial(_word_piece, plain["prefix"].encode())
    if kind == "metaspace-decoder":
        return partial(_metaspace, plain["replacement"].encode(), plain["prepend_scheme"] != "never")
    raise UnsupportedError(f"a pack with the decoder {kind!r} under the rules of MNN")


def make_chain(steps: Sequence[Mapping[str, Any]], clean_up: bool) -> Callable[[Tokens], bytes]:
    """``PipelineTokenizer::decode``: texts of tokens → the text."""
    chain = [_step(plain) for plain in steps]
    cleanups: tuple[tuple[bytes, bytes], ...] = (
        _PUNCTUATION if any(plain["kind"] == "wordpiece-decoder" for plain in steps) else ()
    )
    if clean_up:
        cleanups += _CONTRACTIONS

    def decode(tokens: Tokens) -> bytes:
        for step in chain:
            tokens = step(tokens)
        text = b"".join(tokens)
        for old, new in cleanups:
            text = text.replace(old, new)
        return text

    return decode
