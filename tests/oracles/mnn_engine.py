"""Ask the MNN engine (PyPI package ``MNN``) what it makes of a tokenizer file. Run as a program, one file per process.

    mnn_engine.py FILE encode < texts    one JSON string per line → one JSON list of ids per line
    mnn_engine.py FILE decode < ids      one id per line → one JSON string of hexadecimal bytes per line, or null where
                                         the binding fails (it wants whole characters)

The engine checks nothing that it reads: a bad file ends the process with a signal. It prints to stdout, so the answers
go to a copy of that descriptor and the chatter to stderr.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any


def open_engine(path: Path) -> Any:
    """An engine whose tokenizer is loaded; its weights are missing, and loading them fails, which is of no concern."""
    from MNN import llm  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(path, folder / "tokenizer.mtok")
        config = {"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "tokenizer_file": "tokenizer.mtok"}
        model = {"hidden_size": 8, "layer_nums": 1, "attention_mask": "float", "key_value_shape": []}
        (folder / "config.json").write_text(json.dumps(config | {"backend_type": "cpu", "thread_num": 1}))
        (folder / "llm_config.json").write_text(json.dumps(model | {"tie_embeddings": [0, 0, 0, 8, 64]}))
        for weights in ("llm.mnn", "llm.mnn.weight"):
            (folder / weights).write_bytes(bytes(100))
        engine = llm.create(str(folder / "config.json"))
        try:
            engine.load()
        except Exception as error:
            print(f"expected: {error}", file=sys.stderr)
        return engine


def decode(engine: Any, number: int) -> str | None:
    """Text of one id as the engine streams it, in hexadecimal."""
    try:
        text = engine.tokenizer_decode(number)
    except UnicodeDecodeError:
        return None
    raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
    return raw.hex()


def main() -> None:
    """Answer line by line."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = open_engine(Path(sys.argv[1]))
    for line in sys.stdin:
        item = json.loads(line)
        if sys.argv[2] == "encode":
            answer: object = [int(number) for number in engine.tokenizer_encode(item)]
        else:
            answer = decode(engine, int(item))
        print(json.dumps(answer), file=answers)
    answers.flush()
    os._exit(0)  # the engine's own clean-up trips over the missing weights


if __name__ == "__main__":
    main()
