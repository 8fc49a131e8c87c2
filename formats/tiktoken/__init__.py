"""Rank files of tiktoken, and Mistral's tekken.json, which holds one."""

from __future__ import annotations

from .ranks import read

__all__ = ["read"]
