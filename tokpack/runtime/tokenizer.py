"""The tokenizer that users hold: a mapped pack and the stages that its meta section names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from tokpack.errors import EncodeError, FormatError, Location, UnsupportedError
from tokpack.pack.view import PackView, open_pack
from tokpack.records import dataclass
from tokpack.runtime.errors import meta_errors
from tokpack.typed import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.findings import Finding
    from tokpack.pack.pieces import PieceTable
    from tokpack.runtime.joined import Joiner
    from tokpack.runtime.stream import StreamDecoder

__all__ = ["Piece", "Tokenizer"]

_MANY = 1 << 13  # ids from which on decoding goes the bulk way


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a text.

    Attributes:
        id: the id.
        text: the piece as a person reads it, undecodable bytes as U+FFFD.
        bytes: the bytes it stands for.
        start, end: where it lies in the text: characters of a str, bytes of a bytes; equal for ids that are added.
            A piece that holds part of a character spans the whole character.
    """

    id: int
    text: str
    bytes: bytes
    start: int
    end: int


class Tokenizer:
    """Encodes and decodes; immutable, safe to share between threads and forked processes.

    Use :func:`tokpack.load` to get one.

    Attributes:
        reference: the implementation whose ids these are, such as ``llama.cpp``.
        vocab_size: number of ids.
        view: the mapped pack.
    """

    def __init__(self, view: PackView) -> None:
        self.view = view
        meta = view.meta
        self.reference = str(meta.get("reference"))
        with meta_errors(view.file):
            self._pipeline = _pipeline(view, self.reference)
        self._pieces = self._pipeline.pieces
        self.vocab_size = self._pieces.size
        specials = meta.get("specials")
        self._specials: dict[str, int] = dict(specials) if isinstance(specials, dict) else {}
        self._joiner: Joiner | bool | None = False  # made by the first large batch

    # --- encode ---

    def encode(
        self,
        text: str | bytes,
        add_special_tokens: bool = True,
        parse_special: bool = True,
        *,
        truncation: bool = False,
        padding: bool = False,
    ) -> list[int]:
        """Ids of ``text``.

        Args:
            text: str, or bytes (invalid UTF-8 as the reference treats it).
            add_special_tokens: add what the tokenizer's file says (BOS, EOS), no more.
            parse_special: False for text from outside: control tokens written in it stay text.
            truncation: cut as the tokenizer's file says (tokenizer.json only).
            padding: fill up as the file says.

        Raises EncodeError for a text on which the reference program aborts.
        """
        if truncation or padding:
            return self.encode_pair(
                text, None, add_special_tokens, parse_special, truncation=truncation, padding=padding
            )[0]
        return self._pipeline.encode(text, add_special_tokens, parse_special)

    def encode_pair(
        self,
        text: str | bytes,
        pair: str | bytes | None,
        add_special_tokens: bool = True,
        parse_special: bool = True,
        *,
        truncation: bool = False,
        padding: bool = False,
    ) -> tuple[list[int], list[int]]:
        """(ids, type ids) of two texts, by the template for pairs; of one text if ``pair`` is None.

        UnsupportedError when the reference has no pairs (only the tokenizers library has).
        """
        compose = getattr(self._pipeline, "compose", None)
        if compose is None:
            raise UnsupportedError(f"{self.reference} knows no pairs of texts, truncation or padding")
        found: tuple[list[int], list[int]] = compose(
            text,
            pair,
            add_special=add_special_tokens,
            parse_special=parse_special,
            truncate=truncation,
            pad=padding,
        )
        return found

    def encode_array(
        self, text: str | bytes, add_special_tokens: bool = True, parse_special: bool = True
    ) -> NDArray[np.int32]:
        """As :meth:`encode`, an int32 array ``[n]``."""
        import numpy as np

        encode_array = getattr(self._pipeline, "encode_array", None)
        if encode_array is not None:
            found: NDArray[np.int32] = encode_array(text, add_special_tokens, parse_special)
            return found
        ids = self._pipeline.encode(text, add_special_tokens, parse_special)
        try:
            return np.array(ids, dtype=np.int32)
        except OverflowError as error:
            where, hint = Location(self.view.file), "convert the tokenizer again"
            raise FormatError(f"the index is damaged: {error}", location=where, hint=hint) from error

    def encode_batch(
        self,
        texts: Iterable[str | bytes],
        add_special_tokens: bool = True,
        parse_special: bool = True,
        workers: int | None = None,
    ) -> list[list[int]]:
        """Ids of each text.

        Args:
            texts: str or bytes.
            add_special_tokens: as for :meth:`encode`.
            parse_special: as for :meth:`encode`.
            workers: up to so many processes, which map the same pack; they are started by the default method of
                :mod:`multiprocessing`, and end with the call. Small batches are encoded in this process.

        Raises EncodeError that names the number of the text, from 0.
        """
        from tokpack.runtime.batch import encode_all, encode_in_processes

        items = list(texts)
        if workers is not None and workers > 1:
            return encode_in_processes(self, items, add_special_tokens, parse_special, workers)
        found = encode_all(self, items, add_special_tokens, parse_special)
        return [ids if isinstance(ids, list) else ids.tolist() for ids in found]

    def encode_batch_array(
        self,
        texts: Iterable[str | bytes],
        add_special_tokens: bool = True,
        parse_special: bool = True,
        *,
        workers: int | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of all texts end to end, without lists: (ids int32 ``[n]``, offsets int64 ``[texts + 1]``).

        Text k has ``ids[offsets[k]:offsets[k + 1]]``; such offsets are called row splits (ragged tensors) or
        ``cu_seqlens`` (packed attention). Arguments and errors as for :meth:`encode_batch`.
        """
        from tokpack.runtime.batch import encode_arrays

        return encode_arrays(self, list(texts), add_special_tokens, parse_special, workers)

    def pieces(self, text: str | bytes, add_special_tokens: bool = True, parse_special: bool = True) -> list[Piece]:
        """The tokens of ``text`` with their bytes and where they lie."""
        out = []
        for token, start, end in self._pipeline.encode_spans(text, add_special_tokens, parse_special):
            raw = self._alone(token)
            out.append(Piece(token, raw.decode("utf-8", "replace"), raw, start, end))
        return out

    def _alone(self, token: int) -> bytes:
        """What a token of a text stands for; nothing where it has no text of its own, as -1 has none."""
        try:
            return self.id_to_piece(token)
        except EncodeError:
            return b""

    # --- decode ---

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Text of ``ids``; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids, skip_special_tokens).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = True) -> bytes:
        """Bytes of ``ids``: ``detokenize(ids, False, not skip_special_tokens)``, as llama.cpp's tools do it."""
        return self.detokenize(ids, False, not skip_special_tokens)

    def detokenize(self, ids: Iterable[int], remove_special: bool = False, unparse_special: bool = False) -> bytes:
        """``llama_detokenize``.

        Args:
            ids: ids of this vocabulary; EncodeError for others.
            remove_special: drop the BOS and EOS that encoding added.
            unparse_special: write control tokens as text; else they are left out.
        """
        detokenizer = self._pipeline.detokenizer
        detokenize_array = getattr(detokenizer, "detokenize_array", None)
        if detokenize_array is not None and isinstance(ids, Sized) and len(ids) >= _MANY:
            from tokpack.runtime.bulk.gather import as_ids

            array = as_ids(ids)
            found: bytes | None = None if array is None else detokenize_array(array, remove_special, unparse_special)
            if found is not None:
                return found
        return detokenizer.detokenize(_id_list(ids), remove_special, unparse_special)

    def stream(self, skip_special_tokens: bool = True) -> StreamDecoder:
        """A decoder for ids that come one by one."""
        return self._pipeline.stream(not skip_special_tokens)

    # --- vocabulary ---

    def token_to_id(self, token: str | bytes) -> int | None:
        """Id of the piece that is spelled ``token`` in the source (``Ġhello``), or None."""
        raw = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else token
        found = self._pieces.find_text(raw)
        return None if found < 0 else found

    def id_to_token(self, token: int) -> str:
        """Text of a piece as the source spells it; undecodable bytes as U+FFFD."""
        return self._text(token).decode("utf-8", "replace")

    def id_to_bytes(self, token: int) -> bytes:
        """The bytes that a piece stands for, special or not."""
        return self._pipeline.detokenizer.piece(token, True)

    def id_to_piece(self, token: int, special: bool = True) -> bytes:
        """``llama_token_to_piece``: as :meth:`id_to_bytes`, empty for control tokens unless ``special``."""
        return self._pipeline.detokenizer.piece(token, special)

    def _text(self, token: int) -> bytes:
        if not 0 <= token < self.vocab_size:
            raise EncodeError(f"id {token} is outside 0..{self.vocab_size - 1}")
        return self._pieces.text(token)

    def attr(self, token: int) -> int:
        """:class:`tokpack.ir.PieceAttr` bits of a piece."""
        self._text(token)
        return int(self._pieces.attrs[token])

    def is_special(self, token: int) -> bool:
        """Whether a piece is control or unknown: decoding leaves it out unless asked."""
        return bool(self.attr(token) & 0b1001)

    def special_id(self, role: str) -> int | None:
        """Id of a role (bos, eos, eot, eom, unk, sep, pad, mask, fim_pre …), or None."""
        return self._specials.get(role)

    @property
    def bos_id(self) -> int | None:
        """Beginning of sequence."""
        return self._specials.get("bos")

    @property
    def eos_id(self) -> int | None:
        """End of sequence."""
        return self._specials.get("eos")

    @property
    def pad_id(self) -> int | None:
        """Padding."""
        return self._specials.get("pad")

    @property
    def unk_id(self) -> int | None:
        """Unknown."""
        return self._specials.get("unk")

    @property
    def eog_ids(self) -> frozenset[int]:
        """Ids that end generation."""
        with meta_errors(self.view.file):
            return frozenset(map(int, self.view.meta["eog"]))

    @property
    def findings(self) -> list[Finding]:
        """What the reader noticed, and what the body of an .mtok cannot hold."""
        return self.view.findings()

    @property
    def chat_templates(self) -> dict[str, str]:
        """Name → template; the unnamed one is called ``default``."""
        with meta_errors(self.view.file):
            return dict(self.view.about().get("chat_templates", {}))

    @property
    def token_types(self) -> NDArray[np.uint8]:
        """The source's type number of each piece (:class:`tokpack.ir.PieceType`), uint8 ``[vocab_size]``, read-only."""
        import numpy as np

        return np.frombuffer(self._pieces.types, dtype=np.uint8)

    @property
    def token_lengths(self) -> NDArray[np.int32]:
        """Bytes of each piece, int32 ``[vocab_size]``: of what a byte-level text spells, else of the text itself."""
        import numpy as np

        edges = np.frombuffer(self.view.raw("piece.offset"), dtype="<u4")[: self.vocab_size + 1].astype(np.int64)
        return np.diff(edges).clip(0).astype(np.int32)

    def __repr__(self) -> str:
        return f"<tokpack.Tokenizer {self.view.file or 'in memory'}: {self.vocab_size} pieces, {self.reference}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.view.file, None if self.view.mapped else bytes(self.view.data))


class _Detokenizer(Protocol):
    def piece(self, token: int, special: bool) -> bytes: ...

    def detokenize(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> bytes: ...


class _Pipeline(Protocol):
    """What a reference's rules have to offer."""

    @property
    def pieces(self) -> PieceTable: ...

    @property
    def detokenizer(self) -> _Detokenizer: ...

    def stream(self, special: bool) -> StreamDecoder: ...

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]: ...

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[tuple[int, int, int]]: ...


_PIPELINES = {
    "llama.cpp": ("tokpack.runtime.pipeline", "LlamaPipeline"),
    "huggingface": ("tokpack.runtime.hf.pipeline", "HfPipeline"),
    "sentencepiece": ("tokpack.runtime.sentencepiece.pipeline", "SentencePiecePipeline"),
    "tiktoken": ("tokpack.runtime.tiktoken.pipeline", "TiktokenPipeline"),
    "mnn": ("tokpack.runtime.mnn.pipeline", "MnnPipeline"),
}


def _pipeline(view: PackView, reference: str) -> _Pipeline:
    if reference in _PIPELINES:
        module, name = _PIPELINES[reference]
        made: _Pipeline = getattr(__import__(module, fromlist=[name]), name)(view)
        return made
    raise UnsupportedError(
        f"a pack with the rules of {reference}", location=Location(view.file), hint="use a newer tokpack"
    )


def _id_list(ids: Iterable[int]) -> Sequence[int]:
    """Ids as plain ints; arrays give numpy integers, which index slower."""
    tolist = getattr(ids, "tolist", None)
    values: list[int] = tolist() if tolist is not None else list(ids)
    return values


def _rebuild(file: str | None, data: bytes | None) -> Tokenizer:
    if data is not None:
        return Tokenizer(PackView(data, file))
    assert file is not None
    return Tokenizer(open_pack(file))
