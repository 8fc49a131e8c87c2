"""Writing files so that nothing half-written is ever seen under the final name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tokpack.errors import ExistsError, Location, ReadError

__all__ = ["check_target", "write_files"]

_READ_FROM_FOLDERS = (".json", ".jinja")  # endings of the files that a source folder is made of


def check_target(path: str, source: str | None, force: bool) -> None:
    """Raise ExistsError when ``path`` is ``source`` or a part of it, no regular file, or exists without ``force``.

    This is for before any work is done.
    """
    target = Path(path)
    if not target.exists():
        return
    if target.is_dir():
        raise ExistsError("the output is a folder", location=Location(path), hint="name a file")
    if not target.is_file():  # a rename would replace /dev/null, or a pipe that somebody reads
        raise ExistsError("the output is not a regular file", location=Location(path), hint="name a file")
    if source is not None and Path(source).exists() and _is_part(target, Path(source)):
        raise ExistsError("the output is the input", location=Location(path), hint="choose another name")
    if not force:
        raise ExistsError("the output exists", location=Location(path), hint="--force overwrites it")


def _is_part(target: Path, source: Path) -> bool:
    """Whether a file is the source, or a file of a source folder; an earlier output in that folder is none."""
    if not source.is_dir():
        return target.samefile(source)
    inside = source.resolve() in target.resolve().parents
    return inside and target.suffix.lower() in _READ_FROM_FOLDERS


def write_files(files: list[tuple[str, bytes]]) -> None:
    """Write each file beside its final name, then rename all; on failure nothing is left behind."""
    waiting: list[tuple[Path, Path]] = []
    path = ""
    try:
        for path, content in files:
            target = Path(path)
            # short, so that long names work, and a name of its own: not another thread's, nor one left behind
            temporary = target.with_name(f".tokpack-{os.urandom(8).hex()}.tmp")
            with temporary.open("xb") as handle:
                waiting.append((temporary, target))
                handle.write(content)
                handle.flush()
                os.fsync(handle.fileno())
        for temporary, target in waiting:
            path = str(target)
            temporary.replace(target)
    except OSError as error:
        raise ReadError(f"cannot write: {error.strerror or error}", location=Location(path)) from error
    finally:
        for temporary, _ in waiting:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
