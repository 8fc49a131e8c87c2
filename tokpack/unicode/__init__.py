"""Character tables, by owner and Unicode version: what a code point is to the program whose ids are reproduced.

Python's own ``unicodedata`` is never asked: its version changes with the interpreter.
"""

from __future__ import annotations

__all__: list[str] = []
