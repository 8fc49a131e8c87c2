"""The merges of a byte-pair vocabulary, and what is odd about them (``llama-vocab.cpp`` 2003-2030)."""

from __future__ import annotations

from collections.abc import Sequence

from tokpack.errors import Location
from tokpack.findings import Severity
from tokpack.limits import Limits, above
from tokpack.unicode import byte_level

from .keys import Keys
from .vocab import VocabBuilder

__all__ = ["note_merges", "read_merges"]

_PREFIX = "tokenizer.ggml."


def read_merges(
    keys: Keys, limits: Limits, *, required: bool
) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[int, ...] | None]:
    """Merge pairs in rank order, and their ranks when some lines do not count."""
    key = _PREFIX + "merges"
    lines = keys.strings(key)
    if lines is None:
        if required:
            message = "tokenizer.ggml.merges is missing; llama.cpp does not load the file"
            fix = "--allow gguf-merges-missing encodes single characters only"
            keys.find("gguf-merges-missing", Severity.REFUSE, message, key, fix)
        return (), None
    if len(lines) > limits.merges:
        where = Location(keys.file, key, keys.header.entries[key].offset)
        raise above("merges", f"{len(lines)} merges are", limits, where)
    table: dict[tuple[bytes, bytes], int] = {}
    malformed = duplicate = 0
    for rank, line in enumerate(lines):
        text = line.split(b"\0", 1)[0] if 0 in line else line  # llama.cpp reads C strings
        at = text.find(b" ", 1)
        if at < 0:
            malformed += 1
        elif table.setdefault((text[:at], text[at + 1 :]), rank) != rank:
            duplicate += 1
    if malformed:
        message = f"{malformed} merges have no space between two parts; they never apply"
        keys.find("gguf-merge-malformed", Severity.WARN, message, key)
    if duplicate:
        message = f"{duplicate} merges repeat an earlier pair; the first one counts"
        keys.find("gguf-merge-duplicate", Severity.INFO, message, key)
    return tuple(table), tuple(table.values()) if malformed or duplicate else None


def note_merges(
    keys: Keys, vocab: VocabBuilder, merges: Sequence[tuple[bytes, bytes]], *, byte_level_alphabet: bool
) -> None:
    """Findings about results and bytes that have no piece."""
    ids = vocab.ids
    lost = sum(left + right not in ids for left, right in merges)
    if lost:
        message = f"{lost} merges make a text that is not a piece; its bytes are emitted one by one, or dropped"
        keys.find("gguf-merge-result-missing", Severity.WARN, message, _PREFIX + "merges")
    texts = (
        (char.encode() for char in byte_level.CHARS) if byte_level_alphabet else (b"<0x%02X>" % b for b in range(256))
    )
    missing = [byte for byte, text in enumerate(texts) if text not in ids]
    if missing:
        shown = ", ".join(f"0x{b:02X}" for b in missing[:8]) + (", …" if len(missing) > 8 else "")
        message = f"{len(missing)} bytes have no piece ({shown}); llama.cpp drops them without a word"
        keys.find("gguf-byte-missing", Severity.WARN, message, _PREFIX + "tokens")
