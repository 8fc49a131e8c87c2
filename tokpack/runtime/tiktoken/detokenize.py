"""Ids to bytes (``CoreBPE::decode_bytes``); Mistral's ``Tekkenizer.decode`` cuts at special tokens."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import groupby

from tokpack.errors import EncodeError
from tokpack.pack.pieces import CONTROL, PieceTable
from tokpack.runtime.stream import StreamDecoder
from tokpack.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.gather import ByteGather

__all__ = ["RankDetokenizer", "RankStream"]


_CACHE = 1 << 18


class _SpecialError(Exception):
    """A special token that ends a run."""


class _PieceCache(dict[int, bytes]):
    """Id → bytes; bounded."""

    def __init__(self, detokenizer: RankDetokenizer, special: bool) -> None:
        super().__init__()
        self._detokenizer = detokenizer
        self._special = special

    def __missing__(self, token: int) -> bytes:
        detokenizer = self._detokenizer
        if detokenizer.is_special(token) and detokenizer.by_run:
            raise _SpecialError
        if len(self) >= _CACHE:
            self.clear()
        piece = self[token] = detokenizer.piece(token, self._special)
        return piece


class RankDetokenizer:
    """The way back.

    Args:
        pieces: the vocabulary.
        by_run: what stands between special tokens is made valid UTF-8 on its own (``Tekkenizer._decode_all``).
    """

    def __init__(self, pieces: PieceTable, by_run: bool) -> None:
        self._pieces = pieces
        self.by_run = by_run
        self._caches = {special: _PieceCache(self, special) for special in (False, True)}
        self._gathers: dict[bool, ByteGather] = {}

    def is_special(self, token: int) -> bool:
        """Whether the id is that of a special token; EncodeError for an id without a piece."""
        if not isinstance(token, int) or not 0 <= token < self._pieces.size or self._pieces.is_hole(token):
            raise EncodeError(f"id {token} is outside 0..{self._pieces.size - 1}, or has no piece")
        return bool(self._pieces.attrs[token] & CONTROL)

    def piece(self, token: int, special: bool) -> bytes:
        """Bytes of a piece; of special tokens only if ``special``."""
        return self._pieces.raw(token) if not self.is_special(token) or special else b""

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes:
        """Bytes of ids; with ``unparse_special`` exactly those of ``decode_bytes``."""
        try:
            return b"".join(map(self._caches[bool(unparse_special)].__getitem__, ids))
        except _SpecialError:
            return self._by_run(ids, unparse_special)
        except TypeError as error:
            raise EncodeError("an id is not a number") from error

    def _by_run(self, ids: Sequence[int], unparse_special: bool) -> bytes:
        runs = [(special, list(run)) for special, run in groupby(ids, self.is_special)]
        parts = [b"".join([self.piece(token, unparse_special) for token in run]) for _, run in runs]
        if len(parts) > 1:
            parts = [part.decode("utf-8", "replace").encode() for part in parts]
        return b"".join(parts)

    def detokenize_array(self, ids: NDArray[np.int64], remove_special: bool, unparse_special: bool) -> bytes | None:
        """As :meth:`detokenize`; None for ids that are no pieces, and for special tokens that end a run."""
        from tokpack.runtime.bulk.gather import ByteGather

        gather = self._gathers.get(unparse_special)
        if gather is None:
            gather = ByteGather(lambda token: self.piece(token, unparse_special), self._pieces.size)
            self._gathers[unparse_special] = gather
        if self.by_run and self._any_special(ids):
            return None
        try:
            return gather.join(ids)
        except EncodeError:
            return None  # the scalar path names the first of them

    def _any_special(self, ids: NDArray[np.int64]) -> bool:
        import numpy as np

        attrs = np.frombuffer(self._pieces.attrs, dtype="<u2")
        inside = ids[(ids >= 0) & (ids < len(attrs))]
        return bool((attrs.take(inside) & CONTROL).any())


class RankStream(StreamDecoder):
    """The pieces end to end; with ``by_run`` a special token ends an unfinished character."""

    def __init__(self, detokenizer: RankDetokenizer, special: bool) -> None:
        self._detokenizer = detokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """See :meth:`StreamDecoder.push`."""
        rest = self.flush() if self._detokenizer.by_run and self._detokenizer.is_special(token) else ""
        return rest + self._decoder.decode(self._detokenizer.piece(token, self._special))

    def flush(self) -> str:
        """See :meth:`StreamDecoder.flush`."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        return rest
