"""Typed access to JSON objects; every error carries the JSON path and serde's reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tokpack.errors import FormatError, Location, UnsupportedError

__all__ = ["Obj", "as_object", "as_string", "as_unsigned", "describe", "key_path", "wrong"]

Choice = TypeVar("Choice")
_SHOWN = 60


def describe(value: Any) -> str:
    """What a value is, in serde's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, int):
        return f"integer `{value}`" if value.bit_length() <= 128 else "an integer of many digits"
    if isinstance(value, float):
        return f"floating point `{value}`"
    if isinstance(value, str):
        return f"string {value!r}" if len(value) <= _SHOWN else f"string {value[:_SHOWN]!r}…"
    return "sequence" if isinstance(value, list) else "map"


def wrong(value: Any, expected: str, path: str) -> FormatError:
    """A type error at ``path``."""
    return FormatError(f"invalid type: {describe(value)}, expected {expected}", location=Location(None, path))


def key_path(path: str, key: str) -> str:
    """Path of a key that may hold anything."""
    if key.isidentifier():
        return f"{path}.{key}" if path and not path.endswith(" ") else path + key
    shown = key if len(key) <= _SHOWN else key[:_SHOWN] + "…"
    return f"{path}[{shown!r}]"


def as_string(value: Any, path: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise wrong(value, "a string", path)
    return value


def as_unsigned(value: Any, path: str, bits: int = 32) -> int:
    """An integer of at most ``bits`` bits; true and 1.0 are none."""
    kind = "u32" if bits == 32 else "usize"
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(value, kind, path)
    if not 0 <= value < 1 << bits:
        raise FormatError(f"invalid value: {describe(value)}, expected {kind}", location=Location(None, path))
    return value


def as_object(value: Any, path: str, expected: str = "a map") -> Obj:
    """An object. Arrays in the order of the fields, which serde also takes, are refused: nothing writes them."""
    if not isinstance(value, dict):
        raise wrong(value, expected, path)
    return Obj(value, path)


@dataclass(frozen=True, slots=True)
class Obj:
    """A JSON object and its path.

    Getters without a default demand the key. A default stands for an absent key only; null is an error unless the
    getter's name ends in ``_or_none``, as with serde's ``Option``.
    """

    data: dict[str, Any]
    path: str

    def at(self, key: str) -> str:
        """Path of a key of this object."""
        return key_path(self.path, key)

    def required(self, key: str) -> Any:
        """The value of a key that must be there."""
        try:
            return self.data[key]
        except KeyError:
            raise FormatError(f"missing field `{key}`", location=Location(None, self.path or None)) from None

    def string(self, key: str) -> str:
        """A string."""
        return as_string(self.required(key), self.at(key))

    def string_or_none(self, key: str) -> str | None:
        """A string, or None when absent or null."""
        value = self.data.get(key)
        return None if value is None else as_string(value, self.at(key))

    def char(self, key: str) -> str:
        """A string of one character."""
        value = self.string(key)
        if len(value) != 1:
            what = f"invalid value: {describe(value)}, expected a character"
            raise FormatError(what, location=Location(None, self.at(key)))
        return value

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """A boolean."""
        if default is not None and key not in self.data:
            return default
        value = self.required(key)
        if not isinstance(value, bool):
            raise wrong(value, "a boolean", self.at(key))
        return value

    def boolean_or_none(self, key: str) -> bool | None:
        """A boolean, or None when absent or null."""
        return None if self.data.get(key) is None else self.boolean(key)

    def unsigned(self, key: str, bits: int = 32, default: int | None = None) -> int:
        """An integer of at most ``bits`` bits."""
        if default is not None and key not in self.data:
            return default
        return as_unsigned(self.required(key), self.at(key), bits)

    def unsigned_or_none(self, key: str, bits: int = 32) -> int | None:
        """An integer, or None when absent or null."""
        return None if self.data.get(key) is None else self.unsigned(key, bits)

    def choice(self, key: str, choices: Mapping[str, Choice], default: str | None = None) -> Choice:
        """One of the names in ``choices``."""
        if default is not None and key not in self.data:
            return choices[default]
        value = self.required(key)
        if not isinstance(value, str):
            raise wrong(value, "a string", self.at(key))
        if value not in choices:
            names = ", ".join(f"`{name}`" for name in choices)
            what = f"unknown variant `{value[:_SHOWN]}`, expected one of {names}"
            raise UnsupportedError(what, location=Location(None, self.at(key)))
        return choices[value]

    def array(self, key: str) -> list[Any]:
        """An array."""
        value = self.required(key)
        if not isinstance(value, list):
            raise wrong(value, "a sequence", self.at(key))
        return value

    def obj(self, key: str) -> Obj:
        """An object."""
        return as_object(self.required(key), self.at(key))

    def objects(self, key: str) -> list[Obj]:
        """An array of objects."""
        path = self.at(key)
        return [as_object(value, f"{path}[{at}]") for at, value in enumerate(self.array(key))]
