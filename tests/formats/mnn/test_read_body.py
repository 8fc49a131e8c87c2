"""Reading a body: the inverse of writing it, and a named error or finding for everything else."""

from __future__ import annotations

import contextlib
import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.errors import EncodeError, FormatError, RefusedError, UnsupportedError, UsageError
from tokpack.findings import Severity
from tokpack.formats.mnn import parts, write_body
from tokpack.formats.mnn.body import MtokBody, serialize
from tokpack.formats.mnn.from_ir import from_ir
from tokpack.formats.mnn.read_body import parse, read_body
from tokpack.formats.mnn.to_ir import to_ir
from tokpack.pack.build import build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView

# equal-ranks.mtok has a merge without a result, which is not written
BODIES = sorted(path for path in (FIXTURES / "mnn").glob("*.mtok") if path.name != "equal-ranks.mtok")
BPE = parts.Bpe((b"a", b"b", b"ab"), np.array([[0, 1, 0]], dtype=np.uint32))
HEAD = b"430 4\n0 0 0\n\n"


def plain(value: Any) -> Any:
    """A form that compares by content."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return [type(value).__name__, *(plain(getattr(value, field.name)) for field in fields)]
    if isinstance(value, np.ndarray):
        return sorted(value.tolist()) if value.size else []
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def load(data: bytes, folder: Path, **options: Any) -> tokpack.Tokenizer:
    path = folder / "file.mtok"
    path.write_bytes(data)
    return tokpack.load(path, **options)


STEPS = MtokBody(
    BPE,
    special=(2, 0),
    stop=(1, 1),
    prefix=(2,),
    normalizer=(
        parts.Prepend("x"),
        parts.Replace("a", ""),
        parts.BertNormalizer(True, False, True, False, ((0xE9, "e"),)),
        parts.BertNormalizer(False, True, False, True),
        parts.TableNormalizer(((0x41, "b"), (0x3000, " "))),
        parts.Strip(True, False),
    ),
    pre_tokenizer=(
        parts.ByteLevel(True),
        parts.Digits(False),
        parts.Metaspace("_", False),
        *(parts.Split("a", flag, name) for flag in (True, False) for name in ("isolated", "removed")),
        parts.Split("a", False, "merged-with-previous"),
        parts.BertPreTokenizer(),
    ),
    decoder=(
        parts.ByteLevelDecoder(),
        parts.ByteFallbackDecoder(),
        parts.MetaspaceDecoder("_", True),
        parts.WordPieceDecoder("##", False),
        parts.FuseDecoder(),
        parts.ReplaceDecoder("a", "b"),
        parts.StripDecoder(" ", 1, 2),
    ),
    added_tokens=(parts.AddedToken(7, b"<x>", True, False, True), parts.AddedToken(1, b"b")),
    chat_template=b"{{ a }}\xff",
    eos=b"<x>",
    clean_up_spaces=True,
    bos=b"a",
    post_ops=(None, 2, 7),
)


@pytest.mark.parametrize(
    "body",
    [
        STEPS,
        MtokBody(BPE),
        MtokBody(parts.WordPiece((b"a", b"[UNK]"), b"[UNK]", b"##", 0xFFFFFFFF)),
        MtokBody(parts.Unigram((b"a", b"u", b"a"), (-1.5, float("-inf"), 0.1), 1, True)),
        MtokBody(dataclasses.replace(BPE, aliases=((b"c", 2), (b"d", 4)), byte_level=True, byte_fallback=True)),
        *(read_body(path.read_bytes()) for path in BODIES),
    ],
)
def test_reading_is_the_inverse_of_writing(body: MtokBody) -> None:
    again = read_body(serialize(body)) if body.decoder else body
    texts_of = getattr(body.model, "text_of", None)
    if texts_of is None or not body.model.aliases:  # type: ignore[union-attr]
        assert plain(again) == plain(body)
    else:  # which of the texts of an id is called the alias is not written
        assert again.model.text_of() == texts_of()  # type: ignore[union-attr]
        assert serialize(again) == serialize(body)
    for engine in ("v361", "head"):
        ir = to_ir(parse(serialize(body)), engine)
        assert plain(from_ir(ir)) == plain(again)
        restored = restore(PackView(build_pack(ir)))
        assert plain(from_ir(restored)) == plain(again)
        assert build_pack(restored) == build_pack(ir)


@pytest.mark.parametrize(
    "name", ["demo.gguf", "spm.gguf", "wpm.gguf", "ugm.gguf", "hf/qwen2.json", "hf/bert-cased.json"]
)
def test_bodies_of_converted_tokenizers(name: str) -> None:
    data, _ = write_body(tokpack.read(FIXTURES / name))
    file = parse(data + bytes(100))
    assert serialize(file.body) == data
    assert serialize(from_ir(to_ir(file))) == data


def test_null_members_and_old_normalizers_do_nothing() -> None:
    steps = b"\x04\x03\0\0\0\0\x01\x02\x01\x00x" + b"\x06\x02\0\0\0\x00\x06\x01\0\0\0\x05"
    data = HEAD + steps + serialize(MtokBody(BPE))[len(HEAD) + 2 :]
    file = parse(data)
    assert file.body.normalizer == (parts.Prepend("x"),)
    assert file.body.pre_tokenizer == (parts.BertPreTokenizer(),)
    assert file.null_members
    versions = next(f for f in to_ir(file).findings if f.code == "mnn-versions")
    assert versions.severity is Severity.INFO
    assert "3.5.0 crashes" in versions.message


def test_every_tail_section_may_be_missing() -> None:
    whole = serialize(MtokBody(BPE, chat_template=b"t", eos=b"e", bos=b"b"))
    ends = [len(whole) - size for size in (0, 2, 5, 6, 9, 14)]
    found = [read_body(whole[:end]) for end in ends]
    assert [(b.chat_template, b.eos, b.bos) for b in found] == [
        (b"t", b"e", b"b"),
        (b"t", b"e", b"b"),
        (b"t", b"e", b""),
        (b"t", b"e", b""),
        (b"t", b"", b""),
        (b"", b"", b""),
    ]


def _vocab(*entries: tuple[bytes, int], kind: int = 0, merges: bytes = b"", count: int | None = None) -> bytes:
    """A file whose model is ``entries``, byte by byte."""
    size = len(entries) if count is None else count
    head = struct.pack("<BI", kind, size)
    head += b"\0\0" + struct.pack("<I", len(merges) // 12) if kind == 0 else b""
    head += b"\x01\0u\0\0" + struct.pack("<I", 100) if kind == 1 else b""
    body = b"".join(struct.pack("<H", len(text)) + text + struct.pack("<I", number) for text, number in entries)
    return HEAD + b"\0\0" + head + body + merges + b"\0" + bytes(4)


REFUSED = {
    "model 3": (HEAD + b"\0\0\x03" + bytes(20), "model type 3", "mnn-model"),
    "normalizer 9": (HEAD + b"\x09" + bytes(20), "normalizer type 9", "mnn-normalizer"),
    "pre-tokenizer 7": (HEAD + b"\0\x07" + bytes(20), "pre_tokenizer type 7", "mnn-pre-tokenizer"),
    "decoder 8": (serialize(MtokBody(BPE))[:-16] + b"\x08" + bytes(15), "decoder type 8", "mnn-decoder"),
    "far id": (_vocab((b"a", 0), (b"b", 70_000)), "id 70000", "mnn-id-range"),
    "unsorted": (_vocab((b"b", 0), (b"a", 1)), "entry 1 is not in order", "mnn-unsorted"),
    "same id twice": (_vocab((b"a", 0), (b"b", 0), kind=1), "id 0 stands twice", "mnn-id-range"),
    "unsorted merges": (
        _vocab((b"a", 0), (b"b", 1), merges=struct.pack("<6I", 1, 0, 0, 0, 1, 1)),
        "order",
        "mnn-unsorted",
    ),
    "text in a normalizer": (HEAD + b"\x02\x01\x00\xff" + bytes(20), "not UTF-8", "mnn-utf8"),
    "unsorted table": (HEAD + b"\x06\x02\0\0\0\x05\0\0\0\0\0\x05\0\0\0\0\0", "not in order", "mnn-unsorted"),
    "type 5": (b"430 5\n0 0 0\n\n", "type 5", "mnn-type"),
    "added token": (_vocab((b"a", 0))[:-4] + b"\x01\0\0\0\xff\xff\xff\x7f\0\0\0\x01\0x", "added token", "mnn-id-range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_reproduced_is_refused_by_name(name: str, tmp_path: Path) -> None:
    data, message, code = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message) as caught:
        load(data, tmp_path)
    assert caught.value.code == code
    assert caught.value.location.file


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (MtokBody(BPE, decoder=(parts.ReplaceDecoder("x", ""),)), "mnn-endless-decoder"),
        (MtokBody(parts.Unigram((b"a", b"b"), (0.0, float("nan")), 0, False)), "mnn-scores"),
    ],
)
def test_what_harms_the_engine_is_a_finding(body: MtokBody, code: str, tmp_path: Path) -> None:
    data = serialize(body).replace(b"\x05\x01\x00x\x00\x00", b"\x05\x00\x00\x00\x00")
    with pytest.raises(RefusedError) as caught:
        load(data, tmp_path)
    assert caught.value.code == code
    tokenizer = load(data, tmp_path, allow=(code,))
    assert tokenizer.encode("") == []
    if code == "mnn-endless-decoder":
        with pytest.raises(EncodeError, match="never ends"):
            tokenizer.decode([0])


def test_texts_that_the_engine_cannot_take(tmp_path: Path) -> None:
    unigram = parts.Unigram((b"<unk>", b"<0x61>"), (-1.0, -2.0), 0, True)
    tokenizer = load(serialize(MtokBody(unigram)), tmp_path)
    assert tokenizer.encode("a") == [1]
    with pytest.raises(EncodeError, match="<0x62>"):
        tokenizer.encode("b")
    assert "mnn-byte-pieces" in {finding.code for finding in tokenizer.findings}
    tokenizer = load(serialize(MtokBody(parts.WordPiece((b"a",), b"[UNK]", b"##", 9))), tmp_path)
    with pytest.raises(EncodeError, match="id -1"):
        tokenizer.encode("b")
    assert tokenizer.encode("b" * 10) == []


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "a{99999999999}", "(" * 101 + "a" + ")" * 101, "世(一+)+x", "世*一*x", "(世)\\1", "世|", "[世"]
)
def test_patterns_that_are_refused(pattern: str, tmp_path: Path) -> None:
    body = MtokBody(BPE, pre_tokenizer=(parts.Split(pattern),))
    with pytest.raises(UnsupportedError, match="pattern") as caught:
        load(serialize(body), tmp_path)
    assert caught.value.code == "mnn-pattern"


@pytest.mark.parametrize(
    "pattern", [r"\s*\S*\s*x", r"(?:\w*\w*)*-", r"a*a*a*a*a*b", r"(?!a*b)a", r"(?:a|aa)*c", "a+世"]
)
def test_no_pattern_takes_long(pattern: str, tmp_path: Path) -> None:
    tokenizer = load(serialize(MtokBody(BPE, pre_tokenizer=(parts.Split(pattern),))), tmp_path)
    for text in ("a" * 20_000, " " * 20_000, "ab " * 8_000):
        with contextlib.suppress(EncodeError):  # its limit of steps
            tokenizer.encode(text)


def test_the_engine_is_chosen_and_kept(tmp_path: Path) -> None:
    body = MtokBody(BPE, prefix=(2,), post_ops=(None, 1))
    old, new = (load(serialize(body), tmp_path, engine=engine) for engine in ("v361", "head"))
    assert old.encode("ab") == [2, 2]
    assert new.encode("ab") == [2, 2, 1]
    assert new.encode("ab", add_special_tokens=False) == [2]
    assert (old.view.meta["rules"], new.view.meta["rules"]) == ("MNN 3.6.1", "MNN head")
    with pytest.raises(UsageError, match="unknown MNN engine 'v1'"):
        load(serialize(body), tmp_path, engine="v1")


def test_the_older_layout_of_the_post_processor(tmp_path: Path) -> None:
    """Three ids and the sequence take 16 bytes, four for each: head reads four ids."""
    data = serialize(MtokBody(BPE, post_ops=(0, 1, None, 2)))
    assert data[-1:] == b"\0"
    data = data[:-1]
    ids = list(struct.unpack("<4i", data[-16:]))
    assert load(data, tmp_path, engine="head").encode("b") == [1, *ids]
    assert load(data, tmp_path).encode("b") == [1]
    assert "mnn-post-ops-layout" in {finding.code for finding in load(data, tmp_path).findings}
    with pytest.raises(RefusedError, match="post-processor"):
        load(data[:-9], tmp_path, engine="head")
    assert load(data[:-9], tmp_path).encode("b") == [1]


def test_special_tokens_of_text_from_outside(tmp_path: Path) -> None:
    tokenizer = load((FIXTURES / "mnn" / "byte-level.mtok").read_bytes(), tmp_path)
    control = tokenizer.encode("<|end|>")
    assert len(control) == 1
    assert len(tokenizer.encode("<|end|>", parse_special=False)) > 1
    assert len(tokenizer.encode("<|user|>", parse_special=False)) > 1
    assert tokenizer.encode("<think>", parse_special=False) == tokenizer.encode("<think>")
    stream = tokenizer.stream()
    assert "".join(map(stream.push, control)) + stream.flush() == "<|end|>"  # the engine streams them
    assert tokenizer.decode(control) == ""
    assert tokenizer.decode(control, skip_special_tokens=False) == "<|end|>"


def test_a_header_that_declares_more_than_it_has() -> None:
    data = serialize(MtokBody(BPE, special=(2,))).replace(b"1 0 0\n2\n", b"2 1 +1\n2 x\n")
    body = read_body(data)
    assert (body.special, body.stop, body.prefix) == ((2, 0), (0,), (0,))
    for broken in (b"430", b"430 4\n", b"430 4\n1 0\n\n", b"430 4\n-1 0 0\n\n", b"430 4\n0 0 99999999\n\n", b"431 4\n"):
        with pytest.raises(FormatError):
            read_body(broken)
