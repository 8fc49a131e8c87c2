"""Names of the module ``typing`` for annotations, without importing it: that takes as long as opening ten packs.

To type checkers they are the names themselves. At run time they hold a place: nothing may ask them for more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AnyStr, Protocol, cast
else:
    Any = AnyStr = object

    class Protocol:
        """A base without meaning."""

    def cast(_, value):
        """``value``."""
        return value


__all__ = ["TYPE_CHECKING", "Any", "AnyStr", "Protocol", "cast"]
