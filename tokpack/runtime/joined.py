"""Many short texts as one long one, for the bulk path: joined by an added token that none of them holds.

Added tokens are cut out of a text before anything else looks at it, and what is left between two of them is encoded
for itself. So the ids of ``a + T + b`` are those of a, the id of T and those of b, if

- T is matched as it stands (it takes no spaces from its neighbours, asks for no word boundary, is not normalized);
- no added token can begin in a and end in T, or begin in T and end in b, and none is a part of T or holds it;
- T begins and ends with punctuation: added tokens of the texts that look at their neighbour see no word and no space;
- the rules do not treat the beginning of the text otherwise (``prepend_scheme: first``);
- T is not the unknown token, so that its id stands for nothing else.

A trial of some texts makes sure of it; the number of separators in the result is checked each time.
"""

from __future__ import annotations

from tokpack.errors import EncodeError
from tokpack.pack.layout import LSTRIP, NORMALIZED, RSTRIP, SINGLE_WORD
from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tokpack.pack.view import PackView

__all__ = ["LONG", "Joiner"]

LONG = 1 << 15  # characters from which on a text is worth the bulk path for itself
_GROUP = 1 << 21  # characters that are joined at most
_TRIED = ("a", " a", "a ", "", "\n", "1", "\u00e9", "Ab,", "  ", "a")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~")


class Joiner:
    """Joins texts for one tokenizer.

    Args:
        pipeline: what encodes.
        separator: the added token.
        token: its id.
        before, after: ids that stand around a text when special tokens are asked for.
    """

    def __init__(self, pipeline: Any, separator: str, token: int, before: list[int], after: list[int]) -> None:
        self._pipeline = pipeline
        self._separator, self._token = separator, token
        self._before, self._after = before, after

    @classmethod
    def of(cls, pipeline: Any, view: PackView, *, always: bool = False) -> Joiner | None:
        """A joiner, or None where texts cannot be joined with exactness, or (unless ``always``) it would not pay."""
        if getattr(pipeline, "bulk", None) is None or _asks_for_first(view):
            return None
        if not (always or getattr(pipeline.bulk, "in_one_go", False)):
            return None
        around, found = _around(pipeline), _separator(view)
        made = cls(pipeline, *found, *around) if found is not None and around is not None else None
        return made if made is not None and made._works() else None

    def _works(self) -> bool:
        try:
            single = [self._pipeline.encode(text, True, True) for text in _TRIED]
            joined = self._joined(_TRIED, True)
        except EncodeError:
            return False
        return joined is not None and [ids.tolist() for ids in joined] == single

    def takes(self, text: str | bytes) -> bool:
        """Whether a text may be joined with others."""
        return isinstance(text, str) and len(text) < LONG and self._separator not in text

    def encode(self, texts: Sequence[str], add_special: bool) -> list[NDArray[np.int32]] | None:
        """Ids of each text, which all are such as it takes; None when they have to be encoded one by one."""
        found: list[NDArray[np.int32]] = []
        start = size = 0
        for at, text in enumerate(texts):
            size += len(text)
            if size >= _GROUP or at + 1 == len(texts):
                part = self._joined(texts[start : at + 1], add_special)
                if part is None:
                    return None
                found += part
                start, size = at + 1, 0
        return found

    def _joined(self, texts: Sequence[str], add_special: bool) -> list[NDArray[np.int32]] | None:
        import numpy as np

        try:
            ids: NDArray[np.int32] = self._pipeline.encode_array(self._separator.join(texts), False, True)
        except EncodeError:  # of one text: which one is found out one by one
            return None
        places = np.flatnonzero(ids == self._token)
        if len(places) != len(texts) - 1:
            return None
        edges = [-1, *places.tolist(), len(ids)]
        parts = [ids[edges[k] + 1 : edges[k + 1]] for k in range(len(texts))]
        if add_special and (self._before or self._after):
            before, after = (np.array(added, dtype=np.int32) for added in (self._before, self._after))
            parts = [np.concatenate((before, part, after)) for part in parts]
        return parts


def _asks_for_first(view: PackView) -> bool:
    """Whether a step treats the beginning of a text otherwise than what follows an added token."""
    steps = [*view.meta["normalizer"], *view.meta["pre_tokenizer"]]
    return any(value == "first" for step in steps if isinstance(step, dict) for value in step.values())


def _around(pipeline: Any) -> tuple[list[int], list[int]] | None:
    """Ids before and behind a text with special tokens, from a text that shows them."""
    try:
        for text in ("a", "the", "1"):
            bare, whole = pipeline.encode(text, False, True), pipeline.encode(text, True, True)
            size = len(bare)
            places = [k for k in range(len(whole) - size + 1) if whole[k : k + size] == bare]
            if size and len(places) == 1:
                return whole[: places[0]], whole[places[0] + size :]
    except EncodeError:
        pass
    return None


def _separator(view: PackView) -> tuple[str, int] | None:
    """(content, id) of the first added token that separates texts."""
    ids, flags, offset, blob = (view.array(f"added.{part}") for part in ("id", "flags", "offset", "blob"))
    contents = [bytes(blob[offset[i] : offset[i + 1]]) for i in range(min(len(ids), len(offset) - 1, len(flags)))]
    unknown = view.meta["specials"].get("unk")
    for index, content in enumerate(contents):
        text = content.decode("utf-8", "replace")
        if len(text) < 3 or not {text[0], text[-1]} <= _PUNCTUATION or "\ufffd" in text or " " in text:
            continue
        if flags[index] & (LSTRIP | RSTRIP | SINGLE_WORD | NORMALIZED) or ids[index] == unknown:
            continue
        alone = not any(_touch(content, other) for at, other in enumerate(contents) if at != index)
        if alone and not _overlap(content, content) and ids.tolist().count(ids[index]) == 1:
            return text, ids[index]
    return None


def _touch(content: bytes, other: bytes) -> bool:
    return content in other or other in content or _overlap(content, other) or _overlap(other, content)


def _overlap(left: bytes, right: bytes) -> bool:
    """Whether a proper end of ``left`` is a beginning of ``right``."""
    return any(left[-size:] == right[:size] for size in range(1, min(len(left), len(right))))
