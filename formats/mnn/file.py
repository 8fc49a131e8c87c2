"""The format ``.mtok``: a body that the MNN engine loads, and the index that our runtime maps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tokpack.errors import FormatError, Location, UnsupportedError, UsageError
from tokpack.pack.build import assemble, build_index
from tokpack.pack.restore import restore
from tokpack.pack.view import SIDECAR_SUFFIX, has_index, open_pack
from tokpack.rendered import Rendered

from . import write_body

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

__all__ = ["read", "render"]


def read(path: str | os.PathLike[str]) -> TokenizerIR:
    """The IR behind the index of an .mtok; UnsupportedError for a plain .mtok, whose body alone is not read yet."""
    name = os.fspath(path)
    if not has_index(name):
        hint = "its ids would be those of the MNN engine; convert from the original tokenizer"
        raise UnsupportedError("reading a plain .mtok is not supported yet", location=Location(name), hint=hint)
    view = open_pack(name)
    if not view.footer.body_length:
        raise FormatError("the file has no .mtok body", location=Location(name), hint="--from tokpack reads it")
    return restore(view)


def render(ir: TokenizerIR, index: str = "inline") -> Rendered:
    """Body and index.

    Args:
        ir: the tokenizer.
        index: ``inline`` puts the index behind the body, ``sidecar`` into a second file, ``none`` leaves it out:
            MNN reads the whole file into memory, so the index costs it some.
    """
    if index not in ("inline", "sidecar", "none"):
        raise UsageError(f"unknown place for the index: {index!r}", hint="inline, sidecar or none")
    body, losses = write_body(ir)
    if index == "none":
        return Rendered((("", body),), tuple(losses), exact=False)
    sections = build_index(ir, losses)
    if index == "inline":
        return Rendered((("", assemble(sections, body)),), tuple(losses), exact=True)
    files = (("", body), (SIDECAR_SUFFIX, assemble(sections, body, sidecar=True)))
    return Rendered(files, tuple(losses), exact=True)
