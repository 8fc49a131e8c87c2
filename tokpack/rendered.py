"""What a writer produces, before anything touches the disk."""

from __future__ import annotations

from dataclasses import dataclass

from tokpack.findings import Finding

__all__ = ["Rendered"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """Files and losses.

    Attributes:
        files: (ending that is added to the output path, content); the main file has the ending ``""``.
        beside: (path, content) of files that the caller asked for under names of their own.
        losses: what the target cannot hold.
        exact: whether a runtime of ours still gives the reference's ids from these files, whatever the losses.
    """

    files: tuple[tuple[str, bytes], ...]
    losses: tuple[Finding, ...]
    exact: bool
    beside: tuple[tuple[str, bytes], ...] = ()
