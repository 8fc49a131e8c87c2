"""llama.cpp's Unigram in the real engine: scores, spaces, charsmap, unknown characters."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.conftest import FIXTURES
from tokpack.errors import UnsupportedError
from tokpack.formats.mnn import write_body
from tokpack.formats.mnn.lower import lower
from tokpack.formats.mnn.parts import Unigram
from tokpack.formats.mnn.unigram import NOT_MATCHED
from tokpack.ir import (
    Alphabet,
    AlphabetKind,
    Matching,
    MatchingRule,
    PieceAttr,
    PieceType,
    Reference,
    SpecialId,
    Specials,
    TokenizerIR,
    Vocab,
    steps,
)
from tokpack.ir import Unigram as UnigramIR

Ask = Callable[[bytes, str, Iterable[object]], list[Any]]
N, U, C, D, X = (PieceType.NORMAL, PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED, PieceType.UNUSED)
ATTRS = {N: PieceAttr.NORMAL, U: PieceAttr.UNKNOWN, C: PieceAttr.CONTROL, D: PieceAttr.USER_DEFINED}
BASE = (
    ("<unk>", 0.0, U),
    ("</s>", 0.0, C),
    ("▁", -3.0, N),
    ("a", -4.0, N),
    ("b", -5.0, N),
    ("▁a", -4.5, N),
    ("ab", -2.0, N),
    ("▁▁", -9.0, X),
)


def make(*more: tuple[str, float, PieceType], charsmap: Mapping[str, str] | None = None, **rest: Any) -> TokenizerIR:
    """``BASE`` and ``more``; ``merge`` and ``prefix`` are the two flags of the spaces."""
    entries = (*BASE, *more)
    flags = {"remove_extra_whitespaces": rest.pop("merge", False), "add_space_prefix": rest.pop("prefix", False)}
    step = steps.Precompiled(_blob(charsmap or {}), **flags)
    parts: dict[str, Any] = {
        "reference": Reference.LLAMA_CPP,
        "rules": "test",
        "unicode": "llamacpp-15.1",
        "vocab": Vocab(
            tuple(text.encode("latin-1" if text == "\xff" else "utf-8") for text, _, _ in entries),
            np.array([kind for _, _, kind in entries], np.uint8),
            np.array([ATTRS.get(kind, PieceAttr.UNUSED) for _, _, kind in entries], np.uint16),
            np.array([score for _, score, _ in entries], np.float32),
        ),
        "alphabet": Alphabet(AlphabetKind.UTF8),
        "model": UnigramIR(0),
        "matching": Matching(MatchingRule.PASS_PER_TOKEN),
        "normalizer": (step, steps.Replace(" ", "▁")),
        "decoder": (steps.LlamaDetokenize(False, unescape_spaces=True),),
        "post_processor": steps.BosEos(False, True),
        "specials": Specials({"eos": SpecialId(1, "key")}),
    }
    return TokenizerIR(**(parts | rest))


def _blob(table: Mapping[str, str]) -> bytes:
    if not table:
        return b""
    spec = importlib.util.spec_from_file_location("fixture_charsmap", FIXTURES / "charsmap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return bytes(module.charsmap({key.encode(): text.encode() for key, text in table.items()}))


def codes(ir: TokenizerIR) -> set[str]:
    return {finding.code for finding in lower(ir)[1]}


def test_scores() -> None:
    body, findings = lower(make(("user", -1.0, D), ("\xff", -1.0, N), ("byte", -1.0, PieceType.BYTE)))
    assert isinstance(body.model, Unigram)
    assert body.model.scores[:2] == (-15.0, NOT_MATCHED)  # lowest normal score minus ten; control pieces
    assert body.model.scores[6:9] == pytest.approx((-2.0, -9.0, 0.0), abs=1e-7)  # less what breaks ties
    assert body.model.scores[8:] == (0.0, NOT_MATCHED, NOT_MATCHED)
    assert (body.model.unk_id, body.model.byte_fallback) == (0, False)
    assert body.post_ops == (None, 1)
    assert {"mtok-unigram-ties", "mtok-add-eos"} <= {finding.code for finding in findings}


def test_paths_and_unknown_characters(ask: Ask) -> None:
    texts = ["ab", "aab", "xyab", "a b", "a  b", "", "</s>", "é"]
    expected = [[6], [3, 6], [0, 6], [3, 2, 4], [3, 2, 2, 4], [], [0], [0]]
    assert ask(write_body(make())[0], "encode", texts) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"prefix": True}, [[5], [2, 5], [2], [2, 2], [5, 2], [5, 2, 2, 4], [0, 2]]),
        ({"merge": True}, [[5], [5], [], [], [5], [5, 2, 4], [2, 0]]),
        ({}, [[3], [5], [2], [2, 2], [3, 2], [3, 2, 2, 4], [0, 2]]),
    ],
)
def test_spaces(flags: dict[str, bool], expected: list[list[int]], ask: Ask) -> None:
    texts = ["a", " a", " ", "  ", "a ", "a  b", "\x0e "]
    if flags.get("prefix"):
        expected[-1] = [2, 0, 2]
    assert ask(write_body(make(**flags))[0], "encode", texts) == expected


def test_runs_of_spaces_of_any_length(ask: Ask) -> None:
    texts = ["a" + " " * count + "b" for count in (1, 2, 3, 4095, 4096, 4097, 100_000)]
    assert ask(write_body(make(merge=True))[0], "encode", texts) == [[5, 2, 4]] * len(texts)


def test_a_piece_with_the_mark_that_shows_the_beginning() -> None:
    assert "mtok-prefix-space" in codes(make(("\x0e", -1.0, N), prefix=True))
    assert "mtok-prefix-space" not in codes(make(prefix=True))


def test_charsmap(ask: Ask) -> None:
    table = {"Ａ": "a", "\t": " ", "\u200d": "", "½": "a b", "ba": "x"}
    ir = make(charsmap=table, merge=True)
    assert "mtok-charsmap" in codes(ir)
    assert "mtok-charsmap" not in codes(make(charsmap={"Ａ": "a"}))
    answers = ask(write_body(ir)[0], "encode", ["ＡbＡ", "\t\tＡ\t", "Ａ\u200db", "½", "Ａ\u200e", "\t"])
    assert answers == [[2, 6, 3], [5], [2, 6], [5, 2, 4], [5, 0], []]


def test_user_defined_pieces_and_the_charsmap(ask: Ask) -> None:
    """llama.cpp copies what begins as a user-defined piece does, be it half a character."""
    ir = make(("éa", -1.0, D), ("à", -4.0, N), charsmap={"é": "a", "à": "b"})
    assert ask(write_body(ir)[0], "encode", ["é", "à", "a"]) == [[0], [0], [3]]
    assert "mtok-user-prefix" not in codes(ir)
    assert "mtok-user-prefix" in codes(make(("aé", -1.0, D)))
    assert "mtok-user-prefix" in codes(make(("xq", -1.0, D), charsmap={"q": "a"}))


def test_an_ordinary_unknown_piece_is_announced() -> None:
    assert "mtok-unknown-piece" in codes(make(model=UnigramIR(3)))
    assert "mtok-unknown-piece" not in codes(make())


def test_no_unknown_piece_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"\.tokpack") as caught:
        lower(make(model=UnigramIR(None)))
    assert caught.value.code == "mtok-no-unknown"


def test_scores_are_zero_without_scores() -> None:
    ir = make()
    vocab = Vocab(ir.vocab.pieces, ir.vocab.types, ir.vocab.attrs, None)
    model = lower(make(vocab=vocab))[0].model
    assert isinstance(model, Unigram)
    assert model.scores[:2] == (-10.0, NOT_MATCHED)
    assert model.scores[2:] == pytest.approx([0.0] * 6, abs=1e-7)  # less what breaks ties


@pytest.mark.parametrize("changes", [{"normalizer": ()}, {"pre_tokenizer": (steps.Digits(),)}])
def test_steps_that_llama_cpp_does_not_have_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"\.tokpack"):
        lower(make(**changes))
