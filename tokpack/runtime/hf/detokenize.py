"""Ids → text by the rules of the ``tokenizers`` library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial

from tokpack.errors import EncodeError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.hf.added import read_added
from tokpack.runtime.hf.decoders import Decoder, make_decoder
from tokpack.runtime.hf.fragment import Range
from tokpack.runtime.hf.pieces import JoinedDecoder
from tokpack.typed import TYPE_CHECKING, Any
from tokpack.unicode import byte_level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["HfDetokenizer"]

Matcher = Callable[[str], Iterable[Range]]
Way = Callable[[Sequence[int]], str]

_CACHED = 1 << 18


class _Texts(dict[int, str | None]):
    """id → its text, None for one that is left out; bounded."""

    def __init__(self, make: Callable[[int], str | None]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, token: int) -> str | None:
        if len(self) >= _CACHED:
            self.clear()
        text = self[token] = self._make(token)
        return text


class _Raw(dict[int, bytes]):
    """id → its bytes, none for one that is left out; bounded."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, token: int) -> bytes:
        if len(self) >= _CACHED:
            self.clear()
        raw = self[token] = self._make(token)
        return raw


def _integer(token: Any) -> int:
    """The integer that ``token`` is equal to, or -1."""
    try:
        number = int(token)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if number == token else -1


class HfDetokenizer:
    """Ids to text (``TokenizerImpl::decode``)."""

    def __init__(
        self,
        view: PackView,
        pieces: PieceTable,
        matcher: Callable[[str, str], Matcher],
        added: Callable[[], dict[int, str]],
    ) -> None:
        self._view = view
        self._pieces = pieces
        self._matcher = matcher
        self._added = added

    @cached_property
    def _decoder(self) -> Decoder:
        with meta_errors(self._view.file):
            return make_decoder(self._view.meta["decoder"], self._matcher)

    @cached_property
    def _special(self) -> frozenset[str]:
        tokens = read_added(self._view, self._pieces.size)
        return frozenset(token.pattern for token, _ in tokens if token.special)

    def text(self, token: int) -> str | None:
        """Text of a token, None for an id without one."""
        if not isinstance(token, int):  # numpy's integers, and what else is equal to one: caches hold them as one
            token = _integer(token)
        if not 0 <= token < self._pieces.size or self._pieces.is_hole(token):
            return None
        shown = self._added().get(token)
        return self._pieces.text(token).decode("utf-8", "replace") if shown is None else shown

    def piece(self, token: int, special: bool) -> bytes:
        """What the token alone decodes to."""
        if self.text(token) is None:
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}, or has no piece")
        return self.detokenize([token], False, special)

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        """Text of ids as bytes; ids that do not exist are left out, as in the library."""
        return self._ways[bool(unparse_special)](ids).encode("utf-8")

    @cached_property
    def _ways(self) -> tuple[Way, Way]:
        return self._way(special=False), self._way(special=True)

    def _way(self, *, special: bool) -> Way:
        """Ids → text, with special tokens or without."""
        texts = self._shown[special]
        joined = self._joined[special]
        if joined is not None:
            return joined.decode
        if self._of_bytes:
            raw = _Raw(partial(self._bytes, special=special)).__getitem__
            return lambda ids: b"".join(map(raw, ids)).decode("utf-8", "replace")
        decoder = self._decoder
        return lambda ids: decoder.decode([text for text in map(texts, ids) if text is not None])

    @cached_property
    def _shown(self) -> tuple[Callable[[int], str | None], Callable[[int], str | None]]:
        """Id → text, None for one that is left out: without special tokens, with them."""
        return _Texts(self._unless_special).__getitem__, _Texts(self.text).__getitem__

    @cached_property
    def _joined(self) -> tuple[JoinedDecoder | None, JoinedDecoder | None]:
        """The chain as strings of tokens, where that can be done; with the same order."""
        steps = self._decoder.steps
        with meta_errors(self._view.file):
            first, second = (JoinedDecoder(self._view.meta["decoder"], steps, shown) for shown in self._shown)
        return (first, second) if first.possible else (None, None)

    @cached_property
    def _of_bytes(self) -> bool:
        with meta_errors(self._view.file):
            return [step["kind"] for step in self._view.meta["decoder"]] == ["byte-level-decoder"]

    def _unless_special(self, token: int) -> str | None:
        text = self.text(token)
        return None if text in self._special else text

    @property
    def detokenize_array(self) -> Callable[[NDArray[np.int64], bool, bool], bytes | None] | None:
        """The same for many ids, where their bytes only have to be laid end to end."""
        return self._gathered if self._of_bytes or self._joined[0] is not None else None

    def _gathered(self, ids: NDArray[np.int64], remove_special: bool, unparse_special: bool) -> bytes | None:
        """Text of ids; None if some are out of range, or not all is text."""
        joined = self._joined[bool(unparse_special)]
        if joined is not None:
            text = joined.decode_array(ids, self._pieces.size)
            return None if text is None else text.encode("utf-8")
        found = self._gathers[bool(unparse_special)].join(ids)
        return None if found is None else _mended(found)

    @cached_property
    def _gathers(self) -> tuple[ByteGather, ByteGather]:
        from tokpack.runtime.bulk.gather import ByteGather

        size = self._pieces.size
        return ByteGather(partial(self._bytes, special=False), size), ByteGather(
            partial(self._bytes, special=True), size
        )

    def _bytes(self, token: int, special: bool) -> bytes:
        """Bytes of a token, as the decoder of byte-level pieces takes it."""
        text = self.text(token)
        if text is None or (not special and text in self._special):
            return b""
        spelled = text.encode("utf-8")
        decoded = byte_level.decode(spelled)
        return spelled if decoded is None else decoded


def _mended(raw: bytes) -> bytes:
    """UTF-8 of what the library's lossy decoding makes of bytes, themselves if they are a text."""
    if raw.isascii():
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode("utf-8")
    return raw
