"""Encoding many texts: joined for the bulk path where that is exact, in several processes that map the same pack."""

from __future__ import annotations

from array import array

from tokpack.errors import EncodeError, Location, TokpackError
from tokpack.runtime.joined import Joiner
from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.tokenizer import Tokenizer

    Texts = Sequence[str | bytes]
    Ids = list[int] | NDArray[np.int32]

__all__ = ["encode_all", "encode_arrays", "encode_in_processes"]

_WORTH = 1 << 17  # characters from which on the tables of the bulk path are worth making
_LEAST, _MOST = 1 << 15, 1 << 20  # characters that one process gets at a time

_state: dict[str, Any] = {}


def encode_all(
    tokenizer: Tokenizer, texts: Texts, add_special: bool, parse_special: bool, first: int = 0
) -> Iterator[Ids]:
    """Ids of each text, in order; ``first`` is the number of the first text, for messages."""
    pipeline = tokenizer._pipeline
    joiner = _joiner(tokenizer) if parse_special and sum(map(len, texts)) >= _WORTH else None
    at = 0
    while at < len(texts):
        end = at
        if joiner is not None:
            while end < len(texts) and joiner.takes(texts[end]):
                end += 1
        joined = joiner.encode(texts[at:end], add_special) if joiner is not None and end - at > 1 else None  # type: ignore[arg-type]
        if joined is not None:
            yield from joined
            at = end
            continue
        number = at
        try:
            for number in range(at, max(end, at + 1)):
                yield pipeline.encode(texts[number], add_special, parse_special)
        except EncodeError as error:
            where = error.location
            error.location = Location(where.file, f"text {first + number} of the batch", where.offset)
            raise
        at = number + 1


def _joiner(tokenizer: Tokenizer) -> Joiner | None:
    """Made once for a tokenizer."""
    found = tokenizer._joiner
    if isinstance(found, bool):
        found = tokenizer._joiner = Joiner.of(tokenizer._pipeline, tokenizer.view)
    return found


def _flat(found: Iterator[Ids]) -> tuple[array[int], array[int]]:
    """Ids of all texts end to end, as int32, and where each text ends."""
    ids, ends = array("i"), array("q")
    for part in found:
        if isinstance(part, list):
            ids.extend(part)
        else:
            ids.frombytes(part.tobytes())
        ends.append(len(ids))
    return ids, ends


def encode_arrays(
    tokenizer: Tokenizer, texts: Texts, add_special: bool, parse_special: bool, workers: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """See :meth:`tokpack.Tokenizer.encode_batch_array`."""
    import numpy as np

    parts, sizes = [], [np.zeros(1, dtype=np.int64)]
    if workers is not None and workers > 1:
        for raw, ends in _in_processes(tokenizer, texts, add_special, parse_special, workers):
            parts.append(np.frombuffer(raw, dtype=np.int32))
            sizes.append(np.diff(np.frombuffer(ends, dtype=np.int64), prepend=0))
    else:
        ids, flat_ends = _flat(encode_all(tokenizer, texts, add_special, parse_special))
        parts.append(np.frombuffer(ids, dtype=np.int32))
        sizes.append(np.diff(np.frombuffer(flat_ends, dtype=np.int64), prepend=0))
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
    return whole, np.cumsum(np.concatenate(sizes))


def encode_in_processes(
    tokenizer: Tokenizer, texts: Texts, add_special: bool, parse_special: bool, workers: int
) -> list[list[int]]:
    """Ids of each text, in order."""
    found: list[list[int]] = []
    for raw, raw_ends in _in_processes(tokenizer, texts, add_special, parse_special, workers):
        ids, ends = array("i"), array("q")
        ids.frombytes(raw)
        ends.frombytes(raw_ends)
        start = 0
        for end in ends:
            found.append(ids[start:end].tolist())
            start = end
    return found


def _start(tokenizer: Tokenizer) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asked is interrupted, and stops the others
    _state["tokenizer"] = tokenizer


def _encode(texts: Texts, add_special: bool, parse_special: bool, first: int) -> tuple[bytes, bytes]:
    """Arrays as bytes: a list of lists takes longer to send."""
    ids, ends = _flat(encode_all(_state["tokenizer"], texts, add_special, parse_special, first))
    return ids.tobytes(), ends.tobytes()


def _in_processes(
    tokenizer: Tokenizer, texts: Texts, add_special: bool, parse_special: bool, workers: int
) -> Iterator[tuple[bytes, bytes]]:
    """Ids and ends of parts of the batch, in order.

    A tokenizer travels as the path of its pack, which each process maps; one that lives in memory travels whole. What
    is one part only is encoded here. The largest parts go first: a huge text among small ones is begun at once.
    """
    chunks = list(_chunks(texts, workers))
    if len(chunks) < 2:
        ids, ends = _flat(encode_all(tokenizer, texts, add_special, parse_special))
        yield ids.tobytes(), ends.tobytes()
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    order = sorted(range(len(chunks)), key=lambda k: -sum(map(len, texts[chunks[k][0] : chunks[k][1]])))
    pool = ProcessPoolExecutor(min(workers, len(chunks)), initializer=_start, initargs=(tokenizer,))
    try:
        jobs = {}
        for k in order:
            start, end = chunks[k]
            jobs[k] = pool.submit(_encode, texts[start:end], add_special, parse_special, start)
        for k in range(len(chunks)):
            yield jobs.pop(k).result()
    except BrokenProcessPool as error:
        hint = 'was there too little memory, or is a program without `if __name__ == "__main__":` started anew?'
        raise TokpackError("a process that encodes ended before its work", hint=hint) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _chunks(texts: Texts, workers: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of parts of about one size; a text is never cut."""
    most = min(_MOST, max(_LEAST, sum(map(len, texts)) // (4 * workers)))
    start = size = 0
    for at, text in enumerate(texts):
        if at > start and size + len(text) > most:
            yield start, at
            start, size = at, 0
        size += len(text) + 1
    if start < len(texts):
        yield start, len(texts)
