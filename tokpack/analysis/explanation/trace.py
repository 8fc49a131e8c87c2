"""The data model of an explanation: frozen dataclasses, texts as bytes because pieces need not be UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tokpack.runtime.tokenizer import Piece

__all__ = ["Action", "Choice", "Explanation", "Match", "Merge", "Part", "Post", "Step", "Token", "Word"]


@dataclass(frozen=True, slots=True)
class Token:
    """An id and its piece as the source spells it; id -1 (and no text) where the reference emits an id it lacks."""

    id: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Merge:
    """Two neighbours became one.

    Attributes:
        rank: the source's merge rank; the lowest is merged first, the leftmost of equal ones.
        score: of the result, where ranks come from scores; else None.
        left, right, result: as the source spells them.
        start, end: where the result lies in the bytes of the word.
    """

    rank: int
    score: float | None
    left: bytes
    right: bytes
    result: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A step of the best path through all ways to cut a word.

    Attributes:
        id: the piece, -1 for a character without one.
        text: the bytes it covers; the word's at start .. end.
        value: its score (``viterbi``: the highest sum wins) or cost (``min-cost``: the lowest sum wins).
        total: the sum up to here, in the direction in which the reference counts.
        rival: the best other way to the same place as (id, text, total), or None.
    """

    id: int
    text: bytes
    start: int
    end: int
    value: float
    total: float
    rival: tuple[int, bytes, float] | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The longest piece that a word goes on with.

    Attributes:
        id: the piece, -1 for none.
        text: the bytes it covers.
        shorter: pieces that match here, too, the longest of them first; a few.
    """

    id: int
    text: bytes
    start: int
    end: int
    shorter: tuple[bytes, ...] = ()


Action = Merge | Choice | Match


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of text that the model treats by itself.

    Attributes:
        text: as the model sees it.
        method: ``merges``, ``viterbi``, ``min-cost``, ``longest-match``, ``lookup`` (the word is looked up whole).
        symbols: what merging begins with.
        actions: what was done, in order (from the end for ``min-cost``).
        tokens: what came out.
        note: what the actions do not say, or None.
    """

    text: bytes
    method: str
    tokens: tuple[Token, ...]
    symbols: tuple[bytes, ...] = ()
    actions: tuple[Action, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of normalizer or pre-tokenizer.

    Attributes:
        stage: ``normalizer`` or ``pre-tokenizer``.
        name: kind of the step.
        detail: its parameters, for people.
        texts: all texts after it: one after most normalizers, the words so far after a pre-tokenizer.
        changed: whether they differ from those before.
    """

    stage: str
    name: str
    detail: str
    texts: tuple[bytes, ...]
    changed: bool


@dataclass(frozen=True, slots=True)
class Part:
    """What the special tokens leave of a text, in order.

    Attributes:
        kind: ``text``, ``token`` (it was cut out as a token) or ``dropped`` (white space that a token takes along).
        text: the bytes of the part.
        start, end: where it lies in the bytes of the whole text; for ``parts`` of a part in its normalized text.
        token: for ``token``.
        steps: what was done to a text before the model.
        parts: where added tokens are also cut out of the normalized text: what they leave of it; else nothing.
        words: what the model made of it.
    """

    kind: str
    text: bytes
    start: int
    end: int
    token: Token | None = None
    steps: tuple[Step, ...] = ()
    parts: tuple[Part, ...] = ()
    words: tuple[Word, ...] = ()

    def tokens(self) -> Iterator[Token]:
        """The tokens of the part."""
        if self.token is not None:
            yield self.token
        for part in self.parts:
            yield from part.tokens()
        for word in self.words:
            yield from word.tokens


@dataclass(frozen=True, slots=True)
class Post:
    """What is added around the tokens of the text; ``rule`` says by what."""

    rule: str
    before: tuple[Token, ...] = ()
    after: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that happened to a text.

    Attributes:
        file: the tokenizer's file, or None.
        reference: whose rules.
        rules: their version.
        text: the text as UTF-8 (lone surrogates as their three bytes), or the bytes given.
        add_special, parse_special: as given to :meth:`tokpack.Tokenizer.encode`.
        parts: the text, cut at special tokens.
        post: what is added.
        tokens: the result, with offsets: of characters if the text was a str, else of bytes.
        notes: what the stages do not show.
    """

    file: str | None
    reference: str
    rules: str
    text: bytes
    add_special: bool
    parse_special: bool
    parts: tuple[Part, ...]
    post: Post
    tokens: tuple[Piece, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def ids(self) -> list[int]:
        """The ids: those of :meth:`tokpack.Tokenizer.encode`."""
        return [piece.id for piece in self.tokens]

    def traced_ids(self) -> list[int]:
        """The ids that the stages lead to; equal to :attr:`ids`, which :func:`explain` makes sure of."""
        middle = [token.id for part in self.parts for token in part.tokens()]
        return [*(t.id for t in self.post.before), *middle, *(t.id for t in self.post.after)]
