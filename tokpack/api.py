"""The four verbs: load, read, write, convert."""

from __future__ import annotations

import os
from collections.abc import Collection

from tokpack.errors import (
    ExistsError,
    FormatError,
    Location,
    LossError,
    RefusedError,
    TokpackError,
    UnsupportedError,
    UsageError,
)
from tokpack.pack.view import PackView, find_footer, has_index, map_pack, open_pack, stale_index
from tokpack.runtime.tokenizer import Tokenizer
from tokpack.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokpack.findings import Finding
    from tokpack.formats import Format
    from tokpack.ir import TokenizerIR
    from tokpack.rendered import Rendered

__all__ = ["convert", "load", "open_view", "read", "write"]

StrPath = str | os.PathLike[str]


def load(path: StrPath, format: str | None = None, allow: Collection[str] = (), **options: Any) -> Tokenizer:  # noqa: A002
    """Open a tokenizer in any readable format: packs are mapped, others are read and indexed in memory.

    Args:
        path: the file.
        format: its format; by default recognised by content.
        allow: codes of ``refuse`` findings to put up with.
        options: of the format's reader: ``pre`` (GGUF), ``pattern`` and ``special_tokens`` (tiktoken), ``engine``
            (MNN); and ``limits``, which every reader and a pack takes: a map such as ``{"pieces": 1000}`` of those of
            :class:`tokpack.limits.Limits` that are not to be the default.

    Raises ReadError or FormatError when it cannot be read, RefusedError when its reference would refuse it.
    """
    name = os.fspath(path)
    view, _ = open_view(name, format, allow, **options)
    return Tokenizer(view)


def open_view(
    path: StrPath,
    format: str | None = None,  # noqa: A002
    allow: Collection[str] | None = None,
    **options: Any,
) -> tuple[PackView, bool]:
    """(index of a tokenizer, whether it is the file's own); arguments as for :func:`load`.

    ``allow`` None lets every finding pass, for programs that only look.
    """
    name = os.fspath(path)
    options = with_limits(options)
    if is_pack(name, format, options):
        return open_pack(name, options.get("limits")), True
    from tokpack.findings import refuse_unless_allowed
    from tokpack.pack.build import build_pack

    ir = read(name, format, **options)
    if allow is not None:
        refuse_unless_allowed((*ir.findings, *ir.validate()), allow, name)
    try:
        return PackView(build_pack(ir), name), False
    except TokpackError as error:
        raise error.in_file(name) from error.__cause__


def is_pack(path: StrPath, format: str | None, options: dict[str, Any]) -> bool:  # noqa: A002
    """Whether a file is opened by its own index, for which there are no ``options`` but ``limits``."""
    name = os.fspath(path)
    if format not in (None, "mtok", "tokpack") or os.path.isdir(name) or not has_index(name):
        return False
    _no_options(options)
    return True


def with_limits(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` with ``limits``, if they are given, as readers take them; UsageError for what are none."""
    if "limits" not in options:
        return options
    from tokpack.limits import limits_of

    others = {name: value for name, value in options.items() if name != "limits"}
    return others if options["limits"] is None else {**others, "limits": limits_of(options["limits"])}


def source_format(path: StrPath, format: str | None = None) -> Format:  # noqa: A002
    """The format called ``format``, by default the one that the content of ``path`` shows; a pack is ``tokpack``.

    Raises FormatError when it is not recognised, UnsupportedError when it is not read.
    """
    return _source_format(os.fspath(path), format)


def _no_options(options: dict[str, Any]) -> None:
    others = [name for name in options if name != "limits"]
    if others:
        raise UsageError(f"a pack takes no option {others[0]!r}: it was decided when the pack was made")


def _source_format(name: str, format: str | None) -> Format:  # noqa: A002
    from tokpack import formats

    if format is not None:
        found = formats.get(format)
    elif os.path.isdir(name):
        found = formats.of_folder()
    else:
        data = map_pack(name)
        if find_footer(data) is not None and not stale_index(name):
            return formats.get("tokpack")
        head = bytes(data[: formats.SNIFF_BYTES])
        sniffed = formats.sniff(head)
        if sniffed is None:
            readable = ", ".join(entry.name for entry in formats.all_formats().values() if entry.reads)
            what = "the file is empty" if not head else "the format is not recognised"
            raise FormatError(what, location=Location(name, None, 0), hint=f"formats that are read: {readable}")
        found = sniffed
    if not found.reads:
        raise UnsupportedError(f"reading {found.title} is not supported yet", location=Location(name))
    return found


def read(path: StrPath, format: str | None = None, **options: Any) -> TokenizerIR:  # noqa: A002
    """Read a tokenizer into the intermediate representation; arguments as for :func:`load`.

    What the reference would refuse, but can be read, comes back with a finding of severity ``refuse``.
    """
    name, options = os.fspath(path), with_limits(options)
    reader = _source_format(name, format).load()
    try:
        ir: TokenizerIR = reader.read(name, **options)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise UsageError(f"the reader of this format does not take these options: {error}") from error
        raise
    return ir


def write(
    ir: TokenizerIR,
    path: StrPath,
    format: str | None = None,  # noqa: A002
    *,
    allow: Collection[str] = (),
    strict: bool = False,
    force: bool = False,
    **options: Any,
) -> list[Finding]:
    """Write ``ir``; returns what the target cannot hold.

    Args:
        ir: the tokenizer.
        path: the output; it appears whole or not at all.
        format: target format; by default chosen by the ending of ``path``.
        allow: codes of losses to put up with.
        strict: any loss that is not allowed refuses.
        force: overwrite an existing file.
        options: of the format's writer (mtok: ``index`` = ``inline``, ``sidecar`` or ``none``; ``mnn_version``,
            ``drop``, ``vectors``).

    Raises ExistsError, LossError or RefusedError before anything is written.
    """
    return _write(ir, path, None, format, allow=allow, strict=strict, force=force, options=options)


def _write(
    ir: TokenizerIR,
    path: StrPath,
    source: str | None,
    format: str | None,  # noqa: A002
    *,
    allow: Collection[str],
    strict: bool,
    force: bool,
    options: dict[str, Any],
) -> list[Finding]:
    """:func:`write`; no file that is written may be ``source``."""
    from tokpack import formats
    from tokpack.output import check_target, write_files

    name = os.fspath(path)
    target = formats.get(format) if format is not None else formats.by_suffix(name)
    if target is None:
        endings = ", ".join(s for entry in formats.all_formats().values() if entry.writes for s in entry.suffixes)
        raise UsageError(f"no format is written to files called {name!r}", hint=f"use --to, or an ending of {endings}")
    if not target.writes:
        raise UsageError(f"writing {target.title} is not supported yet")
    check_target(name, source, force)
    render = target.load().render
    try:
        rendered: Rendered = render(ir, **options)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise UsageError(f"the writer of {target.title} does not take these options: {error}") from error
        raise
    for ending, _ in rendered.files:
        check_target(name + ending, source, force)
    for path_beside, _ in rendered.beside:
        check_target(path_beside, source, force)
        if os.path.realpath(path_beside) in {os.path.realpath(name + ending) for ending, _ in rendered.files}:
            raise ExistsError("two outputs have one name", location=Location(path_beside), hint="choose another name")
    _check_losses(rendered, allow, strict, name)
    write_files([*((name + ending, content) for ending, content in rendered.files), *rendered.beside])
    return list(rendered.losses)


def _check_losses(rendered: Rendered, allow: Collection[str], strict: bool, name: str) -> None:
    from tokpack.findings import Severity

    for loss in rendered.losses:
        if loss.code in allow:
            continue
        if loss.severity is Severity.REFUSE:
            raise LossError(loss.message, location=Location(name), hint=loss.fix, code=loss.code)
        if (strict and loss.severity is not Severity.INFO) or (loss.severity is Severity.IDS and not rendered.exact):
            raise LossError(
                loss.message, location=Location(name), hint=f"--allow {loss.code} accepts it", code=loss.code
            )


def convert(
    source: StrPath,
    target: StrPath,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    allow: Collection[str] = (),
    strict: bool = False,
    force: bool = False,
    read_options: dict[str, Any] | None = None,
    write_options: dict[str, Any] | None = None,
) -> list[Finding]:
    """Read ``source`` and write ``target``; returns the findings of both, losses last.

    Raises RefusedError for a ``refuse`` finding (or, with ``strict``, any warning) that is not allowed.
    """
    from tokpack.findings import Severity, refuse_unless_allowed
    from tokpack.output import check_target

    check_target(os.fspath(target), os.fspath(source), force)
    ir = read(source, source_format, **(read_options or {}))
    found = [*ir.findings, *ir.validate()]
    refuse_unless_allowed(found, allow, os.fspath(source))
    if strict:
        for finding in found:
            if finding.severity is not Severity.INFO and finding.code not in allow:
                where = Location(os.fspath(source), finding.location.path, finding.location.offset)
                raise RefusedError(finding.message, location=where, hint=finding.fix, code=finding.code)
    options = write_options or {}
    losses = _write(
        ir, target, os.fspath(source), target_format, allow=allow, strict=strict, force=force, options=options
    )
    return [*found, *losses]
