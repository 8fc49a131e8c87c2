"""Bytes → zero-copy views. Opening looks at the footer and the section table only: O(number of sections)."""

from __future__ import annotations

import mmap
import os
import stat
import sys
import zlib
from collections.abc import Mapping

from tokpack.errors import FormatError, Location, ReadError, UnsupportedError
from tokpack.pack.layout import (
    ENGINE,
    FLAG_SIDECAR,
    FOOTER,
    META_LIMIT,
    PAGE,
    SECTIONS,
    TABLE_LIMIT,
    VERSION,
    Footer,
    fingerprint,
)
from tokpack.pack.unpack import SMALL, unpack
from tokpack.typed import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tokpack.findings import Finding
    from tokpack.limits import Limits

__all__ = [
    "SIDECAR_SUFFIX",
    "PackView",
    "find_footer",
    "has_index",
    "map_pack",
    "open_pack",
    "stale_index",
    "unpack_map",
]

Buffer = bytes | mmap.mmap


def find_footer(data: Buffer) -> tuple[int, Footer] | None:
    """(container version, footer) of a pack, or None when ``data`` does not end with one."""
    return Footer.unpack(data[-FOOTER:]) if len(data) >= FOOTER else None


def unpack_map(raw: bytes | memoryview, what: str, file: str | None) -> dict[str, Any]:
    """Decode a msgpack map; FormatError for anything else. Nesting and sizes are bounded by the length of ``raw``."""
    try:
        if len(raw) <= SMALL and "msgpack" not in sys.modules:
            value = unpack(bytes(raw))
        else:
            import msgpack

            # the unpacker's own limits default to the buffer length; its stack is limited to 1,024 levels
            value = msgpack.unpackb(raw, raw=False, strict_map_key=False)
    except Exception as error:
        message = f"{what} is damaged: {error or type(error).__name__}"
        raise FormatError(message, location=Location(file), hint="convert the tokenizer again") from error
    if not isinstance(value, dict):
        message = f"{what} is damaged: it is not a map"
        raise FormatError(message, location=Location(file), hint="convert the tokenizer again")
    return value


class PackView:
    """The sections of a pack, checked to lie inside the file with the right element size.

    Attributes:
        meta: what the runtime needs, decoded.
        footer: the footer.
        sections: name → (offset from the start of the file, length in bytes).
        file: name for messages, or None.
        mapped: whether ``file`` is mapped (else the pack lives in memory).
    """

    def __init__(
        self, data: Buffer, file: str | None = None, body: Buffer | None = None, limits: Limits | None = None
    ) -> None:
        if sys.byteorder != "little":
            raise UnsupportedError("packs are mapped as they are, which needs a little-endian machine")
        self.file = file
        self.data = data
        self.mapped = isinstance(data, mmap.mmap)
        found = find_footer(data)
        if found is None:
            raise self._fail("there is no index at the end of the file")
        version, self.footer = found
        if version != VERSION:
            hint = "convert it again, or use a newer tokpack"
            what = f"index version {version}, this tokpack reads {VERSION}"
            raise UnsupportedError(what, location=Location(file), hint=hint)
        self._check_footer()
        self._check_body(body)
        table = self._read_table()
        self._memory = memoryview(data)
        self.sections = self._check_sections(table)
        meta = self.raw("meta")
        self._check_limit("meta_bytes", len(meta), META_LIMIT if limits is None else limits.meta_bytes)
        if limits is not None:
            self._check_limit("pieces", self.sections["piece.types"][1], limits.pieces)
        self.meta: Mapping[str, Any] = unpack_map(meta, "the meta section of the index", file)
        engine = self.meta.get("engine")
        if engine != ENGINE:
            hint = "convert it again, or use a newer tokpack"
            what = f"index engine {engine}, this tokpack reads {ENGINE}"
            raise UnsupportedError(what, location=Location(file), hint=hint)

    def _fail(self, what: str, offset: int | None = None) -> FormatError:
        hint = "convert the tokenizer again"
        return FormatError(what, location=Location(self.file, None, offset), hint=hint)

    def _check_limit(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            from tokpack.limits import hint_for

            items = "pieces" if name == "pieces" else "bytes of the meta section"
            what = f"{size} {items} are above the limit of {limit}"
            raise FormatError(what, location=Location(self.file), hint=hint_for(name))

    def _check_footer(self) -> None:
        footer, size = self.footer, len(self.data)
        at = size - FOOTER
        if footer.flags & ~FLAG_SIDECAR:
            raise self._fail(f"the flags of the index are {footer.flags:#x}, of which only bit 0 is known", at)
        if footer.total_length != size:
            what = f"the index was written for a file of {footer.total_length} bytes, this one has {size}"
            raise self._fail(what, at)
        sidecar = bool(footer.flags & FLAG_SIDECAR)
        start = 0 if sidecar else footer.body_length
        if not start <= footer.index_offset <= footer.table_offset <= at or footer.index_offset % PAGE:
            raise self._fail("the offsets of the index contradict each other", at)
        if footer.table_length > TABLE_LIMIT or footer.table_offset + footer.table_length > at:
            raise self._fail("the section table lies outside the file", at)

    def _check_body(self, body: Buffer | None) -> None:
        footer = self.footer
        sidecar = bool(footer.flags & FLAG_SIDECAR)
        if sidecar and body is None:
            raise self._fail("this index belongs to a .mtok file beside it; open that file")
        source = self.data if body is None else body
        whole = body is None or len(body) == footer.body_length
        with memoryview(source) as view, view[: footer.body_length] as part:
            if not whole or len(part) != footer.body_length or fingerprint(part) != footer.body_fingerprint:
                raise self._fail("the body is not the one that the index was made from")

    def _read_table(self) -> dict[str, Any]:
        start = self.footer.table_offset
        raw = self.data[start : start + self.footer.table_length]
        if zlib.crc32(raw) != self.footer.table_checksum:
            raise self._fail("the section table is damaged: its checksum differs", start)
        return unpack_map(raw, "the section table of the index", self.file)

    def _check_sections(self, table: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        limit = self.footer.table_offset - self.footer.index_offset
        sections = {}
        for name, entry in table.items():
            if not isinstance(name, str) or not isinstance(entry, list) or len(entry) != 3:
                raise self._fail(f"the entry of section {name!r} is damaged")
            offset, size, code = entry
            if not isinstance(offset, int) or not isinstance(size, int) or not isinstance(code, (int, str)):
                raise self._fail(f"the entry of section {name!r} is damaged")
            if offset < 0 or size < 0 or offset % PAGE or offset + size > limit:
                raise self._fail(f"section {name!r} lies outside the index")
            spec = SECTIONS.get(name)
            if spec is not None and (code != spec.code or size % spec.size):
                raise self._fail(f"section {name!r} has element type {code!r} and {size} bytes, not {spec.code!r}")
            sections[name] = (self.footer.index_offset + offset, size)
        missing = [name for name, spec in SECTIONS.items() if spec.required and name not in sections]
        if missing:
            raise self._fail(f"the index has no section {missing[0]!r}")
        return sections

    def raw(self, name: str) -> memoryview:
        """The bytes of a section; an empty view when it is absent."""
        offset, size = self.sections.get(name, (0, 0))
        return self._memory[offset : offset + size]

    def array(self, name: str) -> memoryview[Any]:
        """A section as a typed view, ``[n]`` elements as :data:`tokpack.pack.layout.SECTIONS` says.

        Numbers are little-endian in the file; a big-endian host is refused when the pack is opened.
        """
        spec = SECTIONS[name]
        view = self.raw(name)
        return view if spec.code == "B" else cast("Any", view).cast(spec.code)

    def two_stage(self, name: str) -> tuple[memoryview[Any], memoryview[Any]]:
        """``NAME.index`` and ``NAME.blocks``: the value of code point c is ``blocks[index[c >> 8] << 8 | c & 255]``.

        Raises FormatError unless that lies inside the table for every code point.
        """
        index, blocks = self.array(f"{name}.index"), self.array(f"{name}.blocks")
        if len(index) != 0x1100 or max(index) >= len(blocks) // 256:
            where = Location(self.file, f"{name}.index")
            what = "the index is damaged: the table does not cover all code points"
            raise FormatError(what, location=where, hint="convert the tokenizer again")
        return index, blocks

    def about(self) -> dict[str, Any]:
        """Origins, templates, extras and findings, decoded on demand."""
        return unpack_map(self.raw("about"), "the about section of the index", self.file)

    def findings(self) -> list[Finding]:
        """What the reader noticed, then what the body cannot hold."""
        from tokpack.findings import Finding

        about = self.about()
        try:
            return [Finding.from_dict(item) for key in ("findings", "losses") for item in about[key]]
        except (KeyError, TypeError, ValueError) as error:
            raise self._fail("the about section of the index is damaged") from error


SIDECAR_SUFFIX = ".index"


def map_pack(path: str) -> Buffer:
    """Map a regular file for as long as somebody uses it; an empty file gives ``b""``."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for somebody to write
            raise ReadError("not a regular file", location=Location(path), hint="save it to disk first")
        with open(path, "rb") as handle:
            size = handle.seek(0, os.SEEK_END)
            return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot open: {getattr(error, 'strerror', None) or error}", location=Location(path)) from error


def open_pack(path: str, limits: Limits | None = None) -> PackView:
    """Open a pack, or an .mtok whose index lies beside it in ``PATH.index``; the defaults hold without ``limits``.

    Raises FormatError when there is no index, or the index was made from another body.
    """
    data = map_pack(path)
    if find_footer(data) is None and _has_sidecar(path):
        return PackView(map_pack(path + SIDECAR_SUFFIX), path, body=data, limits=limits)
    return PackView(data, path, limits=limits)


def has_index(path: str) -> bool:
    """Whether ``path`` ends with an index of its own, or has one beside it. One of another body counts as none."""
    return (find_footer(map_pack(path)) is not None or _has_sidecar(path)) and not stale_index(path)


def stale_index(path: str) -> bool:
    """Whether ``path`` has an index that was made from another body than the one that stands there now.

    Somebody wrote the .mtok anew, or changed it: the file is then a plain .mtok. A damaged index is not stale.
    """
    data = map_pack(path)
    found = find_footer(data)
    if found is None and _has_sidecar(path):
        found = find_footer(map_pack(path + SIDECAR_SUFFIX))
        if found is not None and found[1].body_length != len(data):
            return True
    elif found is not None and found[1].flags & FLAG_SIDECAR:
        return False  # an index alone, without its .mtok
    if found is None or not 0 < found[1].body_length <= len(data):
        return False
    with memoryview(data) as view, view[: found[1].body_length] as body:
        return fingerprint(body) != found[1].body_fingerprint


def _has_sidecar(path: str) -> bool:
    """Whether the file beside ``path`` is an index, not something else of that name."""
    beside = path + SIDECAR_SUFFIX
    if not os.path.isfile(beside):
        return False
    found = find_footer(map_pack(beside))
    return found is not None and bool(found[1].flags & FLAG_SIDECAR)
