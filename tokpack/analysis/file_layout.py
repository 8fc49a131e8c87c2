"""What is where in a binary file: a GGUF, the body of an .mtok, the index of a pack."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tokpack.analysis.sections import Section
from tokpack.analysis.subject import look_at
from tokpack.api import is_pack, source_format
from tokpack.errors import Location, UnsupportedError
from tokpack.pack.layout import FLAG_SIDECAR, FOOTER, SECTIONS
from tokpack.pack.view import SIDECAR_SUFFIX, PackView, map_pack, open_pack

if TYPE_CHECKING:
    from tokpack.analysis.sections import Look

__all__ = ["layout"]


def layout(path: str | os.PathLike[str], format: str | None = None) -> tuple[list[Section], int]:  # noqa: A002
    """(sections in file order, bytes of all files).

    Raises as :func:`tokpack.read` does, and UnsupportedError for a format that is text.
    """
    name = os.fspath(path)
    if is_pack(name, format, {}):
        return _pack_sections(open_pack(name), name)
    found = source_format(name, format)
    seen: Look | None = look_at(name, found)
    if seen is None:
        what = f"a {found.title} has no layout to show: it is text, a folder, or damaged"
        raise UnsupportedError(what, location=Location(name), hint="binary formats have one: gguf, mtok, tokpack")
    return seen.sections, Path(name).stat().st_size


def _pack_sections(view: PackView, name: str) -> tuple[list[Section], int]:
    footer = view.footer
    sidecar = bool(footer.flags & FLAG_SIDECAR)
    file = name + SIDECAR_SUFFIX if sidecar else None
    found: list[Section] = []
    if footer.body_length:
        body = map_pack(name) if sidecar else view.data
        # by name, as every format: the core knows none
        reader = import_module(f"{source_format(name, 'mtok').module}".rpartition(".")[0] + ".layout")
        found += [
            Section(f"body/{part.name}", part.offset, part.size, part.note)
            for part in reader.body_sections(body, footer.body_length, name)
        ]
        found.insert(0, Section("body", 0, footer.body_length, "what the MNN engine reads"))
    if footer.index_offset:
        start = 0 if sidecar else footer.body_length
        found.append(Section("padding", start, footer.index_offset - start, "zeros", file))
    table, length = footer.table_offset, footer.table_length
    found.append(Section("index", footer.index_offset, footer.total_length - footer.index_offset, "", file))
    for key, (offset, size) in sorted(view.sections.items(), key=lambda item: (item[1][0], item[0])):
        spec = SECTIONS.get(key)
        note = f"{size // spec.size:,} × {_CODES[spec.code]}" if spec is not None else "bytes"
        found.append(Section(f"index/{key}", offset, size, note, file))
    found.append(Section("index/section table", table, length, "", file))
    found.append(Section("index/footer", len(view.data) - FOOTER, FOOTER, "", file))
    return found, len(view.data) + (footer.body_length if sidecar else 0)


_CODES = {"B": "uint8", "H": "uint16", "I": "uint32", "Q": "uint64", "i": "int32", "f": "float32", "d": "float64"}
