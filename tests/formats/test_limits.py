"""Every limit, in every reader that it bounds: at what a file holds it passes, one below it is refused by name.

What the files hold is counted here, not by the readers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES, ROOT
from tests.hostile.gguf_builder import Key, gguf, vocabulary
from tests.pack.helpers import read_footer
from tokpack.errors import FormatError, UsageError
from tokpack.limits import DEFAULT, Limits, limits_of


@dataclass(frozen=True)
class Case:
    """A file, and what it holds.

    Attributes:
        path: makes or finds the file, given a folder for it.
        holds: name of a limit → the highest value that is refused plus one, given the path.
        options: of the reader.
        format: forced, or None.
    """

    path: Callable[[Path], Path]
    holds: Mapping[str, Callable[[Path], int]]
    options: Mapping[str, Any]
    format: str | None = None


def fixture(name: str) -> Callable[[Path], Path]:
    return lambda folder: FIXTURES / name


def size(path: Path) -> int:
    return path.stat().st_size


def levels(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(levels, value.values() if isinstance(value, dict) else value), default=0)


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def nesting(path: Path) -> int:
    return levels(document(path))


# --- the files ---

ARRAYS = Key("tokenizer.x", "[[[u8]]]", [[[1, 2]], [[3]]])
LONG_KEY = Key("k" * 300, "u8", 1)
TEMPLATE = "{{ messages }} é"
LONG_TEXT = Key("general.description", "str", "d" * 5000)
GGUF = (*vocabulary(), ARRAYS, LONG_KEY, LONG_TEXT, Key("tokenizer.chat_template", "str", TEMPLATE))


def value_of(name: str) -> Any:
    return next(key.value for key in GGUF if key.name == f"tokenizer.ggml.{name}")


def make_gguf(folder: Path) -> Path:
    path = folder / "x.gguf"
    path.write_bytes(gguf(list(GGUF)))
    return path


def make_folder(folder: Path) -> Path:
    (folder / "tokenizer.json").write_bytes((FIXTURES / "hf/llama3.json").read_bytes())
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"x": [[[[[[[[[[[[1]]]]]]]]]]]]}', encoding="utf-8")
    return folder


def make_pack(folder: Path, ending: str = ".tokpack") -> Path:
    target = folder / f"x{ending}"
    tokpack.convert(FIXTURES / "demo.gguf", target)
    return target


def make_body(folder: Path) -> Path:
    whole = make_pack(folder, ".mtok")
    path = folder / "body.mtok"
    path.write_bytes(whole.read_bytes()[: read_footer(whole.read_bytes())["body_length"]])
    return path


def demo_pieces(path: Path) -> list[bytes]:
    return [piece for piece in tokpack.read(FIXTURES / "demo.gguf").vocab.pieces if piece is not None]


def section(name: str) -> Callable[[Path], int]:
    def length(path: Path) -> int:
        import msgpack

        data = path.read_bytes()
        footer = read_footer(data)
        table = msgpack.unpackb(data[footer["table_offset"] :][: footer["table_length"]])
        return int(table[name][1])

    return length


def json_pieces(path: Path) -> int:
    found = document(path)
    return 1 + max(*found["model"]["vocab"].values(), *(token["id"] for token in found["added_tokens"]))


def json_longest(path: Path) -> int:
    found = document(path)
    return max(
        len(text.encode()) for text in (*found["model"]["vocab"], *(t["content"] for t in found["added_tokens"]))
    )


def json_pattern(path: Path) -> int:
    return len(document(path)["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"].encode())


def rank_lines(path: Path) -> list[list[bytes]]:
    return [line.split() for line in path.read_bytes().splitlines() if line]


def spm_fields(path: Path) -> tuple[list[bytes], list[bytes]]:
    """(texts of the pieces, texts and blobs of trainer and normalizers), by a reader of its own."""
    from tests.hostile.mutate import _fields

    pieces, texts = [], []
    for number, wire, value in _fields(path.read_bytes()) or []:
        inner = _fields(value) if wire == 2 else None
        for field, kind, content in inner or []:
            if kind == 2:
                (pieces if number == 1 and field == 1 else texts).append((number, field, content))
    decides = {(2, field) for field in (44, 45, 46, 47, 48)} | {(part, field) for part in (3, 5) for field in (1, 2)}
    return [c for _, _, c in pieces], [c for number, field, c in texts if (number, field) in decides]


def tekken_entries(path: Path) -> tuple[int, int]:
    """(the larger of pieces and special tokens, bytes of the longest)."""
    found = document(path)
    count = found["config"]["default_num_special_tokens"]
    used = found["vocab"][: found["config"]["default_vocab_size"] - count]
    texts = [b64decode(entry["token_bytes"]) for entry in used]
    specials = [entry["token_str"] for entry in found.get("special_tokens") or ()]
    specials += [f"<SPECIAL_{number}>" for number in range(len(specials), count)]
    return max(len(found["vocab"]), count), max(map(len, [*texts, *(text.encode() for text in specials)]))


def text_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")


def text_longest(path: Path) -> int:
    return max(len(b64decode(line.split(b" ")[0])) for line in text_lines(path)[4:] if line)


SPECIALS = str(FIXTURES / "tiktoken/specials.json")
PATTERN = r"\w+|[^\w\s]+|\s+"
RANKS = {"pattern": PATTERN, "special_tokens": "none"}

CASES = {
    "gguf": Case(
        make_gguf,
        {
            "pieces": lambda path: len(value_of("tokens")),
            "piece_bytes": lambda path: max(len(text.encode()) for text in value_of("tokens")),
            "merges": lambda path: len(value_of("merges")),
            "keys": lambda path: len(GGUF),
            "key_bytes": lambda path: 300,
            "string_bytes": lambda path: 5000,
            "array_items": lambda path: len(value_of("tokens")),
            "nesting": lambda path: 3,
            "template_bytes": lambda path: len(TEMPLATE.encode()),
        },
        {},
    ),
    "tokenizer.json": Case(
        fixture("hf/llama3.json"),
        {
            "file_bytes": size,
            "pieces": json_pieces,
            "piece_bytes": json_longest,
            "merges": lambda path: len(document(path)["model"]["merges"]),
            "json_nesting": nesting,
            "pattern_bytes": json_pattern,
        },
        {},
    ),
    "tokenizer.json of Unigram": Case(
        fixture("hf/unigram-bytes.json"),
        {
            "pieces": lambda path: len(document(path)["model"]["vocab"]),
            "piece_bytes": lambda path: max(len(row[0].encode()) for row in document(path)["model"]["vocab"]),
        },
        {},
    ),
    "folder": Case(
        make_folder,
        {
            "template_bytes": lambda path: len(TEMPLATE.encode()),
            "json_nesting": lambda path: nesting(path / "tokenizer_config.json"),
        },
        {},
    ),
    "sentencepiece": Case(
        fixture("sentencepiece/rules.model"),
        {
            "file_bytes": size,
            "pieces": lambda path: len(spm_fields(path)[0]),
            "piece_bytes": lambda path: max(map(len, spm_fields(path)[0])),
            "string_bytes": lambda path: max(map(len, spm_fields(path)[1])),
        },
        {},
    ),
    "tiktoken": Case(
        fixture("tiktoken/plain.tiktoken"),
        {
            "file_bytes": size,
            "pieces": lambda path: len(rank_lines(path)),
            "piece_bytes": lambda path: max(len(b64decode(line[0])) for line in rank_lines(path)),
            "pattern_bytes": lambda path: len(PATTERN),
        },
        RANKS,
    ),
    "tiktoken with gaps": Case(
        fixture("tiktoken/gaps.tiktoken"),
        {"pieces": lambda path: 1 + max(int(line[1]) for line in rank_lines(path))},
        RANKS,
    ),
    "special tokens": Case(
        fixture("tiktoken/plain.tiktoken"),
        {"json_nesting": lambda path: nesting(Path(SPECIALS))},
        {"pattern": PATTERN, "special_tokens": SPECIALS},
    ),
    "special tokens as a map": Case(
        fixture("tiktoken/plain.tiktoken"),
        {"piece_bytes": lambda path: 400},
        {"pattern": PATTERN, "special_tokens": {"<" + "s" * 399: 100_000}},
    ),
    "tekken": Case(
        fixture("tiktoken/tekken-v13.json"),
        {
            "file_bytes": size,
            "pieces": lambda path: tekken_entries(path)[0],
            "piece_bytes": lambda path: tekken_entries(path)[1],
            "json_nesting": nesting,
            "pattern_bytes": lambda path: len(document(path)["config"]["pattern"].encode()),
        },
        {},
    ),
    **{
        f"mnn-txt {name}": Case(
            fixture(f"mnn/{name}.txt"),
            {
                "file_bytes": size,
                "pieces": lambda path: int(text_lines(path)[3]),
                "piece_bytes": text_longest,
            },
            {},
        )
        for name in ("sentencepiece", "tiktoken", "bert")
    },
    "mnn-txt huggingface": Case(
        fixture("mnn/huggingface.txt"),
        {
            "file_bytes": size,
            "pieces": lambda path: int(text_lines(path)[3].split()[0]),
            "merges": lambda path: int(text_lines(path)[3].split()[1]),
            "piece_bytes": lambda path: max(
                map(len, text_lines(path)[4 : 4 + int(text_lines(path)[3].split()[0])]), default=0
            ),
        },
        {},
    ),
    "mtok": Case(
        make_body,
        {
            "file_bytes": size,
            "pieces": lambda path: len(demo_pieces(path)),
            "merges": lambda path: len(tokpack.read(FIXTURES / "demo.gguf").model.merges),  # type: ignore[union-attr]
            "template_bytes": lambda path: len(tokpack.read(FIXTURES / "demo.gguf").chat_templates["default"].encode()),
            "piece_bytes": lambda path: max(map(len, demo_pieces(path))),
        },
        {},
    ),
    "mnn": Case(fixture("mnn/unigram.mtok"), {"file_bytes": size}, {"engine": "head"}, "mnn"),
    "pack": Case(make_pack, {"pieces": section("piece.types"), "meta_bytes": section("meta")}, {}),
    "mtok with an index": Case(
        lambda folder: make_pack(folder, ".mtok"),
        {"pieces": lambda path: len(demo_pieces(path)), "meta_bytes": section("meta")},
        {},
    ),
}
TRIED = [(name, limit) for name, case in CASES.items() for limit in case.holds]


@pytest.mark.parametrize(("name", "limit"), TRIED)
def test_a_limit_refuses_what_is_above_it_and_nothing_else(name: str, limit: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.path(tmp_path)
    held = case.holds[limit](path)
    assert 0 < held <= getattr(DEFAULT, limit)
    plain = tokpack.read(path, case.format, **case.options)
    assert tokpack.read(path, case.format, limits={limit: held}, **case.options).vocab.pieces == plain.vocab.pieces
    for call in (tokpack.read, tokpack.load):
        with pytest.raises(FormatError) as caught:
            call(path, case.format, limits={limit: held - 1}, **case.options)  # type: ignore[operator]
        assert str(held - 1) in caught.value.what
        assert f"--max {limit}=NUMBER" in str(caught.value)
        assert f'limits={{"{limit}": NUMBER}}' in str(caught.value)
        assert caught.value.location.file is not None


def test_every_limit_bounds_something() -> None:
    assert {limit for _, limit in TRIED} == {field.name for field in fields(Limits)}


def test_every_format_that_is_read_is_tried(tmp_path: Path) -> None:
    from tokpack import api, formats

    tried = set()
    for number, case in enumerate(CASES.values()):
        (tmp_path / str(number)).mkdir()
        tried.add(api.source_format(case.path(tmp_path / str(number)), case.format).name)
    assert tried >= {entry.name for entry in formats._BUILT_IN if entry.reads}


# --- what is no limit ---


@pytest.mark.parametrize("name", ["gguf", "tokenizer.json", "sentencepiece", "tiktoken", "tekken", "mtok", "pack"])
def test_unknown_names_are_refused_with_the_one_that_may_be_meant(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = case.path(tmp_path)
    for call in (tokpack.read, tokpack.load):
        with pytest.raises(UsageError, match=r"no limit 'peices' \(did you mean pieces\?\)"):
            call(path, limits={"peices": 10}, **case.options)  # type: ignore[operator]


@pytest.mark.parametrize("value", [-1, 1.5, "7", None, True, [1]])
def test_values_that_are_no_numbers(value: Any) -> None:
    with pytest.raises(UsageError, match="'pieces'"):
        limits_of({"pieces": value})


def test_what_is_no_map() -> None:
    for given in (7, "pieces=7", ["pieces"]):
        with pytest.raises(UsageError, match="limits are no"):
            limits_of(given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="limits: file_bytes, pieces"):
        limits_of({"zzzzzzz": 1})
    assert limits_of(Limits(pieces=7)) == limits_of({"pieces": 7})
    assert tokpack.read(FIXTURES / "no-types.gguf", limits=None).vocab.pieces


def test_converting_takes_limits(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="--max merges"):
        tokpack.convert(FIXTURES / "demo.gguf", tmp_path / "x.mtok", read_options={"limits": {"merges": 10}})
    assert not list(tmp_path.iterdir())


# --- the command line ---


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tokpack", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)


@pytest.mark.parametrize(
    "command", [("inspect",), ("vocab",), ("encode", "--text", "a"), ("decode", "1"), ("explain", "--text", "a")]
)
def test_commands_take_limits(command: tuple[str, ...]) -> None:
    done = run(command[0], "fixtures/demo.gguf", *command[1:], "--max", "pieces=2,000")
    assert done.returncode == 3
    assert "2001 pieces are above the limit of 2000" in done.stderr
    assert run(command[0], "fixtures/demo.gguf", *command[1:], "--max", "pieces=2_001").returncode == 0


def test_limits_on_the_command_line_that_are_none() -> None:
    for given, says in (
        ("merge=7", "no limit 'merge' (did you mean merges?)"),
        ("merges", "--max 'merges' is not NAME=NUMBER"),
        ("merges=-1", "not NAME=NUMBER"),
        ("merges=many", "not NAME=NUMBER"),
    ):
        done = run("inspect", "fixtures/demo.gguf", "--max", given)
        assert done.returncode == 2
        assert says in done.stderr, done.stderr
