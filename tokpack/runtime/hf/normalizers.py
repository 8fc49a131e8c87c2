"""The normalizers of a pack as objects (huggingface/tokenizers 0.23.3, ``tokenizers/src/normalizers``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tokpack.errors import FormatError, Location, UnsupportedError
from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalize_chars import (
    WHITE_SPACE,
    ByteLevelNormalizer,
    CharNormalizer,
    lowercase,
    nmt,
    strip_accents,
)
from tokpack.typed import Any, Protocol

__all__ = ["Edit", "Matcher", "Normalizer", "make_normalizers"]

Edit = tuple[int, int, str]
Matcher = Callable[[str], Iterable[tuple[int, int]]]
"""(start, end) of the matches in a text, ascending and without overlaps; empty ones too."""


class Normalizer(Protocol):
    """One step, ready to run."""

    def apply(self, text: str) -> str:
        """The normalized text; the same object when nothing changes."""

    def edits(self, text: str) -> list[Edit]:
        """(start, end, replacement) in characters of ``text``: ascending, without overlaps; together they make it."""


class _Literal:
    """Replace with a text to look for (``replace.rs``); an empty one is found before and behind every character."""

    def __init__(self, pattern: str, content: str) -> None:
        self._pattern, self._content = pattern, content

    def apply(self, text: str) -> str:
        if not text:  # nothing is looked for in an empty text
            return text
        result = text.replace(self._pattern, self._content)
        return text if result == text else result

    def edits(self, text: str) -> list[Edit]:
        if not text:
            return []
        size, content = len(self._pattern), self._content
        if not size:
            return [(at, at, content) for at in range(len(text) + 1)]
        edits = []
        at = text.find(self._pattern)
        while at >= 0:
            edits.append((at, at + size, content))
            at = text.find(self._pattern, at + size)
        return edits


class _Pattern:
    """Replace with a regular expression; the content is literal."""

    def __init__(self, matcher: Matcher, content: str) -> None:
        self._matcher, self._content = matcher, content

    def apply(self, text: str) -> str:
        parts: list[str] = []
        last = 0
        for start, end, content in self.edits(text):
            parts += (text[last:start], content)
            last = end
        if not parts:
            return text
        parts.append(text[last:])
        result = "".join(parts)
        return text if result == text else result

    def edits(self, text: str) -> list[Edit]:
        return [(start, end, self._content) for start, end in self._matcher(text)] if text else []


class _Prepend:
    """``prepend.rs``."""

    def __init__(self, content: str) -> None:
        self._content = content

    def apply(self, text: str) -> str:
        return self._content + text if text and self._content else text

    def edits(self, text: str) -> list[Edit]:
        return [(0, 0, self._content)] if text and self._content else []


class _Strip:
    """``strip.rs``."""

    def __init__(self, *, left: bool, right: bool) -> None:
        self._left, self._right = left, right

    def apply(self, text: str) -> str:
        if self._left:
            text = text.lstrip(WHITE_SPACE)
        return text.rstrip(WHITE_SPACE) if self._right else text

    def edits(self, text: str) -> list[Edit]:
        size = len(text)
        start = size - len(text.lstrip(WHITE_SPACE)) if self._left else 0
        end = len(text.rstrip(WHITE_SPACE)) if self._right else size
        if start >= end:
            return [(0, size, "")] if size and (start or end < size) else []
        return [edit for edit in ((0, start, ""), (end, size, "")) if edit[0] < edit[1]]


def make_normalizers(
    steps: Sequence[Mapping[str, Any]], view: PackView, matchers: Sequence[Matcher | None]
) -> list[Normalizer]:
    """The steps of a pack, in order.

    Args:
        steps: plain maps, as :func:`tokpack.ir.codec.to_plain` makes them.
        view: the pack with the sections of :func:`tokpack.pack.hf_tables.normalizer_sections`.
        matchers: one for each step; only a Replace with a regular expression has one.

    Raises FormatError for a step that is damaged, UnsupportedError for one that the library does not have.
    """
    made = []
    for index, step in enumerate(steps):
        plain = _Step(step, view, f"normalizers[{index}]")
        make = _MAKERS.get(plain.text("kind"))
        if make is None:
            what = f"normalizer {plain.text('kind')!r} is not one of the tokenizers library"
            raise UnsupportedError(what, location=Location(view.file, plain.path))
        made.append(make(plain, matchers[index] if index < len(matchers) else None))
    return made


class _Step:
    """Typed access to a plain map."""

    def __init__(self, step: Mapping[str, Any], view: PackView, path: str) -> None:
        self.view, self.path = view, path
        self._step = step if isinstance(step, Mapping) else {}

    def _get(self, name: str, kinds: type | tuple[type, ...]) -> Any:
        value = self._step.get(name)
        if not isinstance(value, kinds):
            raise self.fail(f"{name} is missing or has a wrong type")
        return value

    def text(self, name: str) -> str:
        return str(self._get(name, str))

    def flag(self, name: str) -> bool:
        return bool(self._get(name, bool))

    def optional(self, name: str) -> bool | None:
        value = self._get(name, (bool, type(None)))
        return None if value is None else bool(value)

    def fail(self, what: str) -> FormatError:
        return FormatError(f"the index is damaged: {what}", location=Location(self.view.file, self.path))


Maker = Callable[[_Step, "Matcher | None"], Normalizer]


def _replace(step: _Step, matcher: Matcher | None) -> Normalizer:
    if matcher is not None:
        return _Pattern(matcher, step.text("content"))
    if step.text("dialect") != "literal":
        raise step.fail("the pattern was not compiled")
    return _Literal(step.text("pattern"), step.text("content"))


# modules that few files need are imported when a step is made


def _unicode(step: _Step, _: Matcher | None) -> Normalizer:
    from tokpack.runtime.hf.normalize_unicode import FORMS, UnicodeNormalizer

    form = step.text("form")
    if form not in FORMS:
        raise step.fail(f"there is no normalization form {form!r}")
    return UnicodeNormalizer(step.view, form)


def _precompiled(step: _Step, _: Matcher | None) -> Normalizer:
    from tokpack.runtime.hf.normalize_charsmap import PrecompiledNormalizer

    return PrecompiledNormalizer(step.view)


def _bert(step: _Step, _: Matcher | None) -> Normalizer:
    from tokpack.runtime.hf.normalize_bert import BertNormalizer

    lower, accents = step.flag("lowercase"), step.optional("strip_accents")
    return BertNormalizer(
        step.view,
        clean=step.flag("clean_text"),
        chinese=step.flag("handle_chinese_chars"),
        accents=lower if accents is None else accents,
        lowercase=lower,
    )


_MAKERS: dict[str, Maker] = {
    "replace": _replace,
    "prepend": lambda step, _: _Prepend(step.text("content")),
    "unicode-normalization": _unicode,
    "lowercase": lambda step, _: CharNormalizer(lowercase(step.view)),
    "strip-accents": lambda step, _: CharNormalizer(strip_accents(step.view)),
    "strip": lambda step, _: _Strip(left=step.flag("left"), right=step.flag("right")),
    "nmt": lambda step, _: CharNormalizer(nmt),
    "precompiled": _precompiled,
    "bert-normalizer": _bert,
    "byte-level-normalizer": lambda step, _: ByteLevelNormalizer(),
}
