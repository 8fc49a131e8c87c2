"""The format ``.tokpack``: an index with an empty body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokpack.rendered import Rendered

if TYPE_CHECKING:
    import os

    from tokpack.ir import TokenizerIR

__all__ = ["read", "render"]


def render(ir: TokenizerIR) -> Rendered:
    """All of ``ir``; nothing is lost."""
    from tokpack.pack.build import build_pack

    return Rendered((("", build_pack(ir)),), (), exact=True)


def read(path: str | os.PathLike[str]) -> TokenizerIR:
    """The IR that a pack was made from; also of an .mtok with an index."""
    import os

    from tokpack.pack.restore import restore
    from tokpack.pack.view import open_pack

    return restore(open_pack(os.fspath(path)))
