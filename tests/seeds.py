"""The seed of a run: another one each time, unless TOKPACK_SEED repeats one; a check of a commit takes its own."""

from __future__ import annotations

import os

__all__ = ["run_seed"]


def run_seed() -> int:
    """What random texts and samples of this run are made from; set once for all processes by ``tests/conftest.py``."""
    return int(os.environ["TOKPACK_SEED"])
