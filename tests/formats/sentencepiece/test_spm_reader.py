"""The reader: what the format says, what is kept, what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.pack.test_pack_roundtrip import differences
from tests.runtime.sentencepiece.random_models import make_charsmap, proto
from tokpack.errors import FormatError
from tokpack.formats.sentencepiece import read_bytes
from tokpack.ir import Characters, PieceAttr, Reference, ScoreMerge, Unigram, WordLevel
from tokpack.ir.steps import SentencePieceDecoder, SentencePieceNormalizer
from tokpack.pack.build import build_pack
from tokpack.pack.restore import restore
from tokpack.pack.view import PackView

FOLDER = FIXTURES / "sentencepiece"
NAMES = sorted(path.stem for path in FOLDER.glob("*.model"))
BASE = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("a", -1.0, 1)]


def codes(data: bytes) -> list[str]:
    return [finding.code for finding in read_bytes(data).findings]


def test_defaults_of_the_format() -> None:
    ir = read_bytes(b"".join(proto.one(1, proto.piece(*entry)) for entry in BASE))
    assert (ir.reference, ir.rules) == (Reference.SENTENCEPIECE, "sentencepiece 0.2.3")
    assert isinstance(ir.model, Unigram)
    assert ir.normalizer == (SentencePieceNormalizer(b"", True, True, True, False),)
    assert ir.decoder == (SentencePieceDecoder(" ⁇ ", True, strip_each=True, add_dummy_prefix=True,
                                               remove_extra_whitespaces=True, escape_whitespaces=True),)  # fmt: skip
    assert {role: entry.id for role, entry in ir.specials.roles.items()} == {"unk": 0, "bos": 1, "eos": 2}
    assert ir.specials.eog == (2,)
    assert not ir.findings


def test_models() -> None:
    kinds = {1: Unigram, 2: ScoreMerge, 3: WordLevel, 4: Characters}
    for number, kind in kinds.items():
        assert type(read_bytes(proto.Model(BASE, {"model_type": number}).to_bytes()).model) is kind


def test_the_last_value_counts_and_messages_are_merged() -> None:
    data = proto.Model(BASE, {"model_type": proto.BPE, "byte_fallback": True}).to_bytes()
    more = proto.one(2, proto.one(3, proto.WORD) + proto.one(35, False)) + proto.one(3, proto.one(3, False))
    ir = read_bytes(data + more)
    assert isinstance(ir.model, WordLevel)
    assert not ir.alphabet.byte_fallback
    assert isinstance(ir.normalizer[0], SentencePieceNormalizer)
    assert not ir.normalizer[0].add_dummy_prefix
    assert ir.normalizer[0].escape_whitespaces


def test_fields_that_nobody_knows_are_kept() -> None:
    group = proto.tag(60, 3) + proto.one(1, 5) + proto.tag(61, 3) + proto.tag(61, 4) + proto.tag(60, 4)
    odd_piece = proto.one(1, proto.piece("b", -2.0, 1) + proto.one(200, b"xyz"))
    ir = read_bytes(proto.Model(BASE).to_bytes() + odd_piece + proto.one(99, 7) + group + proto.one(99, 8))
    assert ir.vocab.pieces[-1] == b"b"
    assert ir.extras["field 99"] == ["protobuf", proto.one(99, 7) + proto.one(99, 8)]
    assert ir.extras["field 60"] == ["protobuf", group]
    assert ir.extras["pieces[4]"] == ["protobuf", proto.one(200, b"xyz")]
    assert {"trainer_spec", "normalizer_spec"} < set(ir.extras)


def test_numbers_that_an_enum_does_not_have() -> None:
    data = proto.Model([*BASE, ("b", -1.0, 7), ("c", -1.0, 300)], {"model_type": 5}).to_bytes()
    ir = read_bytes(data)
    assert codes(data) == ["spm-model-type", "spm-piece-type"]
    assert isinstance(ir.model, Unigram)
    assert ir.vocab.types.tolist()[-2:] == [1, 1]


def test_a_piece_of_one_nul_is_unused_with_byte_fallback() -> None:
    pieces = [*BASE, *proto.byte_pieces(), ("\0", 0.0, 1)]
    ir = read_bytes(proto.Model(pieces, {"byte_fallback": True}).to_bytes())
    assert not ir.findings
    assert (ir.vocab.types[-1], ir.vocab.attrs[-1]) == (1, PieceAttr.UNUSED)
    assert codes(proto.Model([*BASE, ("\0", 0.0, 1)]).to_bytes()) == ["spm-nul-piece"]
    assert codes(proto.Model([*BASE, ("\0", 0.0, 5), ("\0", 0.0, 5)]).to_bytes()) == []


def test_roles_go_by_the_texts_of_the_pieces() -> None:
    trainer = {"bos_id": 3, "bos_piece": "</s>", "eos_piece": "a", "pad_piece": "", "unk_piece": "none"}
    ir = read_bytes(proto.Model(BASE, trainer).to_bytes())
    assert {role: entry.id for role, entry in ir.specials.roles.items()} == {"unk": 0, "bos": 2}
    assert ir.specials.eog == ()


@pytest.mark.parametrize(
    ("tail", "words", "path"),
    [
        (proto.one(1, 5), "pieces[4] is a varint", "pieces[4]"),
        (proto.one(1, proto.one(1, 5)), "pieces[4].piece is a varint", "pieces[4].piece"),
        (proto.one(1, proto.one(1, "b") + proto.one(2, 5)), "pieces[4].score is a varint", "pieces[4].score"),
        (proto.one(1, proto.one(1, "b") + proto.one(3, 1.0)), "pieces[4].type is 4 bytes", "pieces[4].type"),
        (proto.one(2, 5), "trainer_spec is a varint", "trainer_spec"),
        (proto.one(2, proto.one(3, b"x")), "trainer_spec.model_type is a length", "trainer_spec.model_type"),
        (proto.one(2, proto.one(45, 5)), "trainer_spec.unk_piece is a varint", "trainer_spec.unk_piece"),
        (proto.one(3, proto.one(2, 5)), "precompiled_charsmap is", "normalizer_spec.precompiled_charsmap"),
        (proto.one(5, proto.one(3, b"")), "add_dummy_prefix is", "denormalizer_spec.add_dummy_prefix"),
        (b"\x0a\x7f\x0a\x01b", "field 1 has 127 bytes, 3 are left", "the model"),
        (b"\x0a\x03\x0a\x05b", "field 1 has 5 bytes, 1 are left", "pieces[4]"),
        (b"\x00", "tag 0 is none of protobuf's", "the model"),
        (b"\x4e\x01", "tag 78 is none of protobuf's", "the model"),
        (b"\xff\xff\xff\xff\xff\x01", "more than 5 bytes", "tag in the model"),
        (proto.tag(9, 0) + b"\xff" * 10 + b"\x01", "more than 10 bytes", "field 9 of the model"),
        (proto.tag(9, 0) + b"\xff", "is cut off", "field 9 of the model"),
        (proto.tag(9, 3), "the group 9 does not end", "the model"),
        (proto.tag(9, 4), "has not begun", "the model"),
        (proto.tag(9, 3) + proto.tag(8, 4), "ends inside another one", "the model"),
        (proto.tag(9, 3) * 101 + proto.tag(9, 4) * 101, "more than 100 groups", "the model"),
        (proto.one(2, proto.one(44, b"\xff")), "not UTF-8", "trainer_spec.unk_surface"),
    ],
)  # fmt: skip
def test_what_is_no_model(tail: bytes, words: str, path: str) -> None:
    data = proto.Model(BASE).to_bytes() + tail
    with pytest.raises(FormatError) as caught:
        read_bytes(data, "x.model")
    assert words in str(caught.value)
    assert caught.value.location.path == path
    assert caught.value.location.file == "x.model"


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="no pieces"):
        tokpack.read(path, "sentencepiece")


def charsmap_codes(blob: bytes) -> list[str]:
    return codes(proto.Model(BASE, {}, {"precompiled_charsmap": blob}).to_bytes())


def test_charsmaps() -> None:
    good = make_charsmap({b"a": b"b", b"ab": b"c"})
    size = struct.unpack("<I", good[:4])[0]
    assert charsmap_codes(good) == []
    units = list(struct.unpack(f"<{size // 4}I", good[4 : 4 + size]))

    def changed(at: int, unit: int) -> bytes:
        return good[:4] + struct.pack(f"<{size // 4}I", *units[:at], unit, *units[at + 1 :]) + good[4 + size :]

    for bad in (
        b"\0",
        good[:4],
        good[:-1],
        good[: 4 + size],
        struct.pack("<I", size + 1024) + good[4:],
        struct.pack("<I", 512) + good[4:],
        struct.pack("<I", 0xFFFFFFFF) + good[4:],
        changed(0, 0),
        changed(0, units[0] | 1),
        changed(5, 0x7FFFFFFF & ~0x300),
        changed(200, 1 << 31 | 1000),
    ):
        assert charsmap_codes(bad) == ["spm-charsmap"], bad[:8]


def test_a_charsmap_in_which_a_text_goes_in_a_circle() -> None:
    """The library follows it as long as the text goes on: quadratic in the length of the text."""
    units = [1 << 31] * 256
    units[0] = 1 << 10  # the root has base 1
    units[1 ^ 0x61] = (1 ^ 0x61 ^ 1) << 10 | 0x61  # the child for "a" has base 1 again
    blob = struct.pack("<I", 1024) + struct.pack("<256I", *units) + b"x\0"
    (finding,) = read_bytes(proto.Model(BASE, {}, {"precompiled_charsmap": blob}).to_bytes()).findings
    assert (finding.code, finding.location.path) == ("spm-charsmap", "normalizer_spec.precompiled_charsmap")
    assert "circle" in finding.message or "more than 1000" in finding.message


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("refused-")])
def test_a_pack_restores_to_the_ir_that_it_was_built_from(name: str) -> None:
    ir = tokpack.read(FOLDER / f"{name}.model")
    assert differences(ir, restore(PackView(build_pack(ir)))) == []
    assert build_pack(ir) == build_pack(ir)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("refused-")])
def test_refused_models_can_be_looked_at(name: str) -> None:
    path = FOLDER / f"{name}.model"
    ir = tokpack.read(path)
    allowed = {finding.code for finding in ir.findings}
    try:
        tokenizer = tokpack.load(path, allow=allowed)
        tokenizer.encode("a b")
        tokenizer.decode(range(tokenizer.vocab_size))
    except tokpack.TokpackError:
        pass
