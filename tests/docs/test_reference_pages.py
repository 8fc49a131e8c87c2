"""Pages that list what the code has: limits, the intermediate representation, the generated ones."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

import tokpack.ir
from tests.conftest import ROOT
from tests.docs import make_api, make_cli, make_man
from tests.docs.commands import commands
from tokpack.ir import steps


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("maker", [make_cli, make_man, make_api], ids=lambda maker: maker.__name__)
def test_generated_pages_are_up_to_date(maker: ModuleType) -> None:
    assert maker.PAGE.read_text(encoding="utf-8") == maker.page(), f"python -m {maker.__name__} makes it"


def test_cli_page_has_every_command_and_flag() -> None:
    """By click's own lists, not by those that the page was made from."""
    import click

    from tokpack.cli.main import cli

    text, context = read("cli.md"), click.Context(cli)
    for name in cli.list_commands(context):
        section = text.partition(f"## tokpack {name}\n")[2].partition("\n## ")[0]
        command = cli.get_command(context, name)
        assert section, name
        assert command is not None
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                if flag.startswith("-"):
                    assert re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", section), (name, flag)


def test_help_fits_a_screen_and_shows_an_example() -> None:
    from click.testing import CliRunner

    from tokpack.cli.main import cli

    for command in commands():
        args = [command.name, "--help"] if command.name else ["--help"]
        lines = CliRunner().invoke(cli, args, prog_name="tokpack", env={"COLUMNS": "80"}).output.splitlines()
        # vocab has a line for each of its filters
        assert len(lines) <= (36 if command.name == "vocab" else 30), command.name
        assert max(map(len, lines)) <= 80, command.name
        assert any(line.startswith(f"  tokpack {command.name}".rstrip() + " ") for line in lines) or (
            command.name == "formats" and "  tokpack formats" in lines
        ), command.name


def test_every_option_has_a_help_text() -> None:
    for command in commands():
        assert all(text.endswith((".", "…")) for _, text in command.options), command.name


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_man_page_is_good_roff() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(make_man.PAGE)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    plain = re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout)
    for word in ("tokpack convert [OPTIONS] SOURCE TARGET", "--no-parse-special", "EXIT STATUS"):
        assert word in plain


# --- limits ---


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_limits_page_has_the_numbers_of_the_code() -> None:
    from tokpack import limits
    from tokpack.analysis.explanation import TEXT_LIMIT
    from tokpack.formats.hf.json import MAX_DEPTH
    from tokpack.pack.layout import META_LIMIT, TABLE_LIMIT

    expected = {field.name: getattr(limits.DEFAULT, field.name) for field in fields(limits.Limits)}
    expected |= {"MAX_DEPTH": MAX_DEPTH, "META_LIMIT": META_LIMIT, "TABLE_LIMIT": TABLE_LIMIT, "TEXT_LIMIT": TEXT_LIMIT}
    expected |= {name: getattr(limits, name) for name in limits.__all__ if name.isupper() and name != "DEFAULT"}
    page = read("limits.md").partition("## Patterns")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([\d.,]+) \|", page, re.MULTILINE)
    assert {name: number(value) for name, value in rows} == expected


LIMIT = re.compile(r"_?MAX_[A-Z]+|_DEEPEST|_NESTING|_STEPS(_PER_CHAR)?|_NODES|_MOST_NODES|_VARIABLE|_ROOM|_DEPTH")
NO_LIMITS = {"_MAX_CODE", "MAX_RANK", "MAX_DEPTH"}  # of Unicode, of the engine; the last is in the table above


def constants(path: Path) -> dict[str, float]:
    """Numbers that a module names, such as ``_ROOM = 1 << 16``."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            source = ast.unparse(node.value)
            if re.fullmatch(r"[\d\s<*x_a-fA-F.]+", source):
                found[node.targets[0].id] = eval(source)
    return found


def test_fixed_limits_page_has_the_numbers_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.,]+) \| `([\w/.]+)` \|", read("limits.md"), re.MULTILINE)
    named = {(path, name): number(value) for name, value, path in rows}
    assert len(named) > 30
    for (path, name), value in named.items():
        assert constants(ROOT / path).get(name) == value, (path, name)
    folders = (ROOT / "tokpack/onig", ROOT / "tokpack/runtime", ROOT / "tokpack/pack", ROOT / "formats")
    for file in (file for folder in folders for file in folder.rglob("*.py")):
        for name in constants(file):
            if LIMIT.fullmatch(name) and name not in NO_LIMITS:
                assert (file.relative_to(ROOT).as_posix(), name) in named, (file, name)


# --- the intermediate representation ---


def kind_of(cls: type) -> str | None:
    """The name of a step or model; other classes have none, or a field of that name."""
    kind = getattr(cls, "kind", None)
    return kind if isinstance(kind, str) else None


def ir_classes() -> list[type]:
    found = [*vars(tokpack.ir).values(), *vars(steps).values()]
    return [item for item in found if isinstance(item, type) and hasattr(item, "__dataclass_fields__")]


def test_ir_page_names_every_class_field_and_kind() -> None:
    named = set(re.findall(r"`(\w[\w-]*)`", read("ir.md")))
    for cls in ir_classes():
        names = {field.name for field in fields(cls)}
        kind = kind_of(cls)
        if kind is None:
            assert cls.__name__ in read("ir.md"), cls
        else:
            assert kind in named, kind
        assert names <= named, (cls.__name__, names - named)


def test_ir_page_gives_each_kind_its_own_fields() -> None:
    rows = [line.split(" | ") for line in read("ir.md").splitlines() if re.match(r"\| `[\w-]+`(, `[\w-]+`)* \| ", line)]
    table = {kind: set(re.findall(r"`(\w+)`", row[1])) for row in rows for kind in re.findall(r"`([\w-]+)`", row[0])}
    for cls in ir_classes():
        kind = kind_of(cls)
        if kind is not None and kind != "template-item":
            assert table[kind] - {"template-item", "sequence", "ids", "type_id"} == {
                field.name for field in fields(cls)
            }, kind


def test_ir_page_names_every_dialect_behaviour_and_rule() -> None:
    from tokpack.ir import AlphabetKind, MatchingRule
    from tokpack.ir.patterns import Behavior, Dialect

    text = read("ir.md")
    for values in (Behavior, Dialect, AlphabetKind, MatchingRule):
        for item in values:
            assert item.value in text, item


# --- components of the formats ---


def test_format_pages_name_what_the_readers_know() -> None:
    from tokpack.formats.gguf.rules import pre_names, rules
    from tokpack.formats.gguf.vocab import ROLE_KEYS
    from tokpack.formats.hf import decoders, models, normalizers, pre_tokenizers
    from tokpack.formats.tiktoken.encodings import names

    gguf, hf, ranks = read("formats/gguf.md"), read("formats/tokenizer-json.md"), read("formats/tiktoken.md")
    assert f"{len(pre_names())} names" in gguf
    for model in rules()["models"]:
        assert f"`{model}`" in gguf, model
    for key in (key for keys in ROLE_KEYS.values() for key in keys):
        assert key in gguf, key
    for family in (normalizers._FAMILY, pre_tokenizers._FAMILY, decoders._FAMILY):
        for component in family.tagged:
            assert f"`{component}`" in hf or f"`{component}Normalizer`" in hf, component
    for component in models._READERS:
        assert f"`{component}`" in hf, component
    for name in names():
        assert f"`{name}`" in ranks, name


def test_exactness_page_adds_up() -> None:
    """The sums are those of the rows, and every file that there are recorded answers for has a row."""
    from tests.docs import make_exactness
    from tests.golden import test_huggingface, test_llamacpp, test_mnn, test_sentencepiece, test_tiktoken

    page = read("exactness.md")
    made = page.partition(make_exactness.BEGIN)[2].partition(make_exactness.END)[0]
    assert re.match(r"\s*(A whole run: every recorded text\.|A sampled run: \d+ texts of each file)", made)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in made.splitlines() if line[:1] == "|"]
    rows = [row for row in cells if row[2][:1].isdigit()]
    sums = {row[0]: [int(number(cell)) for cell in row[1:]] for row in rows if row[1].isdigit()}
    files = [row for row in rows if not row[1].isdigit()]
    for group, expected in sums.items():
        some = [[int(number(cell)) for cell in row[2:]] for row in files if row[0] == group]
        assert expected == [len(some), *map(sum, zip(*some, strict=True))]
    names = {(group, name) for group, name, *_ in files}
    wanted = {
        "tokenizers": test_huggingface.NAMES,
        "sentencepiece": test_sentencepiece.REAL,
        "MNN": test_mnn.NAMES,
        "tiktoken": test_tiktoken.OPTIONS,
        "llama.cpp": test_llamacpp.VOCABULARIES,
    }
    assert {(group, name) for group, some in wanted.items() for name in some} <= names


def test_terms_are_in_order() -> None:
    heads = re.findall(r"^## (.*)$", read("terms.md"), re.MULTILINE)
    assert heads == sorted(heads, key=str.lower)
    assert set(LINKED) <= {head.lower().replace(" ", "-") for head in heads}


LINKED = ("added-token", "byte-fallback", "charsmap", "merge-rank", "pack", "piece", "pre-tokenizer", "reference")
USING = ("../README.md", "recipes.md", "ir.md", "formats/README.md", "formats/gguf.md", "formats/sentencepiece.md")


@pytest.mark.parametrize("page", USING)
def test_terms_are_linked_where_a_page_first_uses_them(page: str) -> None:
    """In running text: code and headings do not count."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`|^#[^\n]*$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    for term in LINKED:
        word = term.replace("-", "[- ]")
        first = re.search(rf"(?<![\w-]){word}s?(?![\w-])", text, re.IGNORECASE)
        if first is not None:
            behind = text[first.start() :].split("\n", 1)[0]
            assert re.match(rf"[\w -]+\]\((?:\.\./)*(?:docs/)?terms\.md#{term}\)", behind), (term, behind[:80])
