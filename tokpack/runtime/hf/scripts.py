"""UnicodeScripts (``pre_tokenizers/unicode_scripts``): a new word where the script changes."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from tokpack.pack.view import PackView
from tokpack.runtime.hf.fragment import Range
from tokpack.typed import Any

__all__ = ["ScriptSplitter"]

_ANY = 0  # spaces: start nothing


class ScriptSplitter:
    """The two-stage table ``hf.scripts.*`` of a pack: script number of each code point, 0 for any."""

    def __init__(self, view: PackView) -> None:
        self._view = view

    @cached_property
    def _table(self) -> tuple[memoryview[Any], memoryview[Any]]:
        return self._view.two_stage("hf.scripts")  # only packs with such a step have it

    def _script(self, char: str) -> int:
        index, blocks = self._table
        code_point = ord(char)
        return int(blocks[index[code_point >> 8] << 8 | code_point & 255])

    def split(self, text: str) -> list[Range]:
        """Ranges of one script each. What stands before the first script is lost, as in the library."""
        starts: list[int] = []
        last: int | None = None
        for at, char in enumerate(text):
            script = self._script(char)
            if script != _ANY:
                if last != script:
                    starts.append(at)
                last = script
        starts.append(len(text))
        return [(start, end) for start, end in pairwise(starts) if start < end]
