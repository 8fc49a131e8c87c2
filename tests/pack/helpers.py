"""Packs to damage, and ways to take them apart and put them together again."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgpack

import tokpack
from tests.hostile.gguf_builder import CONTROL, USER_DEFINED, Key, gguf, vocabulary
from tests.hostile.guard import exercise, limit
from tokpack.errors import TokpackError
from tokpack.formats.gguf import read_bytes
from tokpack.ir import TokenizerIR
from tokpack.pack.build import assemble, build_index
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FOOTER = struct.Struct("<8sIIQQQQQII16s16s24s8s")  # written down again, not imported
FOOTER_FIELDS = (
    "magic", "version", "flags", "table_offset", "table_length", "body_length", "index_offset", "total_length",
    "fingerprint", "table_checksum", "body_hash", "index_hash", "reserved", "end_magic",
)  # fmt: skip


def small_ir() -> TokenizerIR:
    """A vocabulary with something in every section."""
    extra = [("<s>", CONTROL), ("</s>", CONTROL), ("tool", USER_DEFINED), ("日本", 1)]
    change = [
        Key("tokenizer.ggml.scores", "[f32]", [0.5] * 272),
        Key("tokenizer.ggml.add_bos_token", "bool", True),
        Key("tokenizer.chat_template", "str", "{{ messages }}"),
        Key("tokenizer.x", "[str]", ["a"]),
    ]
    merges = ["H e", "l l", "ll o", "He llo", "H e", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "1 2", "Ġ 12", "q x"]
    built: TokenizerIR = read_bytes(gguf(vocabulary(extra, pre="smollm", merges=merges, change=change)))
    return built


@cache
def fixture_ir(name: str) -> TokenizerIR:
    return tokpack.read(FIXTURES / f"{name}.gguf")


@cache
def sections_of(name: str) -> dict[str, bytes]:
    """The sections of the small vocabulary (``small``) or of a fixture."""
    return build_index(small_ir() if name == "small" else fixture_ir(name))


@cache
def pack_of(name: str) -> bytes:
    return assemble(sections_of(name))


def read_footer(data: bytes) -> dict[str, Any]:
    return dict(zip(FOOTER_FIELDS, FOOTER.unpack(data[-FOOTER.size :]), strict=True))


def with_footer(data: bytes, **changes: Any) -> bytes:
    """``data`` with other values in its footer."""
    fields = read_footer(data) | changes
    return data[: -FOOTER.size] + FOOTER.pack(*fields.values())


def with_table(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """``data`` with a section table that ``change`` has edited in place, or returned; the checksum is right."""
    footer = read_footer(data)
    start = footer["table_offset"]
    table = msgpack.unpackb(data[start : start + footer["table_length"]], strict_map_key=False)
    changed = change(table)
    packed = msgpack.packb(table if changed is None else changed)
    body = data[:start] + packed
    return with_footer(
        body + data[-FOOTER.size :],
        table_length=len(packed),
        table_checksum=zlib.crc32(packed),
        total_length=len(body) + FOOTER.size,
    )


def with_meta(name: str, change: Callable[[dict[str, Any]], object], section: str = "meta") -> bytes:
    """The pack called ``name`` with a meta (or about) section that ``change`` has edited in place, or returned."""
    sections = dict(sections_of(name))
    plain = msgpack.unpackb(sections[section], strict_map_key=False)
    changed = change(plain)
    sections[section] = msgpack.packb(plain if changed is None else changed)
    return assemble(sections)


def survive(data: bytes, seconds: float = 1.0, *, restoring: bool = True) -> str:
    """Open damaged bytes and use them: ``refused`` or ``loaded``; any exception but TokpackError, or a hang, fails."""
    with limit(seconds):
        try:
            view = PackView(data, "damaged.tokpack")
            tokenizer = Tokenizer(view)
        except TokpackError:
            return "refused"
        exercise(tokenizer)
        if restoring:
            try:
                restore(view)
            except TokpackError:
                return "loaded, not restored"
    return "loaded"
