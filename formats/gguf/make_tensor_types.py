"""Make ``tensor_types.json``: names and block sizes of ggml's tensor types, from the ``gguf`` package of llama.cpp.

python formats/gguf/make_tensor_types.py          needs the package gguf
"""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Write the table beside this script."""
    from gguf.constants import GGML_QUANT_SIZES

    rows = [f'  "{int(kind)}": {json.dumps([kind.name, *sizes])}' for kind, sizes in sorted(GGML_QUANT_SIZES.items())]
    note = "ggml type number: name, elements of a block, bytes of a block (gguf.constants.GGML_QUANT_SIZES)"
    text = "{\n" + f' "source": {json.dumps(note)},\n "types": {{\n' + ",\n".join(rows) + "\n }\n}\n"
    Path(__file__).with_name("tensor_types.json").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
