"""Upper limits on what a file may ask for, in one place.

They are far above any real tokenizer and exist so that a small hostile file cannot cost unbounded time or memory.
Counts are also checked against the bytes that are left in the file, which is the tighter bound for small files.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "PATTERN_SECONDS", "PATTERN_SECONDS_PER_CHARACTER", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that readers apply; pass a changed copy (``dataclasses.replace``) to a reader's ``limits`` option.

    Attributes:
        pieces: vocabulary entries (the largest published vocabulary has about 0.5 million).
        piece_bytes: bytes of one piece (real maximum: some 2,000, runs of spaces).
        merges: merge table entries.
        keys: key-value pairs in a GGUF header (real maximum: about 100).
        key_bytes: bytes of a GGUF key (the format allows 65,535).
        string_bytes: bytes of any other string (chat templates, embedded JSON).
        array_items: elements of an array of strings or arrays, which has to be walked.
        nesting: arrays within arrays.
    """

    pieces: int = 1 << 24
    piece_bytes: int = 1 << 20
    merges: int = 1 << 24
    keys: int = 1 << 16
    key_bytes: int = 65_535
    string_bytes: int = 1 << 27
    array_items: int = 1 << 25
    nesting: int = 4


DEFAULT = Limits()

# Time that a pattern which is not a known one may take on one text: published ones need 0.1 microseconds per character,
# so that only those that backtrack without bound come near it.
PATTERN_SECONDS = 5.0
PATTERN_SECONDS_PER_CHARACTER = 1e-5
