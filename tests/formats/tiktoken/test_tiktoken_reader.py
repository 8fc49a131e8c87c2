"""Reading rank files and tekken.json: options, refusals, and files that are damaged or hostile."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES, SharedData
from tests.hostile.guard import limit
from tokpack.errors import EncodeError, FormatError, RefusedError, TokpackError, UnsupportedError, UsageError
from tokpack.formats.tiktoken import ranks, tekken
from tokpack.pack.build import build_pack

HERE = FIXTURES / "tiktoken"
PLAIN = (HERE / "plain.tiktoken").read_bytes()
TEKKEN = json.loads((HERE / "tekken-v13.json").read_bytes())
ANY = r"(?s:.)"


def codes(ir: Any) -> set[str]:
    return {finding.code for finding in ir.findings}


def test_without_a_pattern_the_vocabulary_can_be_looked_at() -> None:
    ir = tokpack.read(HERE / "plain.tiktoken")
    assert codes(ir) == {"tiktoken-no-pattern"}
    assert ir.vocab.pieces[65] == b"A"
    build_pack(ir)
    with pytest.raises(RefusedError, match="cl100k_base") as caught:
        tokpack.load(HERE / "plain.tiktoken")
    assert caught.value.code == "tiktoken-no-pattern"
    allowed = tokpack.load(HERE / "plain.tiktoken", allow={"tiktoken-no-pattern"})
    assert allowed.decode(allowed.encode("one word\n\nof all")) == "one word\n\nof all"


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("qwen", "vocabulary of qwen;"),
        ("llama3", "of llama3 or llama3.1;"),
        ("r50k_base", "gpt2 or r50k_base or whisper"),
    ],
)
def test_the_refusal_says_which_encoding_fits(name: str, fits: str, shared_data: SharedData) -> None:
    with pytest.raises(RefusedError) as caught:
        tokpack.load(shared_data(f"data/tiktoken/{name}.tiktoken"))
    assert fits in str(caught.value)
    assert ", by its size" not in str(caught.value)


def test_a_named_encoding_of_another_size() -> None:
    path = HERE / "plain.tiktoken"
    with pytest.raises(RefusedError, match="100256 ranks") as caught:
        tokpack.load(path, pattern="cl100k_base")
    assert caught.value.code == "tiktoken-other-vocabulary"
    assert tokpack.load(path, pattern="cl100k_base", special_tokens="none").encode("the") != []


@pytest.mark.parametrize("name", ["cl100k", "no_such.name", "abc"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UsageError, match="o200k_base"):
        tokpack.load(HERE / "plain.tiktoken", pattern=name)


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        (r"\p{L}+(?=", RefusedError),
        (r"(a)\1", UnsupportedError),
        (r"(?<name>a)", UnsupportedError),
        (r"a\Kb", UnsupportedError),
        (r"[a--b]", UnsupportedError),
        (r"a(?i)b", UnsupportedError),
        (r"\p{NoSuch}", UnsupportedError),
        (r"(?<=a+)b", UnsupportedError),
        ("*a", RefusedError),
        ("(" * 5000 + ")" * 5000, UnsupportedError),
        ("[" * 5000, UnsupportedError),
        ("a{99999999999}", UnsupportedError),
    ],
)
def test_patterns_that_are_not_translated(pattern: str, error: type[RefusedError]) -> None:
    with pytest.raises(error, match="at character"):
        tokpack.load(HERE / "plain.tiktoken", pattern=pattern)


SPECIALS: list[tuple[Any, type[TokpackError]]] = [
    ({"x": 3}, RefusedError),
    ({"x": 700, "y": 700}, RefusedError),
    ({"x": 1 << 30}, RefusedError),
    ({"x": -1}, FormatError),
    ({"x": True}, FormatError),
    ({"x": 1 << 70}, FormatError),
    ({"": 700}, FormatError),
    ({"\ud800": 700}, FormatError),
]


@pytest.mark.parametrize(("special", "error"), SPECIALS)
def test_special_tokens_that_are_refused(special: dict[str, int], error: type[TokpackError]) -> None:
    with pytest.raises(error):
        tokpack.load(HERE / "plain.tiktoken", pattern=ANY, special_tokens=special)


@pytest.mark.parametrize(
    "content",
    [
        {"<x>": 700},
        [{"id": 700, "content": "<x>", "special": True}],
        {"added_tokens": [{"id": 700, "content": "<x>"}]},
        {"added_tokens_decoder": {"700": {"content": "<x>"}}, "other": 1},
    ],
)
def test_special_tokens_in_a_file(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "special.json"
    path.write_text(json.dumps(content))
    tokenizer = tokpack.load(HERE / "plain.tiktoken", pattern=ANY, special_tokens=str(path))
    assert tokenizer.encode("a<x>") == [97, 700]
    assert tokenizer.decode([700]) == ""
    assert tokenizer.decode([700], False) == "<x>"
    assert tokenizer.is_special(700)


@pytest.mark.parametrize(
    "content", ["[]]", "7", '{"a": "b"}', "[1]", '[{"id": 1}]', '{"added_tokens_decoder": {"x": {}}}']
)
def test_special_tokens_in_a_bad_file(content: str, tmp_path: Path) -> None:
    path = tmp_path / "special.json"
    path.write_text(content)
    with pytest.raises(FormatError):
        tokpack.load(HERE / "plain.tiktoken", pattern=ANY, special_tokens=str(path))


def test_a_special_token_that_is_a_piece_too() -> None:
    """Its text is the piece for merging and looking up, its id the special token where these are parsed."""
    tokenizer = tokpack.load(HERE / "plain.tiktoken", pattern=ANY, special_tokens={"a": 700})
    assert tokenizer.encode("a") == [700]
    assert tokenizer.encode("a", parse_special=False) == [97]
    assert tokenizer.token_to_id("a") == 97


def test_a_single_byte_that_is_only_a_special_token(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"YWI= 0\n")
    tokenizer = tokpack.load(path, pattern=r"(?s:.+)", special_tokens={"a": 1})
    assert tokenizer.encode("ab", parse_special=False) == [0]
    with pytest.raises(EncodeError, match="0x61"):
        tokenizer.encode("aab", parse_special=False)


BAD_LINES: list[tuple[bytes, str]] = [
    (b"", "no ranks"),
    (b"\n\n", "no ranks"),
    (PLAIN + b"Zm9v\n", "1 fields"),
    (PLAIN + b"Zm9v 1 2\n", "3 fields"),
    (PLAIN + b"Zm9v x\n", "no|not a rank|is not"),
    (PLAIN + b"Zm9v -1\n", "is not a rank"),
    (PLAIN + b"Zm9v 1e3\n", "is not a rank"),
    (PLAIN + b"Zm9v 1000000000000000000\n", "is not a rank"),
    (PLAIN + b"Zm9v 99999999\n", "in a file of"),
    (PLAIN + b"Zm9 900\n", "cut off"),
    (PLAIN + b"Zm9* 900\n", "base64"),
    (PLAIN + b"AA== 900\n", "two ranks"),
    (PLAIN + b"Zm9vYmFy 3\n", "rank 3 occurs twice"),
    (b"\x00\xff" * 100, "no piece and rank"),
]


@pytest.mark.parametrize(("data", "reason"), BAD_LINES)
def test_bad_lines_are_named(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        ranks.read_bytes(data, "x.tiktoken", ANY)
    assert caught.value.location.offset is not None


def test_the_raw_spelling_is_a_finding() -> None:
    assert "tiktoken-raw-spelling" in codes(tokpack.read(HERE / "raw.tiktoken", "tiktoken", pattern=ANY))


def read_all(data: bytes, read: Callable[..., Any]) -> str:
    try:
        ir = read(data)
        build_pack(ir)
    except TokpackError as error:
        return type(error).__name__
    return "read"


@pytest.mark.parametrize("spelling", ["base64", "raw"])
def test_truncated_and_damaged_rank_files(spelling: str) -> None:
    data = PLAIN[:2000] if spelling == "base64" else (HERE / "raw.tiktoken").read_bytes()[:1500]
    with limit(60):
        for end in range(0, len(data), 3):
            read_all(data[:end], lambda raw: ranks.read_bytes(raw, None, ANY))
        rnd = random.Random(5)
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(rnd.randrange(1, 5)):
                changed[rnd.randrange(len(changed))] = rnd.randrange(256)
            read_all(bytes(changed), lambda raw: ranks.read_bytes(raw, None, ANY))


def test_many_prefixes_take_bounded_time() -> None:
    """Pieces a, aa, aaa, …: every cut of every piece is a merge."""
    data = b"".join(base64.b64encode(b"a" * n) + b" %d\n" % n for n in range(1, 800))
    with limit(30):
        build_pack(ranks.read_bytes(data, None, ANY))


CHANGES: list[tuple[str, Callable[[dict[str, Any]], Any], type[TokpackError]]] = [
    ("version", lambda d: d["config"].update(version="v99"), UnsupportedError),
    ("no config", lambda d: d.pop("config"), FormatError),
    ("no pattern", lambda d: d["config"].pop("pattern"), FormatError),
    ("pattern", lambda d: d["config"].update(pattern=5), FormatError),
    ("size", lambda d: d["config"].update(default_vocab_size=10**9), TokpackError),
    ("small size", lambda d: d["config"].update(default_vocab_size=3), RefusedError),
    ("huge size", lambda d: d["config"].update(default_vocab_size=10**30), FormatError),
    ("negative", lambda d: d["config"].update(default_num_special_tokens=-1), FormatError),
    ("many specials", lambda d: d["config"].update(default_num_special_tokens=10**8), FormatError),
    ("too few", lambda d: d["config"].update(default_num_special_tokens=2), RefusedError),
    ("no specials", lambda d: d.pop("special_tokens"), RefusedError),
    ("twice", lambda d: d["special_tokens"].append({"rank": 6, "token_str": "<s>"}), RefusedError),
    ("filler", lambda d: d["special_tokens"].append({"rank": 6, "token_str": "<SPECIAL_8>"}), RefusedError),
    ("order", lambda d: d["special_tokens"].reverse(), RefusedError),
    ("special type", lambda d: d.update(special_tokens=[7]), FormatError),
    ("rank", lambda d: d["vocab"][300].update(rank=3), FormatError),
    ("byte", lambda d: d["vocab"][7].update(token_bytes="AA=="), FormatError),
    ("base64", lambda d: d["vocab"][300].update(token_bytes="*"), FormatError),
    ("bytes type", lambda d: d["vocab"][300].update(token_bytes=None), FormatError),
    ("entry key", lambda d: d["vocab"][300].update(more=1), FormatError),
    ("entry", lambda d: d["vocab"].__setitem__(0, None), FormatError),
    ("same piece", lambda d: d["vocab"][300].update(token_bytes="AA=="), FormatError),
    ("settings", lambda d: d.update(model_settings_builder={}), RefusedError),
    ("multimodal", lambda d: d.update(multimodal={"a": 1}), RefusedError),
]


@pytest.mark.parametrize(("change", "error"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_tekken_that_is_refused(change: Callable[[dict[str, Any]], Any], error: type[TokpackError]) -> None:
    data = json.loads(json.dumps(TEKKEN))
    change(data)
    with pytest.raises(error) as caught:
        tekken.read_bytes(json.dumps(data).encode(), "tekken.json")
    assert caught.value.location.file == "tekken.json"


def test_tekken_keeps_what_it_does_not_use() -> None:
    data = {**TEKKEN, "audio": {"a": [1]}, "odd": 10**30}
    ir = tekken.read_bytes(json.dumps(data).encode())
    assert ir.extras["image"] == ["json", TEKKEN["image"]]
    assert set(ir.extras) == {"image", "audio", "odd"}
    assert codes(ir) == {"tekken-unknown-key"}


def test_tekken_truncated() -> None:
    data = (HERE / "tekken-v13.json").read_bytes()
    with limit(60):
        for end in range(0, len(data), 401):
            with pytest.raises(FormatError):
                tekken.read_bytes(data[:end])
        for text in (b"[" * 10**5, b'{"config":' * 10**4, b"null", b"[]", b"\xff"):
            with pytest.raises(FormatError):
                tekken.read_bytes(text)


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(PLAIN)
    assert tokpack.read(path, pattern=ANY).source.format == "tiktoken"
    path.write_bytes((HERE / "tekken-v3.json").read_bytes())
    assert tokpack.read(path).source.format == "tekken"
    path.write_bytes((HERE / "shuffled.tiktoken").read_bytes().lstrip())
    assert tokpack.read(path, pattern=ANY).source.format == "tiktoken"
