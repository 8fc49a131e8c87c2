"""JSON in which no character is more than data: nothing that moves a cursor, reorders, hides or ends a script."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["json_text"]

# C1 controls (json escapes C0), soft hyphen, bidi and zero-width characters, line separators, surrogates, private use,
# tags and variation selectors beyond the first plane
_ESCAPED = (
    "\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\uf8ff\U000e0000-\U000e0fff"
)
_PLAIN = re.compile(f"[{_ESCAPED}]")
_MARKUP = re.compile(f"[<>&{_ESCAPED}]")


def json_text(document: Any, *, indent: int | None = None, markup: bool = False) -> str:
    """``document`` as JSON; those characters are written as escapes, so it reads back the same.

    Args:
        document: plain data; ValueError for numbers that JSON does not have.
        indent: as for :func:`json.dumps`; None writes no spaces at all.
        markup: escape what HTML gives a meaning, too.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, ensure_ascii=False, indent=indent, separators=separators, allow_nan=False)
    return (_MARKUP if markup else _PLAIN).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    raw = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{raw[at : at + 4]}" for at in range(0, len(raw), 4))
