"""Finds every count and length in the body of an .mtok (text header and binary part), from the format's description."""

from __future__ import annotations

import re
import struct

from tests.hostile.gguf_builder import Field

__all__ = ["header_numbers", "walk_body"]


class _Body:
    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self.fields: list[Field] = []

    def number(self, code: str, what: str) -> int:
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.fields.append(Field(what, self.at, "<" + code, value))
        self.at += struct.calcsize("<" + code)
        return int(value)

    def skip(self, size: int) -> None:
        self.at += size

    def text(self, what: str, code: str = "H") -> None:
        self.skip(self.number(code, f"length of {what}"))

    def normalizer(self) -> None:
        kind = self.number("B", "normalizer type")
        if kind in (2, 3):
            for _ in range(kind - 1):
                self.text("normalizer text")
        elif kind == 4:
            for _ in range(self.number("I", "normalizer count")):
                self.normalizer()
        elif kind not in (0, 1):
            raise ValueError(f"normalizer {kind} is not needed here")

    def pre_tokenizer(self) -> None:
        kind = self.number("B", "pre-tokenizer type")
        if kind in (1, 2):
            self.skip(1)
        elif kind == 3:
            self.text("metaspace")
            self.skip(1)
        elif kind == 4:
            self.text("pattern")
            self.skip(2)
        elif kind == 6:
            for _ in range(self.number("I", "pre-tokenizer count")):
                self.pre_tokenizer()

    def model(self) -> None:
        kind = self.number("B", "model type")
        if kind:
            raise ValueError(f"model {kind} is not needed here")
        size = self.number("I", "vocabulary size")
        self.skip(2)
        merges = self.number("I", "merge count")
        for index in range(size):
            self.text(f"piece {index}")
            self.skip(4)
        self.skip(12 * merges)

    def decoder(self) -> None:
        kind = self.number("B", "decoder type")
        texts = {2: 1, 3: 1, 5: 2, 6: 1}.get(kind, 0)
        for _ in range(texts):
            self.text("decoder text")
        self.skip({2: 1, 3: 1, 6: 8}.get(kind, 0))
        if kind == 7:
            for _ in range(self.number("I", "decoder count")):
                self.decoder()

    def added(self) -> None:
        for index in range(self.number("I", "added count")):
            self.skip(7)
            self.text(f"added token {index}")

    def tail(self) -> None:
        self.text("template", "I")
        self.text("eos")
        self.number("B", "flags")
        self.text("bos")
        for _ in range(self.number("H", "operation count")):
            if self.number("B", "operation"):
                self.skip(4)


def header_numbers(body: bytes) -> list[tuple[int, int]]:
    """Spans of the numbers in the first three lines."""
    end = 0
    for _ in range(3):
        end = body.index(b"\n", end) + 1
    return [match.span() for match in re.finditer(rb"\d+", body[:end])]


def walk_body(body: bytes) -> list[Field]:
    """Every length, count and type number of the binary part."""
    end = 0
    for _ in range(3):
        end = body.index(b"\n", end) + 1
    walker = _Body(body, end)
    for part in (walker.normalizer, walker.pre_tokenizer, walker.model, walker.decoder, walker.added, walker.tail):
        part()
    assert walker.at <= len(body), "the walker left the body"
    return walker.fields
