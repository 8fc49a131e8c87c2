"""Character actions of a pack: drop, break, stand alone, replace (see :mod:`tokpack.pack.chars`)."""

from __future__ import annotations

from collections.abc import Iterator

from tokpack.pack.view import PackView

__all__ = ["ALONE", "BREAK", "DROP", "CharActions"]

_CODE_POINT = (1 << 21) - 1
BREAK, ALONE, DROP = 1 << 21, 1 << 22, 1 << 23


class CharActions:
    """The two-stage table ``char.*``, with a cache of the characters seen."""

    def __init__(self, view: PackView) -> None:
        self._index, self._blocks = view.two_stage("char")
        self._seen: dict[str, int] = {}

    def action(self, char: str) -> int:
        """Code point that takes the place of ``char``, and the bits."""
        value = self._seen.get(char)
        if value is None:
            code_point = ord(char)
            value = int(self._blocks[self._index[code_point >> 8] << 8 | code_point & 255])
            # the table holds the difference, so that most blocks are alike
            value = (value & ~_CODE_POINT) | min((value ^ code_point) & _CODE_POINT, 0x10FFFF)
            self._seen[char] = value
        return value

    def runs(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, replaced text) of the runs between breaks; for tables that neither drop nor isolate."""
        start = 0
        chars: list[str] = []
        for at, char in enumerate(text):
            value = self.action(char)
            if value & BREAK:
                if chars:
                    yield start, at, "".join(chars)
                    chars = []
            else:
                if not chars:
                    start = at
                chars.append(_char(value))
        if chars:
            yield start, len(text), "".join(chars)

    def words(self, text: str) -> list[tuple[str, list[int]]]:
        """Words with the index of the source character of each of their characters (WPM)."""
        words: list[tuple[str, list[int]]] = []
        chars: list[str] = []
        origin: list[int] = []
        for at, char in enumerate(text):
            value = self.action(char)
            if value & DROP:
                continue
            if value & (BREAK | ALONE):
                if chars:
                    words.append(("".join(chars), origin))
                    chars, origin = [], []
                if value & ALONE:
                    words.append((_char(value), [at]))
                continue
            chars.append(_char(value))
            origin.append(at)
        if chars:
            words.append(("".join(chars), origin))
        return words


def _char(value: int) -> str:
    return chr(value & _CODE_POINT)
