"""The format ``mnn``: the body of a ``.mtok`` alone, with the ids of the MNN engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tokpack.limits import DEFAULT, Limits

from .._cursor import map_file
from .._limited import check_file, limited
from .read_body import parse
from .read_header import check_engine
from .to_ir import to_ir

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

__all__ = ["read", "read_bytes"]


def read(path: str | os.PathLike[str], engine: str = "v361", *, limits: Limits = DEFAULT) -> TokenizerIR:
    """The tokenizer that MNN makes of a ``.mtok``; an index behind the body is ignored, as MNN does.

    Args:
        path: the file.
        limits: upper limits on what the file may ask for.
        engine: ``v361`` is MNN 3.6.1, ``head`` the development version of August 2026, which applies the
            post-processor section.

    Raises:
        FormatError: cut off or damaged.
        UnsupportedError: a component that no engine knows, or on which the engine's ids cannot be told.
        UsageError: another engine.
    """
    name = os.fspath(path)
    with map_file(name) as data:
        check_file(len(data), limits, name)
        return read_bytes(bytes(data), engine, name, limits=limits)


def read_bytes(data: bytes, engine: str = "v361", file: str | None = None, *, limits: Limits = DEFAULT) -> TokenizerIR:
    """As :func:`read`, of the bytes of a file; ``file`` is its name for messages."""
    check_engine(engine)
    return limited(to_ir(parse(data, file, limits), engine, file), limits, file)
