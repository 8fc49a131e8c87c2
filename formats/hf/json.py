"""JSON as serde_json reads it: the parser inside ``tokenizers``, not Python's idea of JSON.

What serde_json refuses is refused (a byte order mark, NaN, lone surrogates, numbers out of range, more than 127
levels), and decimal numbers get the value that it gives them, which is not always the nearest double. Duplicate keys,
of which serde_json keeps the last, are an error here: nobody can say which one was meant.
"""

from __future__ import annotations

import json
import math
import mmap
import re
from dataclasses import dataclass, field
from typing import Any

from tokpack.errors import FormatError, Location
from tokpack.limits import DEFAULT, Limits, hint_for

from .._limited import check_file

__all__ = ["MAX_DEPTH", "Document", "load", "serde_float"]

MAX_DEPTH = 127  # serde_json counts down from 128 and fails at 0
_U64 = (1 << 64) - 1
_LARGE = frozenset({"vocab", "merges"})  # arrays whose items their readers check one by one
_SURROGATE = re.compile(rb"\\u[dD]([89abABcdefCDEF])[0-9a-fA-F]{2}")
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?)([0-9]+))?")


@dataclass(slots=True)
class Document:
    """A parsed file.

    Attributes:
        value: what the file holds.
        file: name of the file, for errors.
        duplicates: (path of the object, key) of keys that occur twice; empty unless duplicates were allowed.
    """

    value: Any
    file: str | None = None
    duplicates: list[tuple[str, str]] = field(default_factory=list)


def load(
    data: bytes | mmap.mmap, file: str | None = None, *, limits: Limits = DEFAULT, companion: bool = False
) -> Document:
    """Parse a whole file.

    Args:
        data: the bytes of the file.
        file: its name, for errors.
        limits: ``file_bytes`` and ``json_nesting`` bound the file.
        companion: Python's rules instead, as ``transformers`` reads the files beside tokenizer.json: NaN and
            infinities are numbers, of duplicate keys the last counts (they are listed in the result).
    """
    text = _text(data, file, limits)
    duplicates: list[tuple[dict[str, Any], str]] = []

    def pairs_to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            duplicates.append((result, _first_duplicate(pairs)))
        return result

    try:
        if companion:
            value = json.loads(text, object_pairs_hook=pairs_to_dict)
        else:
            value = json.loads(
                text, object_pairs_hook=pairs_to_dict, parse_float=serde_float, parse_constant=_refuse_constant
            )
    except json.JSONDecodeError as error:
        where = Location(file, None, len(text[: error.pos].encode("utf-8")))
        raise FormatError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", location=where) from error
    except RecursionError:
        raise _too_deep(file, MAX_DEPTH) from None
    except ValueError as error:  # a number out of range, or of more digits than Python converts
        raise FormatError(f"not JSON: {error}", location=Location(file)) from error
    _check_depth(value, file, min(MAX_DEPTH, limits.json_nesting))
    found = [(_path_of(value, owner), key) for owner, key in duplicates]
    if found and not companion:
        path, key = found[0]
        raise FormatError(f"duplicate key {key!r}", location=Location(file, path or None), hint="keep one of them")
    return Document(value, file, found)


def _text(data: bytes | mmap.mmap, file: str | None, limits: Limits) -> str:
    check_file(len(data), limits, file)
    if data[:3] == b"\xef\xbb\xbf":
        hint = "save it as UTF-8 without BOM"
        where = Location(file, None, 0)
        raise FormatError("expected value: the file starts with a byte order mark", location=where, hint=hint)
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        where = Location(file, None, error.start)
        raise FormatError(f"not UTF-8: {error.reason}", location=where) from error
    _check_surrogates(data, file)
    return text


def _check_surrogates(data: bytes | mmap.mmap, file: str | None) -> None:
    r"""Every ``\ud800`` … ``\udbff`` needs its other half right behind it, and the other way round."""
    pending = -1  # where a first half stands
    for match in _SURROGATE.finditer(data):
        start = match.start()
        before = start
        while before and data[before - 1] == 0x5C:
            before -= 1
        if (start - before) % 2:  # the backslash is itself escaped
            continue
        trailing = match[1] in b"cdefCDEF"
        if pending >= 0 and not (trailing and start == pending + 6):
            raise _lone(file, pending)
        if trailing and pending < 0:
            raise _lone(file, start)
        pending = -1 if trailing else start
    if pending >= 0:
        raise _lone(file, pending)


def _lone(file: str | None, offset: int) -> FormatError:
    return FormatError("lone surrogate in a \\u escape: not a character", location=Location(file, None, offset))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"expected value, found {name}")


def _first_duplicate(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("no duplicate")


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _check_depth(root: Any, file: str | None, most: int) -> None:
    """At most so many levels; ``model.vocab`` and ``model.merges`` are left to their readers, they cannot nest."""
    level = [root] if isinstance(root, (dict, list)) else []
    for depth in range(most):
        deeper: list[Any] = []
        for owner in level:
            if depth == 1 and isinstance(owner, dict):
                items = [item for key, item in owner.items() if key not in _LARGE]
            else:
                items = _children(owner)
            deeper += [item for item in items if isinstance(item, (dict, list))]
        if not deeper:
            return
        level = deeper
    if level:
        raise _too_deep(file, most)


def _too_deep(file: str | None, most: int) -> FormatError:
    what = f"recursion limit exceeded: more than {most} levels of nesting"
    return FormatError(what, location=Location(file), hint=None if most == MAX_DEPTH else hint_for("json_nesting"))


def _path_of(root: Any, target: dict[str, Any]) -> str:
    """Path of an object that is known to lie inside ``root``."""
    stack: list[tuple[Any, str]] = [(root, "")]
    while stack:
        value, path = stack.pop()
        if value is target:
            return path
        if isinstance(value, dict):
            named = [(item, f"{path}.{key}" if path else key) for key, item in value.items()]
        else:
            named = [(item, f"{path}[{at}]") for at, item in enumerate(value)]
        stack += [(item, name) for item, name in named if isinstance(item, (dict, list))]
    return ""


_POWERS = [float(f"1e{exponent}") for exponent in range(309)]


def serde_float(text: str) -> float:
    """The double that serde_json (without its feature ``float_roundtrip``) makes of a decimal number.

    The digits go into a u64 until it is full, and one multiplication or division by a power of ten follows
    (serde_json 1.0.151, ``de.rs``: ``parse_decimal``, ``parse_exponent``, ``f64_from_parts``). The result can be off by
    one unit in the last place; Viterbi ties of Unigram models depend on it.
    """
    if len(text) <= 16 and "e" not in text and "E" not in text:
        return float(text)  # at most 15 digits: exact integer, exact power, one rounding
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a number")
    sign, whole, decimals, exponent_sign, exponent_digits = match.groups()
    significand, used = _fill(0, whole)
    exponent = len(whole) - used
    if decimals:
        significand, used = _fill(significand, decimals)
        exponent -= used
    if exponent_digits:
        if len(exponent_digits.lstrip("0")) > 10 or int(exponent_digits) > 0x7FFFFFFF:
            if significand and exponent_sign != "-":
                raise ValueError("number out of range")
            return -0.0 if sign else 0.0
        exponent += -int(exponent_digits) if exponent_sign == "-" else int(exponent_digits)
    value = _scale(float(significand), exponent)
    return -value if sign else value


def _fill(significand: int, digits: str) -> tuple[int, int]:
    """Append digits while the number fits in a u64; returns the number and how many were used."""
    if len(digits) <= 19:
        whole = significand * 10 ** len(digits) + int(digits)
        if whole <= _U64:
            return whole, len(digits)
    for used, digit in enumerate(digits):
        larger = significand * 10 + int(digit)
        if larger > _U64:
            return significand, used
        significand = larger
    return significand, len(digits)


def _scale(value: float, exponent: int) -> float:
    while abs(exponent) >= len(_POWERS):
        if value == 0.0:
            return value
        if exponent >= 0:
            raise ValueError("number out of range")
        value /= 1e308
        exponent += 308
    if exponent < 0:
        return value / _POWERS[-exponent]
    value *= _POWERS[exponent]
    if math.isinf(value):
        raise ValueError("number out of range")
    return value
