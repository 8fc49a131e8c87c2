"""Special tokens that a caller gives besides a rank file: a map, a JSON file, or the name of an encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokpack.errors import FormatError, Location, RefusedError
from tokpack.limits import Limits, above

from .._cursor import map_file
from ..hf.json import load
from .encodings import encoding, names

__all__ = ["check_specials", "read_specials"]

_HINT = 'give {"token": id, …}, or a list of {"id": …, "content": …}'
NO_TOKENS = "none"


def read_specials(given: Any, limits: Limits) -> dict[str, int]:
    """Text → id. ``given``: a map, the name of an encoding, ``none``, or the path of a JSON file.

    The file holds ``{token: id}``, a list of objects with ``id`` and ``content``, or what tokenizer_config.json and
    tokenizer.json have: ``added_tokens_decoder`` or ``added_tokens``.
    """
    if isinstance(given, Mapping):
        return _checked(list(given.items()), None, limits)
    if given == NO_TOKENS:
        return {}
    if given in names():
        return dict(encoding(given).special_tokens)
    path = str(given)
    with map_file(path) as data:
        value = load(data, path, limits=limits).value
    return _checked(_pairs(value, path), path, limits)


def _pairs(value: Any, path: str) -> list[tuple[Any, Any]]:
    if isinstance(value, dict) and isinstance(value.get("added_tokens_decoder"), dict):
        decoder = value["added_tokens_decoder"]
        if any(not key.isascii() or not key.isdigit() or len(key) > 12 for key in decoder):
            raise FormatError("a key is no id", location=Location(path, "added_tokens_decoder"), hint=_HINT)
        return [(_content(item, path), int(key)) for key, item in decoder.items()]
    if isinstance(value, dict) and isinstance(value.get("added_tokens"), list):
        value = value["added_tokens"]
    if isinstance(value, list):
        return [(_content(item, path), item.get("id")) for item in value]
    if isinstance(value, dict):
        return list(value.items())
    raise FormatError("no special tokens", location=Location(path), hint=_HINT)


def _content(item: Any, path: str) -> Any:
    if not isinstance(item, dict) or "content" not in item:
        raise FormatError("an added token without `content`", location=Location(path), hint=_HINT)
    return item["content"]


def _checked(pairs: list[tuple[Any, Any]], path: str | None, limits: Limits) -> dict[str, int]:
    if len(pairs) > limits.pieces:
        raise above("pieces", f"{len(pairs)} special tokens are", limits, Location(path))
    found: dict[str, int] = {}
    for token, number in pairs:
        where = Location(path, f"special_tokens[{str(token)[:60]!r}]")
        if not isinstance(token, str) or not token:
            raise FormatError("a special token that is no text, or empty", location=where, hint=_HINT)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 31:
            raise FormatError(f"{str(number)[:40]!r} is no id", location=where, hint=_HINT)
        try:
            size = len(token.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise FormatError("a special token with a lone surrogate", location=where) from error
        if size > limits.piece_bytes:
            raise above("piece_bytes", f"a special token of {size} bytes is", limits, where)
        if found.setdefault(token, number) != number:
            raise FormatError("a special token with two ids", location=where)
    return found


def check_specials(special: Mapping[str, int], taken: Mapping[int, bytes], room: int, *, may_share: bool) -> None:
    """RefusedError when an id is taken or lies far behind all ranks.

    Two tokens with one id: tiktoken decodes it to the one that its hash map has last, which is known (``may_share``)
    for public encodings only: it is the first here.
    """
    owners: dict[int, str] = {}
    for token, number in special.items():
        other: object = taken.get(number, None if may_share else owners.get(number))
        where = Location(None, f"special_tokens[{token[:60]!r}]")
        if other is not None:
            what = f"the special token {token[:60]!r} has the id {number} of {other!r}"
            raise RefusedError(what, location=where, hint="give other special tokens", code="tiktoken-special-collides")
        if number >= room:
            what = f"the special token {token[:60]!r} has the id {number}, far behind all ranks"
            raise RefusedError(what, location=where, code="tiktoken-special-range")
        owners[number] = token
