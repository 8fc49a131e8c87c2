"""README and docs: every shown command runs and prints what is shown; every link and named file exists; what pages list
is what the code has."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL_PAGES = [
    *PAGES,
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "fixtures/README.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# blocks of kind `sh` set things up and are run by .ci/run on a clean clone, not here
SET_UP = re.compile(r"(pip install|python -m venv|pytest|ruff|git clone|python -m tests\.)")
_SHELL = re.compile(r"[|&;<>$`()*?]")


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (page_name(page), text)
        for page in PAGES
        for name, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if name == kind
    ]


def run(command: str, folder: Path) -> str:
    """What a command line prints, standard error included; ``tokpack`` at its beginning runs inside this process."""
    first, rest = command, ""
    bare = re.sub(r"'[^']*'|\"[^\"$`]*\"", lambda match: "_" * len(match[0]), command)
    found = re.match(r"tokpack [^|&;<>$`()*?]*(?=\| |; echo \"exit code \$\?\"$|$)", bare)
    if found is None:
        return _outside(command, folder, b"")
    first, rest = command[: found.end()], command[found.end() :]
    out, errors, code = _inside(shlex.split(first)[1:], folder, apart=rest.startswith("|"))
    if rest.startswith("|"):
        return errors + _outside(rest[1:], folder, out.encode())
    return out + (f"exit code {code}\n" if rest else "")


def _outside(command: str, folder: Path, given: bytes) -> str:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={"PATH": path, "LC_ALL": "C.UTF-8"},
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
    return done.stdout.decode()


def _inside(args: list[str], folder: Path, *, apart: bool) -> tuple[str, str, object]:
    """(standard output, standard error, exit code); both together in the first unless ``apart``."""
    from tokpack.cli.main import main

    raw, before, environment = (io.BytesIO(), io.BytesIO()), Path.cwd(), dict(os.environ)
    out, errors = (io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in raw)
    code = None
    for name in ("COLUMNS", "FORCE_COLOR", "TERM", "TTY_COMPATIBLE"):
        os.environ.pop(name, None)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors if apart else out):
            main(args)
    except SystemExit as error:
        code = error.code
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
    return raw[0].getvalue().decode(), raw[1].getvalue().decode(), code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    return tmp_path


WITH_COMMANDS = [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")]


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """(command, what it is shown to print) of each console block."""
    for name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if name != "console":
            continue
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert parts[0] == "", f"a console block starts with a command: {text!r}"
        for part in parts[1:]:
            command, _, expected = part.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = command[:-1] + more.lstrip("> ")
            yield command, expected


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
def test_commands_print_what_is_shown(page: Path, folder: Path) -> None:
    for command, expected in steps(page):
        assert run(command, folder) == expected, command


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
def test_commands_print_what_is_shown_in_a_shell(page: Path, folder: Path) -> None:
    """The same without the short cut of ``run``."""
    for command, expected in steps(page):
        assert _outside(command, folder, b"") == expected, command


def test_a_command_prints_the_same_inside_and_outside(folder: Path) -> None:
    """The short cut of ``run`` is none: screens of the width of no terminal, and commands that fail, included."""
    for command in (
        "tokpack convert -v -f fixtures/demo.gguf out.mtok",
        "tokpack inspect fixtures/spm.gguf | tail -n 3",
        "tokpack explain fixtures/demo.gguf --text 'Hello world'",
        "tokpack decode out.mtok 478 410",
        "tokpack vocab fixtures/demo.gguf --search é --csv | tail -n 1",
        'tokpack encode missing.gguf --text a; echo "exit code $?"',
    ):
        assert run(command, folder) == _outside(command, folder, b""), command


def shown_results(text: str) -> list[str]:
    """What comments say that ``print`` gives: behind it, or alone in the line below."""
    lines, found = text.splitlines(), []
    for at, line in enumerate(lines):
        if line.startswith("print("):
            behind = line.rpartition(")")[2].partition("# ")[2]
            found.append(behind or (lines[at + 1][2:] if lines[at + 1 : at + 2] else ""))
    return found


@pytest.mark.parametrize(("name", "text"), blocks("python"), ids=lambda value: value if value.endswith(".md") else "")
def test_python_examples(name: str, text: str, folder: Path) -> None:
    if "out.mtok" in text:
        run("tokpack convert -q fixtures/demo.gguf out.mtok", folder)
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (name, text, done.stderr)
    assert done.stdout.splitlines() == shown_results(text), (name, text)


def test_there_are_python_examples() -> None:
    assert {"README.md", "docs/recipes.md", "docs/ir.md"} <= {name for name, _ in blocks("python")}


def modules_with_doctests() -> list[str]:
    found = []
    for top, base in (("tokpack", ROOT / "tokpack"), ("tokpack.formats", ROOT / "formats")):
        for path in sorted(base.rglob("*.py")):
            if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE):
                parts = path.relative_to(base).with_suffix("").parts
                found.append(".".join([top, *(part for part in parts if part != "__init__")]))
    return found


@pytest.mark.parametrize("module", modules_with_doctests())
def test_doctests(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


def test_set_up_blocks_hold_known_commands_only() -> None:
    for name, text in blocks("sh"):
        for line in text.splitlines():
            assert SET_UP.search(line) or line.startswith("tokpack convert fixtures/"), (name, line)


def anchors(text: str) -> set[str]:
    """Names of headings as GitHub makes them."""
    text = BLOCK.sub("", text)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_name)
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", BLOCK.sub("", text)):
        if "://" in target:
            continue
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{target}#{anchor}"
    for target in re.findall(r"`((?:fixtures|docs|tokpack|formats|tests)/[\w./-]+)`", text):
        assert (ROOT / target).exists(), target
    for target in re.findall(r"\bfixtures/[\w./-]+\.(?:gguf|json|model|tiktoken|mtok|txt|npz|jsonl|py)\b", text):
        assert (ROOT / target).exists(), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, new = set(), [ROOT / "README.md"]
    while new:
        page = new.pop().resolve()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            text = page.read_text(encoding="utf-8")
            new += [page.parent / target for target in re.findall(r"\]\(([^)#:\s]+)", text)]
    assert {page_name(page) for page in ALL_PAGES} - {page_name(page) for page in seen} <= set()


def test_text_speaks_of_the_project_alone() -> None:
    for page in ALL_PAGES:
        text = page.read_text(encoding="utf-8")
        assert not any("internal fault" in block[1] for block in BLOCK.findall(text)), page_name(page)
        for word in (r"/work/", r"/home/", r"/tmp/", r"/root\b", r"\bTODO\b", r"\bissue #?\d", r"\b[Aa]ssistant\b"):
            assert not re.search(word, text), (page_name(page), word)


# --- finding codes ---

CODE = re.compile(r"(?:gguf|hf|mtok|ir|mnn|spm|tiktoken|tekken|verify)-[a-z0-9-]+")
# put together from a name
COMPOSED = {"gguf-bos-default", "gguf-eos-default", "mtok-padding", "mtok-truncation"}
COMPOSED |= {"mnn-normalizer", "mnn-pre-tokenizer", "mnn-decoder"}


def sources() -> Iterator[Path]:
    for name in ("tokpack", "formats"):
        yield from (ROOT / name).rglob("*.py")


def codes_in_the_code() -> set[str]:
    """Texts with the shape of a code, without the names of formats, steps and dialects."""
    from tokpack import formats
    from tokpack.ir import steps

    names = set(formats.all_formats()) | {item.value for item in steps.Dialect}
    names |= {cls.kind for cls in vars(steps).values() if isinstance(cls, type) and hasattr(cls, "kind")}
    names |= {f"tiktoken-{version}" for version in ("0.14",)}  # a set of character tables
    found = {
        node.value
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }
    return (found - names) | COMPOSED


def documented_codes() -> dict[str, str]:
    """Code → its severities as the page has them; empty where it is named in a sentence."""
    found: dict[str, str] = {}
    for line in read("docs/findings.md").splitlines():
        codes = re.findall(rf"`({CODE.pattern})`", line)
        row = re.match(r"\| (?:`[a-z0-9-]+`(?:, )?)+ \| ([a-z, ]+) \|", line)
        for code in codes if row is None else re.findall(rf"`({CODE.pattern})`", line.split("|")[1]):
            found[code] = row[1] if row else found.get(code, "")
    return found


def test_every_finding_code_is_documented_and_every_documented_one_exists() -> None:
    assert codes_in_the_code() == set(documented_codes())


def test_severities_are_documented() -> None:
    """Where a call names both a code and a severity, the page names the severity, too."""
    documented, seen = documented_codes(), 0
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            codes = [v.value for v in values if isinstance(v, ast.Constant) and v.value in documented]
            severities = [v.attr for v in values if isinstance(v, ast.Attribute) and ast.unparse(v.value) == "Severity"]
            if len(codes) == len(severities) == 1:
                seen += 1
                assert severities[0].lower() in documented[codes[0]], (path.name, codes[0], severities[0])
    assert seen > 50


# --- other lists ---


def test_exit_codes_are_documented() -> None:
    from tokpack.cli.main import EXIT_CODES

    for page in ("README.md", "docs/cli.md"):
        text = read(page)
        for number, meaning in EXIT_CODES.items():
            assert f"| {number} | {meaning} |" in text, page
        assert len(re.findall(r"^\| \d+ \| ", text.partition("## Exit codes")[2].partition("\n## ")[0], re.M)) == len(
            EXIT_CODES
        )


def test_every_section_of_the_index_is_documented() -> None:
    from tokpack.pack.layout import SECTIONS

    named = set(re.findall(r"`([a-z0-9]+(?:\.[a-z0-9_]+)*)`", read("docs/formats/index-format.md")))
    assert set(SECTIONS) <= named
    assert {name for name in named if name.split(".")[0] in {"mnn", "bulk", "merge", "piece", "added"}} - set(
        SECTIONS
    ) <= {"mnn"}


def test_formats_are_documented() -> None:
    from tokpack import formats

    text = read("README.md").partition("## What is read and written")[2].partition("\n## ")[0]
    for name in formats.all_formats():
        word = {"mnn": "without an index", "mnn-txt": "tokenizer.txt", "sentencepiece": "SentencePiece"}.get(name, name)
        assert word in text or word.upper() in text, name
    assert text.count("| ●") >= sum(entry.reads for entry in formats.all_formats().values())


def test_every_fixture_is_told() -> None:
    text = read("fixtures/README.md")
    for path in sorted((ROOT / "fixtures").rglob("*")):
        if path.suffix in {".gguf", ".model", ".tiktoken", ".mtok", ".json", ".txt"} and path.parent.name not in (
            "golden",
            "chat",
        ):
            assert path.name.startswith("refused-") or f"`{path.stem}`" in text or path.name in text, path


def test_the_house_has_every_package() -> None:
    """CONTRIBUTING's house has every package."""
    text = read("CONTRIBUTING.md")
    for init in (ROOT / "tokpack").rglob("__init__.py"):
        folder = init.parent.relative_to(ROOT).as_posix()
        if folder.count("/") == 1:
            assert f"`{folder}/`" in text, folder
