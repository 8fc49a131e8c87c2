"""Hugging Face: tokenizer.json and the folders that hold one."""

from __future__ import annotations

from .reader import read, read_bytes

__all__ = ["read", "read_bytes"]
