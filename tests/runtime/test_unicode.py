"""Ids depend on our own character tables only, not on the Unicode version of the interpreter."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.conftest import FIXTURES, ROOT, SharedData
from tokpack.unicode import llamacpp

# methods of str whose answer changes with the interpreter's Unicode version
DEPENDENT = {
    *("lower", "upper", "title", "casefold", "capitalize", "swapcase", "isalpha", "isalnum", "isdecimal", "isdigit"),
    *("isnumeric", "isspace", "islower", "isupper", "istitle", "isidentifier", "isprintable"),
}
ALLOWED = {
    ("words.py", "upper"),
    ("detokenize.py", "lower"),
    ("reference.py", "lower"),
}  # of bytes, and of characters below U+0080


def test_tables_are_llamacpps(shared_data: SharedData) -> None:
    with np.load(shared_data("tables/llamacpp_unicode_15_1.npz")) as tables:
        assert np.array_equal(llamacpp.flags(), tables["flags"] & 0xFF)  # the rest is white space and case
        assert np.array_equal(llamacpp.whitespace(), tables["whitespace"])
        assert np.array_equal(llamacpp.lower(), tables["lower"])
        expanded = np.arange(0x110000)
        for first, last, mapping in tables["nfd"].tolist():
            expanded[first : last + 1] = mapping
        assert np.array_equal(llamacpp.nfd_first(), expanded)


def test_known_code_points() -> None:
    """Facts of Unicode 15.1 that 14.0 and 16.0 have otherwise, and what is white space (not U+001C)."""
    flags = llamacpp.flags()
    assert flags[0x2EBF0] == llamacpp.CodepointFlag.LETTER  # new in 15.1
    assert flags[0x1C89] == llamacpp.CodepointFlag.UNDEFINED  # new in 16.0
    assert flags[0x0897] == llamacpp.CodepointFlag.UNDEFINED  # new in 16.0
    spaces = set(llamacpp.whitespace().tolist())
    assert len(spaces) == 25
    assert {0x85, 0xA0, 0x2028, 0x3000} <= spaces
    assert not spaces & {0x1C, 0x1D, 0x1E, 0x1F, 0x200B, 0x2060, 0xFEFF}
    index, blocks = llamacpp.class_table()
    assert [blocks[index[c >> 8], c & 255] for c in (0x41, 0xE9, 0x0662, 0x3000, 0x0301, 0x20AC)] == [
        *(0x41, llamacpp.LETTER, llamacpp.NUMBER, 0x0B, llamacpp.MARK, llamacpp.SYMBOL)
    ]


def test_no_method_of_str_that_knows_unicode() -> None:
    """But for showing text on a screen, which is not here."""
    for folder in ("tokpack/runtime", "tokpack/pack", "tokpack/unicode"):
        for path in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                table = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "llamacpp"
                if isinstance(node, ast.Attribute) and node.attr in DEPENDENT and not table:
                    assert (path.name, node.attr) in ALLOWED, (path.name, node.lineno, node.attr)
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    names = [alias.name for alias in node.names] + [getattr(node, "module", None)]
                    assert "unicodedata" not in names, path.name


def test_every_model_works_without_unicodedata(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['unicodedata'] = None\n"
        "import glob, tokpack\n"
        "count = 0\n"
        "for path in sorted(glob.glob(sys.argv[1] + '/*.gguf')):\n"
        "    try: tok = tokpack.load(path)\n"
        "    except tokpack.RefusedError: continue\n"
        "    try: tok.decode(tok.encode('Éa ß 日本 \\u0301\\u2028 x'))\n"
        "    except tokpack.EncodeError: pass\n"
        "    count += 1\n"
        "print(count)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(FIXTURES)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert int(done.stdout) >= 25
