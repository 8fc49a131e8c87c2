"""Test vectors for the device: texts with the reference's ids and the ids that the engine will give."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tokpack.analysis.hard_texts import hard_texts

from .compare import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokpack.findings import Finding

__all__ = ["SCHEMA", "vectors"]

SCHEMA = "tokpack.vectors/1"
_ENGINES = {"v361": "MNN 3.6.1", "head": "MNN head"}


def vectors(pair: Comparison, losses: Iterable[Finding]) -> bytes:
    """JSON lines: first what they are for, then one text per line.

    Keys of a text: ``kind``, ``text``, ``ids`` of the reference, ``mnn`` (the engine's ids, from our reading of the
    file; null where the engine must not be asked), ``same``. Texts with NUL are left out, because the engine's
    interfaces take C strings, and so are those on which the reference fails.
    """
    examples = [(loss.code, loss.example) for loss in losses if loss.example]
    texts = {text: kind for kind, text in reversed([*examples, *hard_texts(pair.reference)]) if "\0" not in text}
    lines: list[dict[str, object]] = []
    for text, kind in reversed(texts.items()):
        ids, found = pair.ids(text)
        if ids is not None:
            lines.append({"kind": kind, "text": text, "ids": ids, "mnn": found, "same": ids == found})
    head = {
        "schema": SCHEMA,
        "reference": pair.reference.reference,
        "engine": _ENGINES[pair.engine],
        "file_sha256": hashlib.sha256(pair.body).hexdigest(),
        "file_bytes": len(pair.body),
        "texts": len(lines),
        "same": sum(bool(line["same"]) for line in lines),
    }
    return b"".join(json.dumps(line, ensure_ascii=True).encode() + b"\n" for line in (head, *lines))
