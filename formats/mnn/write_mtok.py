"""Writing ``.mtok``: the body that MNN loads, and the index that our runtime maps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tokpack.errors import UsageError
from tokpack.pack.build import assemble, build_index
from tokpack.pack.view import SIDECAR_SUFFIX
from tokpack.rendered import Rendered

from . import write_body
from .compare import Comparison
from .examples import with_examples
from .vectors import vectors as make_vectors

if TYPE_CHECKING:
    from tokpack.findings import Finding
    from tokpack.ir import TokenizerIR

__all__ = ["DROPPABLE", "INDEXES", "MNN_VERSIONS", "render"]

INDEXES = ("inline", "sidecar", "none")
DROPPABLE = ("chat-template",)
# What we write is read by all of them: no Strip (type 8) and no empty step in a Sequence, on which 3.5.0 crashes, and
# never four bytes per post-processing step, which engines after 3.6.1 take for an older layout.
MNN_VERSIONS = ("3.5.0", "3.6.0", "3.6.1", "head")
_DONE_BY_HEAD = frozenset({"mtok-add-eos", "mtok-add-sep"})  # engines after 3.6.1 run the post-processor section


def render(
    ir: TokenizerIR,
    index: str = "inline",
    mnn_version: str = "3.6.1",
    drop: Collection[str] = (),
    examples: bool = True,
    vectors: str | None = None,
) -> Rendered:
    """Body and index.

    Args:
        ir: the tokenizer.
        index: ``inline`` puts the index behind the body, ``sidecar`` into a second file, ``none`` leaves it out:
            MNN reads the whole file into memory, so the index costs it some.
        mnn_version: the engine that will read the file; decides which losses are reported.
        drop: parts to be left out: ``chat-template``.
        examples: look for a text that shows each loss, with our reading of the body.
        vectors: path of a file for texts with their ids, see :mod:`tokpack.formats.mnn.vectors`.

    Raises:
        UnsupportedError: no body can be made for this kind of tokenizer.
        LossError: the format cannot hold it, or MNN would crash on it.
    """
    _check(index, mnn_version, drop)
    if "chat-template" in drop:
        ir = replace(ir, chat_templates={})
    body, found = write_body(ir)
    losses: Sequence[Finding] = [loss for loss in found if mnn_version != "head" or loss.code not in _DONE_BY_HEAD]
    pair = Comparison(ir, body, "head" if mnn_version == "head" else "v361")
    if examples:
        losses = with_examples(pair, losses)
    beside = ((vectors, make_vectors(pair, losses)),) if vectors is not None else ()
    if index == "none":
        return Rendered((("", body),), tuple(losses), exact=False, beside=beside)
    sections = build_index(ir, losses)
    if index == "inline":
        return Rendered((("", assemble(sections, body)),), tuple(losses), exact=True, beside=beside)
    files = (("", body), (SIDECAR_SUFFIX, assemble(sections, body, sidecar=True)))
    return Rendered(files, tuple(losses), exact=True, beside=beside)


def _check(index: str, mnn_version: str, drop: Collection[str]) -> None:
    if index not in INDEXES:
        raise UsageError(f"unknown place for the index: {index!r}", hint="inline, sidecar or none")
    if mnn_version not in MNN_VERSIONS:
        hint = f"known: {', '.join(MNN_VERSIONS)}; older engines read tokenizer.txt only"
        raise UsageError(f"unknown MNN version {mnn_version!r}", hint=hint)
    unknown = sorted(set(drop) - set(DROPPABLE))
    if unknown:
        raise UsageError(f"{unknown[0]!r} cannot be dropped", hint=f"what can be: {', '.join(DROPPABLE)}")
