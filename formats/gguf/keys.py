"""Typed access to the keys of a GGUF header, with llama.cpp's strictness about types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokpack.errors import FormatError, Location
from tokpack.findings import Finding, Severity

from .header import Entry, Header, ValueType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Keys"]

_INTEGERS = frozenset(
    {
        ValueType.U8,
        ValueType.I8,
        ValueType.U16,
        ValueType.I16,
        ValueType.U32,
        ValueType.I32,
        ValueType.U64,
        ValueType.I64,
        ValueType.BOOL,
    }
)


class Keys:
    """Getters that record what was used and collect findings.

    llama.cpp demands exact types (``GKV::get_kv``): another type is a load error there. Here a convertible value is
    used and the difference becomes a ``refuse`` finding, so that the file can still be looked at.
    """

    def __init__(self, header: Header, file: str | None) -> None:
        self.header = header
        self.file = file
        self.used: set[str] = set()
        self.findings: list[Finding] = []

    def find(
        self, code: str, severity: Severity, message: str, path: str | None = None, fix: str | None = None
    ) -> None:
        """Add a finding; ``path`` is a key, optionally with an index, and gives the byte offset."""
        entry = self.header.entries.get((path or "").split("[", 1)[0])
        where = Location(None, path, None if entry is None else entry.offset)
        self.findings.append(Finding(code, severity, message, where, fix))

    def entry(self, key: str) -> Entry | None:
        """The entry of ``key``, marked as used."""
        found = self.header.entries.get(key)
        if found is not None:
            self.used.add(key)
        return found

    def _wrong(self, entry: Entry, expected: str) -> FormatError:
        where = Location(self.file, entry.key, entry.offset)
        return FormatError(f"expected {expected}, found {entry.type_name}", location=where)

    def _note_wrong(self, entry: Entry, expected: str) -> None:
        message = f"{entry.key} has type {entry.type_name}, llama.cpp demands {expected} and does not load the file"
        self.find("gguf-wrong-type", Severity.REFUSE, message, entry.key, "write the key again with the right type")

    def raw_string(self, key: str) -> bytes | None:
        """A string key as bytes, or None when it is absent."""
        entry = self.entry(key)
        if entry is None:
            return None
        if entry.type is not ValueType.STRING:
            raise self._wrong(entry, "string")
        value: bytes = entry.value
        return value

    def string(self, key: str) -> str | None:
        """A short string key cut at NUL as a C string is; undecodable bytes shown as U+FFFD."""
        raw = self.raw_string(key)
        return None if raw is None else raw.split(b"\0", 1)[0].decode("utf-8", "replace")

    def integer(self, key: str) -> int | None:
        """A u32 key, or None."""
        return self._scalar(key, ValueType.U32)

    def boolean(self, key: str) -> bool | None:
        """A bool key, or None."""
        value = self._scalar(key, ValueType.BOOL)
        return None if value is None else bool(value)

    def _scalar(self, key: str, expected: ValueType) -> int | None:
        entry = self.entry(key)
        if entry is None:
            return None
        if entry.type is not expected:
            if entry.type not in _INTEGERS:
                raise self._wrong(entry, str(expected))
            self._note_wrong(entry, str(expected))
        return int(entry.value)

    def strings(self, key: str) -> list[bytes] | None:
        """An array of strings, or None."""
        entry = self.entry(key)
        if entry is None:
            return None
        if entry.item_type is not ValueType.STRING:
            raise self._wrong(entry, "array[string]")
        value: list[bytes] = entry.value
        return value

    def numbers(
        self, key: str, allowed: tuple[ValueType, ...], size: int, *, whole: bool = False
    ) -> NDArray[np.generic] | None:
        """An array of numbers with at least ``size`` elements, cut to that unless ``whole``.

        A shorter one comes back as it is, with a finding.
        """
        entry = self.entry(key)
        if entry is None:
            return None
        numeric = entry.item_type in _INTEGERS or entry.item_type in (ValueType.F32, ValueType.F64)
        if entry.type is not ValueType.ARRAY or not numeric:
            raise self._wrong(entry, f"array[{allowed[0]}]")
        if entry.value is None:
            where = Location(self.file, key, entry.offset)
            raise FormatError(f"the array of {entry.count} elements is above the limit", location=where)
        if entry.item_type not in allowed:
            self._note_wrong(entry, " or ".join(f"array[{kind}]" for kind in allowed))
        if entry.count < size:
            message = f"{key} has {entry.count} elements for {size} pieces; llama.cpp does not load the file"
            self.find("gguf-array-short", Severity.REFUSE, message, key)
        value: NDArray[np.generic] = entry.value if whole else entry.value[:size]
        return value

    def check_types(self) -> None:
        """Keys that llama.cpp reads for every model, though they do not matter to this one."""
        for name in ("remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"):
            self._check("tokenizer.ggml." + name, ValueType.BOOL)
        self._check("tokenizer.ggml.token_type_count", ValueType.U32)

    def _check(self, key: str, expected: ValueType) -> None:
        # a key that was asked for has its finding already; the others stay among the extras
        entry = self.header.entries.get(key)
        if entry is not None and key not in self.used and entry.type is not expected:
            self._note_wrong(entry, str(expected))

    def unused(self, prefix: str) -> dict[str, Any]:
        """Keys under ``prefix`` that nobody asked for, as key → [type name, plain value]."""
        result: dict[str, Any] = {}
        for key, entry in self.header.entries.items():
            if key.startswith(prefix) and key not in self.used:
                value = entry.value
                if value is None:
                    message = f"{key} has {entry.count} elements, which is above the limit; it is not carried"
                    self.find("gguf-key-too-large", Severity.WARN, message, key)
                    continue
                result[key] = [entry.type_name, value.tobytes() if hasattr(value, "tobytes") else value]
        return result
