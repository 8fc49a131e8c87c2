"""Which releases of MNN load a ``.mtok``, and what they do with it (specification of the format, version table)."""

from __future__ import annotations

from tokpack.findings import Finding, Severity

from .parts import Strip
from .read_body import BodyFile

__all__ = ["version_finding"]


def version_finding(file: BodyFile) -> Finding:
    """One finding of severity ``info`` with all releases."""
    body = file.body
    old = "reads it"
    if any(isinstance(step, Strip) for step in body.normalizer):
        old = "misreads it (no Strip normalizer)"
    elif file.null_members:
        old = "crashes on it (an empty member of a Sequence)"
    elif body.post_ops:
        old = "reads it without the post-processor section"
    new = "read it"
    head = "reads it alike"
    if body.post_ops:
        new += ", and ignore its post-processor section"
        head = "applies that section"
        if body.prefix and set(body.prefix) & set(body.post_ops):
            head += " behind the prefix, which puts ids twice"
        if file.misread_ops is not None:
            head = "misreads that section"
    message = (
        f"MNN up to 3.4.1 does not load a .mtok, 3.5.0 {old}, 3.6.0 and 3.6.1 {new}, the development version of "
        f"August 2026 {head}"
    )
    return Finding("mnn-versions", Severity.INFO, message)
