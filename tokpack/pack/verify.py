"""Checks of a pack that opening leaves out, because they take time that grows with the file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from importlib import import_module

from tokpack.errors import FormatError, Location, LossError, RefusedError, TokpackError
from tokpack.findings import Finding, Severity
from tokpack.pack import layout
from tokpack.pack.build import build_index
from tokpack.pack.restore import restore
from tokpack.pack.symbols import Sections
from tokpack.pack.view import PackView, map_pack, open_pack
from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["verify"]

_AGAIN = "convert the tokenizer again"
_TEXTS = ("Hello world", " a\n\nb  c", "caf\u00e9 \u4e2d\u6587 \U0001f642", "1234567", "<s>[CLS]<|endoftext|>")


def verify(path: str | os.PathLike[str], deep: bool = False) -> list[Finding]:
    """What is wrong with a pack; empty when nothing is.

    Args:
        path: a .mtok with an index (or one beside it) or a .tokpack.
        deep: compare the hashes of index and body, build the index again from what it says of the tokenizer and
            compare every section, and write the body again and compare every byte.

    Raises ReadError or FormatError for a file that cannot be opened at all.
    """
    name = os.fspath(path)
    view = open_pack(name)
    found = _runs(view)
    if deep and not found:
        found = [*_hashes(view, name), *_sections(view)]
        if not found:
            found = _body(view, name)
    return found


def _finding(code: str, message: str, path: str | None = None, severity: Severity = Severity.REFUSE) -> Finding:
    return Finding(code, severity, message, Location(None, path), _AGAIN)


def _runs(view: PackView) -> list[Finding]:
    """Every stage is made and used once."""
    try:
        tokenizer = Tokenizer(view)
    except TokpackError as error:
        return [_finding("verify-open", str(error))]
    faults = (_fault(tokenizer, text) for text in _TEXTS)
    return [_finding("verify-use", fault) for fault in faults if fault][:1]


def _fault(tokenizer: Tokenizer, text: str) -> str | None:
    """What is wrong with the index when ``text`` goes there and back; the reference may fail on a text, too."""
    try:
        tokenizer.decode(tokenizer.encode(text))
        tokenizer.pieces(text)
    except FormatError as error:
        return f"encoding {text!a} fails: {error}"
    except TokpackError:
        return None
    return None


def _hashes(view: PackView, name: str) -> list[Finding]:
    footer, found = view.footer, []
    digest = hashlib.blake2b(view.data[footer.index_offset : len(view.data) - layout.FOOTER], digest_size=16).digest()
    if digest != footer.index_hash:
        found.append(_finding("verify-index-hash", "the index is not the one that was written: its hash differs"))
    body = _body_bytes(view, name)
    if hashlib.blake2b(body, digest_size=16).digest() != footer.body_hash:
        message = "the body is not the one that the index was made from: its hash differs"
        found.append(_finding("verify-body-hash", message))
    gap = footer.index_offset - (0 if footer.flags & layout.FLAG_SIDECAR else footer.body_length)
    zeros = view.data[footer.index_offset - gap : footer.index_offset]
    if any(zeros) or view.data[-layout.FOOTER :] != footer.pack():
        found.append(_finding("verify-padding", "what stands between the parts of the file is not zero"))
    return found


def _body_bytes(view: PackView, name: str) -> bytes:
    data = map_pack(name) if view.footer.flags & layout.FLAG_SIDECAR else view.data
    return bytes(data[: view.footer.body_length])


def _sections(view: PackView) -> list[Finding]:
    """The index is a function of the tokenizer that it describes: build it again and compare."""
    try:
        ir = restore(view)
        losses = [Finding.from_dict(item) for item in view.about()["losses"]]
        expected: Sections = build_index(ir, losses)
    except (TokpackError, KeyError, TypeError, ValueError) as error:
        return [_finding("verify-restore", f"the index does not describe a tokenizer: {error}")]
    found = []
    for name in sorted(expected.keys() | view.sections.keys()):
        if name not in view.sections:
            message = f"the section {name!r} is missing"
        elif name not in expected:
            message = f"the section {name!r} belongs to nothing"
        elif expected[name] != view.raw(name):
            message = f"the section {name!r} differs {_where(expected[name], bytes(view.raw(name)))}"
        else:
            continue
        found.append(_finding("verify-section", message, name))
    return found


def _where(expected: bytes, actual: bytes) -> str:
    if len(expected) != len(actual):
        return f"in length: {len(actual)} bytes, not {len(expected)}"
    at = next(i for i, (a, b) in enumerate(zip(expected, actual, strict=True)) if a != b)
    return f"at byte {at}"


def _body(view: PackView, name: str) -> list[Finding]:
    """The body is what this version writes for the tokenizer of the index."""
    if not view.footer.body_length:
        return []
    write_body: Callable[..., tuple[bytes, list[Finding]]] = import_module("tokpack.formats.mnn").write_body
    try:
        expected = write_body(restore(view))[0]
    except (RefusedError, LossError) as error:
        return [_finding("verify-body", f"no body can be written for the tokenizer of the index: {error}")]
    actual = _body_bytes(view, name)
    if expected == actual:
        return []
    at = "in length" if len(expected) != len(actual) else _where(expected, actual)
    message = f"the body is not what this version of tokpack writes for the tokenizer of the index: it differs {at}"
    return [_finding("verify-body", message, severity=Severity.WARN)]
