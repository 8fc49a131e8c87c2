"""docs/api.md from the docstrings of the public names: ``python -m tests.docs.make_api``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import tokpack
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "api.md"
_HEAD = """\
# Python API

<!-- made by `python -m tests.docs.make_api`; a test compares it -->

What `import tokpack` offers; everything else may change without notice. All of it is typed (`py.typed`). Words are told
in [terms.md](terms.md), the fields of a `TokenizerIR` in [ir.md](ir.md), finding codes in [findings.md](findings.md).
"""
_GROUPS = {
    "Functions": ("load", "read", "write", "convert"),
    "Tokenizer": ("Tokenizer", "Piece", "StreamDecoder"),
    "Data": ("TokenizerIR", "Finding", "Severity"),
    "Errors": (
        *("TokpackError", "UsageError", "ExistsError", "ReadError", "FormatError", "RefusedError"),
        *("UnsupportedError", "LossError", "EncodeError"),
    ),
}
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises):$")
_ITEM = re.compile(r"    (\*{0,2}[\w, ]+): (.*)")
Def = ast.FunctionDef | ast.ClassDef


def _source(module: str) -> dict[str, Def]:
    path = ROOT / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _plain(text: str) -> str:
    """reStructuredText roles and literals as Markdown."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def _prose(node: Def) -> str:
    """A docstring; its sections become lists."""
    lines, out = (ast.get_docstring(node) or "").splitlines(), []
    inside = False
    for line in lines:
        section = _SECTION.match(line)
        item = _ITEM.match(line) if inside else None
        if section:
            inside = True
            out.append(f"{section[1]}:\n")
        elif item:
            out.append(f"- `{item[1]}`: {item[2]}")
        elif inside and line.startswith("    "):
            out.append("  " + line.strip())
        else:
            inside = inside and not line.strip()
            out.append(line)
    return _plain("\n".join(out).strip())


def _signature(node: ast.FunctionDef, *, method: bool = False) -> str:
    arguments = ast.unparse(node.args)
    if method:
        arguments = arguments.removeprefix("self").removeprefix(", ")
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{node.name}({arguments}){result}"


def _class(node: ast.ClassDef) -> list[str]:
    bases = [ast.unparse(base) for base in node.bases]
    parts = [f"### {node.name}", f"`class {node.name}" + (f"({', '.join(bases)})`" if bases else "`"), _prose(node)]
    fields = [
        f"{part.target.id}: {ast.unparse(part.annotation)}"
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    members = [
        f"{ast.unparse(part.targets[0])} = {ast.unparse(part.value)}"
        for part in node.body
        if isinstance(part, ast.Assign) and "Enum" in "".join(bases)
    ]
    if fields or members:
        parts.append("```text\n" + "\n".join(fields + members) + "\n```")
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            simple = any(ast.unparse(mark) == "property" for mark in part.decorator_list)
            shown = part.name if simple else _signature(part, method=True)
            parts += [f"#### {node.name}.{part.name}", f"`{shown}`", _prose(part)]
    return parts


def page() -> str:
    """The whole page."""
    grouped = {name for names in _GROUPS.values() for name in names}
    assert grouped == set(tokpack.__all__), grouped ^ set(tokpack.__all__)
    parts = [_HEAD.rstrip()]
    for group, names in _GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            home = tokpack._HOME[name]
            node = _source("tokpack.ir.tokenizer" if home == "tokpack.ir" else home)[name]
            if isinstance(node, ast.ClassDef):
                parts += _class(node)
            else:
                parts += [f"### {name}", f"`tokpack.{_signature(node)}`", _prose(node)]
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
