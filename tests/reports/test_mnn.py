"""MNN's files: what a conversion must keep or report, and what a reader must not believe."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import ROOT
from tests.hostile.gguf_builder import CONTROL, NORMAL, Key, byte_chars
from tests.hostile.guard import exercise, limit
from tests.reports.asking import HF, LLAMA, Case, each, said, texts
from tests.reports.small import (
    BYTE_LEVEL,
    added,
    byte_bpe,
    char_bpe,
    file_of,
    gguf_bpe,
    hf,
    metaspace,
    precompiled,
    unigram,
)  # fmt: skip
from tokpack.errors import FormatError, LossError, TokpackError
from tokpack.findings import Finding, Severity
from tokpack.pack.view import find_footer

BYTES = BYTE_LEVEL | {"use_regex": False}
AROUND: dict[str, Any] = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL}


def split(pattern: str) -> dict[str, Any]:
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [step, BYTES]}, "decoder": BYTE_LEVEL}


def hi(scheme: str) -> bytes:
    model = char_bpe(["▁hi", "hi"], ["<unk>", "▁", "<s>"], unk_token="<unk>")
    return hf(model, pre_tokenizer=metaspace(scheme), decoder=metaspace(scheme), added_tokens=[added(2, "<s>")])


def scripts() -> bytes:
    steps = {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}, BYTES]}
    return hf(byte_bpe(["aб"]), pre_tokenizer=steps, decoder=BYTE_LEVEL)


def charsmap_file() -> bytes:
    model = unigram(("▁", -2.0), ("...", -2.5), ("kg", -2.25), ("a", -3.0))
    table = precompiled({"…": "...", "㎏": "kg"})
    return hf(model, normalizer=table, pre_tokenizer=metaspace(), decoder=metaspace())


def word_ends() -> bytes:
    model = char_bpe(
        [],
        vocab={"a": 0, "b": 1, "b</w>": 2, "ab</w>": 3, "a</w>": 4},
        merges=[["a", "b</w>"]],
        end_of_word_suffix="</w>",
    )
    decoder = {"type": "BPEDecoder", "suffix": "</w>"}
    return hf(model, pre_tokenizer={"type": "WhitespaceSplit"}, decoder=decoder)


SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"}
KEPT = (  # the ids of MNN's engine from our body are those of the library, on these texts
    ("C01 NFC", lambda: hf(byte_bpe(["é"]), normalizer={"type": "NFC"}, **AROUND), ("e\u0301", "é")),
    (
        "C04 joiners and control characters",
        lambda: hf(byte_bpe(), normalizer={"type": "NFC"}, **AROUND),
        ("🤷\u200d♂️", "a\u200bb\ufeff", "a\x01b", "\u202a"),
    ),
    ("C05 charsmap", charsmap_file, ("a…", "㎏", "a㎏…")),
    ("C05 NFKD", lambda: hf(byte_bpe(), normalizer={"type": "NFKD"}, **AROUND), ("é", "ﬁ", "㎏")),
    ("C06 no decoder", lambda: hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL), ("a é",)),
    ("C06 Nmt", lambda: hf(byte_bpe(), normalizer={"type": "Nmt"}, **AROUND), ("a\x01b", "a\u200bb")),
    ("C07 Replace by a pattern", lambda: hf(byte_bpe(["  "]), normalizer=SPACES, **AROUND), ("a  b", "a b", "    ")),
    ("C09 never", lambda: hi("never"), ("hi hi", " hi", "hi")),
    (
        "C09 add_prefix_space",
        lambda: hf(byte_bpe([" hi", "hi"]), pre_tokenizer=BYTE_LEVEL | {"add_prefix_space": True}, decoder=BYTE_LEVEL),
        ("hi hi", " hi"),
    ),
    (
        "C11 unknown",
        lambda: hf(char_bpe(["ab"], ["<unk>"], unk_token="<unk>"), decoder={"type": "Fuse"}),
        ("aéb", "éé"),
    ),
    (
        "C11 unknown, fused",
        lambda: hf(char_bpe(["ab"], ["<unk>"], unk_token="<unk>", fuse_unk=True), decoder={"type": "Fuse"}),
        ("aéb", "éé"),
    ),
    ("C11 word ends", word_ends, ("ab ab", "a b")),
    (
        "C20 one special token in another",
        lambda: hf(byte_bpe(), added_tokens=[added(256, "<a>"), added(257, "<a>b")], **AROUND),
        ("<a>b", "<a>", "<a><a>b"),
    ),
    ("B068 another pattern", lambda: hf(byte_bpe(["abab", "ab"]), **split(r"ab|[^ab]+|[ab]")), ("abab x",)),
    (
        "B146 bytes without a piece",
        lambda: hf(byte_bpe(vocab={char: at for at, char in enumerate(byte_chars()[:190])}), **AROUND),
        ("aé", "a\xff"),
    ),
    ("C24 a piece of newlines", lambda: hf(byte_bpe(["\n\n"]), **AROUND), ("a\n\n", "\n\n\n")),
    (
        "B182 ids with holes",
        lambda: hf(char_bpe([], ["a", "b"], vocab={"a": 0, "b": 1, "c": 5}), decoder={"type": "Fuse"}),
        ("abc", "cab"),
    ),
)
REPORTED = (  # MNN has no form for it: the loss has a name
    ("C06 scripts", scripts, ("aб",), "mtok-pre-tokenizer"),
    ("C09 first", lambda: hi("first"), ("hi<s>hi",), "mtok-prefix-space"),
    (
        "C11 ignore_merges",
        lambda: hf(byte_bpe([" Vi"], ["ĠViá»ĩt"], ignore_merges=True), **AROUND),
        (" Việt",),
        "mtok-whole-words",
    ),
    (
        "C19 look-behind in the body",
        lambda: hf(byte_bpe(["ab", "bc", "abc"]), **split(r"(?<=a)b|c")),
        ("abc",),
        "mtok-pattern-differs",
    ),
)


# the others take a second or more, because losses are looked for
QUICK = {"C01 NFC", "C06 scripts", "C07 Replace by a pattern", "C11 ignore_merges", "C20 one special token in another"}
QUICK |= {"C24 a piece of newlines", "B068 another pattern"}


def convert(case: Case, folder: Path) -> tuple[bytes, list[Finding]]:
    """The body alone, and what is said about it."""
    losses = tokpack.convert(case.write(folder), folder / "case.mtok", force=True)
    data = (folder / "case.mtok").read_bytes()
    found = find_footer(data)
    assert found is not None
    return data[: found[1].body_length], losses


def engine(body: bytes, questions: tuple[str, ...], folder: Path) -> list[Any]:
    """Ids of MNN's engine, none for a crash."""
    if find_spec("MNN") is None:
        pytest.skip("needs the MNN engine (PyPI package MNN)")
    (folder / "body.mtok").write_bytes(body)
    program = ROOT / "tests/oracles/mnn_engine.py"
    command = [sys.executable, str(program), str(folder / "body.mtok"), "encode"]
    lines = "".join(json.dumps(text) + "\n" for text in questions)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def cases(rows: Any) -> list[Case]:
    return [Case(row[0], HF, row[1], texts(*row[2]), slow=row[0] not in QUICK) for row in rows]


@each(*cases(KEPT))
def test_a_pack_keeps_what_mnn_exports_lose(case: Case, tmp_path: Path) -> None:
    """The index inside the .mtok gives the library's ids."""
    case.check(tmp_path)
    case_in_mtok(case, tmp_path)


@each(*cases(REPORTED))
def test_a_loss_has_a_name(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)
    losses = case_in_mtok(case, tmp_path)
    code = {row[0]: row[3] for row in REPORTED}[case.label]
    assert code in {loss.code for loss in losses if loss.severity is Severity.IDS}
    with pytest.raises(LossError):
        tokpack.convert(case.write(tmp_path), tmp_path / "bare.mtok", write_options={"index": "none"}, force=True)
    assert not (tmp_path / "bare.mtok").exists()


def case_in_mtok(case: Case, folder: Path) -> list[Finding]:
    _, losses = convert(case, folder)
    tokenizer = tokpack.load(folder / "case.mtok")
    for at, ask in enumerate(case.asks):
        assert ask.text is not None
        assert tokenizer.encode(ask.text, False) == said(case.label, at)
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("row", KEPT, ids=[row[0] for row in KEPT])
def test_the_engine_gives_the_ids_of_the_library(row: Any, tmp_path: Path) -> None:
    case = Case(row[0], HF, row[1], texts(*row[2]))
    body, _ = convert(case, tmp_path)
    assert engine(body, row[2], tmp_path) == [said(row[0], at) for at in range(len(row[2]))]


@pytest.mark.slow
@pytest.mark.parametrize("row", REPORTED, ids=[row[0] for row in REPORTED])
def test_a_reported_loss_is_a_real_one(row: Any, tmp_path: Path) -> None:
    case = Case(row[0], HF, row[1], texts(*row[2]))
    body, _ = convert(case, tmp_path)
    assert engine(body, row[2], tmp_path) != [said(row[0], at) for at in range(len(row[2]))]


@each(
    Case(
        "C26 unused pieces in the middle",
        LLAMA,
        lambda: file_of(
            gguf_bpe("qwen2", ["Hi"], [("unused", 5), ("spare", 5), ("user", 4), ("<|end|>", CONTROL), ("xyz", NORMAL)])
        ),
        texts("Hi<|end|>", "user", "Hi user<|end|>Hi"),
    ),
)
def test_ids_do_not_shift_past_unused_pieces(case: Case, tmp_path: Path) -> None:
    """C26."""
    tokenizer = case.check(tmp_path)
    assert tokenizer is not None
    tokpack.convert(case.write(tmp_path), tmp_path / "case.mtok")
    for other in (tokpack.load(tmp_path / "case.mtok"), tokenizer):
        assert [other.token_to_id(text) for text in ("user", "<|end|>", "xyz")] == [259, 260, 261]


def test_a_text_beyond_the_format_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    """C14: a piece of 70,000 bytes; a chat template may be that long, its length has 32 bits."""
    long_piece = hf(byte_bpe(), added_tokens=[added(256, "x" * 70_000)], **AROUND)
    (tmp_path / "a.json").write_bytes(long_piece)
    with pytest.raises(LossError) as caught:
        tokpack.convert(tmp_path / "a.json", tmp_path / "a.mtok")
    assert caught.value.code == "mtok-long-text"
    assert "65535" in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json"]
    template = Key("tokenizer.chat_template", "str", "{{ messages }}" * 5000)
    (tmp_path / "b.gguf").write_bytes(file_of(gguf_bpe("qwen2", ["Hi"]), template))
    tokpack.convert(tmp_path / "b.gguf", tmp_path / "b.mtok")
    assert tokpack.load(tmp_path / "b.mtok").chat_templates["default"] == "{{ messages }}" * 5000


# --- files by hand ---------------------------------------------------------------------------------------------------


def body(vocab: dict[str, int], *, normalizer: bytes = b"\0", count: int | None = None, tail: bytes = b"") -> bytes:
    """A .mtok: a BPE without merges and Fuse as decoder. ``count`` is the number of pieces that it claims."""
    rows = b"".join(
        struct.pack("<H", len(text)) + text.encode() + struct.pack("<I", number)
        for text, number in sorted(vocab.items())
    )
    size = struct.pack("<I", len(vocab) if count is None else count)
    model = b"\0" + size + b"\0\0" + struct.pack("<I", 0) + rows
    ends = b"\4" + struct.pack("<I", 0) + struct.pack("<I", 0) + struct.pack("<HBH", 0, 0, 0)
    return b"430 4\n0 0 0\n\n" + normalizer + b"\0" + model + ends + tail


def refused_or_usable(data: bytes, folder: Path) -> bool:
    """Whether a file loads; all of it can be used then."""
    path = folder / "case.mtok"
    path.write_bytes(data)
    with limit(5):
        try:
            tokenizer = tokpack.load(path)
        except TokpackError:
            return False
        exercise(tokenizer)
    return True


def test_a_body_without_an_index_is_read(tmp_path: Path) -> None:
    """C22: records without an offset table, read in one pass; the pack of it has arrays."""
    assert refused_or_usable(body({"a": 0, "b": 1, "c": 2}), tmp_path)
    assert tokpack.load(tmp_path / "case.mtok").encode("abc") == [0, 1, 2]


@pytest.mark.parametrize(
    "data",
    [
        body({"a": 0, "b": 1, "c": 5}),
        body({"a": 0, "b": 1, "c": 0xFFFFFFFF}),
        body({"a": 0, "b": 1}, count=3),
        body({"a": 0}, count=0xFFFFFFFF),
        body({"a": 0}, normalizer=b"\4\1\0\0\0" * 10_000 + b"\0"),
        body({"a": 0}, normalizer=b"\4\xff\xff\xff\xff"),
        b"430 4\n4294967295 0 0\n0\n",
    ],
    ids=["C15 hole", "C15 far id", "C15 count", "C16 2^32-1 pieces", "C16 depth", "C16 2^32-1 steps", "C16 specials"],
)
def test_numbers_in_a_body_are_checked(data: bytes, tmp_path: Path) -> None:
    """B182, C15, C16: MNN's loader indexes, recurses and allocates by them unchecked; here it is an error."""
    assert not refused_or_usable(data, tmp_path)


@pytest.mark.parametrize(
    "tail", [b"", b"\0", b"\0\0", b"\1\0\0", b"\1\0" + struct.pack("<I", 1), b"\2\0\1\0\0\0\0\0\0"]
)
def test_older_and_newer_ends_of_a_body(tail: bytes, tmp_path: Path) -> None:
    """C21: sections that came later may be missing; odd ones are an error, never a guess that crashes."""
    plain = body({"a": 0, "b": 1})
    refused_or_usable(plain + tail, tmp_path)
    refused_or_usable(plain[:-1], tmp_path)
    assert refused_or_usable(plain, tmp_path)


# --- tokenizer.txt ---------------------------------------------------------------------------------------------------


def txt(kind: int, rows: list[bytes], first: bytes | None = None, end: bytes = b"\n") -> bytes:
    head = [b"430 %d" % kind, b"0 0 0", b"", b"%d" % len(rows) if first is None else first]
    return end.join([*head, *rows, b""])


def tiktoken_rows(count: int = 256) -> list[bytes]:
    return [base64.b64encode(bytes([value])) for value in range(count)]


def test_line_ends_of_a_tokenizer_txt(tmp_path: Path) -> None:
    """B184: both kinds of line ends, and a file is read as bytes, so nothing shifts."""
    (tmp_path / "lf.txt").write_bytes(txt(1, tiktoken_rows()))
    (tmp_path / "crlf.txt").write_bytes(txt(1, tiktoken_rows(), end=b"\r\n"))
    for text in ("a b", "\r\n", "é"):
        assert tokpack.load(tmp_path / "lf.txt").encode(text) == list(text.encode())
        assert tokpack.load(tmp_path / "crlf.txt").encode(text) == list(text.encode())


def test_a_piece_with_a_newline_in_a_tokenizer_txt(tmp_path: Path) -> None:
    """C24: the rows of type 3 are raw, so such a piece shifts all that follow, in MNN too: the merges tell on it."""
    rows = [b"a", b"\n\n", b"b", b"ab", b"a b"]
    (tmp_path / "a.txt").write_bytes(txt(3, rows, first=b"4 1"))
    assert "mnn-idle-merges" in {found.code for found in tokpack.read(tmp_path / "a.txt").findings}
    assert tokpack.load(tmp_path / "a.txt").token_to_id("b") is None
    (tmp_path / "b.txt").write_bytes(txt(3, [b"a", b"b", b"ab", b"a b"], first=b"3 1"))
    assert not tokpack.read(tmp_path / "b.txt").findings
    assert tokpack.load(tmp_path / "b.txt").encode("ab") == [2]


def test_the_version_line_of_merges_in_a_tokenizer_txt(tmp_path: Path) -> None:
    """C24: an exporter that keeps it gives every merge the next rank, which changes no order."""
    (tmp_path / "a.txt").write_bytes(txt(3, [b"a", b"b", b"ab", b"#version: 0.2", b"a b"], first=b"3 2"))
    assert tokpack.load(tmp_path / "a.txt").encode("ab") == [2]


@pytest.mark.parametrize("data", [b"", b"430 1\n", b"430 1\n0 0 0\n\n", b"430 1\n0 0 0\n\n-1\n", b"hello\n"])
def test_a_broken_tokenizer_txt_is_an_error_at_load(data: bytes, tmp_path: Path) -> None:
    """B189, B190: not an odd message at the first text, or a crash."""
    path = tmp_path / "tokenizer.txt"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        tokpack.load(path)
    assert "tokenizer.txt" in str(caught.value)


def test_a_cut_off_tokenizer_txt_is_named(tmp_path: Path) -> None:
    """B189: MNN reads it with empty pieces at the end; a check before shipping sees the finding."""
    path = tmp_path / "tokenizer.txt"
    path.write_bytes(txt(1, tiktoken_rows(100), first=b"256"))
    assert "mnn-missing-lines" in {found.code for found in tokpack.read(path).findings}
    with pytest.raises(TokpackError):
        tokpack.convert(path, tmp_path / "a.tokpack", strict=True)


def test_a_missing_file_is_an_error_at_load(tmp_path: Path) -> None:
    """B190: with its name."""
    with pytest.raises(tokpack.TokpackError, match=r"no/tokenizer\.txt"):
        tokpack.load(tmp_path / "no/tokenizer.txt")


def test_spaces_of_a_sentencepiece_tokenizer_txt(tmp_path: Path) -> None:
    """B136: ``▁The`` and ``The`` are two pieces, and a text begins with the first."""
    beginnings = [("▁The"[:size], size - 10.0) for size in range(1, 5)]
    beginnings += [("The"[:size], size - 20.0) for size in range(1, 4)] + [("h", -30.0), ("e", -30.0)]
    rows = [base64.b64encode(text.encode()) + b" %d 1" % score for text, score in beginnings]
    (tmp_path / "a.txt").write_bytes(txt(0, [base64.b64encode(b"<unk>") + b" 0 2", *rows]))
    tokenizer = tokpack.load(tmp_path / "a.txt")
    # answers of MNN 3.6.1
    assert {text: tokenizer.encode(text) for text in ("The", "xThe", " The")} == {
        "The": [4],
        "xThe": [1, 0, 7],
        " The": [1, 4],
    }
    assert [tokenizer.id_to_bytes(token) for token in (4, 7)] == [b" The", b"The"]
