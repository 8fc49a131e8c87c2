"""Around and between sequences: truncation, templates, padding.

Sources: ``utils/truncation.rs``, ``utils/padding.rs``, ``processors/template.rs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokpack.errors import EncodeError, UnsupportedError
from tokpack.records import dataclass
from tokpack.typed import Any

__all__ = ["Composer"]

Item = tuple[str | None, tuple[int, ...], int]  # sequence or None, ids of a special token, type id


@dataclass(frozen=True, slots=True)
class Truncation:
    """``TruncationParams``, without the stride, which only makes overflowing parts."""

    max_length: int
    strategy: str
    left: bool


@dataclass(frozen=True, slots=True)
class Padding:
    """``PaddingParams``; ``length`` None pads to the longest, which for one text is its own length."""

    length: int | None
    left: bool
    multiple: int
    id: int
    type_id: int


class Composer:
    """What is done to the ids of one or two sequences.

    Args:
        post: the post-processor of the meta section, or None.
        extras: other keys of the source, which hold ``truncation`` and ``padding``.
        size: number of ids.
    """

    def __init__(self, post: Mapping[str, Any] | None, extras: Mapping[str, Any], size: int) -> None:
        if post is not None and post["kind"] != "template":
            raise UnsupportedError(f"a pack with the post-processor {post['kind']!r} under the library's rules")
        self._single = [("A", (), 0)] if post is None else _items(post["single"], size)
        self._pair = [("A", (), 0), ("B", (), 1)] if post is None else _items(post["pair"], size)
        self._truncation = _truncation(_json(extras, "truncation"))
        self._padding = _padding(_json(extras, "padding"))

    def around(self) -> tuple[list[int], list[int]]:
        """Ids before and behind a single sequence."""
        before: list[int] = []
        after: list[int] = []
        target = before
        for sequence, ids, _ in self._single:
            if sequence == "A" and target is before:
                target = after
            elif sequence is not None:
                raise UnsupportedError("a template for one sequence that does not hold it exactly once")
            target += ids
        return before, after

    def compose(
        self,
        first: list[int],
        second: list[int] | None,
        *,
        add_special: bool,
        truncate: bool,
        pad: bool,
    ) -> tuple[list[int], list[int]]:
        """(ids, type ids) of one sequence, or of two."""
        items = self._single if second is None else self._pair
        if truncate and self._truncation is not None:
            room = self._truncation.max_length
            if add_special:
                room -= sum(len(ids) for sequence, ids, _ in items if sequence is None)
            if room < 0:
                raise EncodeError("max_length leaves no room for the special tokens: the library panics here")
            first, second = _truncate(first, second, room, self._truncation)
        ids: list[int] = []
        types: list[int] = []
        for sequence, special, type_id in items:
            part = first if sequence == "A" else (second or []) if sequence == "B" else special if add_special else ()
            ids += part
            types += [type_id] * len(part)
        if pad and self._padding is not None:
            ids, types = _pad(ids, types, self._padding)
        return ids, types


def _items(plain: Sequence[Mapping[str, Any]], size: int) -> list[Item]:
    items: list[Item] = []
    for item in plain:
        ids = tuple(int(token) for token in item["ids"])
        if item["sequence"] not in (None, "A", "B"):
            raise UnsupportedError(f"a template with the sequence {item['sequence']!r}")
        items.append((item["sequence"], ids, int(item["type_id"])))
    return items


def _json(extras: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    value = extras.get(name)
    return value[1] if isinstance(value, (list, tuple)) and isinstance(value[1], dict) else None


def _truncation(plain: Mapping[str, Any] | None) -> Truncation | None:
    if plain is None:
        return None
    strategy, left = str(plain["strategy"]), plain.get("direction", "Right") == "Left"
    return Truncation(int(plain["max_length"]), strategy, left)


def _padding(plain: Mapping[str, Any] | None) -> Padding | None:
    if plain is None:
        return None
    strategy = plain["strategy"]
    length = int(strategy["Fixed"]) if isinstance(strategy, dict) else None
    multiple = int(plain.get("pad_to_multiple_of") or 0)
    return Padding(length, plain["direction"] == "Left", multiple, int(plain["pad_id"]), int(plain["pad_type_id"]))


def _truncate(
    first: list[int], second: list[int] | None, room: int, rule: Truncation
) -> tuple[list[int], list[int] | None]:
    """``truncate_encodings``."""

    def keep(ids: list[int], count: int) -> list[int]:
        if len(ids) <= count:
            return ids
        return ids[len(ids) - count :] if rule.left else ids[:count]

    total = len(first) + len(second or ())
    if room == 0:
        return [], None if second is None else []
    if total <= room:
        return first, second
    if rule.strategy == "LongestFirst":
        if second is None:
            return keep(first, room), None
        a, b = _shares(len(first), len(second), room)
        return keep(first, a), keep(second, b)
    target = first if rule.strategy == "OnlyFirst" else second
    if target is None:
        raise EncodeError("truncation of the second sequence only, and there is none: the library fails here")
    count = len(target) - (total - room)
    if count <= 0:
        raise EncodeError("the sequence to truncate is too short for that: the library fails here")
    return (keep(first, count), second) if target is first else (first, keep(target, count))


def _shares(first: int, second: int, room: int) -> tuple[int, int]:
    """Lengths that two sequences keep, the longer giving first."""
    low, high = sorted((first, second))
    high = low if low > room else max(low, room - low)
    if low + high > room:
        low = room // 2
        high = low + room % 2
    return (high, low) if first > second else (low, high)


def _pad(ids: list[int], types: list[int], rule: Padding) -> tuple[list[int], list[int]]:
    length = len(ids) if rule.length is None else rule.length
    if rule.multiple > 0 and length % rule.multiple:
        length += rule.multiple - length % rule.multiple
    missing = max(0, length - len(ids))
    fill, fill_types = [rule.id] * missing, [rule.type_id] * missing
    return (fill + ids, fill_types + types) if rule.left else (ids + fill, types + fill_types)
