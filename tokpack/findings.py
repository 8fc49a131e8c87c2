"""Findings: what readers, writers and checks have to say about a tokenizer, as data.

A finding never stops anything by itself. ``refuse`` findings make :func:`tokpack.load` and
:func:`tokpack.convert` raise unless their code is allowed; losses of severity ``ids`` make a writer raise when its
target has no exact form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

from tokpack.errors import Location, RefusedError

__all__ = ["Finding", "Severity", "refuse_unless_allowed"]


_SHOWN = 30  # characters of an example


class Severity(str, Enum):
    """How much a finding matters."""

    REFUSE = "refuse"  # the reference program refuses or aborts on this
    IDS = "ids"  # some text gets other ids
    TEXT = "text"  # some ids decode to another text
    WARN = "warn"  # legal, but probably not what the author of the file wanted
    INFO = "info"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation.

    Attributes:
        code: stable kebab-case name, the same for every finding of one kind; ``allow`` takes it.
        severity: see :class:`Severity`.
        message: one sentence, with the figures.
        location: key or path in the source, byte offset.
        fix: what to do about it, or None.
        example: a text on which it shows: for severity ``ids`` one that was found to get other ids.
    """

    code: str
    severity: Severity
    message: str
    location: Location = field(default_factory=Location)
    fix: str | None = None
    example: str | None = None

    def as_dict(self) -> dict[str, object]:
        """A JSON-ready form; keys are always present."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "path": self.location.path,
            "offset": self.location.offset,
            "fix": self.fix,
            "example": self.example,
        }

    @staticmethod
    def from_dict(data: dict[str, object]) -> Finding:
        """The inverse of :meth:`as_dict`; raises KeyError, TypeError or ValueError on other data."""
        path, offset, fix, example = data["path"], data["offset"], data["fix"], data.get("example")
        if not (path is None or isinstance(path, str)) or not (offset is None or isinstance(offset, int)):
            raise TypeError("finding location")
        if not (fix is None or isinstance(fix, str)) or not (example is None or isinstance(example, str)):
            raise TypeError("finding fix")
        where = Location(None, path, offset)
        return Finding(str(data["code"]), Severity(data["severity"]), str(data["message"]), where, fix, example)

    def __str__(self) -> str:
        where = str(self.location)
        text = f"{self.severity}: {self.message} [{self.code}]"
        if where:
            text = f"{text} at {where}"
        if self.example is not None:
            shown = self.example if len(self.example) <= _SHOWN else self.example[:_SHOWN] + "…"
            text = f"{text}, as in {shown!a}"
        return f"{text}; {self.fix}" if self.fix else text


def refuse_unless_allowed(findings: Iterable[Finding], allow: Collection[str], file: str | None = None) -> None:
    """Raise :class:`RefusedError` for the first ``refuse`` finding whose code is not in ``allow``."""
    for finding in findings:
        if finding.severity is Severity.REFUSE and finding.code not in allow:
            where = Location(file, finding.location.path, finding.location.offset)
            hint = finding.fix or f"--allow {finding.code} loads it all the same"
            raise RefusedError(finding.message, location=where, hint=hint, code=finding.code)
