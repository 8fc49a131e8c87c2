"""What the tests of the normalizers share: steps, their twins in the library, nasty texts; and a recorder of answers.

    python -m tests.runtime.hf.test_normalizers_cases

writes ``test_normalizers_golden.json.xz`` from the installed ``tokenizers`` 0.23.3.
"""

from __future__ import annotations

import json
import lzma
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from tokpack.ir.codec import to_plain
from tokpack.ir.normalizers import (
    BertNormalizer,
    ByteLevelNormalizer,
    Lowercase,
    Nmt,
    NormalizerStep,
    Precompiled,
    Prepend,
    Replace,
    StripAccents,
    StripNormalizer,
    UnicodeNormalization,
)
from tokpack.pack.hf_tables import normalizer_sections
from tokpack.pack.view import PackView
from tokpack.runtime.hf.normalizers import Edit, Matcher, Normalizer, make_normalizers

GOLDEN = Path(__file__).with_name("test_normalizers_golden.json.xz")
SEED = 20260622
Steps = Sequence[NormalizerStep]


@dataclass
class Sections:
    """As much of a pack as the normalizers use."""

    parts: Mapping[str, bytes]
    file: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def raw(self, name: str) -> memoryview:
        return memoryview(self.parts.get(name, b""))


def view_of(parts: Mapping[str, bytes]) -> PackView:
    return cast("PackView", Sections(parts))


def plain(steps: Steps) -> list[dict[str, Any]]:
    return [to_plain(step, skip=("charsmap",)) for step in steps]


def build(steps: Steps, matchers: Sequence[Matcher | None] = ()) -> list[Normalizer]:
    return make_normalizers(plain(steps), view_of(normalizer_sections(steps)), matchers)


def run(normalizers: Iterable[Normalizer], text: str) -> str:
    for normalizer in normalizers:
        text = normalizer.apply(text)
    return text


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The edits applied; asserts that they ascend and do not overlap."""
    parts, last = [], 0
    for start, end, content in edits:
        assert last <= start <= end <= len(text), (last, start, end)
        parts += [text[last:start], content]
        last = end
    return "".join([*parts, text[last:]])


def charsmap(entries: Mapping[bytes, str]) -> bytes:
    """A charsmap in the simplest layout: a block of 256 units for each node."""
    texts = bytearray()
    nodes: list[dict[int, int]] = [{}]
    values: dict[int, int] = {}
    for key, text in sorted(entries.items()):
        node = 0
        for byte in key:
            if byte not in nodes[node]:
                nodes[node][byte] = len(nodes)
                nodes.append({})
            node = nodes[node][byte]
        values[node] = len(texts)
        texts += text.encode() + b"\0"
    units = [0] * (256 * (len(nodes) + 1))
    units[0] = 256 << 10  # from unit 0 to the block of the root
    for node, children in enumerate(nodes):
        base = 256 * (node + 1)
        for byte, child in children.items():
            at = base ^ byte
            units[at] = (at ^ 256 * (child + 1)) << 10 | (child in values) << 8 | byte
        if node in values:
            units[base] = 1 << 31 | values[node]
    raw = b"".join(unit.to_bytes(4, "little") for unit in units)
    return len(raw).to_bytes(4, "little") + raw + bytes(texts)


@cache
def cluster_map() -> bytes:
    """Shows where clusters begin: one entry for each first byte, but the rest of a character would be lost."""
    leads = [*range(0x0A, 0x10), *range(0x20, 0x7F), *range(0xC2, 0xF5)]
    entries = {bytes([lead]): f"<{lead:x}>" for lead in leads}
    return charsmap(entries)


@cache
def small_map() -> bytes:
    """Entries of several lengths: the shortest one wins, also for a whole cluster."""
    entries = {"a": "A", "ab": "x", "é": "e", "\u0301": "'", "é\u0302": "y", "ﬁ": "fi", "\r\n": "|", " ": "", "日": ""}
    return charsmap({key.encode(): text for key, text in entries.items()} | {b"\xe0\xa4": "d"})


CASES: dict[str, Steps] = {
    **{form: [UnicodeNormalization(form)] for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "Lowercase": [Lowercase()],
    "StripAccents": [StripAccents()],
    "Strip": [StripNormalizer(left=True, right=True)],
    "Strip left": [StripNormalizer(left=True, right=False)],
    "Strip right": [StripNormalizer(left=False, right=True)],
    "Nmt": [Nmt()],
    "ByteLevel": [ByteLevelNormalizer()],
    "Prepend": [Prepend("▁")],
    "Prepend two": [Prepend("é\u0301")],
    "Prepend nothing": [Prepend("")],
    "Replace space": [Replace(" ", "▁")],
    "Replace nothing": [Replace("", "-")],
    "Replace signs": [Replace("[.]", "\\0$1")],
    "Replace a mark": [Replace("\u0301", "")],
    "Replace two": [Replace("aa", "a")],
    "Precompiled": [Precompiled(small_map())],
    "Precompiled clusters": [Precompiled(cluster_map())],
    "Sequence xlnet": [Replace("``", '"'), UnicodeNormalization("NFKD"), StripAccents(), Lowercase()],
    "Sequence nmt": [Nmt(), UnicodeNormalization("NFKC"), StripAccents(), Lowercase()],
    "Sequence bytes": [UnicodeNormalization("NFC"), ByteLevelNormalizer()],
    "Sequence llama": [Prepend("▁"), Replace(" ", "▁")],
    "Sequence strip": [Precompiled(small_map()), StripNormalizer(left=False, right=True), Replace("  ", " ")],
    **{
        f"Bert {clean:d}{chinese:d}{accents}{lower:d}": [BertNormalizer(clean, chinese, accents, lower)]
        for clean, chinese, accents, lower in (
            *((True, True, None, True), (True, True, None, False), (False, False, True, False)),
            *((True, True, True, True), (True, True, False, True), (False, True, None, True)),
            *((True, False, True, False), (False, False, False, False)),
        )
    },
}


def library(steps: Steps) -> Any:
    """The same steps of the installed library."""
    from tokenizers import normalizers

    parts = [_twin(normalizers, step) for step in steps]
    return parts[0] if len(parts) == 1 else normalizers.Sequence(parts)


def _twin(module: Any, step: NormalizerStep) -> Any:
    if isinstance(step, UnicodeNormalization):
        return getattr(module, step.form)()
    if isinstance(step, Replace):
        return module.Replace(step.pattern, step.content)
    if isinstance(step, Prepend):
        return module.Prepend(step.content)
    if isinstance(step, StripNormalizer):
        return module.Strip(step.left, step.right)
    if isinstance(step, Precompiled):
        return module.Precompiled(step.charsmap)
    if isinstance(step, BertNormalizer):
        return module.BertNormalizer(
            clean_text=step.clean_text,
            handle_chinese_chars=step.handle_chinese_chars,
            strip_accents=step.strip_accents,
            lowercase=step.lowercase,
        )
    names = {Lowercase: "Lowercase", StripAccents: "StripAccents", Nmt: "Nmt", ByteLevelNormalizer: "ByteLevel"}
    return getattr(module, names[type(step)])()


# characters that the rules tell apart; surrogates cannot reach the library
POOLS = (
    "aAzZ eE.[]0'`\t\n\r\v\f\x00\x01\x1c\x7f\x85\x9f\xa0",
    "\r\n\r\n \u2028\u2029\u3000\u1680\u2581\ufeff\ufffd\u200b\u200c\u200d\u200e\u2060\u061c\u00ad",
    "éÉßẞİıſKÅΣςσǅǆŉΐﬁﬃⅷⅠ½①㎏㋿ﷺ\u0149\u1e9b\u212b\ua7cb\u1c89\U00010d50\U0001e900\U0001e922",
    "\u0300\u0301\u0302\u0307\u030a\u0323\u0327\u0328\u031b\u0345\u0338\u034f\u0340\u0341\u0344\u0360\u0488\u20dd",
    "\u05b0\u05bc\u05c1\u0651\u064e\u0655\u08d3\u0898\u07fd\u0e38\u0e48\u0f71\u0f72\u0f74\u0f73\u0f81\u302a\u302e\u302f\u3099",
    "\u0915\u093c\u094d\u0958\u0929\u09be\u09c7\u09cb\u0b47\u0b3e\u0b56\u0bc6\u0bd7\u0cbf\u0d46\u0d57\u0dcf\u0dd9\u0dca\u1025\u102e",
    "\u1b44\u1baa\u1bf2\ua953\ua9c0\u1b05\u1b35\u0dca\u1dce\U00011131\U00011127\U000110b9\U000110ba\U00011099\U0001d165\U0001d16d\U0001d15e\U0001d157",
    "\u1100\u1101\u1112\u1113\u115f\u1160\u1161\u1175\u1176\u11a7\u11a8\u11c2\u11c3\uac00\uac01\ud788\ud7a3\ua960\ud7b0\ud7cb",
    "日本語\u3400\u9fff\uf900\ufa0e\U0002b81f\U0002b820\U0002b920\U0002ceaf\U0002f800\u3007\u3042\u304b\u3099\uff76\uff9e",
    "©®™☺❤️👍🏽👨\u200d👩\u200d👧🇩🇪🇫\U0001f3fb\U000e0020\U000e007f\u20e3#*",
    "\u0600\u0605\u06dd\u070f\u0890\u0d4e\U000110bd\U000111c2\U0001193f\U00011a3a\u1cf5\u1cf6\U00011d46\u0903\u0e33\u1a60\u1039\u17d2",
    "\u0378\ue000\U000f0000\U0010ffff\U000e0001\ufff9\u180e\u1734\u1cf2\u0861\u09fe\U00011938\U00011935\U00011930\u32ff",
)


def nasty_texts(count: int, seed: int = SEED) -> list[str]:
    """Short texts over one or more pools, with a random character of all Unicode now and then."""
    source = random.Random(seed)
    texts = ["", " ", "a", "\r\n", "\u0301", "\u0301\u0301\u0323", "  ", "한국어", "\u3000\u00a0x\u2003"]
    while len(texts) < count:
        pools = "".join(source.choice(POOLS) for _ in range(source.randint(1, 3)))
        chars = [source.choice(pools) for _ in range(source.randint(1, 12))]
        if source.random() < 0.3:
            chars.insert(source.randrange(len(chars) + 1), random_char(source))
        texts.append("".join(chars))
    return texts


def random_char(source: random.Random) -> str:
    while True:
        code = source.choice((source.randrange(0x250), source.randrange(0x3100), source.randrange(0x110000)))
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def answer(normalizer: Any, text: str) -> str | None:
    """The library's result, or None where it panics."""
    try:
        return str(normalizer.normalize_str(text))
    except BaseException as error:  # pyo3's PanicException is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return None


def read_golden() -> tuple[list[str], dict[str, dict[int, str | None]]]:
    """Texts, and for each case the results that differ from the text; None for a panic."""
    with lzma.open(GOLDEN) as file:
        data = json.load(file)
    assert data["steps"] == fingerprints(), "the cases have changed: record the golden file again"
    results = {name: {int(at): text for at, text in part.items()} for name, part in data["results"].items()}
    return data["texts"], results


def fingerprints() -> dict[str, Any]:
    """What the cases were when the file was recorded, as JSON gives it back."""
    return {
        name: [plain(steps), [zlib.crc32(step.charsmap) for step in steps if isinstance(step, Precompiled)]]
        for name, steps in CASES.items()
    }


def record() -> None:
    texts = nasty_texts(800)
    results = {}
    for name, steps in CASES.items():
        twin = library(steps)
        answers = ((at, text, answer(twin, text)) for at, text in enumerate(texts))
        results[name] = {at: new for at, text, new in answers if new != text}
    data = json.dumps({"steps": fingerprints(), "texts": texts, "results": results}, ensure_ascii=False)
    GOLDEN.write_bytes(lzma.compress(data.encode("utf-8"), preset=9))


if __name__ == "__main__":
    record()
