"""A tokenizer on one self-contained HTML page."""

from __future__ import annotations

from tokpack.analysis.report.page import render_report

__all__ = ["render_report"]
