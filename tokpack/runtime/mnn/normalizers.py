"""Normalizers of a ``.mtok`` (``tokenizer.cpp``, classes ending in Normalizer)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tokpack.errors import UnsupportedError
from tokpack.runtime.mnn.edits import Edit, Step, resync
from tokpack.runtime.mnn.rows import read_rows
from tokpack.typed import Any

__all__ = ["CharMapStep", "Classify", "is_space", "make_normalizer", "normalize", "read_table"]

_ESCAPED = range(0xDC80, 0xDD00)  # bytes that are not UTF-8
_BAD = 0xFFFD  # what the engine sees in their place
_MARK, _SPACE = 5, 3  # folded classes
_KEPT = (0x09, 0x0A, 0x0D)
# NFKCNormalizer::normalize: these become spaces before the table is asked
_SPACED = (
    *(code for code in range(1, 0x20) if code not in _KEPT),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x206A),
    0xFEFF,
    *range(0xFFF0, 0xFFF9),
)
# BertNormalizer::is_chinese_char
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

Classify = Callable[[int], int]


def read_table(raw: bytes) -> dict[int, str]:
    """Code point → text, of a table as the file has it; ValueError for a damaged one."""
    return {code: text.decode("utf-8") for code, text in read_rows(raw)}


class CharMapStep(Step):
    """Every character on its own. ``mapping`` gives its text, or None for the character itself."""

    def __init__(self, mapping: Callable[[int], str | None]) -> None:
        self._table = _Translation(mapping)

    def apply(self, text: str) -> str:
        """See :meth:`Step.apply`."""
        return text.translate(self._table)

    def edits(self, text: str) -> list[Edit]:
        """See :meth:`Step.edits`."""
        table = self._table
        return [(at, at + 1, new) for at, char in enumerate(text) if (new := table[ord(char)]) != char]


class _Translation(dict[int, str]):
    """For ``str.translate``, filled on demand and bounded by the number of code points."""

    def __init__(self, mapping: Callable[[int], str | None]) -> None:
        super().__init__()
        self._mapping = mapping

    def __missing__(self, code: int) -> str:
        new = self._mapping(code)
        text = self[code] = chr(code) if new is None else new
        return text


class _Prepend(Step):
    def __init__(self, content: str) -> None:
        self._content = content

    def edits(self, text: str) -> list[Edit]:
        return [(0, 0, self._content)]


class _Replace(Step):
    def __init__(self, pattern: str, content: str) -> None:
        self._pattern = pattern
        self._content = content

    def apply(self, text: str) -> str:
        return text.replace(self._pattern, self._content) if self._pattern else text

    def edits(self, text: str) -> list[Edit]:
        found: list[Edit] = []
        size = len(self._pattern)
        at = text.find(self._pattern) if size else -1
        while at >= 0:
            found.append((at, at + size, self._content))
            at = text.find(self._pattern, at + size)
        return found


class _Strip(Step):
    """Only the left end: from the right, the engine never decodes a whole character (``StripNormalizer``)."""

    def __init__(self, left: bool, classify: Classify) -> None:
        self._left = left
        self._classify = classify

    def edits(self, text: str) -> list[Edit]:
        at = 0
        while self._left and at < len(text) and is_space(ord(text[at]), self._classify):
            at += 1
        return [(0, at, "")] if at else []


def is_space(code: int, classify: Classify) -> bool:
    """``is_whitespace``: the six of ASCII, and Zs."""
    return code in (0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D) if code < 0x80 else classify(code) == _SPACE


class _Bert(Step):
    """Two passes over the text: what becomes of each character, then lower case."""

    def __init__(self, plain: Mapping[str, Any], classify: Classify, lower: Callable[[], Mapping[int, int]]) -> None:
        self._clean = bool(plain["clean_text"])
        self._chinese = bool(plain["chinese_chars"])
        self._table = read_table(plain["table"]) if plain["strip_accents"] else {}
        self._classify = classify
        self._first = CharMapStep(self._map)
        self._second = CharMapStep(self._to_lower) if plain["lowercase"] else None
        self._lower = lower() if plain["lowercase"] else {}

    @property
    def steps(self) -> list[Step]:
        """The passes as steps."""
        return [self._first] if self._second is None else [self._first, self._second]

    def _map(self, code: int) -> str | None:
        seen = _BAD if code in _ESCAPED else code
        if self._clean:
            if seen in _KEPT or (is_space(seen, self._classify) and seen not in (0x0B, 0x0C)):
                return " "
            if seen in (0, _BAD) or seen < 0x20 or 0x7F <= seen < 0xA0:
                return ""
        if self._chinese and any(first <= seen <= last for first, last in _CHINESE):
            return f" {chr(code)} "
        if not self._table:
            return None
        decomposed = self._table.get(seen, chr(code))
        return "".join(char for char in decomposed if ord(char) < 0x80 or self._classify(ord(char)) != _MARK)

    def _to_lower(self, code: int) -> str | None:
        return chr(_BAD) if code in _ESCAPED else chr(self._lower.get(code, code))


def _table_map(raw: bytes) -> Callable[[int], str | None]:
    table = read_table(raw)
    bad = table.get(_BAD)
    table = {code: text for code, text in table.items() if not 0xD800 <= code < 0xE000}
    if bad is not None:
        table.update(dict.fromkeys(_ESCAPED, bad))
    if table:
        table.update(dict.fromkeys(_SPACED, " "))
    return table.get


def make_normalizer(plain: Mapping[str, Any], classify: Classify, lower: Callable[[], Mapping[int, int]]) -> list[Step]:
    """The steps of one normalizer.

    Args:
        plain: the step as the meta section has it.
        classify: folded class of a code point beyond ASCII.
        lower: gives the lower-case map.
    """
    kind = plain["kind"]
    if kind == "prepend":
        return [_Prepend(str(plain["content"]))]
    if kind == "replace":
        return [_Replace(str(plain["pattern"]), str(plain["content"]))]
    if kind == "strip":
        return [_Strip(bool(plain["left"]), classify)]
    if kind == "mnn-table-normalizer":
        return [CharMapStep(_table_map(plain["table"]))]
    if kind == "mnn-bert-normalizer":
        return _Bert(plain, classify, lower).steps
    raise UnsupportedError(f"a pack with the normalizer {kind!r} under the rules of MNN")


def normalize(text: str, steps: list[Step], clean: bool) -> str:
    """All steps in turn; ``clean`` says that the text is UTF-8, so nothing has to be read anew."""
    for step in steps:
        text = step.apply(text)
        if not clean:
            text = resync(text)
    return text
