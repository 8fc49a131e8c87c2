"""Precompiled (``normalizers/precompiled.rs`` and the crate spm_precompiled 0.1.4)."""

from __future__ import annotations

from tokpack.errors import EncodeError
from tokpack.pack.view import PackView
from tokpack.runtime.hf.graphemes import Graphemes
from tokpack.runtime.hf.normalize_tables import Translation
from tokpack.typed import Any, cast

__all__ = ["Charsmap", "PrecompiledNormalizer"]

_SHORT = 5  # bytes of a cluster that is looked up as a whole, at most
_CACHE_SIZE = 1 << 15


class Charsmap:
    """u32 size of the array in bytes, XOR-compressed double array, NUL-terminated replacements."""

    def __init__(self, blob: memoryview) -> None:
        size = int.from_bytes(blob[:4], "little") // 4 * 4
        array = blob[4 : 4 + size]
        self._units: memoryview[Any] = cast("Any", array[: len(array) // 4 * 4]).cast("I")
        self._texts = bytes(blob[4 + size :])

    def shortest(self, key: bytes) -> str | None:
        """The replacement of the shortest entry that ``key`` begins with, or None.

        ``common_prefix_search`` lists the shortest first, and ``transform`` takes the first.
        """
        unit = self._unit(0)
        node = _base(unit)
        for byte in key:
            if not byte:
                return None
            node ^= byte
            unit = self._unit(node)
            if unit & 0x800000FF != byte:
                return None
            node ^= _base(unit)
            if unit >> 8 & 1:
                return self._text(self._unit(node) & 0x7FFFFFFF)
        return None

    def _text(self, start: int) -> str:
        if start > len(self._texts):
            raise EncodeError("the charsmap points behind its replacements: the tokenizers library panics on this text")
        end = self._texts.find(b"\0", start)
        try:
            return self._texts[start : end if end >= 0 else len(self._texts)].decode()
        except UnicodeDecodeError as error:
            raise EncodeError("a replacement of the charsmap is not UTF-8: the library panics on this text") from error

    def _unit(self, node: int) -> int:
        if node >= len(self._units):
            raise EncodeError("the charsmap points outside its array: the tokenizers library panics on this text")
        return int(self._units[node])


def _base(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6) & 0xFFFFFFFF


class PrecompiledNormalizer:
    """A short grapheme cluster that has an entry is replaced whole; of all others, each character.

    An entry counts if the cluster begins with it: the rest of the cluster is lost.
    """

    def __init__(self, view: PackView) -> None:
        self._map = Charsmap(view.raw("charsmap"))
        self._graphemes = Graphemes(view)
        self._chars = Translation(self._char)
        self._cache: dict[str, str | None] = {}

    def apply(self, text: str) -> str:
        """The normalized text."""
        replaced = self._clusters(text)
        if not replaced:
            result = text.translate(self._chars)
            return text if result == text else result
        parts: list[str] = []
        last = 0
        for start, end, content in replaced:
            parts += (text[last:start].translate(self._chars), content)
            last = end
        parts.append(text[last:].translate(self._chars))
        result = "".join(parts)
        return text if result == text else result

    def edits(self, text: str) -> list[tuple[int, int, str]]:
        """One edit for each cluster replaced whole, and for each other character that changes."""
        edits: list[tuple[int, int, str]] = []
        last = 0
        for start, end, content in [*self._clusters(text), (len(text), len(text), "")]:
            for at in range(last, start):
                new = self._chars[ord(text[at])]
                if new != text[at]:
                    edits.append((at, at + 1, new))
            if content != text[start:end]:
                edits.append((start, end, content))
            last = end
        return edits

    def _clusters(self, text: str) -> list[tuple[int, int, str]]:
        """Clusters of two characters or more that are replaced whole."""
        replaced = []
        for start, end in self._graphemes.clusters(text):
            if end - start <= _SHORT:
                content = self._cluster(text[start:end])
                if content is not None:
                    replaced.append((start, end, content))
        return replaced

    def _cluster(self, cluster: str) -> str | None:
        try:
            return self._cache[cluster]  # one look: another thread may empty it
        except KeyError:
            pass
        raw = cluster.encode("utf-8", "surrogatepass")
        content = self._map.shortest(raw) if len(raw) <= _SHORT else None
        if len(self._cache) >= _CACHE_SIZE:
            self._cache.clear()
        self._cache[cluster] = content
        return content

    def _char(self, char: str) -> str:
        content = self._map.shortest(char.encode("utf-8", "surrogatepass"))
        return char if content is None else content
