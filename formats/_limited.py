"""Limits on what every format has: the patterns of the steps, and the chat templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokpack.errors import Location
from tokpack.limits import Limits, above

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

__all__ = ["check_file", "limited"]


def check_file(size: int, limits: Limits, file: str | None) -> None:
    """FormatError for a file of too many bytes, before it is read."""
    if size > limits.file_bytes:
        raise above("file_bytes", f"the file has {size} bytes, which is", limits, Location(file))


def limited(ir: TokenizerIR, limits: Limits, file: str | None = None) -> TokenizerIR:
    """``ir`` itself; FormatError when one of its patterns or chat templates is too long."""
    for place in ("normalizer", "pre_tokenizer", "decoder"):
        for index, step in enumerate(getattr(ir, place)):
            pattern = getattr(step, "pattern", None)
            if isinstance(pattern, str) and _size(pattern) > limits.pattern_bytes:
                where = Location(file, f"{place}[{index}]")
                raise above("pattern_bytes", f"a pattern of {_size(pattern)} bytes is", limits, where)
    for name, template in ir.chat_templates.items():
        if _size(template) > limits.template_bytes:
            what = f"the chat template {name[:60]!r} has {_size(template)} bytes, which is"
            raise above("template_bytes", what, limits, Location(file))
    return ir


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
