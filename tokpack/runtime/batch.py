"""Encoding a batch in several processes that map the same pack."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["encode_in_processes"]

_state: dict[str, Any] = {}


def _start(tokenizer: Any) -> None:
    _state["tokenizer"] = tokenizer


def _encode(texts: Sequence[str | bytes], add_special: bool, parse_special: bool) -> tuple[bytes, list[int]]:
    """Ids of all texts end to end, as int32, and how many each has: a list of lists takes longer to send."""
    tokenizer = _state["tokenizer"]
    ids, counts = array("i"), []
    for text in texts:
        found = tokenizer.encode(text, add_special, parse_special)
        ids.extend(found)
        counts.append(len(found))
    return ids.tobytes(), counts


def _lists(raw: bytes, counts: list[int]) -> Iterator[list[int]]:
    ids = array("i")
    ids.frombytes(raw)
    at = 0
    for count in counts:
        yield ids[at : at + count].tolist()
        at += count


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
        return [ids for job in jobs for ids in _lists(*job.result())]
