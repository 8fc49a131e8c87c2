"""GGUF: the files of llama.cpp."""

from __future__ import annotations

from .header import MAGIC
from .reader import read, read_bytes

__all__ = ["MAGIC", "read", "read_bytes"]
