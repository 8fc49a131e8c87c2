"""Text for a terminal: tables that fit the width, colours only where they can be seen.

Everything from a file must have gone through :func:`tokpack.analysis.show.readable` before it comes here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["facts_table", "render", "table"]

_WIDTH = 80
_NARROWEST = 6


def render(*parts: RenderableType) -> str:
    """What to print: as wide as the terminal, 80 columns elsewhere; without trailing spaces."""
    console = _console()
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n")


def _console() -> Console:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(
        width=None if terminal else _WIDTH,
        force_terminal=terminal,
        no_color=bool(os.environ.get("NO_COLOR")) or None,
        color_system="auto" if terminal else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def facts_table(
    rows: Iterable[tuple[str, Sequence[str]]], *, fold: bool, whole: Callable[[str], bool] | None = None
) -> Table:
    """Two columns, names and values; a name is shown beside its first value, a name without values not at all.

    Args:
        rows: (name, values) pairs.
        fold: break long values over lines instead of cutting them.
        whole: which values are never cut.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    kept = [(name, values) for name, values in rows if values]
    left = 2 + max((len(name) for name, _ in kept), default=0)
    longest = max((cell_len(value) for _, values in kept for value in values), default=1)
    made = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    made.add_column(style="bold", no_wrap=True, width=left)
    width = max(_NARROWEST, min(longest, _console().width - left - 2))
    made.add_column(no_wrap=not fold, overflow="fold" if fold else "ellipsis", width=width)
    for name, values in kept:
        for index, value in enumerate(values):
            shown = Text(value)
            if whole is not None and whole(value):
                shown = Text(value, no_wrap=False, overflow="fold")
            made.add_row(Text("  " + (name if not index else "")), shown)
    return made


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = (), wide: Sequence[str] = ()
) -> Table:
    """A table without frames; cells that do not fit are cut with an ellipsis.

    Args:
        headers: names of the columns.
        rows: cells.
        right: columns that are aligned to the right.
        wide: columns that give way when the table is too wide; the others are as wide as their cells.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    widths = [max([cell_len(name), *(cell_len(row[i]) for row in cells)]) for i, name in enumerate(headers)]
    _fit(widths, [index for index, name in enumerate(headers) if name in wide], _console().width)
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name, width in zip(headers, widths, strict=True):
        justify = "right" if name in right else "left"
        made.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=width)  # type: ignore[arg-type]
    for row in cells:
        made.add_row(*map(Text, row))
    return made


def _fit(widths: list[int], wide: Sequence[int], total: int) -> None:
    """Narrow the widest of the ``wide`` columns until all fit."""
    over = sum(widths) + 2 * (len(widths) - 1) - total
    for _ in range(max(0, over)):
        widest = max(wide, key=lambda index: widths[index])
        if widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1
