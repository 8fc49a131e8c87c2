"""Decoders (``decoders/*.rs``, ``pre_tokenizers/{byte_level,metaspace}.rs``): token texts to token texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.runtime.errors import text_of
from tokpack.typed import Any
from tokpack.unicode import byte_level

__all__ = ["Decoder", "Step", "byte_of", "make_decoder"]

Tokens = list[str]
_CACHED = 1 << 16
Step = Callable[[Tokens], Tokens]
# ``wordpiece.rs``, cleanup, in this order
_CLEANUP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


class Decoder:
    """The chain of a pack; without a step, tokens are joined with spaces.

    Attributes:
        steps: its steps.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps

    def decode(self, tokens: Tokens) -> str:
        """Text of token texts."""
        if not self.steps:
            return " ".join(tokens)
        for step in self.steps:
            tokens = step(tokens)
        return "".join(tokens)


def _byte_level(tokens: Tokens) -> Tokens:
    raw = bytearray()
    for token in tokens:
        spelled = token.encode("utf-8")
        decoded = byte_level.decode(spelled)
        raw += spelled if decoded is None else decoded
    return [raw.decode("utf-8", "replace")]


def _byte_fallback(tokens: Tokens) -> Tokens:
    out: Tokens = []
    waiting = bytearray()

    def flush() -> None:
        if waiting:
            try:
                out.append(waiting.decode("utf-8"))
            except UnicodeDecodeError:
                out.extend("�" * len(waiting))
            waiting.clear()

    for token in tokens:
        byte = byte_of(token)
        if byte is None:
            flush()
            out.append(token)
        else:
            waiting.append(byte)
    flush()
    return out


def byte_of(token: str) -> int | None:
    """Value of ``<0xHH>``; Rust's from_str_radix also takes a plus sign for the first digit."""
    if len(token.encode("utf-8")) != 6 or not (token.startswith("<0x") and token.endswith(">")):
        return None
    digits = token[3:5].removeprefix("+")
    if not digits or any(char not in "0123456789abcdefABCDEF" for char in digits):
        return None
    return int(digits, 16)


def _fuse(tokens: Tokens) -> Tokens:
    return ["".join(tokens)]


def _metaspace(replacement: str, scheme: str) -> Step:
    def decode(tokens: Tokens) -> Tokens:
        out = [token.replace(replacement, " ") for token in tokens]
        if tokens and scheme != "never":
            out[0] = tokens[0].replace(replacement, "")
        return out

    return decode


def _clean(text: str) -> str:
    for old, new in _CLEANUP:
        text = text.replace(old, new)
    return text


def _word_piece(prefix: str, cleanup: bool) -> Step:
    def decode(tokens: Tokens) -> Tokens:
        out: Tokens = []
        for at, token in enumerate(tokens):
            text = token
            if at:
                text = token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"
            out.append(_clean(text) if cleanup else text)
        return out

    return decode


def _bpe(suffix: str) -> Step:
    def decode(tokens: Tokens) -> Tokens:
        last = len(tokens) - 1
        return [token.replace(suffix, "" if at == last else " ") for at, token in enumerate(tokens)]

    return decode


def _ctc(pad: str, delimiter: str, cleanup: bool) -> Step:
    known: dict[str, str] = {}

    def shown(token: str) -> str:
        text = known.get(token)
        if text is None:
            text = token.replace(pad, "")
            if cleanup:
                text = _clean(text).replace(delimiter, " ")
            if len(known) >= _CACHED:
                known.clear()
            known[token] = text
        return text

    def decode(tokens: Tokens) -> Tokens:
        return [text for text in (shown(token) for token, _ in groupby(tokens)) if text]

    return decode


def _strip(content: str, start: int, stop: int) -> Step:
    def strip(token: str) -> str:
        first = 0
        while first < min(start, len(token)) and token[first] == content:
            first += 1
        last = len(token)
        for taken in range(stop):
            if taken >= len(token):
                raise EncodeError("the Strip decoder panics in the library on a token that is too short")
            if token[-1 - taken] != content:
                break
            last = len(token) - taken - 1
        if first > last:
            raise EncodeError("the Strip decoder panics in the library on a token that is eaten from both ends")
        return token[first:last]

    return lambda tokens: [strip(token) for token in tokens]


Matcher = Callable[[str], Any]


def _replace(matcher: Matcher, content: str) -> Step:
    def replace(token: str) -> str:
        parts: list[str] = []
        last = 0
        for start, end in matcher(token):
            parts += (token[last:start], content)
            last = end
        parts.append(token[last:])
        return "".join(parts)

    return lambda tokens: [replace(token) for token in tokens]


def _literal(pattern: str, content: str) -> Step:
    return lambda tokens: [token.replace(pattern, content) for token in tokens]


def make_decoder(steps: Sequence[Mapping[str, Any]], matcher: Callable[[str, str], Matcher]) -> Decoder:
    """The decoder of a pack; ``matcher``: (pattern, dialect) → what finds its matches."""
    return Decoder([_make(step, matcher) for step in steps])


def _make(step: Mapping[str, Any], matcher: Callable[[str, str], Matcher]) -> Step:
    kind = step["kind"]
    simple: dict[str, Step] = {
        "byte-level-decoder": _byte_level,
        "byte-fallback-decoder": _byte_fallback,
        "fuse-decoder": _fuse,
    }
    if kind in simple:
        return simple[kind]
    if kind == "metaspace-decoder":
        return _metaspace(text_of(step, "replacement"), step["prepend_scheme"])
    if kind == "wordpiece-decoder":
        return _word_piece(text_of(step, "prefix"), bool(step["cleanup"]))
    if kind == "bpe-decoder":
        return _bpe(text_of(step, "suffix"))
    if kind == "ctc-decoder":
        return _ctc(text_of(step, "pad_token"), text_of(step, "word_delimiter_token"), bool(step["cleanup"]))
    if kind == "strip-decoder":
        return _strip(text_of(step, "content"), int(step["start"]), int(step["stop"]))
    if kind == "replace":
        if step["dialect"] == "literal" and text_of(step, "pattern"):
            return _literal(text_of(step, "pattern"), text_of(step, "content"))
        return _replace(matcher(step["pattern"], step["dialect"]), text_of(step, "content"))
    raise UnsupportedError(f"a pack with the decoder step {kind!r} under the library's rules")
