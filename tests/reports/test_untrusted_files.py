"""Files that say something untrue about themselves: one clear error, in no time, whatever the numbers are."""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.hostile.gguf_builder import CONTROL, NORMAL, Key, gguf, vocabulary
from tests.hostile.guard import exercise, limit
from tests.reports.asking import HF, LLAMA, REFUSED, Ask, Case, each, recorded
from tests.reports.small import (
    BYTE_LEVEL,
    G,
    byte_bpe,
    file_of,
    gguf_bpe,
    gguf_ugm,
    hf,
    spm_keys,
    spm_model,
    unigram,
)  # fmt: skip
from tokpack.errors import FormatError, RefusedError, TokpackError
from tokpack.limits import DEFAULT

HEAD = b"GGUF" + struct.pack("<I", 3)
ARCHITECTURE = Key("general.architecture", "str", "llama")


def counts(tensors: int, keys: int) -> bytes:
    return HEAD + struct.pack("<QQ", tensors, keys)


@dataclass(frozen=True)
class Lie:
    """A file that is not what it says.

    Attributes:
        label: ids of the reports.
        make: the file.
        error: class of the error.
        says: what the message must hold.
        suffix: of the file name.
        options: of the reader.
    """

    label: str
    make: Callable[[], bytes]
    error: type[TokpackError]
    says: tuple[str, ...] = ()
    suffix: str = ".gguf"
    options: tuple[tuple[str, Any], ...] = ()


def spm(*more: Key) -> bytes:
    return file_of(spm_keys(["▁Hello"]), *more)


def scores(kind: str, *, short: int = 0) -> Callable[[], bytes]:
    def make() -> bytes:
        keys = {str(key.name): key for key in spm_keys(["▁Hello"])}
        size = len(keys[f"{G}tokens"].value) - short
        return spm(Key(f"{G}scores", kind, [0] * size))

    return make


def bad_offset() -> bytes:
    """A charsmap whose root unit points far beyond the array, for every first byte."""
    units = [0x7FFFFC00 | 0x200] * 256
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"x\0"


def few_tokens(model: str, count: int) -> bytes:
    merges = [Key(f"{G}merges", "[str]", ["a b"])] if model == "gpt2" else []
    tokens = Key(f"{G}tokens", "[str]", ["a"][:count])
    name = [Key(f"{G}model", "str", model), Key(f"{G}pre", "str", "gpt-2")]
    return gguf([ARCHITECTURE, *name, tokens, *merges])


COUNTS = (
    Lie("B001 empty key", lambda: counts(0, 1) + struct.pack("<QIB", 0, 0, 1), FormatError, ("byte 24",)),
    Lie("B009 an array of 2^63", lambda: gguf([Key("a", "[u8]", [], count=1 << 63)]), FormatError, ("a", "byte")),
    Lie("B012 a string of 2^30", lambda: gguf([Key("a", "str", "x", count=1 << 30)]), FormatError, ("a", "byte")),
    Lie("B013 a string of 2^64-1", lambda: gguf([Key("a", "str", "x", count=(1 << 64) - 1)]), FormatError, ("byte",)),
    Lie("B013 a key of 2^64-1", lambda: gguf([Key("a", "u8", 1, key_length=(1 << 64) - 1)]), FormatError, ("byte",)),
    Lie("B021 keys without end", lambda: counts(0, (1 << 64) - 1), FormatError, ("byte",)),
    Lie("B021 a string near 2^63", lambda: gguf([Key("a", "str", "", count=(1 << 63) - 1)]), FormatError, ("byte",)),
    Lie("B025 2^60 keys", lambda: counts(0, 1 << 60) + bytes(100), FormatError, ("byte",)),
    Lie("B025 element type 99", lambda: gguf([Key("a", "[u8]", [1], item_type=99)]), FormatError, ("99",)),
    Lie("B025 value type 99", lambda: gguf([Key("a", "u8", 1, type=99)]), FormatError, ("99",)),
    Lie("B025 length times size", lambda: gguf([Key("a", "[u64]", [], count=(1 << 61) + 1)]), FormatError, ("byte",)),
    Lie(
        "C28 cut inside the last key",
        lambda: gguf([ARCHITECTURE, Key("a", "str", "long text")])[:-4],
        FormatError,
        ("byte",),
    ),
    Lie("C28 the same key twice", lambda: gguf([ARCHITECTURE, ARCHITECTURE]), FormatError, ("general.architecture",)),
    Lie("C28 nothing", lambda: b"", FormatError),
    Lie("C28 magic alone", lambda: b"GGUF", FormatError, ("byte",)),
    *(
        Lie(f"B016 no tokens of {model}", lambda model=model: few_tokens(model, 0), TokpackError)
        for model in ("llama", "gpt2", "bert", "t5", "rwkv", "plamo2")
    ),
    Lie("B003 scores of bytes", scores("[u8]"), RefusedError, (f"{G}scores",)),
    Lie(
        "B003 types of bytes", lambda: spm(Key(f"{G}token_type", "[u8]", [1] * 269)), RefusedError, (f"{G}token_type",)
    ),
    Lie("B005 one score too few", scores("[f32]", short=1), RefusedError, (f"{G}scores",)),
    Lie(
        "B022 an id that is a text",
        lambda: spm(Key(f"{G}bos_token_id", "str", "1")),
        TokpackError,
        (f"{G}bos_token_id",),
    ),
    Lie("B022 tokens that are numbers", lambda: spm(Key(f"{G}tokens", "[u32]", [1, 2])), TokpackError, (f"{G}tokens",)),
    Lie(
        "B022 a flag that is a number",
        lambda: spm(Key(f"{G}add_bos_token", "u32", 1)),
        TokpackError,
        (f"{G}add_bos_token",),
    ),
    Lie(
        "B014 a long piece",
        lambda: gguf(vocabulary([("x" * 5000, NORMAL)])),
        FormatError,
        ("limit",),
        options=(("limits", changed(DEFAULT, piece_bytes=4096)),),
    ),
    Lie("B045 no merges", lambda: gguf(vocabulary(merges=None)), RefusedError, ("merges",)),
    Lie("B028 cut off", lambda: hf(byte_bpe())[:-20], FormatError, (), ".json"),
    Lie("B028 another type", lambda: b'{"version": "1.0", "model": []}', FormatError, ("model",), ".json"),
    Lie("B028 a list", lambda: b'["model", "added_tokens"]', FormatError, (), ".json"),
    Lie(
        "B026 C12 a merge without result",
        lambda: hf(byte_bpe() | {"merges": [["a", "b"], ["aa", "bb"]]}),
        FormatError,
        ("merges[",),
        ".json",
    ),
    Lie(
        "B030 model",
        lambda: spm_model([("a", -1.0)], 1, normalizer={"precompiled_charsmap": bad_offset()}),
        TokpackError,
        (),
        ".model",
    ),
    Lie("B183 a wrong name", lambda: b"no tokenizer at all", FormatError, (), ".model"),
    Lie("B190 an empty tokenizer.txt", lambda: b"430 1\n", TokpackError, (), ".txt"),
)


@pytest.mark.parametrize("lie", COUNTS, ids=[lie.label for lie in COUNTS])
def test_numbers_that_do_not_fit(lie: Lie, tmp_path: Path) -> None:
    """One error of the right class that says where, in a moment."""
    path = tmp_path / f"case{lie.suffix}"
    path.write_bytes(lie.make())
    with limit(2), pytest.raises(lie.error) as caught:
        tokpack.load(path, **dict(lie.options))
    for part in (path.name, *lie.says):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def tensor(dims: tuple[int, ...], n_dims: int | None = None) -> bytes:
    info = struct.pack("<Q", 1) + b"t" + struct.pack("<I", len(dims) if n_dims is None else n_dims)
    return info + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", 0, 0)


@pytest.mark.parametrize(
    "infos",
    [tensor((1 << 42, 1 << 42, 1 << 42, 1 << 42)), tensor((1 << 63, 2)), tensor((), 1 << 31), tensor((4, 4))],
    ids=[
        "B006 a product that wraps",
        "B008 two to the 64",
        "B008 dimensions without end",
        "B023 more than the file has",
    ],
)
def test_tensor_sizes_do_not_matter_to_a_tokenizer(infos: bytes, tmp_path: Path) -> None:
    """B006, B008, B023: tensors are not looked at, and nothing of them is copied into what we write."""
    path = tmp_path / "case.gguf"
    path.write_bytes(gguf(vocabulary(), tensors=1) + infos)
    with limit(2):
        assert tokpack.load(path).encode("Hello world 123") == [259, 264, 266, 51]
        tokpack.convert(path, tmp_path / "out.tokpack")
    (tmp_path / "plain.gguf").write_bytes(gguf(vocabulary(), tensors=0))
    tokpack.convert(tmp_path / "plain.gguf", tmp_path / "plain.tokpack")
    assert abs((tmp_path / "out.tokpack").stat().st_size - (tmp_path / "plain.tokpack").stat().st_size) < 200


def test_a_large_alignment_costs_nothing(tmp_path: Path) -> None:
    """B012."""
    path = tmp_path / "case.gguf"
    path.write_bytes(gguf([*vocabulary(), Key("general.alignment", "u32", 1 << 30)]))
    with limit(2):
        assert tokpack.load(path).encode("Hello") == [259]


# --- what is odd, but can be read ------------------------------------------------------------------------------------


def codes(path: Path) -> set[str]:
    return {found.code for found in tokpack.read(path).findings}


@each(
    Case(
        "B002 B051 B052 the same text twice",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", [], [("twin", NORMAL), ("twin", NORMAL)])),
        (Ask("a"),),
        code="gguf-duplicate-pieces",
    ),
    Case(
        "B002 B016 add_bos without BOS",
        LLAMA,
        lambda: gguf_ugm([("▁a", -1.0), ("a", -2.0)], add_bos_token=True),
        (Ask("a"), Ask("a", add=True)),
        code="gguf-special-id-missing",
        note="llama.cpp ends on encoding with special tokens; here that is an EncodeError",
    ),
    Case(
        "B018 B042 a BPE that calls itself SPM",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", ["Hi"], [("<|begin|>", CONTROL)]), Key(f"{G}model", "str", "llama")),
        (Ask("Hi"), Ask("\n"), Ask("é")),
        code="gguf-byte-missing",
    ),
    Case(
        "B018 no byte pieces",
        LLAMA,
        lambda: file_of(spm_keys(["▁Hello"], byte=False)),
        (Ask("Hello"), Ask("🦙"), Ask("\n")),
    ),
    Case(
        "B047 EOS beyond the vocabulary",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["Hi"], bos_token_id=0, eos_token_id=257, add_eos_token=True)),
        (Ask("Hi"), Ask("Hi", add=True)),
        code="gguf-id-range",
    ),
    Case(
        "B066 no BOS key",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", ["Hi"], eos_token_id=5)),
        (Ask("Hi", add=True, pieces="Hi"),),
        code="gguf-bos-default",
        note="llama.cpp names id 11 as BOS, but adds it only if the file asks for it",
    ),
    Case(
        "C29 the misspelt separator",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["Hi"], seperator_token_id=7, padding_token_id=8, unknown_token_id=9)),
        (Ask("Hi", add=True),),
    ),
)
def test_odd_metadata(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    *(
        Case(f"B016 one token of {model}", LLAMA, lambda model=model: few_tokens(model, 1), (Ask("a"), Ask("b")))
        for model in ("llama", "gpt2", "bert", "t5", "rwkv", "plamo2")
    )
)
def test_a_vocabulary_of_one_piece(case: Case, tmp_path: Path) -> None:
    """Loads, refuses and ends where llama.cpp does; where that ends the process, there is an error."""
    case.check(tmp_path)


def test_a_bpe_that_calls_itself_spm_is_suspected(tmp_path: Path) -> None:
    """B018, B042: merges that the named model does not use, and no byte pieces: the finding says what it looks like."""
    path = tmp_path / "case.gguf"
    path.write_bytes(file_of(gguf_bpe("llama-bpe", ["Hi"]), Key(f"{G}model", "str", "llama")))
    (found,) = [one for one in tokpack.read(path).findings if one.code == "gguf-byte-missing"]
    assert "byte-level BPE" in str(found.fix)
    with pytest.raises(RefusedError):
        tokpack.convert(path, tmp_path / "out.tokpack", strict=True)


def test_the_same_text_twice_can_be_looked_at(tmp_path: Path) -> None:
    """B002, B051, B052: refused by default as in llama.cpp, with both ids named; allowed, every id decodes."""
    path = tmp_path / "case.gguf"
    extra = [("twin", NORMAL), ("twin", NORMAL), ("other", NORMAL), ("other", NORMAL)]
    path.write_bytes(file_of(gguf_bpe("gpt-2", [], extra)))
    with pytest.raises(RefusedError) as caught:
        tokpack.load(path)
    assert caught.value.code == "gguf-duplicate-pieces"
    assert "256" in str(caught.value)
    tokenizer = tokpack.load(path, allow={"gguf-duplicate-pieces"})
    assert [tokenizer.decode([token]) for token in range(256, 260)] == ["twin", "twin", "other", "other"]
    assert tokenizer.encode("twin") == tokenizer.encode("twin")


def test_roles_have_the_names_of_the_format(tmp_path: Path) -> None:
    """C29, B066: exact key names, misspelling included; what is absent is not made up."""
    path = tmp_path / "case.gguf"
    keys = gguf_bpe("gpt-2", ["Hi"], seperator_token_id=7, padding_token_id=8, unknown_token_id=9)
    path.write_bytes(file_of(keys))
    tokenizer = tokpack.load(path)
    assert [tokenizer.special_id(role) for role in ("sep", "pad", "unk")] == [7, 8, 9]
    path.write_bytes(file_of(keys, without=("seperator_token_id", "padding_token_id", "unknown_token_id")))
    assert [tokpack.load(path).special_id(role) for role in ("sep", "pad", "unk")] == [None] * 3


def test_the_number_of_pieces_is_that_of_the_pieces(tmp_path: Path) -> None:
    """B053: a key that counts padding rows of the model changes nothing."""
    path = tmp_path / "case.gguf"
    path.write_bytes(file_of(gguf_bpe("gpt-2"), Key("llama.vocab_size", "u32", 300)))
    assert tokpack.load(path).vocab_size == 256


# --- merges in two spellings -----------------------------------------------------------------------------------------


@each(
    *(
        Case(
            f"B043 {spelling}",
            HF,
            lambda spelling=spelling: hf(
                byte_bpe([" the", " a"])
                | {
                    "merges": [
                        pair if spelling == "lists" else " ".join(pair) for pair in byte_bpe([" the", " a"])["merges"]
                    ]
                },
                pre_tokenizer=BYTE_LEVEL,
            ),
            (Ask(" the a", pieces="Ġthe Ġa"), Ask("the tha")),
        )
        for spelling in ("lists", "lines")
    )
)
def test_both_spellings_of_merges(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_both_spellings_of_merges_are_one_model(tmp_path: Path) -> None:
    """B043."""
    answers = recorded()
    assert answers["B043 lists"]["answers"] == answers["B043 lines"]["answers"]


@pytest.mark.parametrize("kind", ["HF", "GGUF"])
def test_a_charsmap_that_points_outside(kind: str, tmp_path: Path) -> None:
    """B030: every step is checked, so a text is an error or has ids, and nothing is read outside."""
    import base64

    if kind == "HF":
        blob = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bad_offset()).decode()}
        data, name = hf(unigram(("a", -1.0)), normalizer=blob), "a.json"
    else:
        data = file_of([], *_ugm_keys(), Key(f"{G}precompiled_charsmap", "[u8]", list(bad_offset())))
        name = "a.gguf"
    (tmp_path / name).write_bytes(data)
    with limit(5):
        try:
            tokenizer = tokpack.load(tmp_path / name)
        except TokpackError:
            return
        exercise(tokenizer)


def _ugm_keys() -> list[Key]:
    tokens = ["<pad>", "</s>", "<unk>", "a"]
    return [
        Key("general.architecture", "str", "t5"),
        Key(f"{G}model", "str", "t5"),
        Key(f"{G}tokens", "[str]", tokens),
        Key(f"{G}token_type", "[i32]", [3, 3, 2, 1]),
        Key(f"{G}scores", "[f32]", [0.0, 0.0, 0.0, -1.0]),
        Key(f"{G}unknown_token_id", "u32", 2),
    ]


# --- templates are never run -----------------------------------------------------------------------------------------

ATTACK = '{{ lipsum.__globals__["os"].system("touch pwned") }}\x1b[31m'


def test_a_chat_template_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B031: it is text that is carried, shown escaped, and nothing more; there is no Jinja in it."""
    from click.testing import CliRunner

    from tokpack.cli.main import cli

    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "jinja2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)  # an import would fail
    Path("case.gguf").write_bytes(gguf([*vocabulary(), Key("tokenizer.chat_template", "str", ATTACK)]))
    assert tokpack.load("case.gguf").chat_templates == {"default": ATTACK}
    tokpack.convert("case.gguf", "case.tokpack")
    tokpack.convert("case.gguf", "case.mtok")
    for args in (["inspect", "case.gguf"], ["inspect", "-v", "case.tokpack"], ["encode", "case.mtok", "--text", "a"]):
        shown = CliRunner().invoke(cli, args)
        assert shown.exit_code == 0, shown.output
        assert "\x1b" not in shown.output
    assert tokpack.load("case.tokpack").chat_templates == {"default": ATTACK}
    assert not Path("pwned").exists()


# --- large files -----------------------------------------------------------------------------------------------------

PIECES = 262_144


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF with as many pieces and merges as Gemma has."""
    path = tmp_path_factory.mktemp("large") / "large.gguf"
    words = [f"{number:x}" for number in range(PIECES - 400)]
    pieces = list(dict.fromkeys([*vocabulary()[4].value, *words]))
    merges = [f"{word[:-1]} {word[-1]}" for word in words if len(word) > 1]
    keys = {str(key.name): key for key in vocabulary(types=False, merges=merges)}
    keys[f"{G}tokens"] = Key(f"{G}tokens", "[str]", pieces)
    path.write_bytes(gguf(keys.values()))
    return path


def test_a_large_vocabulary_is_read_in_one_pass(large: Path) -> None:
    """B012, B032, B064, B065: a second or so for a quarter of a million pieces and as many merges."""
    start = time.process_time()
    tokenizer = tokpack.load(large)
    assert tokenizer.encode("12345")
    assert time.process_time() - start < 10  # about 1 on the machine of the benchmarks


def added_tokens(count: int) -> bytes:
    tokens = [
        {"id": 256 + at, "content": f"<|extra_{at}|>", "special": at % 2 == 0}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for at in range(count)
    ]
    return hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL, added_tokens=tokens)


def test_many_added_tokens_cost_time_in_proportion(tmp_path: Path) -> None:
    """B063: 5,000 and 20,000 of them; a square would take sixteen times as long, not four."""
    spent = []
    for count in (5_000, 20_000):
        path = tmp_path / f"{count}.json"
        path.write_bytes(added_tokens(count))
        start = time.process_time()
        tokenizer = tokpack.load(path)
        assert tokenizer.encode(f"<|extra_{count - 1}|>") == [255 + count]
        spent.append(time.process_time() - start)
    assert spent[1] < 9 * spent[0] + 0.5


@pytest.mark.slow
def test_a_hundred_thousand_added_tokens(tmp_path: Path) -> None:
    """B063: the number in the report."""
    path = tmp_path / "many.json"
    path.write_bytes(added_tokens(100_000))
    start = time.process_time()
    assert tokpack.load(path).encode("a<|extra_77777|>b") == [97, 256 + 77_777, 98]
    assert time.process_time() - start < 60


def test_counts_of_files_that_llama_refuses_too() -> None:
    """What the records say about refusals, so that a change of the reference is noticed."""
    refused = {label for label, entry in recorded().items() if entry["answers"] == REFUSED}
    assert "B002 B051 B052 the same text twice" in refused
