"""Models, merges and added tokens: what is read, what is refused, and which ids come out."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from tests.formats.hf.hf_documents import (
    BPE,
    UNIGRAM,
    WORD_LEVEL,
    WORD_PIECE,
    added,
    codes,
    document,
    library_agrees,
    read_json,
    refusal,
)
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.findings import Severity
from tokpack.formats.hf import read_bytes
from tokpack.formats.hf.added import same_normal_forms
from tokpack.ir import AddedToken, MatchingRule, PieceAttr, PieceType, Reference, TokenizerIR, Unigram, WordPiece, model


def bpe(**fields: Any) -> dict[str, Any]:
    return document(model=BPE | fields)


def merges_of(value: Any) -> model.BPE:
    found = read_json(value).model
    assert isinstance(found, model.BPE)
    return found


def refused(value: Any) -> TokpackError:
    """The error on a document that the library refuses, too."""
    assert library_agrees(value, loads=False)
    error = refusal(value)
    assert error is not None
    return error


def library_ids(value: Any) -> dict[str, int]:
    tokenizers = pytest.importorskip("tokenizers")
    found: dict[str, int] = tokenizers.Tokenizer.from_str(json.dumps(value)).get_vocab(True)
    return found


def our_ids(ir: TokenizerIR) -> dict[str, int]:
    return {piece.decode(): at for at, piece in enumerate(ir.vocab.pieces) if piece is not None}


def test_bpe() -> None:
    ir = read_json(
        bpe(fuse_unk=True, byte_fallback=True, dropout=0.5, end_of_word_suffix="</w>", merges=["a b"], unk_token=None)
    )
    assert isinstance(ir.model, model.BPE)
    assert (ir.model.merges, ir.model.ranks) == (((b"a", b"b"),), None)
    assert (ir.model.fuse_unk, ir.model.ignore_merges, ir.model.unk_piece) == (True, True, None)
    assert (ir.model.end_of_word_suffix, ir.model.continuing_subword_prefix) == (b"</w>", b"")
    assert (ir.model.dropout, ir.alphabet.byte_fallback) == (0.5, True)
    assert (ir.reference, ir.rules, ir.unicode) == (Reference.HUGGINGFACE, "tokenizers 0.23.3", "tokenizers-0.23")
    assert ir.matching.rule is MatchingRule.LEFTMOST_LONGEST
    assert [(f.code, f.severity) for f in ir.findings] == [("hf-dropout", Severity.IDS)]
    assert ir.source.facts["merges"] == "strings"
    assert not ir.validate()


def test_both_spellings_of_merges_are_the_same() -> None:
    vocab = {"Ġ": 0, "t": 1, "a": 2, "Ġt": 3, "Ġa": 4}
    pairs = merges_of(bpe(vocab=vocab, merges=[["Ġ", "t"], ["Ġ", "a"]], unk_token=None))
    strings = merges_of(bpe(vocab=vocab, merges=["#version: 0.2", "Ġ t", "Ġ a"], unk_token=None))
    assert pairs.merges == strings.merges
    assert pairs.ranks is strings.ranks is None


def test_the_last_of_equal_merges_counts() -> None:
    vocab = {"a": 0, "b": 1, "ab": 2, "aa": 3, "bb": 4}
    model = merges_of(bpe(vocab=vocab, merges=["a b", "a a", "b b", "a b"], unk_token=None))
    assert model.merges == ((b"a", b"a"), (b"b", b"b"), (b"a", b"b"))
    assert model.ranks == (1, 2, 3)
    assert codes(read_json(bpe(vocab=vocab, merges=["a b", "a b"], unk_token=None))) == ["hf-duplicate-merge"]


def test_prefix_is_cut_by_its_length() -> None:
    """Whatever the right part begins with (models/bpe/model.rs)."""
    model = merges_of(bpe(vocab={"a": 0, "xxb": 1, "ab": 2}, merges=[["a", "xxb"]], continuing_subword_prefix="##"))
    assert model.merges == ((b"a", b"xxb"),)
    value = bpe(vocab={"a": 0, "b": 1, "ab": 2}, merges=[["a", "b"]], continuing_subword_prefix="##")
    assert refused(value).location.path == "model.merges[0]"


@pytest.mark.parametrize(
    ("merges", "path", "what"),
    [
        ({}, "model.merges", "MergeType"),
        (None, "model.merges", "MergeType"),
        ("a b", "model.merges", "MergeType"),
        (["a b", ["a", "b"]], "model.merges[1]", "MergeType"),
        ([["a", "b"], "a b"], "model.merges[1]", "MergeType"),
        ([["a", "b", "ab"]], "model.merges[0]", "MergeType"),
        ([["a", 1]], "model.merges[0]", "MergeType"),
        (["a b", "#version", "a"], "model.merges[2]", "Merges text file invalid at line 2"),
        (["a  b"], "model.merges[0]", "Merges text file invalid at line 1"),
        (["#version", "a b", "a z"], "model.merges[2]", "Token `z` out of vocabulary"),
        ([["a", "b"], ["z", "b"]], "model.merges[1]", "Token `z` out of vocabulary"),
        ([["b", "a"]], "model.merges[0]", "Token `ba` out of vocabulary"),
        ([["ab", "<u>"]], "model.merges[0]", "Token `ab<u>` out of vocabulary"),  # longer than any token: a panic
    ],
)
def test_merges_refused(merges: Any, path: str, what: str) -> None:
    error = refused(bpe(merges=merges))
    assert error.location.path == path
    assert what in error.what


@pytest.mark.parametrize("value", [True, 1.0, -1, 1 << 32, "1", None, []])
def test_token_ids_are_u32(value: Any) -> None:
    error = refused(bpe(vocab={"a": 0, "b c": value}, merges=[]))
    assert isinstance(error, FormatError)
    assert error.location.path == "model.vocab['b c']"


def test_holes_and_sparse_ids() -> None:
    ir = read_json(document(model={"type": "BPE", "vocab": {"a": 0, "c": 4}, "merges": []}))
    assert ir.vocab.pieces == (b"a", None, None, None, b"c")
    assert ir.vocab.attrs.tolist() == [PieceAttr.NORMAL, 0, 0, 0, PieceAttr.NORMAL]
    with pytest.raises(FormatError, match="the highest id"):
        read_json(document(model={"type": "BPE", "vocab": {"a": 0, "c": (1 << 32) - 1}, "merges": []}))


def test_shared_ids_are_refused_by_a_finding() -> None:
    ir = read_json(document(model={"type": "BPE", "vocab": {"a": 0, "c": 0}, "merges": []}))
    assert [(f.code, f.severity) for f in ir.findings] == [("hf-shared-id", Severity.REFUSE)]
    value = document(
        model={"type": "BPE", "vocab": {"a": 0, "c": 2}, "merges": []}, added_tokens=[added("c"), added("x")]
    )
    assert "hf-shared-id" in codes(read_json(value))
    assert library_ids(value) == {"a": 0, "c": 2, "x": 2}


def test_canonically_equal_pieces_are_two() -> None:
    vocab = {"a\u0300": 0, "à": 1}
    ir = read_json(document(model={"type": "WordLevel", "unk_token": "à", "vocab": vocab}))
    assert ir.vocab.pieces == ("a\u0300".encode(), "à".encode())


def test_word_piece_and_word_level() -> None:
    ir = read_json(document(model=WORD_PIECE))
    assert isinstance(ir.model, WordPiece)
    assert (ir.model.unk_piece, ir.model.continuing_subword_prefix, ir.model.max_input_chars_per_word) == (
        b"a",
        b"##",
        100,
    )
    assert codes(read_json(document(model=WORD_LEVEL | {"unk_token": "gone"}))) == ["hf-unk-missing"]
    assert codes(read_json(document(model=BPE | {"unk_token": "gone"}))) == ["hf-unk-missing"]


def test_unigram() -> None:
    ir = read_json(document(model=UNIGRAM | {"byte_fallback": True}, added_tokens=[added("x")]))
    assert isinstance(ir.model, Unigram)
    assert (ir.model.unk_id, ir.model.unk_penalty, ir.alphabet.byte_fallback) == (0, 10.0, True)
    assert ir.vocab.scores is not None
    assert ir.vocab.scores.dtype == np.float64
    assert ir.vocab.scores.tolist() == [-1.5, -2.0, 0.0, 0.0]
    assert ir.vocab.attrs.tolist() == [PieceAttr.NORMAL] * 3 + [PieceAttr.CONTROL]
    assert not ir.validate()


def test_unigram_duplicates() -> None:
    value = document(
        model={"type": "Unigram", "vocab": [["a", -1], ["b", -2], ["a", -3]], "unk_id": None},
        added_tokens=[added("a"), added("x")],
    )
    ir = read_json(value)
    assert ir.vocab.pieces == (b"a", b"b", b"a", b"x")
    assert [token.id for token in ir.added_tokens] == [2, 3]
    assert codes(ir) == ["hf-unk-missing", "hf-duplicate-piece", "hf-added-id", "hf-control-reachable"]


@pytest.mark.parametrize(
    ("fields", "path", "what"),
    [
        ({"unk_id": 3}, "model.unk_id", "UnkIdNotInVocabulary"),
        ({"vocab": []}, "model.unk_id", "EmptyVocabulary"),
        ({"unk_id": -1}, "model.unk_id", "usize"),
        ({"vocab": {"a": 0}}, "model.vocab", "a sequence"),
        ({"vocab": [["a"]]}, "model.vocab[0]", "invalid length 1"),
        ({"vocab": [["a", 0, 1]]}, "model.vocab[0]", "invalid length 3"),
        ({"vocab": ["a"]}, "model.vocab[0]", "tuple"),
        ({"vocab": [["a", 0], [1, 0]]}, "model.vocab[1][0]", "a string"),
        ({"vocab": [["a", 0], ["b", "0"]]}, "model.vocab[1][1]", "f64"),
        ({"vocab": [["a", True]]}, "model.vocab[0][1]", "f64"),
        ({"byte_fallback": None}, "model.byte_fallback", "a boolean"),
    ],
)
def test_unigram_refused(fields: Any, path: str, what: str) -> None:
    error = refused(document(model=UNIGRAM | fields))
    assert error.location.path == path
    assert what in error.what


@pytest.mark.parametrize("model", [BPE, WORD_PIECE, WORD_LEVEL, UNIGRAM], ids=lambda model: model["type"])
def test_without_a_type(model: Any) -> None:
    ir = read_json(document(model={key: value for key, value in model.items() if key != "type"}))
    assert (ir.model.kind, ir.source.facts["model_typed"]) == (model["type"], False)
    assert "hf-model-untyped" in codes(ir)


def test_a_model_without_a_type_can_be_mistaken() -> None:
    value = document(model={"vocab": {"a": 0}, "merges": ["x"], "unk_token": "a"})
    assert library_agrees(value, loads=True)
    ir = read_json(value)
    assert ir.model.kind == "WordLevel"
    assert "hf-model-mistaken" in codes(ir)
    error = refused(document(model={"vocab": {"a": 0}, "merges": ["x"]}))
    assert error.location.path == "model.merges[0]"


@pytest.mark.parametrize("kind", ["Foo", None, 3, "bpe"])
def test_unknown_model(kind: Any) -> None:
    error = refused(document(model=BPE | {"type": kind}))
    assert isinstance(error, UnsupportedError)
    assert error.location.path == "model.type"


@pytest.mark.parametrize("dropout", [2, -0.1, True, "1"])
def test_dropout_refused(dropout: Any) -> None:
    assert refused(bpe(dropout=dropout)).location.path == "model.dropout"


def test_effective_ids() -> None:
    """The id in the file is not used; ids count from the number of entries, in file order."""
    tokens = [added("y", id=77), added("ab", id=5), added("x", id=4, special=False), added("y", id=9)]
    value = document(added_tokens=tokens)
    ir = read_json(value)
    assert [(token.content, token.id) for token in ir.added_tokens] == [(b"y", 4), (b"ab", 2), (b"x", 5)]
    assert ir.vocab.types.tolist() == [1, 1, PieceType.CONTROL, 1, PieceType.CONTROL, PieceType.USER_DEFINED]
    assert ir.vocab.attrs.tolist() == [4, 4, 12, 4, 8, 16]
    assert codes(ir) == ["hf-added-id"]
    assert "4 added tokens" in ir.findings[0].message
    assert our_ids(ir) == library_ids(value)


def test_added_token_fields() -> None:
    token = added("x", single_word=True, rstrip=True, normalized=True, special=False, id=4)
    assert read_json(document(added_tokens=[token])).added_tokens == (
        AddedToken(4, b"x", special=False, normalized=True, single_word=True, lstrip=False, rstrip=True),
    )
    assert read_json(document(added_tokens=[added(" ", id=4)])).added_tokens[0].content == b" "
    for field in added("x"):
        value = added("x")
        del value[field]
        error = refused(document(added_tokens=[added("y"), value]))
        assert (error.location.path, error.what) == ("added_tokens[1]", f"missing field `{field}`")
        error = refused(document(added_tokens=[added("x") | {field: 1.5}]))
        assert error.location.path == f"added_tokens[0].{field}"
    assert refused(document(added_tokens=[3])).location.path == "added_tokens[0]"


def test_empty_and_repeated_added_tokens() -> None:
    tokens = [added("", id=0), added("x", id=4), added("x", id=4), added("x", id=4, special=False)]
    ir = read_json(document(added_tokens=tokens))
    assert [(token.id, token.content, token.special) for token in ir.added_tokens] == [(4, b"x", True)]
    assert codes(ir) == ["hf-added-empty", "hf-duplicate-added"]


def test_equal_normal_forms() -> None:
    tokens = [AddedToken(0, b"X", normalized=True), AddedToken(1, b"x", normalized=True), AddedToken(2, b"x")]
    (finding,) = same_normal_forms(tokens, str.lower)
    assert (finding.code, finding.severity) == ("hf-added-same", Severity.REFUSE)
    assert not same_normal_forms(tokens, str)


def test_a_hundred_thousand_added_tokens_take_linear_time() -> None:
    data = json.dumps(document(added_tokens=[added(f"<{at}>", id=4 + at) for at in range(100_000)])).encode()
    start = time.process_time()
    ir = read_bytes(data)
    assert len(ir.vocab) == 100_004
    assert time.process_time() - start < 10
