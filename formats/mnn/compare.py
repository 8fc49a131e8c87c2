"""A tokenizer beside what the MNN engine makes of its body: two runtimes of ours, the second one MNN's rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tokpack.errors import EncodeError
from tokpack.pack.build import build_pack
from tokpack.pack.view import PackView
from tokpack.runtime.tokenizer import Tokenizer

from .plain import read_bytes

if TYPE_CHECKING:
    from tokpack.ir import TokenizerIR

__all__ = ["Comparison"]


@dataclass
class Comparison:
    """The reference's ids and the engine's; each runtime is made when it is first asked.

    Attributes:
        ir: the tokenizer.
        body: the .mtok body made of it.
        engine: ``v361`` or ``head``.
    """

    ir: TokenizerIR
    body: bytes
    engine: str = "v361"

    @cached_property
    def reference(self) -> Tokenizer:
        """The tokenizer itself."""
        return Tokenizer(PackView(build_pack(self.ir)))

    @cached_property
    def device(self) -> Tokenizer:
        """What the engine makes of the body."""
        return Tokenizer(PackView(build_pack(read_bytes(self.body, engine=self.engine))))

    def ids(self, text: str) -> tuple[list[int] | None, list[int] | None]:
        """(reference's ids, engine's ids); None where that program fails on the text."""
        return _encode(self.reference, text), _encode(self.device, text)

    def other_ids(self, text: str) -> bool:
        """Whether the engine gives other ids than the reference; False where the reference fails."""
        expected, found = self.ids(text)
        return expected is not None and expected != found

    def other_text(self, text: str) -> bool:
        """Whether the reference's ids of ``text`` decode to something else in the engine."""
        ids = _encode(self.reference, text)
        if ids is None:
            return False
        return any(
            self.reference.decode_bytes(part) != self.device.decode_bytes(part)
            for part in (ids, *([token] for token in ids))
        )


def _encode(tokenizer: Tokenizer, text: str) -> list[int] | None:
    try:
        return tokenizer.encode(text)
    except EncodeError:
        return None
