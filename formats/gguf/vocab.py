"""Pieces, attributes and special ids of a GGUF vocabulary, by the rules of ``llama_vocab::impl::load``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokpack.findings import Severity
from tokpack.ir import AddedToken, PieceAttr, PieceType, SpecialId

from .header import ValueType
from .keys import Keys
from .libstdcxx import map_order, sort_descending
from .rules import rules

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KMER_MARK", "ROLE_KEYS", "VocabBuilder"]

_PREFIX = "tokenizer.ggml."
# role → keys, in the order in which llama.cpp reads them: the deprecated ones come last and win
ROLE_KEYS: dict[str, tuple[str, ...]] = {
    "bos": ("bos_token_id",),
    "eos": ("eos_token_id",),
    "eot": ("eot_token_id",),
    "eom": ("eom_token_id",),
    "unk": ("unknown_token_id",),
    "sep": ("seperator_token_id",),  # the misspelling is the format's
    "pad": ("padding_token_id",),
    "mask": ("mask_token_id",),
    "fim_pre": ("fim_pre_token_id", "prefix_token_id"),
    "fim_suf": ("fim_suf_token_id", "suffix_token_id"),
    "fim_mid": ("fim_mid_token_id", "middle_token_id"),
    "fim_pad": ("fim_pad_token_id",),
    "fim_rep": ("fim_rep_token_id",),
    "fim_sep": ("fim_sep_token_id",),
}
_TYPE_ATTRS = {
    PieceType.NORMAL: PieceAttr.NORMAL,
    PieceType.UNKNOWN: PieceAttr.UNKNOWN,
    PieceType.CONTROL: PieceAttr.CONTROL,
    PieceType.USER_DEFINED: PieceAttr.USER_DEFINED,
    PieceType.UNUSED: PieceAttr.UNUSED,
    PieceType.BYTE: PieceAttr.BYTE,
}
KMER_MARK = "\ue000".encode()
_BYTE_PIECE = re.compile(rb"<0x[0-9A-F]{2}>")


@dataclass
class VocabBuilder:
    """Collects the vocabulary step by step; the steps are called in llama.cpp's order because later ones override.

    Attributes:
        pieces: piece texts after llama.cpp's own changes (cut at NUL, ``[EMPTY_i]``).
        types: uint8, as in the file; attrs: uint16, in effect; scores: float32 or None.
        ids: text → id; of equal texts the last.
        roles: special ids found so far.
        eog: end-of-generation ids.
        kmers: (text without the mark, id) of the pieces that only the DNA mode looks up.
        dna_tags: ids of ``<dna>``, ``</dna>`` and ``<oov>`` when the DNA mode is on.
    """

    keys: Keys
    pieces: list[bytes] = field(default_factory=list)
    types: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    attrs: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    scores: NDArray[np.float32] | None = None
    ids: dict[bytes, int] = field(default_factory=dict)
    roles: dict[str, SpecialId] = field(default_factory=dict)
    eog: set[int] = field(default_factory=set)
    kmers: list[tuple[bytes, int]] = field(default_factory=list)
    dna_tags: tuple[int, int, int] | None = None
    _map_order: list[bytes] | None = None

    def read_pieces(self, texts: Sequence[bytes], *, dna: bool = False) -> None:
        """Step 1: texts and types (``llama-vocab.cpp`` 2508-2544).

        With ``dna`` a piece that ends in U+E000 may be a k-mer: it is looked up with that mark and shown without.
        """
        key = _PREFIX + "tokens"
        self.pieces = pieces = list(texts)
        for index, text in enumerate(texts):
            if not text or 0 in text:
                cut = text.split(b"\0", 1)[0]
                if cut != text:
                    message = f"piece {index} holds a NUL byte; llama.cpp cuts it there"
                    self.keys.find("gguf-piece-nul", Severity.WARN, message, f"{key}[{index}]")
                pieces[index] = cut or b"[EMPTY_%d]" % index
        self.ids = dict(zip(pieces, range(len(pieces)), strict=True))
        if len(self.ids) < len(pieces):
            self._find_duplicates(key)
        if dna:
            self._take_kmers()
        self._read_types()
        self._read_scores()

    def _take_kmers(self) -> None:
        """k-mers are marked with U+E000, which only looking up sees, when all three tags exist (1653, 2546)."""
        tags = [self.ids.get(text) for text in (b"<dna>", b"</dna>", b"<oov>")]
        if None not in tags:
            opened, closed, oov = (tag for tag in tags if tag is not None)
            self.dna_tags = (opened, closed, oov)
            self.kmers = [
                (text[: -len(KMER_MARK)], index)
                for index, text in enumerate(self.pieces)
                if text.endswith(KMER_MARK) and text != KMER_MARK
            ]

    def _find_duplicates(self, key: str) -> None:
        pairs = [(i, self.ids[text]) for i, text in enumerate(self.pieces) if self.ids[text] != i]
        shown = ", ".join(f"{a} and {b}" for a, b in pairs[:3]) + (", …" if len(pairs) > 3 else "")
        message = f"{len(pairs)} piece texts occur twice (ids {shown}); llama.cpp aborts on this file"
        fix = "--allow gguf-duplicate-pieces keeps all ids and encodes to the last of equal ones"
        self.keys.find("gguf-duplicate-pieces", Severity.REFUSE, message, key, fix)

    def _read_types(self) -> None:
        size = len(self.pieces)
        raw = self.keys.numbers(_PREFIX + "token_type", (ValueType.I32,), size)
        numbers = np.full(size, PieceType.NORMAL, dtype=np.int64)
        if raw is None:
            message = "no token_type: every piece is normal, apart from the texts that llama.cpp knows"
            self.keys.find("gguf-types-missing", Severity.INFO, message, _PREFIX + "token_type")
        else:
            with np.errstate(invalid="ignore"):  # a wrong element type is refused already
                numbers[: len(raw)] = raw.astype(np.int64)
        table = np.zeros(256, dtype=np.uint16)
        for kind, attr in _TYPE_ATTRS.items():
            table[kind] = attr
        known = (numbers >= PieceType.NORMAL) & (numbers <= PieceType.BYTE)
        odd = np.flatnonzero(~known)
        if odd.size:
            message = f"{odd.size} pieces have a type outside 1..6 (first: id {odd[0]}, type {numbers[odd[0]]})"
            path = f"{_PREFIX}token_type[{odd[0]}]"
            self.keys.find("gguf-type-unknown", Severity.WARN, message + "; they decode to nothing", path)
        # other numbers mean nothing to anybody: all are stored as 0
        self.types = np.where(known, numbers, 0).astype(np.uint8)
        self.attrs = table[self.types]

    def _read_scores(self) -> None:
        size = len(self.pieces)
        raw = self.keys.numbers(_PREFIX + "scores", (ValueType.F32, ValueType.I32), size)
        if raw is not None:
            self.scores = np.zeros(size, dtype=np.float32)
            with np.errstate(over="ignore"):
                self.scores[: len(raw)] = raw.astype(np.float32)

    def read_roles(self, defaults: dict[str, int]) -> None:
        """Step 2: special ids from defaults and keys (2592-2635)."""
        size = len(self.pieces)
        for role, default in defaults.items():
            if default < size:
                self.roles[role] = SpecialId(default, "default of the tokenizer model")
        for role, names in ROLE_KEYS.items():
            for name in names:
                value = self.keys.integer(_PREFIX + name)
                if value is None:
                    continue
                if 0 <= value < size:
                    self.roles[role] = SpecialId(value, _PREFIX + name)
                else:
                    message = f"{name} {value} is outside 0..{size - 1}; llama.cpp ignores the key"
                    self.keys.find("gguf-id-range", Severity.WARN, message, _PREFIX + name)

    def apply_texts(self) -> None:
        """Step 3: roles and attributes by text (2693-3030)."""
        data = rules()
        for role, texts in data["role_texts"].items():
            if role not in self.roles:
                self._role_by_text(role, texts)
        unused = np.uint16(PieceAttr.UNUSED)
        for index in np.flatnonzero(self.attrs & PieceAttr.CONTROL).tolist():
            if b"unused" in self.pieces[index]:
                self.attrs[index] |= unused
        self.eog.update(self.roles[role].id for role in data["eog_roles"] if role in self.roles)
        for text in data["eog_texts"]:
            index = self.ids.get(text.encode())
            if index is not None:
                self.eog.add(index)
                self.attrs[index] |= PieceAttr.CONTROL
        for text in data["user_defined_texts"]:
            index = self.ids.get(text.encode())
            if index is not None:
                self.attrs[index] = PieceAttr.USER_DEFINED
        self.eog.update(self.roles[role].id for role in ("eos", "eot", "eom") if role in self.roles)
        self._correct_eog()

    def _role_by_text(self, role: str, texts: Iterable[str]) -> None:
        present = [text.encode() for text in texts if text.encode() in self.ids]
        if not present:
            return
        text = present[0]
        if len(present) > 1:
            if self._map_order is None:
                distinct = list(self.ids)
                self._map_order = [distinct[i] for i in map_order(distinct).tolist()]
            wanted = set(present)
            text = next(candidate for candidate in self._map_order if candidate in wanted)
            ordinary = [p for p in present if not self.attrs[self.ids[p]] & PieceAttr.CONTROL]
            if role != "eot" and ordinary:
                shown = ", ".join(repr(p.decode("utf-8", "replace")) for p in present)
                message = (
                    f"{role} could be any of {shown}; llama.cpp takes {text.decode('utf-8', 'replace')!r}, by the order"
                    " of a hash table of the GNU C++ library; other builds may take another"
                )
                self.keys.find("gguf-role-ambiguous", Severity.WARN, message, None, f"set {ROLE_KEYS[role][0]}")
        index = self.ids[text]
        self.roles[role] = SpecialId(index, f"text {text.decode('utf-8', 'replace')}")
        self.attrs[index] |= PieceAttr.CONTROL

    def _correct_eog(self) -> None:
        """Two model families list an ordinary token among the end-of-generation texts (2960, 3004)."""

        def ends(text: bytes) -> bool:
            return self.ids.get(text) in self.eog

        call = ends(b"<|call|>") or ends(b"<|calls|>")
        if ends(b"<|end|>") and ((ends(b"<|return|>") and call) or (call and ends(b"<|flush|>"))):
            index = self.ids[b"<|end|>"]
            self.eog.discard(index)
            self.attrs[index] = PieceAttr.USER_DEFINED
        if ends(b"</s>") and (ends(b"<|tool_response>") or ends(b"<|plamo:eos|>")):
            index = self.ids[b"</s>"]
            self.eog.discard(index)
            self.attrs[index] = PieceAttr.NORMAL

    def special_order(self) -> list[int]:
        """Step 4: ids that are cut out of the text, in search order (3036)."""
        mask = PieceAttr.CONTROL | PieceAttr.USER_DEFINED | PieceAttr.UNKNOWN
        ids = np.flatnonzero(self.attrs & mask).tolist()
        return sort_descending(ids, lambda index: len(self.pieces[index]))

    def check_byte_pieces(self) -> None:
        """Step 5: the piece cache reads two hex digits out of every byte piece (3052)."""
        for index in np.flatnonzero(self.attrs & PieceAttr.BYTE).tolist():
            text, path = self.pieces[index], f"{_PREFIX}tokens[{index}]"
            if len(text) < 3:
                message = f"byte piece {index} is {text!r}; llama.cpp does not load a file with such a piece"
                self.keys.find("gguf-byte-piece-short", Severity.REFUSE, message, path)
            elif not _BYTE_PIECE.fullmatch(text):
                message = f"byte piece {index} is {text!r}, not of the form <0xXX>"
                self.keys.find("gguf-byte-piece-odd", Severity.WARN, message, path)

    def apply_strips(self, order: Sequence[int], pre: str, name: str, architecture: str) -> None:
        """Step 6: LSTRIP and RSTRIP by pre-tokenizer, architecture and model name (3069-3135); the first rule wins."""
        data = rules()
        mask, modern, phi = data["mask_lstrip"], data["modern_bert_lstrip"], data["phi3_rstrip"]
        if any(t in pre for t in mask["pre"]) or any(t in architecture for t in mask["architecture"]):
            self._set_attr(mask["texts"], PieceAttr.LSTRIP)
        elif any(t in name for t in phi["name"]):
            needed = [*phi["also"], *phi["except"]]
            missing = [text for text in needed if text.encode() not in self.ids]
            if missing:
                message = (
                    f"a model called phi-3 needs the pieces {', '.join(missing)}; llama.cpp does not load the file"
                )
                self.keys.find("gguf-phi3-pieces", Severity.REFUSE, message, "general.name", "rename the model")
            for index in order:
                self.attrs[index] |= PieceAttr.RSTRIP
            self._set_attr(phi["also"], PieceAttr.RSTRIP)
            for text in phi["except"]:
                if text.encode() in self.ids:
                    self.attrs[self.ids[text.encode()]] &= 0xFFFF ^ PieceAttr.RSTRIP
        elif any(t in name for t in modern["name"]):
            self._set_attr(modern["texts"], PieceAttr.LSTRIP)

    def _set_attr(self, texts: Iterable[str], attr: PieceAttr) -> None:
        for text in texts:
            if text.encode() in self.ids:
                self.attrs[self.ids[text.encode()]] |= attr

    def added_tokens(self, order: Sequence[int]) -> tuple[AddedToken, ...]:
        """The special tokens as the IR has them; ``special`` ones are text when special text is not parsed."""
        hidden = PieceAttr.CONTROL | PieceAttr.UNKNOWN
        tokens = []
        for index in order:
            attr = int(self.attrs[index])
            tokens.append(
                AddedToken(
                    index,
                    self.pieces[index],
                    special=bool(attr & hidden),
                    lstrip=bool(attr & PieceAttr.LSTRIP),
                    rstrip=bool(attr & PieceAttr.RSTRIP),
                )
            )
        return tuple(tokens)
