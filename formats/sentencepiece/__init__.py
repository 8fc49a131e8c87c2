"""SentencePiece: ``.model`` files, a protobuf of pieces and of how the model was trained."""

from __future__ import annotations

from .reader import read, read_bytes

__all__ = ["read", "read_bytes"]
