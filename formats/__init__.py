"""The registry of formats: names, how to recognise them, which module reads or writes them.

A module is imported when a file of its format is opened. A reader module has ``read(path, **options) -> TokenizerIR``;
a writer module has ``render(ir, **options) -> Rendered``. Other packages can add formats through the entry-point group
``tokpack.formats``: each entry point names a :class:`Format`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from tokpack.errors import UsageError

__all__ = ["SNIFF_BYTES", "Format", "all_formats", "by_suffix", "get", "of_folder", "sniff"]

SNIFF_BYTES = 4096
_TEKKEN_KEYS = (b'"token_bytes"', b'"default_vocab_size"', b'"num_vocab_tokens"')
_MNN_HEADER = re.compile(rb"430 ([0-9])\r?\n")


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Attributes:
        name: as ``--from`` and ``--to`` take it.
        title: one line for people.
        module: reader and writer, or None when the format is recognised but not implemented.
        suffixes: file-name endings that choose it for writing.
        reads, writes: which directions the module has.
        reference: whose ids a reader gives.
    """

    name: str
    title: str
    module: str | None
    suffixes: tuple[str, ...] = ()
    reads: bool = False
    writes: bool = False
    reference: str | None = None

    def load(self) -> ModuleType:
        """Import the module; UsageError when there is none."""
        if self.module is None:
            raise UsageError(f"{self.title} is not supported yet")
        return import_module(self.module)


_BUILT_IN = (
    Format("gguf", "GGUF (llama.cpp)", "tokpack.formats.gguf", (".gguf",), reads=True, reference="llama.cpp"),
    Format("mtok", "MNN .mtok", "tokpack.formats.mnn.file", (".mtok",), reads=True, writes=True),
    Format("tokpack", "tokpack's own pack", "tokpack.pack.file", (".tokpack",), reads=True, writes=True),
    Format(
        "tokenizer.json",
        "Hugging Face tokenizer.json or folder",
        "tokpack.formats.hf",
        (".json",),
        reads=True,
        reference="huggingface",
    ),
    Format("mnn", "MNN .mtok, its body alone", "tokpack.formats.mnn.plain", reads=True, reference="mnn"),
    Format(
        "mnn-txt",
        "MNN tokenizer.txt",
        "tokpack.formats.mnn.text",
        (".txt",),
        reads=True,
        writes=True,
        reference="mnn",
    ),
    Format(
        "sentencepiece",
        "SentencePiece .model",
        "tokpack.formats.sentencepiece",
        (".model",),
        reads=True,
        reference="sentencepiece",
    ),
    Format("tiktoken", "tiktoken ranks", "tokpack.formats.tiktoken.ranks", reads=True, reference="tiktoken"),
    Format("tekken", "Mistral tekken.json", "tokpack.formats.tiktoken.tekken", reads=True, reference="tiktoken"),
)


@lru_cache(maxsize=1)
def all_formats() -> dict[str, Format]:
    """Every known format by name; a plug-in cannot replace a built-in one."""
    formats = {entry.name: entry for entry in _BUILT_IN}
    for point in entry_points(group="tokpack.formats"):
        loaded = point.load()
        if isinstance(loaded, Format):
            formats.setdefault(loaded.name, loaded)
    return formats


def get(name: str) -> Format:
    """The format called ``name``; UsageError for another name."""
    found = all_formats().get(name)
    if found is None:
        raise UsageError(f"unknown format {name!r}", hint=f"known: {', '.join(all_formats())}")
    return found


def by_suffix(path: str) -> Format | None:
    """The format that writes files with the ending of ``path``, or None."""
    for entry in all_formats().values():
        if entry.writes and path.lower().endswith(entry.suffixes):
            return entry
    return None


def of_folder() -> Format:
    """The format of a folder: Hugging Face's, which is the only one that is a folder."""
    return all_formats()["tokenizer.json"]


def sniff(head: bytes) -> Format | None:
    """Recognise a format by the first :data:`SNIFF_BYTES` bytes of a file; None when nothing fits."""
    formats = all_formats()
    if head.startswith(b"GGUF"):
        return formats["gguf"]
    mnn = _MNN_HEADER.match(head)
    if mnn:
        return formats["mtok" if mnn[1] == b"4" else "mnn-txt"]
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{") and any(key in text for key in _TEKKEN_KEYS):
        return formats["tekken"]
    if text.startswith(b"{") and (b'"model"' in text or b'"added_tokens"' in text or _opens_json(text)):
        return formats["tokenizer.json"]
    if _opens_pieces(head):
        return formats["sentencepiece"]
    if re.match(rb"(?:\r?\n)*[A-Za-z0-9+/]{2,}={0,2} [0-9]+\r?\n", head):
        return formats["tiktoken"]
    return None


def _opens_pieces(head: bytes) -> bool:
    """Whether a protobuf begins with a sentencepiece piece: field 1, a message that begins with a text and a score."""
    if head[:1] != b"\n" or len(head) < 4:
        return False
    size, at = head[1], 2
    if size >= 0x80:
        size, at = (size & 0x7F) | head[2] << 7, 3
    inner = head[at : at + size]
    return (
        len(inner) > 2 and inner[0] == 0x0A and inner[1] < 0x80 and inner[2 + inner[1] :][:1] in (b"", b"\x15", b"\x18")
    )


def _opens_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return text[1:].lstrip()[:1] == b'"'
    return True
