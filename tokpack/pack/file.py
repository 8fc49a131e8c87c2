"""The format ``.tokpack``: an index with an empty body."""

from __future__ import annotations

from tokpack.rendered import Rendered
from tokpack.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from tokpack.ir import TokenizerIR
    from tokpack.limits import Limits

__all__ = ["read", "render"]


def render(ir: TokenizerIR) -> Rendered:
    """All of ``ir``; nothing is lost."""
    from tokpack.pack.build import build_pack

    return Rendered((("", build_pack(ir)),), (), exact=True)


def read(path: str | os.PathLike[str], *, limits: Limits | None = None) -> TokenizerIR:
    """The IR that a pack was made from; also of an .mtok with an index."""
    import os

    from tokpack.formats._limited import limited
    from tokpack.limits import DEFAULT
    from tokpack.pack.restore import restore
    from tokpack.pack.view import open_pack

    name = os.fspath(path)
    return limited(restore(open_pack(name, limits)), limits or DEFAULT, name)
