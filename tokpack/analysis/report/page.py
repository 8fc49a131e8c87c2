"""The page: its template filled in, its policy, its data."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable
from html import escape
from importlib import resources
from typing import Any

from tokpack import __version__
from tokpack.analysis.json_text import json_text
from tokpack.analysis.report.data import page_data
from tokpack.analysis.report.parts import charts, findings, special, summary
from tokpack.analysis.show import readable
from tokpack.analysis.subject import open_subject
from tokpack.analysis.summary import summarize
from tokpack.analysis.vocabulary import open_vocabulary

__all__ = ["render_report"]

_HOLE = re.compile(r"\{\{(\w+)\}\}")


def render_report(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    samples: Iterable[str] = (),
    add_special_tokens: bool = True,
    parse_special: bool = True,
    **options: Any,
) -> str:
    """One HTML page about the tokenizer in ``path``, without anything from outside.

    Args:
        path: the file, as for :func:`tokpack.read`.
        format: its format; by default recognised by content.
        samples: texts to encode, before those that the page always has.
        add_special_tokens: see :meth:`tokpack.Tokenizer.encode`.
        parse_special: see there.
        options: of the format's reader.

    Raises as :func:`tokpack.read` does. What the reference refuses to load gets a page without ids.
    """
    facts = summarize(open_subject(path, format, **options))
    vocabulary = open_vocabulary(path, format, **options)
    data = page_data(vocabulary, list(samples), add_special_tokens, parse_special)
    style, script = _asset("page.css"), _asset("page.js")
    shape = facts["format"]["name"]
    flags = f"special tokens {'added' if add_special_tokens else 'not added'}"
    parts = {
        "policy": escape(_policy(style, script)),
        "title": escape(readable(os.path.basename(os.fspath(path)) or os.fspath(path))),  # noqa: PTH119
        "subtitle": escape(f"{shape}, ids as {facts['reference']} ({readable(str(facts['rules']))})"),
        "style": style,
        "script": script,
        "summary": summary(facts),
        "findings": findings(facts["findings"]),
        "charts": charts(vocabulary),
        "special": special(vocabulary),
        "samples": f"{len(data['samples']):,}",
        "data": json_text(data, markup=True),
        "footer": escape(f"Written by tokpack {__version__}; samples: {flags}"),
    }
    # one pass: what is filled in is never looked into
    return _HOLE.sub(lambda hole: parts[hole[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing from outside, and of scripts and styles only those of the page, by their hashes."""
    rules = (
        "default-src 'none'",
        f"script-src 'sha256-{_hash(script)}'",
        f"style-src 'sha256-{_hash(style)}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
