"""Upper limits on what a file may ask for, in one place.

They are far above any real tokenizer and exist so that a small hostile file cannot cost unbounded time or memory.
Counts are also checked against the bytes that are left in the file, which is the tighter bound for small files.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokpack.errors import FormatError, Location, UsageError
from tokpack.records import dataclass, fields, replace

__all__ = ["DEFAULT", "PATTERN_SECONDS", "PATTERN_SECONDS_PER_CHARACTER", "Limits", "above", "hint_for", "limits_of"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that readers apply; give those that are to be others as ``limits={"pieces": 1000}``.

    Attributes:
        file_bytes: bytes of a file that is read whole: all but GGUF, of which the header is read, and packs (real
            maximum: about 35 million, a tokenizer.json).
        pieces: vocabulary entries, also special or added tokens (the largest published vocabulary has 0.5 million).
        piece_bytes: bytes of one piece (real maximum: some 2,000, runs of spaces).
        merges: merge table entries.
        keys: key-value pairs in a GGUF header (real maximum: about 100).
        key_bytes: bytes of a GGUF key (the format allows 65,535).
        string_bytes: bytes of any other string of a GGUF, a SentencePiece model or an .mtok (charsmaps, embedded JSON).
        array_items: elements of an array of strings or arrays of a GGUF, which has to be walked.
        nesting: arrays within arrays of a GGUF.
        json_nesting: levels of a JSON file (``tokenizers`` and ``mistral-common`` stop at 127, too).
        pattern_bytes: bytes of a regular expression (real maximum: some 2,000).
        template_bytes: bytes of a chat template (real maximum: some 100,000).
        meta_bytes: bytes of the meta section of a pack, which is decoded whenever the pack is opened.
    """

    file_bytes: int = 1 << 27
    pieces: int = 1 << 24
    piece_bytes: int = 1 << 20
    merges: int = 1 << 24
    keys: int = 1 << 16
    key_bytes: int = 65_535
    string_bytes: int = 1 << 27
    array_items: int = 1 << 25
    nesting: int = 4
    json_nesting: int = 127
    pattern_bytes: int = 1 << 16
    template_bytes: int = 1 << 22
    meta_bytes: int = 1 << 24


DEFAULT = Limits()

# Time that a pattern which is not a known one may take on one text: published ones need 0.1 microseconds per character,
# so that only those that backtrack without bound come near it.
PATTERN_SECONDS = 5.0
PATTERN_SECONDS_PER_CHARACTER = 1e-5


def limits_of(given: Limits | Mapping[str, int]) -> Limits:
    """Limits as a caller gives them: all of them, or those that are not the default by name.

    UsageError for a name that is none (it says which one may be meant), or a value that is no number from 0 on.
    """
    if not isinstance(given, (Limits, Mapping)):
        hint = 'give {"NAME": NUMBER, …}, or a tokpack.limits.Limits'
        raise UsageError(f"limits are no {type(given).__name__}", hint=hint)
    names = [field.name for field in fields(Limits)]
    values = {name: getattr(given, name) for name in names} if isinstance(given, Limits) else dict(given)
    for name, value in values.items():
        if name not in names:
            raise UsageError(f"there is no limit {str(name)[:60]!r}", hint=_meant(name, names))
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(f"the limit {name!r} is {str(value)[:40]!r}, not a number from 0 on")
    return replace(DEFAULT, **values)


def _meant(name: object, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(str(name), names, n=1)
    return f"did you mean {close[0]}?" if close else f"limits: {', '.join(names)}"


def hint_for(name: str) -> str:
    """What to do about a file that is beyond the limit called ``name``."""
    return f'if the file is to be trusted: --max {name}=NUMBER, in Python limits={{"{name}": NUMBER}}'


def above(name: str, found: str, limits: Limits, location: Location | None = None) -> FormatError:
    """The error for something beyond the limit called ``name``; ``found`` is a clause such as ``7 pieces are``."""
    return FormatError(f"{found} above the limit of {getattr(limits, name)}", location=location, hint=hint_for(name))
