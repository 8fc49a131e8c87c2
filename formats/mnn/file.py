"""The format ``.mtok``: a body that the MNN engine loads, and the index that our runtime maps."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from tokpack.errors import FormatError, Location, UsageError
from tokpack.findings import Finding, Severity
from tokpack.limits import DEFAULT, Limits
from tokpack.pack.restore import restore
from tokpack.pack.view import has_index, open_pack, stale_index

from .._limited import limited
from . import plain
from .write_mtok import render

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

__all__ = ["read", "render"]


def read(path: str | os.PathLike[str], engine: str | None = None, *, limits: Limits = DEFAULT) -> TokenizerIR:
    """The IR behind the index of an .mtok; without an index of its own, what the MNN engine makes of the body.

    Args:
        path: the file.
        engine: for a file without an index, as in :func:`tokpack.formats.mnn.plain.read`; ``v361`` by default.
        limits: upper limits on what the file may ask for.
    """
    name = os.fspath(path)
    if not has_index(name):
        ir = plain.read(name, engine or "v361", limits=limits)
        return replace(ir, findings=(*ir.findings, _stale())) if stale_index(name) else ir
    if engine is not None:
        raise UsageError("a pack takes no option 'engine': it was decided when the pack was made")
    view = open_pack(name, limits)
    if not view.footer.body_length:
        raise FormatError("the file has no .mtok body", location=Location(name), hint="--from tokpack reads it")
    return limited(restore(view), limits, name)


def _stale() -> Finding:
    message = "the index was made from another body: it is ignored, and the ids are those of the MNN engine"
    return Finding("mtok-stale-index", Severity.WARN, message, fix="convert the original tokenizer again")
