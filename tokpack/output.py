"""Writing files so that nothing half-written is ever seen under the final name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tokpack.errors import ExistsError, Location, ReadError

__all__ = ["check_target", "write_files"]


def check_target(path: str, source: str | None, force: bool) -> None:
    """Raise ExistsError when ``path`` is ``source`` or exists without ``force``; before any work is done."""
    target = Path(path)
    if target.is_dir():
        raise ExistsError("the output is a folder", location=Location(path), hint="name a file")
    if source is not None and target.exists() and Path(source).exists() and target.samefile(source):
        raise ExistsError("the output is the input", location=Location(path), hint="choose another name")
    if target.exists() and not force:
        raise ExistsError("the output exists", location=Location(path), hint="--force overwrites it")


def write_files(files: list[tuple[str, bytes]]) -> None:
    """Write each file beside its final name, then rename all; on failure nothing is left behind."""
    waiting: list[tuple[Path, Path]] = []
    path = ""
    try:
        for path, content in files:
            target = Path(path)
            temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            waiting.append((temporary, target))
            with temporary.open("xb") as handle:
                handle.write(content)
                handle.flush()
                os.fsync(handle.fileno())
        for temporary, target in waiting:
            temporary.replace(target)
    except OSError as error:
        raise ReadError(f"cannot write: {error.strerror or error}", location=Location(path)) from error
    finally:
        for temporary, _ in waiting:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
