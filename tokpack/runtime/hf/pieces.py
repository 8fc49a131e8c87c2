"""A decoder chain as one string for each token: decoding is then looking up and joining.

Most steps do the same to a token wherever it stands; some treat the first or the last token in their own way. What
follows ``Fuse`` (or the decoder of byte-level pieces) sees the joined text. Byte pieces, whose run makes characters,
hold their place as lone surrogates, of which no text has any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tokpack.runtime.hf.decoders import Step, byte_of
from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["JoinedDecoder"]

_CACHED = 1 << 18
_CACHED_RUN = 16  # bytes
_BYTE = 0xDC00  # of a byte piece, with the byte added
_EMPTY = "\udd00"  # a token without text, which ends a run of byte pieces
_NOT_TEXT = b"\xff"  # in no UTF-8
_BYTES = re.compile("[\udc00-\udcff]+")
_ELEMENTWISE = frozenset({"replace", "strip-decoder", "metaspace-decoder", "wordpiece-decoder", "bpe-decoder"})
_AT_THE_ENDS = frozenset({"metaspace-decoder", "wordpiece-decoder", "bpe-decoder"})  # the first or the last differs


class _Strings(dict[int, str]):
    """id → what takes its place in the joined text; "" for one that is left out. Bounded."""

    def __init__(self, make: Callable[[int], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, token: int) -> str:
        if len(self) >= _CACHED:
            self.clear()
        text = self[token] = self._make(token)
        return text


class _Runs(dict[str, str]):
    """Run of byte pieces → its characters; bounded."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, run: str) -> str:
        if len(self) >= _CACHED:
            self.clear()
        text = self[run] = self._make(run)
        return text


class JoinedDecoder:
    """A chain of steps as strings of tokens.

    Args:
        plain: the steps as the meta section has them.
        steps: the same, ready to run.
        shown: id → text of a token, None for one that is left out.
    """

    def __init__(
        self, plain: Sequence[Mapping[str, Any]], steps: Sequence[Step], shown: Callable[[int], str | None]
    ) -> None:
        kinds = [str(step["kind"]) for step in plain]
        at = 0
        while at < len(kinds) and kinds[at] in _ELEMENTWISE:
            at += 1
        self._before = list(steps[:at])
        self._ends = any(kind in _AT_THE_ENDS for kind in kinds[:at])
        self._bytes = at < len(kinds) and kinds[at] == "byte-fallback-decoder"
        middle = at = at + self._bytes
        while at < len(kinds) and kinds[at] in ("replace", "strip-decoder"):
            at += 1
        self._middle = list(steps[middle:at]) if self._bytes else []
        self._joined = list(steps[at:])
        # of what begins another way, one step after the other has to see all tokens
        self.possible = bool(kinds) and (at == len(kinds) or kinds[at] == "fuse-decoder")
        contents = {str(step["content"]) for step in plain if step["kind"] == "strip-decoder"}
        self._other = next(char for char in "xyzabcdefghij" if char not in contents) if len(contents) < 10 else ""
        self.possible &= bool(self._other)
        self._shown = shown
        self._strings = _Strings(self._make)
        self._gather: ByteGather | None = None
        self._runs = _Runs(self._run)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids."""
        head, start, stop, tail = self._inside(ids)
        parts = ids if stop - start == len(ids) else ids[start:stop]
        text = head + "".join(map(self._strings.__getitem__, parts)) + tail
        if self._bytes and not text.isascii():
            text = _BYTES.sub(self._known_run, text)
            if _EMPTY in text:
                text = text.replace(_EMPTY, "")
        return self._finish(text)

    def decode_array(self, ids: NDArray[np.int64], size: int) -> str | None:
        """The same for many ids; None if :meth:`decode` has to do it. ``size``: number of ids."""
        if self._middle:
            return None
        if self._gather is None:
            from tokpack.runtime.bulk.gather import ByteGather

            self._gather = ByteGather(lambda token: self._raw(self._make(token)), size)
        head, start, stop, tail = self._inside(ids)
        inner = self._gather.join(ids[start:stop])
        if inner is None:
            return None
        try:
            # runs of byte pieces that are not characters each, and what is empty between them, are not UTF-8 here
            return self._finish((self._raw(head) + inner + self._raw(tail)).decode("utf-8"))
        except UnicodeDecodeError:
            return None

    def _inside(self, ids: Sequence[int] | NDArray[np.int64]) -> tuple[str, int, int, str]:
        """What the first token and the last one become, and (first, last + 1) of what is between them.

        Where no step looks at the ends: nothing, and all ids.
        """
        start, stop = 0, len(ids)
        if not self._ends:
            return "", start, stop, ""
        shown = self._shown
        while start < stop and shown(ids[start]) is None:
            start += 1
        while start < stop and shown(ids[stop - 1]) is None:
            stop -= 1
        if stop - start < 2:
            return self._element(ids[start], first=True, last=True) if start < stop else "", 0, 0, ""
        head = self._element(ids[start], first=True, last=False)
        return head, start + 1, stop - 1, self._element(ids[stop - 1], first=False, last=True)

    def _finish(self, text: str) -> str:
        tokens = [text]
        for step in self._joined:
            tokens = step(tokens)
        return "".join(tokens) if self._joined else text

    def _raw(self, text: str) -> bytes:
        """Bytes of the string of a token."""
        if not self._bytes or text.isascii() or len(text) > 1 or not "\ud800" <= text <= "\udfff":
            return text.encode("utf-8")
        return _NOT_TEXT if text == _EMPTY else bytes((ord(text) - _BYTE,))

    def _make(self, token: int) -> str:
        return self._element(token, first=False, last=False)

    def _element(self, token: int, *, first: bool, last: bool) -> str:
        text = self._shown(token)
        if text is None:
            return ""
        tokens = [*([] if first else [self._other]), text, *([] if last else [self._other])]
        for step in self._before:
            tokens = step(tokens)
        text = tokens[0 if first else 1]
        if not self._bytes:
            return text
        byte = byte_of(text)
        if byte is not None:
            return chr(_BYTE + byte)
        tokens = [text]
        for step in self._middle:
            tokens = step(tokens)
        return tokens[0] or _EMPTY

    def _known_run(self, found: re.Match[str]) -> str:
        run = found[0]
        return self._runs[run] if len(run) <= _CACHED_RUN else self._run(run)

    def _run(self, run: str) -> str:
        """A run of byte pieces."""
        raw = bytes(ord(char) - _BYTE for char in run)
        try:
            tokens = [raw.decode("utf-8")]
        except UnicodeDecodeError:
            tokens = ["\ufffd"] * len(raw)
        for step in self._middle:
            tokens = step(tokens)
        return "".join(tokens)
