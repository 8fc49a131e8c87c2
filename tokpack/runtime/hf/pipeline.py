"""Text → ids and back by the rules of the ``tokenizers`` library (``tokenizer/mod.rs``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView
from tokpack.records import dataclass, replace
from tokpack.runtime.errors import meta_errors
from tokpack.runtime.hf.added import AddedMatcher, read_added
from tokpack.runtime.hf.compose import Composer
from tokpack.runtime.hf.detokenize import HfDetokenizer
from tokpack.runtime.hf.fragment import Fragment, Range, cut, in_bytes, stretch
from tokpack.runtime.hf.models import Model, make_model
from tokpack.runtime.hf.normalizers import Normalizer, make_normalizers
from tokpack.runtime.hf.pre_tokenizers import GPT2_PATTERN, make_pre_tokenizers
from tokpack.runtime.hf.sets import SPACE, WORD, CharSets
from tokpack.runtime.hf.short import short_texts
from tokpack.runtime.limited import Pattern, compile_pattern, find_all
from tokpack.runtime.spaced import SpacedParts
from tokpack.runtime.spans import Spans
from tokpack.runtime.split import ClassMap
from tokpack.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokpack.runtime.bulk.huggingface import HfBulk
    from tokpack.runtime.stream import WindowStream

__all__ = ["HfPipeline", "Stages"]

_LONG = 1 << 15  # characters from which on a text goes the bulk way: importing numpy pays off
_CACHED_WORDS = 1 << 16
_CACHED_LENGTH = 64

Matcher = Callable[[str], Iterable[Range]]
Tokens = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Stages:
    """What a text goes through before the model: steps in the order of the meta section."""

    passes: tuple[AddedMatcher, AddedMatcher]
    normalizers: list[Normalizer]
    pre_tokenizers: list[Callable[[Fragment], Iterable[Fragment]]]


class HfPipeline:
    """Everything between a text and its ids; each stage is made when it is first used.

    Attributes:
        pieces: the vocabulary.
        detokenizer: the way back.
    """

    def __init__(self, view: PackView) -> None:
        self.pieces = PieceTable(view)
        self._view = view
        if view.meta["matching"] != "leftmost-longest":
            raise UnsupportedError(f"a pack with the matching rule {view.meta['matching']!r}")
        self._words: dict[str, Tokens] = {}
        self._added: dict[int, str] | None = None
        self.detokenizer = HfDetokenizer(view, self.pieces, self._matcher, self._shown_added)

    @cached_property
    def _composer(self) -> Composer:
        with meta_errors(self._view.file):
            extras = self._view.about()["extras"]
            return Composer(self._view.meta["post_processor"], extras, self.pieces.size)

    @cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        with meta_errors(self._view.file):
            return Composer(self._view.meta["post_processor"], {}, self.pieces.size).around()

    @cached_property
    def _sets(self) -> CharSets:
        return CharSets(self._view)

    @property
    def sets(self) -> CharSets:
        """The library's character sets."""
        return self._sets

    @property
    def class_map(self) -> ClassMap:
        """Code point → class character of the patterns."""
        return self._class_map

    @cached_property
    def _patterns(self) -> dict[str, tuple[Pattern, bool]]:
        with meta_errors(self._view.file):
            # translated by tokpack.onig: explicit sets of class characters, no property of the interpreter's
            return {
                str(source): (compile_pattern(str(source), str(translated), "a step of the tokenizer"), bool(empty))
                for source, translated, empty in self._view.meta["onig"]
            }

    @cached_property
    def _class_map(self) -> ClassMap:
        return ClassMap(*self._view.two_stage("onig"))

    def _matcher(self, pattern: str, dialect: str) -> Matcher:
        """What finds the matches of a pattern, as the library's ``Pattern`` does."""
        if not isinstance(pattern, str):
            raise TypeError("a pattern is no text")  # a damaged pack: the caller names the section
        if dialect == "literal":
            compiled = re.compile(re.escape(pattern))
            return lambda text: find_all(compiled, text, not pattern)
        if dialect != "onig":
            raise UnsupportedError(f"a pack with a pattern of the dialect {dialect!r} under the library's rules")
        return self._onig_matcher(pattern)

    def _onig_matcher(self, pattern: str) -> Matcher:
        def matches(text: str) -> Iterable[Range]:
            with meta_errors(self._view.file):
                compiled, can_be_empty = self._patterns[pattern]
            classes = text if text.isascii() else text.translate(self._class_map)
            return find_all(compiled, classes, can_be_empty)

        return matches

    @cached_property
    def _normalizers(self) -> list[Normalizer]:
        with meta_errors(self._view.file):
            steps = self._view.meta["normalizer"]
            matchers = [
                self._matcher(step["pattern"], step["dialect"]) if step["kind"] == "replace" else None for step in steps
            ]
            return make_normalizers(steps, self._view, matchers)

    @cached_property
    def _pre_tokenizers(self) -> list[Callable[[Fragment], Iterable[Fragment]]]:
        with meta_errors(self._view.file):
            steps = self._view.meta["pre_tokenizer"]
            return make_pre_tokenizers(steps, self._sets, self._view, self._matcher)

    @cached_property
    def _model(self) -> Model:
        with meta_errors(self._view.file):
            return make_model(self._view, self.pieces)

    @cached_property
    def _passes(self) -> tuple[AddedMatcher, AddedMatcher]:
        tokens = read_added(self._view, self.pieces.size)
        raw = [token for token, normalized in tokens if not normalized]
        later = [replace(t, pattern=self._shown_added()[t.id]) for t, normalized in tokens if normalized]

        def is_word(char: str) -> bool:
            return self._sets.has(char, WORD)

        def is_space(char: str) -> bool:
            return self._sets.has(char, SPACE)

        return AddedMatcher(raw, is_word, is_space), AddedMatcher(later, is_word, is_space)

    def stages(self) -> Stages:
        """The stages themselves, for tools that show what each does."""
        return Stages(self._passes, self._normalizers, self._pre_tokenizers)

    def _shown_added(self) -> dict[int, str]:
        """Id → normalized content of the tokens that are matched in normalized text; they also decode to it."""
        if self._added is None:
            tokens = read_added(self._view, self.pieces.size)
            self._added = {t.id: self._normalize(Fragment(t.pattern)).text for t, normalized in tokens if normalized}
        return self._added

    def normalize(self, text: str) -> str:
        """``text`` after the normalizers."""
        return self._normalize(Fragment(text)).text

    @cached_property
    def _asks_for_first(self) -> bool:
        """Whether a step treats text that begins at the first character of the input in its own way."""
        with meta_errors(self._view.file):
            steps = self._view.meta["pre_tokenizer"]
            return any(step["kind"] == "metaspace" and step["prepend_scheme"] == "first" for step in steps)

    def _normalize(self, fragment: Fragment) -> Fragment:
        for step, plain in zip(self._normalizers, self._view.meta["normalizer"], strict=True):
            if fragment.origin is None:
                text = step.apply(fragment.text)
                if text is not fragment.text:
                    fragment = Fragment(text, None, fragment.first)
                continue
            # replaced text belongs to the last character that it replaces (``replace``, normalizer.rs)
            edited = fragment.edit(step.edits(fragment.text), to_last=plain["kind"] == "replace")
            if edited.origin and plain["kind"] != "precompiled":  # a charsmap that removes characters leaves no trace
                edited = replace(edited, first=edited.origin[0][0] == 0)
            fragment = edited
        return fragment

    def fragments(
        self, fragment: Fragment, parse_special: bool, normalize: Callable[[Fragment], Fragment] | None = None
    ) -> Iterable[tuple[int, Fragment]]:
        """(id of an added token, its text), and (-1, normalized text) between them.

        ``normalize``: another way to the same normalized text.
        """
        first, second = self._passes
        normalize = normalize or self._normalize
        skip = not parse_special
        for token, part in first.split(fragment, skip):
            if token >= 0:
                yield token, part
            else:
                yield from second.split(normalize(part), skip)

    def words(self, fragment: Fragment) -> Iterable[tuple[Fragment, Tokens]]:
        """The words of a normalized text and the tokens that the model makes of them."""
        for word in self._pre_tokenize(fragment):
            yield word, self._encode_word(word.text)

    def cut_words(self, text: str) -> list[str]:
        """The words of a normalized text, for pre-tokenizers that end in one to bytes: before that spelling."""
        parts = [Fragment(text)] if text else []
        last = self._view.meta["pre_tokenizer"][-1]
        for step in self._pre_tokenizers[:-1]:
            parts = [piece for part in parts for piece in step(part) if piece.text]
        if not last["use_regex"]:
            return [part.text for part in parts]
        matcher = self._matcher(GPT2_PATTERN, "onig")
        ranges = ((part.text, cut(list(matcher(part.text)), len(part.text), "isolated", False)) for part in parts)
        return [piece[start:end] for piece, found in ranges for start, end in found]

    def compiled(self, pattern: str) -> Pattern:
        """A pattern of the pack, on class characters."""
        with meta_errors(self._view.file):
            return self._patterns[pattern][0]

    @property
    def model(self) -> Model:
        """Words to tokens."""
        return self._model

    def _run(self, fragment: Fragment, parse_special: bool) -> Iterable[tuple[int, Fragment, Tokens]]:
        """(id of an added token or -1, its text, tokens of the model)."""
        for token, part in self.fragments(fragment, parse_special):
            if token >= 0:
                yield token, part, []
            else:
                for word, tokens in self.words(part):
                    yield -1, word, tokens

    def _pre_tokenize(self, fragment: Fragment) -> Iterable[Fragment]:
        parts = [fragment] if fragment.text else []
        for step in self._pre_tokenizers:
            parts = [piece for part in parts for piece in step(part) if piece.text]
        return parts

    def _encode_word(self, word: str) -> Tokens:
        tokens = self._words.get(word)
        if tokens is None:
            tokens = self._model.encode(word)
            if len(word) <= _CACHED_LENGTH:
                if len(self._words) >= _CACHED_WORDS:
                    self._words.clear()
                self._words[word] = tokens
        return tokens

    def stream(self, special: bool) -> WindowStream:
        """A decoder for ids that come one by one."""
        from tokpack.runtime.stream import WindowStream

        return WindowStream(self.detokenizer, special)

    def encode(self, text: str | bytes, add_special: bool, parse_special: bool) -> list[int]:
        """See :meth:`tokpack.Tokenizer.encode`."""
        ids = self._plain(text, parse_special)
        if not add_special:
            return ids
        before, after = self._around
        return [*before, *ids, *after]

    @cached_property
    def bulk(self) -> HfBulk:
        """The bulk path; needs numpy."""
        from tokpack.runtime.bulk.huggingface import HfBulk

        return HfBulk(self._view, self.pieces, self)

    def encode_array(self, text: str | bytes, add_special: bool, parse_special: bool) -> NDArray[np.int32]:
        """As :meth:`encode`, int32 ``[n]``, with numpy where the text is long enough."""
        before, after = self._around if add_special else ([], [])
        return self.bulk.encode(_text(text), parse_special, list(before), list(after))

    def compose(
        self,
        text: str | bytes,
        pair: str | bytes | None,
        *,
        add_special: bool,
        parse_special: bool,
        truncate: bool,
        pad: bool,
    ) -> tuple[list[int], list[int]]:
        """(ids, type ids) of one text or of two, by the file's own template, truncation and padding."""
        first = self._plain(text, parse_special)
        second = None if pair is None else self._plain(pair, parse_special)
        return self._composer.compose(first, second, add_special=add_special, truncate=truncate, pad=pad)

    def _plain(self, text: str | bytes, parse_special: bool) -> list[int]:
        if len(text) >= _LONG:
            found: list[int] = self.bulk.encode(_text(text), parse_special, [], []).tolist()
            return found
        short = self._short
        if short is None:
            return self.scalar(_text(text), parse_special)
        chars = text if isinstance(text, str) else _text(text)
        ids = short.encode(chars)
        return self._between_tokens(_text(chars), parse_special, short) if ids is None else ids

    def _between_tokens(self, chars: str, parse_special: bool, short: SpacedParts) -> list[int]:
        """A text with added tokens: what is between them goes the short way where that can be done."""
        first, second = self._passes
        if self._asks_for_first or not (second.empty or not self._view.meta["normalizer"]):
            return self.scalar(chars, parse_special)
        ids: list[int] = []
        skip = not parse_special
        for token, part in first.split(Fragment(chars), skip):
            if token >= 0:
                ids.append(token)
                continue
            found = short.encode(part.text)
            if found is not None:
                ids += found
                continue
            for later, piece in second.split(self._normalize(part), skip):
                if later >= 0:
                    ids.append(later)
                else:
                    for _, tokens in self.words(piece):
                        ids += [token for token, _ in tokens]
        return ids

    @cached_property
    def _short(self) -> SpacedParts | None:
        """Short texts without added tokens."""
        with meta_errors(self._view.file):
            return short_texts(self._view, self)

    @property
    def asks_for_first(self) -> bool:
        """Whether a step treats text that begins at the first character of the input in its own way."""
        return self._asks_for_first

    @property
    def normalizers(self) -> list[Normalizer]:
        """The normalizers."""
        return self._normalizers

    def scalar(self, chars: str, parse_special: bool) -> list[int]:
        """Ids of a text by the scalar path, nothing added."""
        ids: list[int] = []
        origin = [(at, at + 1) for at in range(len(chars))] if self._asks_for_first else None
        for token, _, tokens in self._run(Fragment(chars, origin), parse_special):
            if token >= 0:
                ids.append(token)
            else:
                ids += [piece for piece, _ in tokens]
        return ids

    def encode_spans(self, text: str | bytes, add_special: bool, parse_special: bool) -> Spans:
        """(id, start, end) of each token, in characters of a str or bytes of a bytes."""
        chars = _text(text)
        spans: Spans = []
        origin = [(at, at + 1) for at in range(len(chars))]
        for token, fragment, tokens in self._run(Fragment(chars, origin), parse_special):
            places = fragment.origin or []
            if token >= 0:
                spans.append((token, *stretch(places, 0, len(places))))
            begin = 0
            for piece, end in tokens:
                # byte pieces of one character share its end
                spans.append((piece, *stretch(places, min(begin, end - 1), end)))
                begin = end
        if add_special:
            before, after = self._around
            size = len(chars)
            spans = [*((t, 0, 0) for t in before), *spans, *((t, size, size) for t in after)]
        return spans if isinstance(text, str) else in_bytes(chars, spans)


def _text(text: str | bytes) -> str:
    """Text as the library takes it: Unicode without surrogates."""
    try:
        if isinstance(text, str):
            if not text.isascii():
                text.encode("utf-8")
            return text
        return bytes(text).decode("utf-8")
    except UnicodeError as error:
        hint = "decode it with errors='replace' first"
        raise EncodeError(f"the library takes Unicode text only: {error}", hint=hint) from error
