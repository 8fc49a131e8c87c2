"""Pre-tokenizers (``pre_tokenizers/*.rs``): a fragment to smaller ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tokpack.errors import UnsupportedError
from tokpack.pack.view import PackView
from tokpack.runtime.errors import text_of
from tokpack.runtime.hf.fragment import Fragment, Range, cut
from tokpack.runtime.hf.sets import NUMERIC, PUNCTUATION, SPACE, WORD, CharSets
from tokpack.typed import Any
from tokpack.unicode import byte_level

__all__ = ["GPT2_PATTERN", "make_pre_tokenizers"]

Matcher = Callable[[str], Iterable[Range]]
Step = Callable[[Fragment], Iterable[Fragment]]

# ``byte_level.rs``, run on Oniguruma as every other pattern
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _ranges(fragment: Fragment, ranges: Iterable[Range]) -> list[Fragment]:
    return [fragment.slice(start, end) for start, end in ranges]


def _pattern_split(matcher: Matcher, behavior: str, invert: bool) -> Step:
    def split(fragment: Fragment) -> list[Fragment]:
        size = len(fragment.text)
        return _ranges(fragment, cut(list(matcher(fragment.text)), size, behavior, invert))

    return split


def _byte_level(matcher: Matcher | None, add_prefix_space: bool) -> Step:
    def split(fragment: Fragment) -> Iterable[Fragment]:
        if add_prefix_space and not fragment.text.startswith(" "):
            fragment = fragment.edit([(0, 0, " ")])
        if matcher is None:
            parts = [fragment]
        else:
            matches = list(matcher(fragment.text))
            parts = _ranges(fragment, cut(matches, len(fragment.text), "isolated", False))
        return [_to_bytes(part) for part in parts]

    return split


def _to_bytes(fragment: Fragment) -> Fragment:
    raw = fragment.text.encode("utf-8")
    origin = fragment.origin
    if origin is not None:
        chars = zip(fragment.text, origin, strict=True)
        origin = [span for char, span in chars for _ in range(len(char.encode("utf-8")))]
    return Fragment(byte_level.encode(raw), origin, fragment.first)


def _metaspace(replacement: str, scheme: str, split: bool) -> Step:
    pattern = re.compile(re.escape(replacement))

    def apply(fragment: Fragment) -> list[Fragment]:
        text = fragment.text
        edits = [(at, at + 1, replacement) for at, char in enumerate(text) if char == " "]
        if edits:
            fragment = fragment.edit(edits)
        wanted = scheme == "always" or (scheme == "first" and fragment.first)
        if wanted and not fragment.text.startswith(replacement):
            fragment = fragment.edit([(0, 0, replacement)])
        if not split:
            return [fragment]
        matches = [match.span() for match in pattern.finditer(fragment.text)]
        return _ranges(fragment, cut(matches, len(fragment.text), "merged-with-next", False))

    return apply


def _class_split(sets: CharSets, pattern: str, behavior: str, *, invert: bool = False) -> Step:
    compiled = re.compile(pattern)

    def split(fragment: Fragment) -> list[Fragment]:
        matches = [match.span() for match in compiled.finditer(sets.classes(fragment.text))]
        return _ranges(fragment, cut(matches, len(fragment.text), behavior, invert))

    return split


def _bert(sets: CharSets) -> Step:
    spaces = _class_split(sets, sets.pattern(SPACE), "removed")
    punctuation = _class_split(sets, sets.pattern(PUNCTUATION), "isolated")
    return lambda fragment: [part for piece in spaces(fragment) for part in punctuation(piece)]


def _fixed_length(length: int) -> Step:
    if length < 1:
        raise UnsupportedError("FixedLength of 0 characters, on which the library panics")

    def split(fragment: Fragment) -> list[Fragment]:
        size = len(fragment.text)
        return _ranges(fragment, ((at, min(at + length, size)) for at in range(0, size, length)))

    return split


def _behavior(step: Mapping[str, Any]) -> str:
    behavior = text_of(step, "behavior")
    cut((), 0, behavior, False)  # KeyError for one that does not exist
    return behavior


def _literal(text: str) -> Matcher:
    compiled = re.compile(re.escape(text))
    return lambda sentence: (match.span() for match in compiled.finditer(sentence))


def make_pre_tokenizers(
    steps: Sequence[Mapping[str, Any]], sets: CharSets, view: PackView, matcher: Callable[[str, str], Matcher]
) -> list[Step]:
    """The steps of a pack, compiled.

    Args:
        steps: as the meta section has them.
        sets: character sets of the library.
        view: has the table for UnicodeScripts.
        matcher: (pattern, dialect) → what finds its matches.
    """
    return [_make(step, sets, view, matcher) for step in steps]


def _make(step: Mapping[str, Any], sets: CharSets, view: PackView, matcher: Callable[[str, str], Matcher]) -> Step:
    kind = step["kind"]
    if kind == "split":
        return _pattern_split(matcher(step["pattern"], step["dialect"]), _behavior(step), bool(step["invert"]))
    if kind == "byte-level":
        pattern = matcher(GPT2_PATTERN, "onig") if step["use_regex"] else None
        return _byte_level(pattern, bool(step["add_prefix_space"]))
    if kind == "metaspace":
        return _metaspace(text_of(step, "replacement"), step["prepend_scheme"], bool(step["split"]))
    if kind == "whitespace":
        word, space = sets.pattern(WORD), sets.pattern(WORD | SPACE, negate=True)
        return _class_split(sets, f"{word}+|{space}+", "removed", invert=True)
    if kind == "whitespace-split":
        return _class_split(sets, sets.pattern(SPACE), "removed")
    if kind == "bert-pre-tokenizer":
        return _bert(sets)
    if kind == "punctuation":
        return _class_split(sets, sets.pattern(PUNCTUATION), _behavior(step))
    if kind == "digits":
        return _class_split(sets, sets.pattern(NUMERIC), "isolated" if step["individual_digits"] else "contiguous")
    if kind == "char-delimiter-split":
        return _pattern_split(_literal(text_of(step, "delimiter")), "removed", False)
    if kind == "unicode-scripts":
        from tokpack.runtime.hf.scripts import ScriptSplitter

        scripts = ScriptSplitter(view)
        return lambda fragment: _ranges(fragment, scripts.split(fragment.text))
    if kind == "fixed-length":
        return _fixed_length(int(step["length"]))
    raise UnsupportedError(f"a pack with the pre-tokenizer step {kind!r} under the library's rules")
