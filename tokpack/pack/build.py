"""IR → sections → bytes. Equal IR and equal tokpack version give equal bytes: no time, no hash order."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tokpack.findings import Finding
from tokpack.ir import Reference, TokenizerIR
from tokpack.ir.codec import model_plain, to_plain
from tokpack.pack import layout
from tokpack.pack.bulk import bulk_sections
from tokpack.pack.layout import ZEROS, Footer, align, fingerprint
from tokpack.pack.symbols import Sections, SymbolTable, offsets

__all__ = ["assemble", "build_index", "build_pack"]

# each has build_sections(ir, table) -> (entries of the meta section, sections): all that depends on the reference
_BUILDERS = {
    Reference.LLAMA_CPP: "tokpack.pack.models",
    Reference.HUGGINGFACE: "tokpack.pack.hf",
    Reference.SENTENCEPIECE: "tokpack.pack.sentencepiece",
    Reference.TIKTOKEN: "tokpack.pack.tiktoken",
    Reference.MNN: "tokpack.pack.mnn",
}


def build_pack(ir: TokenizerIR, body: bytes = b"", losses: Sequence[Finding] = ()) -> bytes:
    """The whole file: ``body``, then the index of ``ir``.

    Args:
        ir: the tokenizer.
        body: a complete .mtok file, or nothing.
        losses: what the body cannot hold, kept for ``inspect``.
    """
    return assemble(build_index(ir, losses), body)


def build_index(ir: TokenizerIR, losses: Sequence[Finding] = ()) -> Sections:
    """All sections as bytes; UnsupportedError when the runtime has no model for ``ir``."""
    table = SymbolTable(ir)
    meta, special = import_module(_BUILDERS[ir.reference]).build_sections(ir, table)
    sections: Sections = {
        "meta": _msgpack({**_meta(ir), **meta}),
        "about": _msgpack(_about(ir, losses)),
        **table.sections(),
        **special,
        **_added(ir),
        "piece.types": ir.vocab.types.astype("<u1").tobytes(),
        "piece.attrs": ir.vocab.attrs.astype("<u2").tobytes(),
    }
    if ir.vocab.scores is not None and "piece.scores64" not in sections:
        sections["piece.scores"] = ir.vocab.scores.astype("<f4").tobytes()
    return sections | bulk_sections(ir, table, sections)


def _msgpack(value: object) -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def _meta(ir: TokenizerIR) -> dict[str, Any]:
    return {
        "engine": layout.ENGINE,
        "reference": ir.reference.value,
        "rules": ir.rules,
        "unicode": ir.unicode,
        "vocab_size": len(ir.vocab),
        "alphabet": ir.alphabet.kind.value,
        "byte_fallback": ir.alphabet.byte_fallback,
        "model": model_plain(ir.model),
        "matching": ir.matching.rule.value,
        "normalizer": [to_plain(step, skip=("charsmap",)) for step in ir.normalizer],  # a section of its own
        "pre_tokenizer": [to_plain(step) for step in ir.pre_tokenizer],
        "decoder": [to_plain(step, skip=("charsmap",)) for step in ir.decoder],
        "post_processor": None if ir.post_processor is None else to_plain(ir.post_processor),
        "specials": {role: entry.id for role, entry in ir.specials.roles.items()},
        "eog": list(ir.specials.eog),
        "suppress": list(ir.specials.suppress),
    }


def _about(ir: TokenizerIR, losses: Sequence[Finding]) -> dict[str, Any]:
    return {
        "source": {"format": ir.source.format, "facts": dict(ir.source.facts)},
        "origins": {role: entry.origin for role, entry in ir.specials.roles.items()},
        "chat_templates": dict(ir.chat_templates),
        "extras": dict(ir.extras),
        "findings": [finding.as_dict() for finding in ir.findings],
        "losses": [finding.as_dict() for finding in losses],
    }


def _added(ir: TokenizerIR) -> Sections:
    tokens = ir.added_tokens
    flags = bytes(
        layout.SPECIAL * t.special
        | layout.LSTRIP * t.lstrip
        | layout.RSTRIP * t.rstrip
        | layout.NORMALIZED * t.normalized
        | layout.SINGLE_WORD * t.single_word
        for t in tokens
    )
    return {
        "added.id": np.array([t.id for t in tokens], dtype="<u4").tobytes(),
        "added.flags": flags,
        "added.blob": b"".join(t.content for t in tokens),
        "added.offset": offsets([len(t.content) for t in tokens]).tobytes(),
    }


def assemble(sections: Sections, body: bytes = b"", *, sidecar: bool = False) -> bytes:
    """Lay body, sections, table and footer end to end.

    With ``sidecar`` the body is not part of the result: the index then belongs to a file that holds exactly ``body``.
    """
    start = 0 if sidecar else len(body)
    index_offset = align(start + ZEROS) if start else 0
    parts: list[bytes] = []
    table: dict[str, list[int | str]] = {}
    position = 0
    # a fixed order: as listed, then the others by name
    others = sorted(set(sections) - set(layout.SECTIONS))
    for name in [*(name for name in layout.SECTIONS if name in sections), *others]:
        raw = sections[name]
        table[name] = [position, len(raw), layout.SECTIONS[name].code if name in layout.SECTIONS else "B"]
        padding = align(len(raw)) - len(raw)
        parts += [raw, bytes(padding)]
        position += len(raw) + padding
    packed = _msgpack(table)
    table_offset = index_offset + position
    index = b"".join([*parts, packed])
    footer = Footer(
        flags=layout.FLAG_SIDECAR if sidecar else 0,
        table_offset=table_offset,
        table_length=len(packed),
        body_length=len(body),
        index_offset=index_offset,
        total_length=index_offset + len(index) + layout.FOOTER,
        body_fingerprint=fingerprint(body),
        table_checksum=zlib.crc32(packed),
        body_hash=hashlib.blake2b(body, digest_size=16).digest(),
        index_hash=hashlib.blake2b(index, digest_size=16).digest(),
    )
    head = b"" if sidecar else body
    return b"".join([head, bytes(index_offset - start), index, footer.pack()])
