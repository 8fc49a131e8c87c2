"""Encoding a batch in several processes that map the same pack."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["encode_in_processes"]

_state: dict[str, Any] = {}


def _start(tokenizer: Any) -> None:
    _state["tokenizer"] = tokenizer


def _encode(texts: Sequence[str | bytes], add_special: bool, parse_special: bool) -> list[list[int]]:
    tokenizer = _state["tokenizer"]
    return [tokenizer.encode(text, add_special, parse_special) for text in texts]


def encode_in_processes(
    tokenizer: Any, texts: Sequence[str | bytes], add_special: bool, parse_special: bool, workers: int
) -> list[list[int]]:
    """Ids of each text, in order.

    A tokenizer travels as the path of its pack, which each process maps; one that lives in memory travels whole.
    """
    size = max(1, -(-len(texts) // (4 * workers)))
    chunks = [texts[at : at + size] for at in range(0, len(texts), size)]
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(tokenizer,)) as pool:
        jobs = [pool.submit(_encode, chunk, add_special, parse_special) for chunk in chunks]
        return [ids for job in jobs for ids in job.result()]
