"""What is looked at: a pack, a tokenizer in another format, or as much of a file as is there.

Nothing is built: the facts come from the index of a pack, or from what the reader of the format gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokpack.analysis.sections import Look
from tokpack.api import is_pack, read, source_format, with_limits
from tokpack.errors import FormatError, TokpackError
from tokpack.findings import Finding
from tokpack.pack.layout import FLAG_SIDECAR
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView, map_pack, open_pack
from tokpack.runtime.errors import meta_errors

if TYPE_CHECKING:
    from tokpack.formats import Format
    from tokpack.ir import TokenizerIR

__all__ = ["Subject", "look_at", "open_subject", "subject_of_ir", "subject_of_view"]


@dataclass(frozen=True)
class Subject:
    """A tokenizer as far as it can be read.

    Attributes:
        file: path as it was given.
        size: bytes of the file; None for a folder.
        format: ``name``, and for packs the bytes of ``body`` and ``index``.
        meta: what decides ids, as in a pack's meta section; None when the tokenizer could not be read.
        about: source, origins of special ids, templates, extras.
        types: the source's type number of each piece.
        scores: whether pieces have scores.
        merges: number of merges of a BPE model.
        added: number of added tokens.
        text: the text of a piece as the source spells it.
        findings: of the reader, of the writer of the body, about the file.
        look: what the format knows about the file itself, or None.
    """

    file: str
    size: int | None
    format: dict[str, Any]
    meta: Mapping[str, Any] | None
    about: Mapping[str, Any]
    types: bytes
    scores: bool
    merges: int
    added: int
    text: Callable[[int], bytes]
    findings: list[Finding]
    look: Look | None = None


def open_subject(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Subject:  # noqa: A002
    """Open a file or folder to look at it; arguments as for :func:`tokpack.read`.

    A file that is cut off gives what is there, with a finding that says so. Raises as :func:`tokpack.read` otherwise.
    """
    name, options = os.fspath(path), with_limits(options)
    if is_pack(name, format, options):
        return subject_of_view(open_pack(name, options.get("limits")))
    found = source_format(name, format)
    seen = look_at(name, found)
    try:
        ir = read(name, format, **options)
    except FormatError:
        if seen is None or not any(finding.code.endswith("-cut-off") for finding in seen.findings):
            raise
        return _partial(name, found, seen)
    return subject_of_ir(ir, name, seen)


def look_at(name: str, format: Format) -> Look | None:  # noqa: A002
    """What the ``layout`` module of a format, if it has one, says about a file; None too for what it cannot follow."""
    module = format.module
    if module is None or Path(name).is_dir():
        return None
    package = module if hasattr(format.load(), "__path__") else module.rpartition(".")[0]
    if find_spec(f"{package}.layout") is None:
        return None
    look = getattr(import_module(f"{package}.layout"), "look", None)
    if look is None:
        return None
    try:
        seen: Look = look(map_pack(name), name)
    except TokpackError:
        return None
    return seen


def subject_of_view(view: PackView) -> Subject:
    """A pack; FormatError when its index is damaged."""
    with meta_errors(view.file):
        return _subject_of_view(view)


def _subject_of_view(view: PackView) -> Subject:
    pieces = PieceTable(view)
    meta, footer = view.meta, view.footer
    scored = len(view.raw("piece.scores")) or len(view.raw("piece.scores64"))
    beside = footer.body_length if footer.flags & FLAG_SIDECAR else 0
    return Subject(
        file=view.file or "",
        size=beside or len(view.data),
        format={
            "name": "mtok" if footer.body_length else "tokpack",
            "body": footer.body_length,
            "index": footer.total_length - footer.index_offset,
        },
        meta=meta,
        about=view.about(),
        types=bytes(pieces.types),
        scores=bool(scored),
        merges=len(view.array("merge.key")) if meta["model"]["kind"] == "BPE" else 0,
        added=len(view.array("added.id")),
        text=pieces.text,
        findings=view.findings(),
    )


def subject_of_ir(ir: TokenizerIR, name: str, seen: Look | None = None) -> Subject:
    """A tokenizer that was read from ``name``."""
    from tokpack.ir import BPE
    from tokpack.ir.codec import model_plain, to_plain

    pieces = ir.vocab.pieces
    meta = {
        "reference": ir.reference.value,
        "rules": ir.rules,
        "alphabet": ir.alphabet.kind.value,
        "byte_fallback": ir.alphabet.byte_fallback,
        "model": model_plain(ir.model),
        "normalizer": [to_plain(step, skip=("charsmap",)) for step in ir.normalizer],
        "pre_tokenizer": [to_plain(step) for step in ir.pre_tokenizer],
        "decoder": [to_plain(step, skip=("charsmap",)) for step in ir.decoder],
        "post_processor": None if ir.post_processor is None else to_plain(ir.post_processor),
        "specials": {role: entry.id for role, entry in ir.specials.roles.items()},
        "eog": list(ir.specials.eog),
    }
    about = {
        "source": {"format": ir.source.format, "facts": dict(ir.source.facts)},
        "origins": {role: entry.origin for role, entry in ir.specials.roles.items()},
        "chat_templates": dict(ir.chat_templates),
        "extras": dict(ir.extras),
    }
    return Subject(
        file=name,
        size=_size(name),
        format={"name": ir.source.format, "body": None, "index": None},
        meta=meta,
        about=about,
        types=ir.vocab.types.astype("u1").tobytes(),
        scores=ir.vocab.scores is not None,
        merges=len(ir.model.merges) if isinstance(ir.model, BPE) else 0,
        added=len(ir.added_tokens),
        text=lambda token: pieces[token] or b"",
        findings=[*ir.findings, *ir.validate(), *(seen.findings if seen else ())],
        look=seen,
    )


def _partial(name: str, found: Format, seen: Look) -> Subject:
    about = {
        "source": {"format": found.name, "facts": seen.facts},
        "origins": {},
        "chat_templates": {},
        "extras": {},
    }
    shape = {"name": found.name, "body": None, "index": None}
    return Subject(name, _size(name), shape, None, about, b"", False, 0, 0, lambda _: b"", seen.findings, seen)


def _size(name: str) -> int | None:
    return None if Path(name).is_dir() else Path(name).stat().st_size
