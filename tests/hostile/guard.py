"""What tests of damaged files share: a time limit, and everything that a user may do with a tokenizer."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.runtime.bulk.forcing import force
from tokpack.errors import TokpackError
from tokpack.runtime.tokenizer import Tokenizer

TEXTS: tuple[str | bytes, ...] = (
    "Hello world 123",
    "",
    "\n\n  \t<|endoftext|> don't\x1d été 日本 \U0001f600\U0010ffff",
    b"\xff\xfe a\0b <s></s>",
    "aaaaaaaa" * 20,
)


# every script, runs of one character, words that are new and words that come again, special tokens
FORCED: tuple[str, ...] = (
    "Hello world, hello World! don't 1234 \n\n\tx  y",
    "été ÉCOLE naïve 日本語 한국어 \U0001f600\U0010ffff <s>a</s> e\u0301 \u2581x ﬁ ½",
    "aaaaaaaabbbbbbbb" * 30 + "the quick brown fox " * 20,
)
LONG = (FORCED[0] + FORCED[1]) * 420  # beyond the length from which texts go the bulk way by themselves


class Hang(BaseException):
    """The time is up; no ``except Exception`` of the code under test catches it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise Hang after ``seconds`` of work, or ten times as long of waiting: a busy machine is not a hang."""

    def stop(_signal: int, _frame: object) -> None:
        raise Hang(f"not done after {seconds} s")

    kinds = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, stop) for number, _, _ in kinds]
    for _, timer, after in kinds:
        signal.setitimer(timer, after)
    try:
        yield
    finally:
        for _, timer, _ in kinds:
            signal.setitimer(timer, 0)
        for (number, _, _), old in zip(kinds, before, strict=True):
            signal.signal(number, old)


class Trouble:
    """What went wrong in a loop over many damaged files: each kind is shown once, with the first file that shows it."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, int]] = {}
        self._hangs = 0

    @contextmanager
    def note(self, what: str) -> Iterator[None]:
        """Remember an exception that is no TokpackError; the fifth hang ends the test."""
        try:
            yield
        except (KeyboardInterrupt, AssertionError):
            raise
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if "tests" not in Path(frame.filename).parts]
            where = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else "?"
            kind = f"{type(error).__name__} in {where}: {error}"[:160]
            first, count = self._kinds.get(kind, (what, 0))
            self._kinds[kind] = (first, count + 1)
            self._hangs += isinstance(error, Hang)
            if self._hangs >= 5:
                self.report()

    def report(self) -> None:
        """Fail if there was anything."""
        lines = [f"{count} × {kind} (first: {first})" for kind, (first, count) in self._kinds.items()]
        assert not lines, f"{len(lines)} kinds of trouble:\n" + "\n".join(lines[:30])


def exercise(tokenizer: Tokenizer) -> int:
    """Call everything; return how many calls raised a TokpackError. Any other exception goes through."""
    size = tokenizer.vocab_size
    ids = sorted({0, 1, size // 2, size - 2, size - 1, *range(7, min(size, 300), 41)} & set(range(size)))
    calls: list[Callable[[], Any]] = [
        lambda: tokenizer.findings,
        lambda: tokenizer.chat_templates,
        lambda: tokenizer.eog_ids,
        lambda: (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.unk_id, repr(tokenizer)),
        lambda: tokenizer.detokenize(ids, remove_special=True, unparse_special=True),
        lambda: tokenizer.decode(ids),
        lambda: tokenizer.token_to_id("Ġwor"),
        lambda: tokenizer.token_to_id(b"\xff"),
        lambda: _stream(tokenizer, ids),
    ]
    for text in TEXTS:
        calls += [
            partial(tokenizer.encode, text),
            partial(tokenizer.encode, text, add_special_tokens=False, parse_special=False),
            partial(tokenizer.pieces, text),
            partial(_there_and_back, tokenizer, text),
        ]
    for token in ids:
        calls += [
            partial(tokenizer.id_to_token, token),
            partial(tokenizer.id_to_bytes, token),
            partial(tokenizer.id_to_piece, token, False),
            partial(tokenizer.is_special, token),
        ]
    return sum(map(_fails, calls))


def exercise_bulk(tokenizer: Tokenizer) -> int:
    """What arrays do: long texts, the bulk path forced upon short ones, many ids; as :func:`exercise`."""
    size = tokenizer.vocab_size
    ids = [token for token in {0, 1, size // 2, size - 1, *range(0, min(size, 300), 7)} if 0 <= token < size]
    ids = [token for token in ids if _short(tokenizer, token)]
    many = (ids * (1 + 9000 // max(1, len(ids))))[:9000]
    calls: list[Callable[[], Any]] = [
        lambda: tokenizer.encode(LONG),
        lambda: tokenizer.encode_array(LONG),
        lambda: tokenizer.decode_bytes(many),
        lambda: tokenizer.detokenize(many, remove_special=True, unparse_special=True),
        lambda: tokenizer.decode_bytes([*many, size]),
        lambda: tokenizer.encode_batch(["a b", "c"]),
    ]
    for chunk, few in ((1 << 16, 0), (7, 1 << 20)):
        calls.append(partial(_force, tokenizer, chunk, few))
        calls += [partial(tokenizer.encode_array, text, False, parse) for parse in (True, False) for text in FORCED]
    return sum(map(_fails, calls))


def _short(tokenizer: Tokenizer, token: int) -> bool:
    """Whether text of thousands of such tokens is no more than others."""
    try:
        return len(tokenizer.id_to_bytes(token)) < 100
    except TokpackError:
        return True


def _force(tokenizer: Tokenizer, chunk: int, few: int) -> None:
    if hasattr(tokenizer._pipeline, "bulk"):
        force(tokenizer, chunk, few)


def _fails(call: Callable[[], Any]) -> bool:
    try:
        call()
    except TokpackError:
        return True
    return False


def _there_and_back(tokenizer: Tokenizer, text: str | bytes) -> str:
    return tokenizer.decode(tokenizer.encode(text))


def _stream(tokenizer: Tokenizer, ids: list[int]) -> str:
    stream = tokenizer.stream()
    return "".join(stream.push(token) for token in ids) + stream.flush()
