"""Encoding a batch in several processes that map the same pack."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tokpack.pack.view import PackView

__all__ = ["encode_in_processes"]

_state: dict[str, Any] = {}


def _start(file: str | None, data: bytes | None) -> None:
    from tokpack.runtime.tokenizer import _rebuild

    _state["tokenizer"] = _rebuild(file, data)


def _encode(texts: Sequence[str | bytes], add_special: bool, parse_special: bool) -> list[list[int]]:
    tokenizer = _state["tokenizer"]
    return [tokenizer.encode(text, add_special, parse_special) for text in texts]


def encode_in_processes(
    view: PackView, texts: Sequence[str | bytes], add_special: bool, parse_special: bool, workers: int
) -> list[list[int]]:
    """Ids of each text, in order."""
    size = max(1, -(-len(texts) // (4 * workers)))
    chunks = [texts[at : at + size] for at in range(0, len(texts), size)]
    data = None if view.mapped else bytes(view.data)
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(view.file, data)) as pool:
        jobs = [pool.submit(_encode, chunk, add_special, parse_special) for chunk in chunks]
        return [ids for job in jobs for ids in job.result()]
