"""Records ``golden.json`` from the installed library: ``python -m tests.onig.record``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.onig.cases import CONSTRUCTS, TEXTS
from tests.onig.oracle import Library

GOLDEN = Path(__file__).with_name("golden.json")


def main() -> None:
    import tokenizers

    library = Library(tokenizers)
    patterns: dict[str, list[list[int]] | None] = {}
    for pattern in (p for group in CONSTRUCTS.values() for p in group):
        split = library.compile(pattern)
        ends = None if split is None else [[end for _, end in library.pieces(split, text) or ()] for text in TEXTS]
        patterns[pattern] = ends
    golden = {"library": f"tokenizers {tokenizers.__version__}", "texts": TEXTS, "ends": patterns}
    rows = ",\n".join(f"{json.dumps(p)}:{json.dumps(e, separators=(',', ':'))}" for p, e in patterns.items())
    head = json.dumps({k: v for k, v in golden.items() if k != "ends"}, indent=0)[:-2]
    GOLDEN.write_text(f'{head},\n"ends": {{\n{rows}\n}}\n}}\n', encoding="utf-8")
    json.loads(GOLDEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
