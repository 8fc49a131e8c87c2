"""Parts of the page that need no script: all text escaped, for HTML and for the eye."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from tokpack.analysis.figures import length_histogram, piece_scripts
from tokpack.analysis.report.facts import fact_rows
from tokpack.analysis.show import readable, shorten
from tokpack.analysis.vocabulary import Vocabulary

__all__ = ["charts", "findings", "special", "summary"]

_VALUE = 2000  # characters of a value
_ROWS = 300  # of a table
_SCRIPTS = 20


def _shown(text: str, length: int = _VALUE) -> str:
    """Text that is readable already, for HTML."""
    return escape(shorten(text, length))


def summary(facts: dict[str, Any]) -> str:
    """The facts as a list of names and values."""
    rows = []
    for name, values in fact_rows(facts):
        cells = "".join(f"<dd>{_shown(value)}</dd>" for value in values)
        rows.append(f"<dt>{escape(name)}</dt>{cells or '<dd>none</dd>'}")
    return f"<dl>{''.join(rows)}</dl>"


def findings(found: Sequence[dict[str, Any]]) -> str:
    """A list; severities in words and colour."""
    if not found:
        return "<p>None.</p>"
    items = []
    for finding in found[:_ROWS]:
        severity, code = str(finding["severity"]), str(finding["code"])
        text = f"{finding['message']}{'; ' + finding['fix'] if finding['fix'] else ''}"
        where = f" <small>{_shown(readable(str(finding['path'])))}</small>" if finding["path"] else ""
        items.append(
            f'<li><span class="severity {escape(severity)}">{escape(severity)}</span> '
            f"{_shown(readable(text, backslash=False))} <code>{escape(readable(code))}</code>{where}</li>"
        )
    more = f"<p>And {len(found) - _ROWS:,} more.</p>" if len(found) > _ROWS else ""
    return f"<ul>{''.join(items)}</ul>{more}"


def charts(vocabulary: Vocabulary) -> str:
    """Lengths and scripts of the pieces."""
    lengths = [
        (str(first) if first == last else f"{first:,}–{last:,}", count)
        for first, last, count in length_histogram(vocabulary)
    ]
    scripts = sorted(piece_scripts(vocabulary).items(), key=lambda item: (-item[1], item[0]))
    shown = [(name.replace("_", " "), count) for name, count in scripts[:_SCRIPTS]]
    rest = sum(count for _, count in scripts[_SCRIPTS:])
    if rest:
        shown.append((f"{len(scripts) - _SCRIPTS} others", rest))
    return _bars("Pieces by length in bytes", lengths) + _bars("Pieces by script", shown)


def _bars(title: str, rows: Iterable[tuple[str, int]]) -> str:
    """A bar for each row, as wide as the page: text stays readable on a phone, where a scaled drawing's would not."""
    rows = list(rows)
    widest = max((count for _, count in rows), default=0) or 1
    cells = "".join(
        f"<span>{escape(name)}</span>"
        f'<svg role="img" aria-label="{escape(name)}: {count:,}">'
        f'<rect width="{100 * count / widest:.2f}%" height="100%"><title>{escape(name)}: {count:,}</title></rect></svg>'
        f"<span>{count:,}</span>"
        for name, count in rows
    )
    return f"<h3>{escape(title)}</h3>" + (f'<div class="chart">{cells}</div>' if rows else "<p>None.</p>")


def special(vocabulary: Vocabulary) -> str:
    """Ids with a role, then added tokens."""
    roles, size = vocabulary.roles, vocabulary.size
    ids = [token for token in sorted(roles) if 0 <= token < size]
    more = [token for token in sorted(vocabulary.added) if token not in roles and 0 <= token < size]
    rows = []
    for token in [*ids, *more][:_ROWS]:
        flags = ", ".join(vocabulary.flags(token))
        rows.append(
            f'<tr><td class="number">{token}</td><td class="code">{_shown(readable(vocabulary.texts[token]))}</td>'
            f"<td>{escape(readable(vocabulary.type_of(token)))}</td><td>{_shown(readable(flags))}</td></tr>"
        )
    if not rows:
        return "<p>None.</p>"
    left = len(ids) + len(more) - len(rows)
    note = f"<p>And {left:,} more: see the vocabulary.</p>" if left else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("id", "text", "type", "flags"))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>{note}'
