"""Tools that look at tokenizers.

>>> from tokpack.analysis import open_vocabulary, unreachable
>>> vocabulary = open_vocabulary("fixtures/demo.gguf")
>>> vocabulary.text(478)
'Hello'
>>> unreachable(vocabulary).ids.tolist()
[]

Names are resolved on use (PEP 562): importing this package imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokpack.analysis.explanation import Explanation, explain
    from tokpack.analysis.figures import byte_coverage, length_histogram, piece_scripts, statistics
    from tokpack.analysis.file_layout import layout
    from tokpack.analysis.reach import Unreachable, round_trip, unreachable, without_merges
    from tokpack.analysis.report import render_report
    from tokpack.analysis.scripts import script_names, scripts_of
    from tokpack.analysis.sections import Section
    from tokpack.analysis.select import (
        duplicates,
        holding_bytes,
        holding_text,
        in_range,
        in_script,
        matching,
        near_duplicates,
        of_type,
        reserved_runs,
        unused,
    )
    from tokpack.analysis.show import readable
    from tokpack.analysis.subject import Subject, open_subject
    from tokpack.analysis.summary import summarize
    from tokpack.analysis.summary_screen import render_layout, render_summary
    from tokpack.analysis.vocabulary import Vocabulary, open_vocabulary

_HOMES = {
    "explanation": ("Explanation", "explain"),
    "file_layout": ("layout",),
    "reach": ("Unreachable", "round_trip", "unreachable", "without_merges"),
    "report": ("render_report",),
    "scripts": ("script_names", "scripts_of"),
    "sections": ("Section",),
    "select": (
        "duplicates",
        "holding_bytes",
        "holding_text",
        "in_range",
        "in_script",
        "matching",
        "near_duplicates",
        "of_type",
        "reserved_runs",
        "unused",
    ),
    "show": ("readable",),
    "figures": ("byte_coverage", "length_histogram", "piece_scripts", "statistics"),
    "subject": ("Subject", "open_subject"),
    "summary": ("summarize",),
    "summary_screen": ("render_layout", "render_summary"),
    "vocabulary": ("Vocabulary", "open_vocabulary"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Explanation",
    "Section",
    "Subject",
    "Unreachable",
    "Vocabulary",
    "byte_coverage",
    "duplicates",
    "explain",
    "holding_bytes",
    "holding_text",
    "in_range",
    "in_script",
    "layout",
    "length_histogram",
    "matching",
    "near_duplicates",
    "of_type",
    "open_subject",
    "open_vocabulary",
    "piece_scripts",
    "readable",
    "render_layout",
    "render_report",
    "render_summary",
    "reserved_runs",
    "round_trip",
    "script_names",
    "scripts_of",
    "statistics",
    "summarize",
    "unreachable",
    "unused",
    "without_merges",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'tokpack.analysis' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"tokpack.analysis.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
