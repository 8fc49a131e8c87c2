"""What the reader notices on its way."""

from __future__ import annotations

from dataclasses import dataclass, field

from tokpack.errors import Location
from tokpack.findings import Finding, Severity

__all__ = ["Notes"]


@dataclass(slots=True)
class Notes:
    """Findings in the order in which they are made."""

    findings: list[Finding] = field(default_factory=list)

    def add(self, code: str, severity: Severity, message: str, path: str | None = None, fix: str | None = None) -> None:
        """Add a finding at a JSON path."""
        self.findings.append(Finding(code, severity, message, Location(None, path), fix))

    def refuse(self, code: str, message: str, path: str | None = None, fix: str | None = None) -> None:
        """The library refuses or aborts on this, or no intermediate representation of it gives the same ids."""
        self.add(code, Severity.REFUSE, message, path, fix)

    def warn(self, code: str, message: str, path: str | None = None, fix: str | None = None) -> None:
        """Legal, but probably not what was wanted."""
        self.add(code, Severity.WARN, message, path, fix)

    def info(self, code: str, message: str, path: str | None = None, fix: str | None = None) -> None:
        """Worth knowing."""
        self.add(code, Severity.INFO, message, path, fix)
