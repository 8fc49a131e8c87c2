"""What stands where in a GGUF file, whole or cut off; tensor data is never read.

Tensor infos and data: ggml ``docs/gguf.md``, ``gguf_init_from_file_impl`` in ``ggml/src/gguf.cpp``.
"""

from __future__ import annotations

import json
import math
import mmap
from functools import cache
from importlib import resources
from itertools import zip_longest
from typing import Any

from tokpack.analysis.sections import Look, Section
from tokpack.errors import FormatError, Location
from tokpack.findings import Finding, Severity

from .._cursor import Cursor
from .header import CutOffError, Entry, Header, ValueType, read_partial

__all__ = ["look"]

_TENSORS = 1 << 20  # more than any model has
_INFO = 24  # bytes of the smallest tensor info: name length, dimension count, type, offset
_DIMENSIONS = 4
_NAME = 1 << 16
_LARGE = 4096  # a key whose value is larger is listed as a section
_DEFAULT_ALIGNMENT = 32


@cache
def _types() -> dict[int, tuple[str, int, int]]:
    table = json.loads((resources.files(__package__) / "tensor_types.json").read_text("ascii"))["types"]
    return {int(number): tuple(row) for number, row in table.items()}


def look(data: bytes | mmap.mmap, file: str | None = None) -> Look:
    """Sections, facts, keys, and whether the file is cut off (``gguf-cut-off``).

    Raises FormatError when the file is damaged, or ends before its counts.
    """
    header, cut = read_partial(data, file)
    found = _header_sections(len(data), header, cut)
    if cut is None:
        found += _tensors(data, file, header)
    keys = list(map(_key, header.entries.values()))
    findings = _findings(len(data), header, cut, found)
    return Look(found, _facts(header), findings, keys, lambda key: _items(header.entries[key]))


def _items(entry: Entry) -> list[Any] | None:
    """The elements of an array as plain values."""
    value = entry.value
    if value is None:
        return None
    items = value.tolist() if hasattr(value, "tolist") else value
    return list(map(_plain, items))


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, list):  # arrays in arrays
        return list(map(_plain, value))
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _key(entry: Entry) -> dict[str, Any]:
    value = None if entry.type is ValueType.ARRAY else entry.value
    return {
        "key": entry.key,
        "type": entry.type_name,
        "count": entry.count,
        "offset": entry.offset,
        "value": _plain(value),
    }


def _facts(header: Header) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "gguf_version": header.version,
        "big_endian": header.big_endian,
        "tensors": header.tensor_count,
    }
    names = {"model": "tokenizer.ggml.model", "pre": "tokenizer.ggml.pre", "name": "general.name"}
    for name, key in {**names, "architecture": "general.architecture"}.items():
        entry = header.entries.get(key)
        if entry is not None and entry.type is ValueType.STRING and entry.value is not None:
            facts[name] = entry.value.decode("utf-8", "replace")
    return facts


def _findings(size: int, header: Header, cut: CutOffError | None, found: list[Section]) -> list[Finding]:
    fix = "download the file again"
    if cut is not None:
        message = f"the file is cut off after {size:,} bytes, inside the key-value section: {cut.what}"
        where = Location(None, next(reversed(header.entries), None), cut.location.offset)
        return [Finding("gguf-cut-off", Severity.REFUSE, message, where, fix)]
    short = [section for section in found if section.missing]
    if not short:
        return []
    missing = sum(section.missing for section in short)
    # how long cut-off infos would be is not known
    known = f", {missing:,} bytes are missing" if short[0].name != "tensor infos" else ""
    message = f"the file is cut off after {size:,} bytes, before the end of the {short[-1].name}{known}"
    return [
        Finding(
            "gguf-cut-off", Severity.REFUSE, f"{message}; the tokenizer is complete", Location(None, None, size), fix
        )
    ]


def _header_sections(size: int, header: Header, cut: CutOffError | None) -> list[Section]:
    """Header, and key-values with the large ones as parts."""
    order = "big" if header.big_endian else "little"
    end = size if cut is not None else header.end
    missing = " and more" if cut is not None else ""
    found = [
        Section("header", 0, 24, f"version {header.version}, {order}-endian"),
        Section("key-values", 24, end - 24, f"{len(header.entries):,} keys{missing}"),
    ]
    entries = list(header.entries.values())
    for entry, following in zip_longest(entries, entries[1:]):
        # before a value stand its key, the length of that and the type
        stop = end if following is None else following.offset - 12 - len(following.key.encode())
        if stop - entry.offset >= _LARGE:
            count = f"{entry.count:,} " if entry.type is ValueType.ARRAY else ""
            note = f"{count}{entry.type_name}"
            found.append(Section(f"key-values/{entry.key}", entry.offset, stop - entry.offset, note))
    return found


def _tensors(data: bytes | mmap.mmap, file: str | None, header: Header) -> list[Section]:
    """Sections behind the key-values."""
    size = len(data)
    cursor = Cursor(data, file, ">" if header.big_endian else "<")
    cursor.pos = header.end
    try:
        infos = [_tensor(cursor) for _ in range(_tensor_count(cursor, header))]
    except FormatError:
        there = size - header.end
        # at least so many bytes are missing
        whole = max(there + 1, min(header.tensor_count, _TENSORS) * _INFO)
        return [Section("tensor infos", header.end, whole, f"{header.tensor_count:,} tensors", None, there)]
    found = [Section("tensor infos", header.end, cursor.pos - header.end, f"{len(infos):,} tensors")]
    step = _alignment(header)
    start = -(-cursor.pos // step) * step
    if not infos:
        return found + _rest("padding" if size <= start else "behind the tensor infos", cursor.pos, size)
    expected = max(start + offset + (length or 0) for offset, length in infos)
    if start > cursor.pos:
        found.append(Section("padding", cursor.pos, start - cursor.pos, "", None, _there(cursor.pos, start, size)))
    note = f"aligned to {step}"
    data_end = max(expected, start)
    found.append(Section("tensor data", start, data_end - start, note, None, _there(start, data_end, size)))
    return found + _rest("behind the tensor data", -(-data_end // step) * step, size)


def _there(start: int, end: int, size: int) -> int | None:
    """Bytes from ``start`` to ``end`` that a file of ``size`` bytes has; None for all."""
    return None if end <= size else max(0, size - start)


def _rest(name: str, start: int, size: int) -> list[Section]:
    return [Section(name, start, size - start)] if start < size else []


def _tensor_count(cursor: Cursor, header: Header) -> int:
    if header.tensor_count > _TENSORS or header.tensor_count * _INFO > cursor.left:
        raise cursor.fail(f"tensor count {header.tensor_count}")
    return header.tensor_count


def _tensor(cursor: Cursor) -> tuple[int, int | None]:
    """(offset in the tensor data, bytes or None for a type that is not known)."""
    cursor.skip(cursor.count("u64", "length of a tensor name", 1, _NAME), "a tensor name")
    elements = 1
    for _ in range(cursor.count("u32", "number of dimensions", 8, _DIMENSIONS)):
        elements *= int(cursor.number("u64", "a dimension"))
    kind = _types().get(int(cursor.number("u32", "a tensor type")))
    offset = int(cursor.number("u64", "a tensor offset"))
    return offset, None if kind is None else elements // kind[1] * kind[2]


def _alignment(header: Header) -> int:
    entry = header.entries.get("general.alignment")
    value = entry.value if entry is not None and entry.type is ValueType.U32 else None
    return value if isinstance(value, int) and value and value & (value - 1) == 0 else _DEFAULT_ALIGNMENT
