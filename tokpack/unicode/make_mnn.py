r"""Make ``mnn.npz``: character classes and lower case of the MNN engine 3.6.1, asked of the engine itself.

    python tokpack/unicode/make_mnn.py          needs the package MNN (3.6.1)

A body whose pre-tokenizer removes ``\p{L}`` shows which characters are letters, and so on for the other classes; one
whose normalizer is Bert's shows what lower case does. The vocabulary is 256 byte pieces, so every text comes back.

``classes`` uint32 ``[n, 2]``
    runs: first code point, class from there on, as ``fold_text`` of ``unicode.cpp`` numbers them: 1 letter, 2 number,
    3 white space, 4 other, 5 mark, 6 punctuation, 7 symbol. ASCII, which is never folded, is 0.
``lower`` uint32 ``[n, 2]``
    code point, its lower case, where that is another one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.formats.mnn.parts import BertNormalizer, Bpe, Split

__all__ = ["main"]

_CLASSES = {1: "L", 2: "N", 3: "Z", 5: "M", 6: "P", 7: "S"}
_OTHER = 4
_SIZE = 0x110000
_LINE = 4096  # characters of one text
_ENGINE = Path(__file__).parents[2] / "tests" / "oracles" / "mnn_engine.py"


def _lines() -> list[str]:
    chars = [chr(c) for c in range(0x80, _SIZE) if not 0xD800 <= c <= 0xDFFF]
    return ["".join(chars[at : at + _LINE]) for at in range(0, len(chars), _LINE)]


def _ask(body: MtokBody, lines: list[str]) -> list[str]:
    """What is left of each line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.mtok"
        path.write_bytes(serialize(body))
        command = [sys.executable, str(_ENGINE), str(path), "encode"]
        lines_in = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run(command, input=lines_in, capture_output=True, text=True, check=True)  # noqa: S603
    return [bytes(json.loads(line)).decode("utf-8") for line in done.stdout.splitlines()]


def main() -> None:
    """Ask, and write the file."""
    lines = _lines()
    model = Bpe(tuple(b"<0x%02X>" % byte for byte in range(256)), np.empty((0, 3), np.uint32))
    classes = np.full(_SIZE, _OTHER, dtype=np.uint8)
    classes[:0x80] = 0
    for number, name in _CLASSES.items():
        body = MtokBody(model, pre_tokenizer=(Split(rf"\p{{{name}}}", behavior="removed"),))
        for line, left in zip(lines, _ask(body, lines), strict=True):
            for char in set(line) - set(left):
                classes[ord(char)] = number
    lower = []
    body = MtokBody(model, normalizer=(BertNormalizer(False, False, False, True),))
    for line, made in zip(lines, _ask(body, lines), strict=True):
        lower += [(ord(a), ord(b)) for a, b in zip(line, made, strict=True) if a != b]
    starts = np.flatnonzero(np.append(True, classes[1:] != classes[:-1]))
    runs = np.stack([starts, classes[starts]], axis=1).astype(np.uint32)
    pairs = np.array([(c, c + 32) for c in range(ord("A"), ord("Z") + 1)] + lower, dtype=np.uint32)
    np.savez_compressed(Path(__file__).with_name("mnn.npz"), classes=runs, lower=pairs)


if __name__ == "__main__":
    main()
