"""The reference libraries, where they are installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["peer"]


def peer(name: str) -> ModuleType | None:
    """The library, or None; a folder of ours with its name would be imported as an empty package."""
    try:
        module = import_module(name)
    except ImportError:
        return None
    return module if hasattr(module, "__version__") else None
