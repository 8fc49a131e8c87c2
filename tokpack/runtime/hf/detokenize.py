"""Ids → text by the rules of the ``tokenizers`` library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tokpack.errors import EncodeError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.hf.added import read_added
from tokpack.runtime.hf.decoders import Decoder, make_decoder
from tokpack.runtime.hf.fragment import Range
from tokpack.unicode import byte_level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["HfDetokenizer"]

Matcher = Callable[[str], Iterable[Range]]


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
        if not isinstance(token, int) or not 0 <= token < self._pieces.size or self._pieces.is_hole(token):
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
        tokens = [text for text in map(self.text, ids) if text is not None]
        if not unparse_special:
            tokens = [text for text in tokens if text not in self._special]
        return self._decoder.decode(tokens).encode("utf-8")

    def detokenize_array(self, ids: NDArray[np.int64], remove_special: bool, unparse_special: bool) -> bytes | None:
        """The same for many ids by vocabularies whose pieces are bytes; None for others, and for ids out of range."""
        gathers = self._gathers
        found = None if gathers is None else gathers[bool(unparse_special)].join(ids)
        return None if found is None else found.decode("utf-8", "replace").encode("utf-8")

    @cached_property
    def _gathers(self) -> tuple[ByteGather, ByteGather] | None:
        with meta_errors(self._view.file):
            if [step["kind"] for step in self._view.meta["decoder"]] != ["byte-level-decoder"]:
                return None
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
