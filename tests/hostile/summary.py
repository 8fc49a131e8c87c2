"""What fuzzing runs found, as rows of the table in docs/hardening.md: ``python -m tests.hostile.summary LOGFOLDER``.

Reads what ``tests.hostile.fuzz`` prints, from files of any name in the folder; runs of one target are added up.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Runs", "read_logs", "rows"]

_DONE = re.compile(r"^([\w.-]+): \{(.*)\}, slowest ([\d.]+) s, peak (\d+) MB$", re.MULTILINE)
_COUNT = re.compile(r"'(\w+)': (\d+)")


@dataclass(slots=True)
class Runs:
    """The figures of one target.

    Attributes:
        refused, loaded, trouble: inputs by how they ended.
        slowest: seconds of work for the slowest input.
        peak: megabytes of the largest process.
    """

    refused: int = 0
    loaded: int = 0
    trouble: int = 0
    slowest: float = 0.0
    peak: int = 0

    def add(self, counts: dict[str, int], slowest: float, peak: int) -> None:
        """Add one run."""
        self.refused += counts.get("refused", 0)
        self.loaded += counts.get("loaded", 0)
        self.trouble += counts.get("trouble", 0)
        self.slowest, self.peak = max(self.slowest, slowest), max(self.peak, peak)


def read_logs(folder: Path) -> dict[str, Runs]:
    """Target → figures of all runs that came to their end."""
    found: dict[str, Runs] = {}
    for path in sorted(folder.iterdir()):
        for target, counts, slowest, peak in _DONE.findall(path.read_text(encoding="utf-8", errors="replace")):
            numbers = {name: int(number) for name, number in _COUNT.findall(counts)}
            found.setdefault(target, Runs()).add(numbers, float(slowest), int(peak))
    return found


def rows(found: dict[str, Runs]) -> list[str]:
    """Rows of a Markdown table, the sum last."""
    total = Runs()
    lines = []
    for target, runs in sorted(found.items()):
        total.add({"refused": runs.refused, "loaded": runs.loaded, "trouble": runs.trouble}, runs.slowest, runs.peak)
        lines.append(_row(f"`{target}`", runs))
    return [*lines, _row("all", total)]


def _row(name: str, runs: Runs) -> str:
    tried = runs.refused + runs.loaded + runs.trouble
    return f"| {name} | {tried:,} | {runs.loaded:,} | {runs.trouble} | {runs.slowest:.2f} s | {runs.peak} MB |"


if __name__ == "__main__":
    print("\n".join(rows(read_logs(Path(sys.argv[1])))))
