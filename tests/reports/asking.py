"""Cases of public reports: a file, questions, and what the reference program answers.

The answers lie in ``recorded.json``. ``python -m tests.reports.record`` asks the programs again: llama.cpp (PyPI
package xllamacpp), tokenizers 0.23.3, sentencepiece 0.2.3 and tiktoken 0.14. No answer comes from tokpack.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tokpack.errors import EncodeError, TokpackError

RECORDED = Path(__file__).with_name("recorded.json")
LLAMA, HF, SPM, TIK = "llama.cpp", "tokenizers", "sentencepiece", "tiktoken"
SUFFIX = {LLAMA: ".gguf", HF: ".json", SPM: ".model", TIK: ".tiktoken"}
PROGRAMS = {
    LLAMA: ("xllamacpp", None),
    HF: ("tokenizers", "0.23.3"),
    SPM: ("sentencepiece", "0.2.3"),
    TIK: ("tiktoken", None),
}
FAILED = "failed"  # the program ends, panics or raises on this question
REFUSED = "refused"  # it does not load the file

Json = Any


@dataclass(frozen=True)
class Ask:
    """A question, or several about one text.

    Attributes:
        text: what is encoded; None for a question about ids.
        add: add BOS and EOS.
        parse: read special tokens in the text.
        pieces: what the report holds to be right, as pieces separated by spaces (written by hand, not recorded); None
            where the report says nothing, or where the reference program decides otherwise (the case's note says so).
        ids: ids to decode.
        stream: decode them one by one.
        special: write special tokens when decoding.
        back: what the report holds to be the right text of ``ids``.
    """

    text: str | bytes | None = None
    add: bool = False
    parse: bool = True
    pieces: str | None = None
    ids: tuple[int, ...] | None = None
    special: bool = False
    stream: bool = False
    back: str | None = None

    def as_json(self) -> Json:
        """The question as data."""
        if self.text is None:
            return ["stream" if self.stream else "decode", list(self.ids or ()), self.special]
        raw = self.text.encode("utf-8", "surrogatepass") if isinstance(self.text, str) else self.text
        return ["encode", b64encode(raw).decode(), self.add, self.parse]


@dataclass(frozen=True)
class Case:
    """A file and what is asked about it.

    Attributes:
        label: ids of the reports and a word or two, unique.
        reference: whose answers count.
        make: makes the file; the same bytes each time.
        asks: questions.
        note: where the reference program and the report disagree.
        options: of tokpack's reader.
        code: a finding that this file must give.
        slow: whether it takes seconds.
    """

    label: str
    reference: str
    make: Callable[[], bytes]
    asks: tuple[Ask, ...] = ()
    note: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    code: str | None = None
    slow: bool = False

    @property
    def data(self) -> bytes:
        """The file."""
        return made(self.make)

    def key(self) -> str:
        """A digest of all that the answers depend on."""
        asked = json.dumps([self.reference, [ask.as_json() for ask in self.asks], self.options])
        return hashlib.sha256(self.data + asked.encode()).hexdigest()[:16]

    def write(self, folder: Path) -> Path:
        """The file in a folder."""
        path = folder / f"case{SUFFIX[self.reference]}"
        path.write_bytes(self.data)
        return path

    def check(self, folder: Path) -> tokpack.Tokenizer | None:
        """Compare tokpack with the recorded answers, and these with what the report holds to be right."""
        answers = recorded()[self.label]
        assert answers["key"] == self.key(), "the case has changed: python -m tests.reports.record"
        path = self.write(folder)
        options = dict(self.options)
        if self.code is not None:
            assert self.code in {found.code for found in tokpack.read(path, **options).findings}
        if answers["answers"] == REFUSED:
            with pytest.raises(TokpackError):
                tokpack.load(path, **options)
            return None
        tokenizer = tokpack.load(path, **options)
        packed = folder / "case.tokpack"
        tokpack.convert(path, packed, read_options=options, force=True)
        for one in (tokenizer, tokpack.load(packed)):
            got = [answer(one, ask) for ask in self.asks]
            assert got == answers["answers"]
        for ask, said in zip(self.asks, answers["answers"], strict=True):
            if ask.pieces is not None:
                assert [tokenizer.id_to_token(token) for token in said] == ask.pieces.split(" "), ask
            if ask.back is not None:
                assert ("".join(said) if ask.stream else said) == ask.back, ask
        return tokenizer


def answer(tokenizer: tokpack.Tokenizer, ask: Ask) -> Json:
    """tokpack's answer."""
    try:
        if ask.stream:
            stream = tokenizer.stream(not ask.special)
            return [stream.push(token) for token in ask.ids or ()]
        if ask.text is None:
            return tokenizer.decode(ask.ids or (), not ask.special)
        return tokenizer.encode(ask.text, ask.add, ask.parse)
    except EncodeError:
        return FAILED


_made: dict[Callable[[], bytes], bytes] = {}
CASES: dict[str, Case] = {}


def made(make: Callable[[], bytes]) -> bytes:
    """What ``make`` gives, kept."""
    if make not in _made:
        _made[make] = make()
    return _made[make]


@cache
def recorded() -> Json:
    """The recorded answers."""
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def each(*cases: Case) -> pytest.MarkDecorator:
    """Run a test for each of these cases; they become known to the recording script."""
    for case in cases:
        assert case.label not in CASES, case.label
        CASES[case.label] = case
    params = [pytest.param(case, marks=pytest.mark.slow if case.slow else (), id=case.label) for case in cases]
    return pytest.mark.parametrize("case", params)


def texts(*items: str | bytes, **more: Any) -> tuple[Ask, ...]:
    """A question for each text."""
    return tuple(Ask(text=item, **more) for item in items)


def said(label: str, at: int = 0) -> Json:
    """A recorded answer."""
    return recorded()[label]["answers"][at]


def round_trip(ids: Iterable[int], special: bool = True) -> Ask:
    """The question what ids mean."""
    return Ask(ids=tuple(ids), special=special)
