"""The one tree of exceptions that the library raises.

Every error says what is wrong, where (file, key or path inside it, byte offset) and what to do about it.
The command line maps each class to one exit code (see :mod:`tokpack.cli.main`).
"""

from __future__ import annotations

from tokpack.records import dataclass

__all__ = [
    "EncodeError",
    "ExistsError",
    "FormatError",
    "Location",
    "LossError",
    "ReadError",
    "RefusedError",
    "TokpackError",
    "UnsupportedError",
    "UsageError",
]


@dataclass(frozen=True, slots=True)
class Location:
    """Where in a source something was found; every part is optional.

    Attributes:
        file: path as the caller gave it.
        path: key (``tokenizer.ggml.tokens[3]``) or JSON path inside the file.
        offset: byte offset from the start of the file.
    """

    file: str | None = None
    path: str | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(self.file)
        if self.path is not None:
            parts.append(self.path)
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        return ": ".join(parts)


class TokpackError(Exception):
    """Base of all errors of this library.

    Attributes:
        what: the problem, one clause.
        location: where it is.
        hint: what to do, or None.
    """

    def __init__(self, what: str, *, location: Location | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.location = location or Location()
        self.hint = hint

    def __str__(self) -> str:
        where = str(self.location)
        text = f"{where}: {self.what}" if where else self.what
        return f"{text} ({self.hint})" if self.hint else text

    def in_file(self, file: str) -> TokpackError:
        """Name the file, if it was not known where the error arose; returns self."""
        if self.location.file is None:
            self.location = Location(file, self.location.path, self.location.offset)
        return self


class UsageError(TokpackError):
    """The call itself is wrong: unknown format name, contradictory options."""


class ExistsError(UsageError):
    """The output exists, or is the input."""


class ReadError(TokpackError):
    """The source cannot be read: missing, not permitted."""


class FormatError(ReadError):
    """The source is malformed: truncated, a count beyond the bytes left, a wrong type."""


class RefusedError(TokpackError):
    """The source is readable, but using it would not give the ids of its reference.

    Attributes:
        code: code of the finding behind the refusal, or None.
    """

    def __init__(
        self, what: str, *, location: Location | None = None, hint: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(what, location=location, hint=hint)
        self.code = code


class UnsupportedError(RefusedError):
    """A component, model or version that this version of tokpack does not implement."""


class LossError(RefusedError):
    """The target format cannot hold this tokenizer without giving other ids."""


class EncodeError(TokpackError):
    """This text (or id) has no answer: the reference program would abort on it."""
