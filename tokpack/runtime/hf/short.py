"""Short texts of the ``tokenizers`` library part by part (:mod:`tokpack.runtime.spaced`): for which files, and how.

Three kinds of files cut at a space between two plain characters. Byte-level patterns that have been looked at; a first
pre-tokenizer that takes spaces out, or one that puts a mark in front of each word; and BPE of a whole text whose spaces
are marks, where no symbol holds a character with the mark behind it. The normalizers must not look over such a space:
each of them is known, and what it makes of a part has to begin and end with a plain character again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from tokpack.pack.view import PackView
from tokpack.runtime.bulk.known import rules_of_steps
from tokpack.runtime.hf.fragment import Fragment
from tokpack.runtime.hf.models import BpeModel
from tokpack.runtime.hf.pre_tokenizers import GPT2_PATTERN
from tokpack.runtime.hf.sets import PUNCTUATION, SPACE
from tokpack.runtime.pairs import SymbolPairs
from tokpack.runtime.spaced import NotPlainError, SpacedParts, Words, is_plain
from tokpack.typed import TYPE_CHECKING, Any
from tokpack.unicode import byte_level
from tokpack.unicode.utf8 import has_surrogates

if TYPE_CHECKING:
    from tokpack.runtime.hf.pipeline import HfPipeline

__all__ = ["short_texts"]

Plain = Mapping[str, Any]
_MARK = "▁"
# regular expressions of Replace that match one character at a time, or only more than one space
_LOCAL_PATTERNS = frozenset({r" {2,}", r"\s+", r"\p{Zs}", r"[\u00AD\u200B\u200C\u200D\u2060\uFEFF]"})
_SPACE_TAKERS = ("bert-pre-tokenizer", "whitespace-split", "whitespace")
_LOCAL_STEPS = frozenset(
    {"unicode-normalization", "lowercase", "strip-accents", "nmt", "bert-normalizer", "precompiled", "strip"}
)
# words of BertPreTokenizer in printable ASCII
_BERT_WORDS = re.compile(r"[!-/:-@\[-`{-~]|[0-9A-Za-z]+").findall
# patterns that match no space, so that everything between two spaces is cut out
_CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
# chains of splits in which all but white space matches, and a space only with what follows it
_DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
)


def short_texts(view: PackView, pipeline: HfPipeline) -> SpacedParts | None:
    """What encodes texts without added tokens; None if such a space is no boundary."""
    meta = view.meta
    normalizers, steps = list(meta["normalizer"]), list(meta["pre_tokenizer"])
    whole = _whole_text(view, pipeline, normalizers, steps)
    if whole is not None:
        return whole
    if not all(map(_is_local, normalizers)):
        return None
    if any(
        step.apply(" ") != " "
        for step, plain in zip(pipeline.normalizers, normalizers, strict=True)
        if plain["kind"] != "strip"
    ):
        return None
    refuses = _refuses(pipeline, normalizers)
    if refuses is None:
        return None
    if _keeps_spaces(steps):
        guarded = _Guarded(pipeline, normalizers, _byte_words(pipeline, steps), " ")
        return SpacedParts(guarded.first, guarded.later, refuses)
    mark = _separated(steps)
    if mark is None:
        return None
    free = len(normalizers) == 1 and steps[0]["kind"] in _SPACE_TAKERS
    words = _separate_words(pipeline, mark, steps)
    guarded = _Guarded(pipeline, normalizers, words, "", free=free)
    if steps[0]["kind"] == "metaspace":
        # a space before an added token is a mark of its own there
        return SpacedParts(guarded.first, guarded.later, lambda part: guarded.has_token(part) or refuses(part))
    return SpacedParts(guarded.first, guarded.later, refuses, gaps=_gaps(pipeline, normalizers))


# --- normalizers ---


def _is_local(step: Plain) -> bool:
    if step["kind"] in _LOCAL_STEPS:
        return True
    if step["kind"] != "replace":
        return False
    if step["dialect"] == "literal":
        return bool(step["pattern"]) and " " not in step["pattern"]
    return step["pattern"] in _LOCAL_PATTERNS


class _Guarded:
    """Parts of a text through all steps.

    Args:
        pipeline: has the normalizers.
        plain: the same as the meta section has them.
        words: ids of a normalized part.
        space: what is in front of a part that follows a space.
        free: whether a part may become anything: no other step looks at what spaces separate.
    """

    def __init__(
        self,
        pipeline: HfPipeline,
        plain: Sequence[Plain],
        words: Callable[[str], Iterable[int]],
        space: str,
        *,
        free: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self._none = not plain
        self._words = words
        self._space = space
        self._free = free
        self._passes = pipeline.stages().passes

    def first(self, text: str) -> Iterable[int]:
        """A text of its own, or its beginning."""
        if not text:
            return ()
        left, right = is_plain(text), is_plain(text[-1])
        return self._encode("", text, self._normalized(text, left=left, right=right))

    def later(self, part: str) -> Iterable[int]:
        """What follows a space."""
        right = is_plain(part[-1])
        return self._encode(self._space, part, self._normalized(part, left=True, right=right))

    def has_token(self, text: str) -> bool:
        """Whether an added token is found in a part."""
        return self._passes[0].occurs(text) or (
            not self._passes[1].empty and self._passes[1].occurs(self._pipeline.normalize(text))
        )

    def _encode(self, space: str, text: str, normalized: str) -> Iterable[int]:
        if self._passes[0].occurs(text) or self._passes[1].occurs(normalized):
            return self._pipeline.scalar(space + text, False)
        return self._words(space + normalized)

    def _normalized(self, text: str, *, left: bool, right: bool) -> str:
        if self._none:
            return text
        for step in self._pipeline.normalizers:
            before = text
            text = step.apply(text)
            if text is before or self._free:
                continue
            if (left and not is_plain(text)) or (right and not is_plain(text[-1:])):
                raise NotPlainError  # what is beside it may matter to the next step
        return text


def _gaps(pipeline: HfPipeline, normalizers: Sequence[Plain]) -> str:
    """The white space of which every run is taken out, as the normalizers leave nothing else of it."""
    if any(step.get("dialect") == "literal" and step["pattern"].split() != [step["pattern"]] for step in normalizers):
        return ""

    def stays(text: str) -> bool:
        for step, plain in zip(pipeline.normalizers, normalizers, strict=True):
            text = text if plain["kind"] == "strip" else step.apply(text)
        return bool(text) and all(pipeline.sets.has(char, SPACE) for char in text)

    gaps = [char for char in " \t\n\r\v\f" if stays(char)]
    return "".join(gaps) if all(stays(a + b) for a in gaps for b in gaps) else ""


# --- added tokens ---


def _refuses(pipeline: HfPipeline, normalizers: Sequence[Plain]) -> Callable[[str], bool] | None:
    """Whether ids of a part depend on more than the part; None if a space may belong to an added token."""
    first, second = pipeline.stages().passes
    if first.crosses_spaces or second.crosses_spaces:
        return None
    if second.empty:
        return lambda part: first.hinders(part) or has_surrogates(part)
    normalize = pipeline.normalize if normalizers else str
    return lambda part: first.hinders(part) or has_surrogates(part) or second.hinders(normalize(part))


# --- words that patterns cut ---


def _keeps_spaces(steps: Sequence[Plain]) -> bool:
    """Whether words of bytes are cut by patterns that put a space at the beginning of a word, or alone."""
    if rules_of_steps(steps, GPT2_PATTERN) is not None:
        return not steps[-1]["add_prefix_space"]
    if not steps or steps[-1]["kind"] != "byte-level" or steps[-1]["use_regex"] or steps[-1]["add_prefix_space"]:
        return False
    chain_of = [
        str(step["pattern"]).replace("\r", r"\r").replace("\n", r"\n") if _isolates(step) else "" for step in steps[:-1]
    ]
    return tuple(chain_of) == _DEEPSEEK


def _isolates(step: Plain) -> bool:
    return bool(
        step["kind"] == "split" and step["dialect"] == "onig" and step["behavior"] == "isolated" and not step["invert"]
    )


def _byte_words(pipeline: HfPipeline, steps: Sequence[Plain]) -> Callable[[str], Iterable[int]]:
    model = pipeline.model
    if isinstance(model, BpeModel) and model.plain and pipeline.pieces.byte_level:
        known = Words(model.ids)
    else:
        known = Words(lambda word: (token for token, _ in model.encode(byte_level.encode(word.encode()))))
    found = rules_of_steps(steps, GPT2_PATTERN)
    if found is None or found[0].alone:
        return lambda text: chain.from_iterable(map(known.__getitem__, pipeline.cut_words(text)))
    pattern, classes = pipeline.compiled(found[1]), pipeline.class_map

    def words(text: str) -> Iterable[int]:
        # these patterns match everywhere: the words are the matches
        shown = text if text.isascii() else text.translate(classes)
        spans = (match.span() for match in pattern.finditer(shown))
        return chain.from_iterable(known[text[start:end]] for start, end in spans)

    return words


# --- words that spaces separate ---


def _separated(steps: Sequence[Plain]) -> str | None:
    """What is put in front of each word between spaces ("" for nothing); None for other steps."""
    if not steps:
        return None
    kinds = [step["kind"] for step in steps]
    if kinds == ["metaspace"] and steps[0]["split"] and steps[0]["prepend_scheme"] == "always":
        return str(steps[0]["replacement"])
    marks = [step for step in steps if step["kind"] == "metaspace"]
    if any(step["prepend_scheme"] == "first" for step in marks):
        return None
    first = steps[0]
    clip = first["kind"] == "split" and first["dialect"] == "onig" and first["pattern"] == _CLIP
    if clip and (first["behavior"], bool(first["invert"])) == ("removed", True):
        return ""
    if first["kind"] not in _SPACE_TAKERS:
        return None
    if kinds == ["whitespace-split", "metaspace"] and steps[1]["prepend_scheme"] == "always":
        return str(steps[1]["replacement"])
    return ""


def _separate_words(pipeline: HfPipeline, mark: str, steps: Sequence[Plain]) -> Callable[[str], Iterable[int]]:
    """Ids of a normalized part."""
    model = pipeline.model

    def plainly(text: str) -> Iterable[int]:
        for _, tokens in pipeline.words(Fragment(text)):
            for token, _ in tokens:
                yield token

    if len(steps) == 1 and steps[0]["kind"] == "bert-pre-tokenizer":
        sets = pipeline.sets
        if all(sets.has(char, PUNCTUATION) != char.isalnum() for char in map(chr, range(0x21, 0x7F))):
            plain = Words(lambda text: (token for token, _ in model.encode(text)))

            def bert_words(text: str) -> Iterable[int]:
                if not text.isascii() or not text.isprintable():
                    return plainly(text)
                return chain.from_iterable(map(plain.__getitem__, _BERT_WORDS(text)))

            return bert_words
    if len(mark) != 1:
        return plainly
    known = Words(lambda text: (token for token, _ in model.encode(mark + text)))

    def words(text: str) -> Iterable[int]:
        # what is printable holds no other white space
        if text and text.isprintable() and " " not in text and mark not in text:
            return known[text]
        return plainly(text)

    return words


# --- whole texts ---


def _whole_text(
    view: PackView, pipeline: HfPipeline, normalizers: Sequence[Plain], steps: Sequence[Plain]
) -> SpacedParts | None:
    """BPE of a whole text; None for other models, and if a space can be inside a symbol."""
    model = pipeline.model
    if not isinstance(model, BpeModel) or not model.plain or model.looks_up or pipeline.pieces.byte_level:
        return None
    begins = _prefix(normalizers, steps)
    pairs = SymbolPairs.of(view, lambda char: model.find(char) >= 0)
    if begins is None or pairs is None or not pipeline.stages().passes[1].empty or model.find(_MARK) < 0:
        return None

    words = Words(model.ids).__getitem__
    cut = pairs.cut

    first_pass = pipeline.stages().passes[0]

    def escape(text: str, *, initial: bool) -> str:
        escaped = text.replace(" ", _MARK)
        return _MARK + escaped if escaped and begins(escaped, initial) else escaped

    def encode(text: str, space: str) -> Iterable[int]:
        if not first_pass.occurs(text):
            return chain.from_iterable(map(words, cut(escape(space + text, initial=not space))))
        ids: list[int] = []
        for token, part in first_pass.split(Fragment(space + text), True):
            if token >= 0:
                ids.append(token)
            else:
                ids += chain.from_iterable(map(words, cut(escape(part.text, initial=part.first and not space))))
        return ids

    def first(text: str) -> Iterable[int]:
        return encode(text, "")

    def later(text: str) -> Iterable[int]:
        return encode(text, " ")

    def joins(char: str) -> bool:
        return pairs[char + _MARK]

    refuses = _refuses(pipeline, normalizers)
    if refuses is not None and len(normalizers) == 2:
        # what follows an added token gets a mark in front even if it begins with a space
        return SpacedParts(first, later, lambda part: first_pass.occurs(part) or refuses(part), joins)
    return None if refuses is None else SpacedParts(first, later, refuses, joins)


def _prefix(normalizers: Sequence[Plain], steps: Sequence[Plain]) -> Callable[[str, bool], bool] | None:
    """(escaped text, whether it begins the input or follows no space) → whether a mark is put in front.

    None if more is done to a text.
    """
    if not normalizers and len(steps) == 1 and steps[0]["kind"] == "metaspace" and not steps[0]["split"]:
        scheme = steps[0]["prepend_scheme"]
        if steps[0]["replacement"] != _MARK:
            return None
        return lambda text, initial: (
            scheme != "never" and (initial or scheme == "always") and not text.startswith(_MARK)
        )
    if [(step["kind"], step.get("pattern"), step.get("dialect")) for step in steps] not in (
        [],
        [("split", " ", "literal")],
    ):
        return None
    plain = [(step["kind"], step.get("pattern"), step.get("content"), step.get("dialect")) for step in normalizers]
    spaces = ("replace", " ", _MARK, "literal")
    if plain == [spaces]:
        return lambda text, initial: False
    return (lambda text, initial: initial) if plain == [("prepend", None, _MARK, None), spaces] else None
