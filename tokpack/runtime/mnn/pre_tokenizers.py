"""Pre-tokenizers of a ``.mtok`` (``tokenizer.cpp``, classes ending in PreTokenizer): words to words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tokpack.errors import UnsupportedError
from tokpack.runtime.mnn.edits import Edit, Step, to_bytes
from tokpack.runtime.mnn.finder import make_finder
from tokpack.runtime.mnn.folded import GPT2_PATTERN
from tokpack.runtime.mnn.normalizers import Classify, is_space
from tokpack.typed import Any
from tokpack.unicode import byte_level

__all__ = ["BytesStep", "Splitter", "make_pre_tokenizer"]

Range = tuple[int, int]
_PUNCTUATION = 6  # folded class
_DIGITS = re.compile("[0-9]|[^0-9]+")
_BERT = re.compile("!|x+")


class Splitter:
    """Cuts a word into words; what lies in no range is dropped, no range is empty."""

    def ranges(self, text: str) -> list[Range]:
        """Where the words are."""
        raise NotImplementedError


class BytesStep(Step):
    """Bytes to GPT-2's characters."""

    def apply(self, text: str) -> str:
        """See :meth:`Step.apply`."""
        return byte_level.encode(to_bytes(text))

    def edits(self, text: str) -> list[Edit]:
        """See :meth:`Step.edits`."""
        return [(at, at + 1, byte_level.encode(to_bytes(char))) for at, char in enumerate(text)]


class _Metaspace(Step):
    """Never splits."""

    def __init__(self, replacement: str, prefix: bool) -> None:
        self._replacement = replacement
        self._prefix = prefix

    def apply(self, text: str) -> str:
        if self._prefix and text and text[0] != " ":
            text = " " + text
        return text.replace(" ", self._replacement)

    def edits(self, text: str) -> list[Edit]:
        spaces = [(at, at + 1, self._replacement) for at, char in enumerate(text) if char == " "]
        if self._prefix and text and text[0] != " ":
            return [(0, 0, self._replacement), *spaces]
        return spaces


class _Digits(Splitter):
    def __init__(self, individual: bool) -> None:
        self._individual = individual

    def ranges(self, text: str) -> list[Range]:
        if not text:
            return []
        return [match.span() for match in _DIGITS.finditer(text)] if self._individual else [(0, len(text))]


class _Bert(Splitter):
    def __init__(self, classify: Classify) -> None:
        self._classify = classify
        self._table = _Kinds(self._kind)

    def _kind(self, code: int) -> str:
        seen = 0xFFFD if 0xDC80 <= code < 0xDD00 else code
        if is_space(seen, self._classify):
            return " "
        if seen >= 0x80:
            return "!" if self._classify(seen) == _PUNCTUATION else "x"
        return "!" if 33 <= seen <= 126 and not chr(seen).isalnum() else "x"

    def ranges(self, text: str) -> list[Range]:
        return [match.span() for match in _BERT.finditer(text.translate(self._table))]


class _Kinds(dict[int, str]):
    def __init__(self, kind: Callable[[int], str]) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, code: int) -> str:
        found = self[code] = self._kind(code)
        return found


class _Split(Splitter):
    """``regex_split`` and ``apply_behavior``."""

    def __init__(self, plain: Mapping[str, Any], classify: Classify, folded: Callable[[str], str]) -> None:
        self._finder = make_finder(str(plain["pattern"]), classify)
        self._folded = folded
        self._invert = bool(plain["invert"])
        self._behavior = str(plain["behavior"])
        if self._behavior not in ("isolated", "removed", "merged-with-previous"):
            raise UnsupportedError(f"MNN knows no split behaviour {self._behavior!r}")

    def ranges(self, text: str) -> list[Range]:
        if not text:
            return []
        matches = self._finder.find(text, self._folded)
        if self._behavior == "removed":
            return matches if self._invert else _between(matches, len(text))
        parts: list[tuple[int, int, bool]] = []  # start, end, is a match
        last = 0
        for start, end in matches:
            if start > last:
                parts.append((last, start, self._invert))
            parts.append((start, end, not self._invert))
            last = end
        if last < len(text):
            parts.append((last, len(text), self._invert))
        if self._behavior == "isolated":
            return [(start, end) for start, end, _ in parts]
        merged: list[Range] = []
        for start, end, is_match in parts:
            if is_match and merged:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        return merged


def _between(matches: list[Range], size: int) -> list[Range]:
    out = []
    last = 0
    for start, end in matches:
        if start > last:
            out.append((last, start))
        last = end
    if last < size:
        out.append((last, size))
    return out


class _Scan(Splitter):
    """``regex_scanner``: what no match covers is cut into characters."""

    def __init__(self, pattern: str, classify: Classify, folded: Callable[[str], str]) -> None:
        self._finder = make_finder(pattern, classify)
        self._folded = folded

    def ranges(self, text: str) -> list[Range]:
        out: list[Range] = []
        last = 0
        for start, end in self._finder.find(text, self._folded):
            out += [(at, at + 1) for at in range(last, start)]
            out.append((start, end))
            last = end
        out += [(at, at + 1) for at in range(last, len(text))]
        return out


def make_pre_tokenizer(
    plain: Mapping[str, Any], classify: Classify, folded: Callable[[str], str]
) -> list[Splitter | Step]:
    """The stages of one pre-tokenizer.

    Args:
        plain: the step as the meta section has it.
        classify: folded class of a code point beyond ASCII.
        folded: the folded form of a text.
    """
    kind = plain["kind"]
    if kind == "byte-level":
        return [_Scan(GPT2_PATTERN, classify, folded), BytesStep()] if plain["use_regex"] else [BytesStep()]
    if kind == "digits":
        return [_Digits(bool(plain["individual_digits"]))]
    if kind == "metaspace":
        return [_Metaspace(str(plain["replacement"]), plain["prepend_scheme"] != "never")]
    if kind == "split":
        return [_Split(plain, classify, folded)]
    if kind == "bert-pre-tokenizer":
        return [_Bert(classify)]
    raise UnsupportedError(f"a pack with the pre-tokenizer {kind!r} under the rules of MNN")
