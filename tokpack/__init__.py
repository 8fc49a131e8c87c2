"""tokpack: the tokenizers of language models, from any file format to a memory-mapped pack.

>>> import tokpack
>>> tokenizer = tokpack.load("fixtures/demo.gguf")
>>> tokenizer.decode(tokenizer.encode("Hello world"))
'Hello world'

Importing this module imports neither numpy nor a format: names are resolved on use (PEP 562).
"""

from __future__ import annotations

import os.path

from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokpack.api import convert, load, read, write
    from tokpack.errors import (
        EncodeError,
        ExistsError,
        FormatError,
        LossError,
        ReadError,
        RefusedError,
        TokpackError,
        UnsupportedError,
        UsageError,
    )
    from tokpack.findings import Finding, Severity
    from tokpack.ir import TokenizerIR
    from tokpack.runtime.stream import StreamDecoder
    from tokpack.runtime.tokenizer import Piece, Tokenizer

__version__ = "0.1.0"

if not os.path.isdir(os.path.join(__path__[0], "formats")):
    # an installed package holds tokpack.formats; in a checkout it lies beside this folder
    __path__.append(os.path.dirname(__path__[0]))

_HOMES = {
    "tokpack.api": ("convert", "load", "read", "write"),
    "tokpack.errors": (
        "EncodeError",
        "ExistsError",
        "FormatError",
        "LossError",
        "ReadError",
        "RefusedError",
        "TokpackError",
        "UnsupportedError",
        "UsageError",
    ),
    "tokpack.findings": ("Finding", "Severity"),
    "tokpack.ir": ("TokenizerIR",),
    "tokpack.runtime.stream": ("StreamDecoder",),
    "tokpack.runtime.tokenizer": ("Piece", "Tokenizer"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "EncodeError",
    "ExistsError",
    "Finding",
    "FormatError",
    "LossError",
    "Piece",
    "ReadError",
    "RefusedError",
    "Severity",
    "StreamDecoder",
    "Tokenizer",
    "TokenizerIR",
    "TokpackError",
    "UnsupportedError",
    "UsageError",
    "convert",
    "load",
    "read",
    "write",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'tokpack' has no attribute {name!r}")
    value = getattr(__import__(module, fromlist=[name]), name)  # without importlib, which would be imported for it
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
