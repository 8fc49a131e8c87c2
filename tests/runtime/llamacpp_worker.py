"""Asks llama.cpp in a process of its own, because a failed assertion inside it ends the process.

Reads one JSON object from standard input: ``path`` of a GGUF file, ``texts`` in base64. Writes one: for each text the
ids of each mode, and of each list of ids the text that each mode of decoding gives, in base64.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures"))
MODES = [(False, False), (False, True), (True, False), (True, True)]


def answers(path: Path, texts: list[bytes]) -> dict[str, Any]:
    vocab = importlib.import_module("record_golden").LlamaVocab(path)
    ids = [[vocab.encode(text, add, parse) for add, parse in MODES] for text in texts]
    decoded = [
        [[b64encode(vocab.decode(some, remove, unparse)).decode() for remove, unparse in MODES] for some in of_text]
        for of_text in ids
    ]
    return {"ids": ids, "decoded": decoded}


if __name__ == "__main__":
    request = json.load(sys.stdin)
    print(json.dumps(answers(Path(request["path"]), [b64decode(text) for text in request["texts"]])), flush=True)
    os._exit(0)  # llama.cpp's own clean-up at exit has nothing to add
