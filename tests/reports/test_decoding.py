"""From ids to text: all at once, and one by one as a model gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tokpack
from tests.conftest import SharedData
from tests.hostile.gguf_builder import CONTROL, NORMAL, spell
from tests.reports.asking import HF, LLAMA, SPM, TIK, Ask, Case, each
from tests.reports.small import (
    BYTE_LEVEL,
    added,
    byte_bpe,
    char_bpe,
    file_of,
    gguf_bpe,
    gguf_spm,
    hf,
    metaspace,
    ranks,
    spm_model,
)  # fmt: skip

EMOJI = tuple("🦙".encode())  # byte ``b`` is id ``b`` in the byte-level toys
LLAMA_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level() -> bytes:
    extra = [spell("\ufffd"), spell(" \ufffd"), spell("é")[:1]]
    return hf(byte_bpe(["ab"], extra), pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL)


def like_llama() -> bytes:
    model = char_bpe(["▁Hello", "▁world"], [*BYTES, "<unk>", "▁"], unk_token="<unk>", byte_fallback=True)
    return hf(model, pre_tokenizer=metaspace(), decoder=LLAMA_DECODER, added_tokens=[added(300, "<s>")])


def spm_gguf() -> bytes:
    return gguf_spm(["▁Hello", "▁world", "깰"])


def spm() -> bytes:
    rows = [(text, -2.0 - at / 8) for at, text in enumerate(["▁", "▁Hello", "▁world", "a"])]
    return spm_model(rows, 2, bytes=True)


def byte(value: int) -> int:
    """Id of a byte piece in :func:`spm_gguf` and :func:`spm`."""
    return 3 + value


KOREAN = tuple("깰".encode())


@each(
    Case(
        "B160 B161 B170 byte-level, GGUF",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["ab"])),
        (
            Ask(ids=EMOJI, stream=True, back="🦙"),
            Ask(ids=(97, *EMOJI, 98), stream=True, back="a🦙b"),
            Ask(ids=(*"中文".encode(), 97), stream=True, back="中文a"),
            Ask(ids=(97, 0xE4, 0xB8, 97), stream=True),
        ),
    ),
    Case(
        "B160 B161 B170 byte-level, tokenizer.json",
        HF,
        byte_level,
        (
            Ask(ids=EMOJI, stream=True, back="🦙"),
            Ask(ids=(97, *EMOJI, 98), stream=True, back="a🦙b"),
            Ask(ids=(*"中文".encode(), 97), stream=True, back="中文a"),
            Ask(ids=(97, 0xE4, 0xB8, 97), stream=True),
        ),
    ),
    Case(
        "B161 B162 byte pieces, GGUF",
        LLAMA,
        spm_gguf,
        (
            Ask(ids=tuple(map(byte, KOREAN)), stream=True, back="깰"),
            Ask(ids=tuple(map(byte, KOREAN)), back="깰"),
            Ask(ids=tuple(map(byte, EMOJI)), stream=True, back="🦙"),
        ),
    ),
    Case(
        "B161 B162 byte pieces, tokenizer.json",
        HF,
        like_llama,
        (
            Ask(ids=KOREAN, back="깰"),
            Ask(ids=KOREAN, stream=True, back="깰"),
            Ask(ids=(*EMOJI, 0x41), stream=True),
            Ask(ids=(0xEA, 0xB9, 0x41), back="\ufffd\ufffd\ufffd"),  # the library: one for each byte of the run
        ),
    ),
    Case(
        "B161 B162 byte pieces, model",
        SPM,
        spm,
        (Ask(ids=tuple(map(byte, KOREAN)), back="깰"), Ask(ids=tuple(map(byte, EMOJI)), back="🦙")),
    ),
    Case(
        "B160 bytes, tiktoken",
        TIK,
        lambda: ranks([b"ab"]),
        (Ask(ids=EMOJI, back="🦙"), Ask(ids=(97, 0xE4), back="a\ufffd")),
        options=(("pattern", r"\w+|\W"),),
    ),
)
def test_a_character_over_several_ids(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize("make", [spm, lambda: ranks([b"ab"])], ids=["model", "tiktoken"])
def test_a_character_over_several_ids_is_held_back(make: object, tmp_path: Path) -> None:
    """B160, B161, B166: the references have no streaming here; the text is that of decoding all at once."""
    data: bytes = make()  # type: ignore[operator]
    path = tmp_path / "case"
    path.write_bytes(data)
    first = 3 if make is spm else 0
    tokenizer = tokpack.load(path, **({} if make is spm else {"pattern": r"\w+|\W"}))
    stream = tokenizer.stream()
    parts = [stream.push(first + value) for value in "a🦙b".encode()]
    assert parts == ["a", "", "", "", "🦙", "b"]
    assert stream.flush() == ""


REPLACEMENT = 257  # id of U+FFFD as a piece of its own in the byte-level toys, 258 with a space before it


@each(
    Case(
        "B157 a genuine replacement character, GGUF",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["ab"], [(spell("\ufffd"), NORMAL), (spell(" \ufffd"), NORMAL)])),
        (
            Ask(ids=(REPLACEMENT,), stream=True, back="\ufffd"),
            Ask(ids=(97, REPLACEMENT + 1), stream=True, back="a \ufffd"),
        ),
    ),
    Case(
        "B157 a genuine replacement character, tokenizer.json",
        HF,
        byte_level,
        (
            Ask(ids=(97, REPLACEMENT, 98), stream=True, back="a\ufffdb"),
            Ask(ids=(97, REPLACEMENT + 1, 98, 98), stream=True, back="a \ufffdbb"),
            Ask(ids=(97, REPLACEMENT), stream=True, back="a"),
        ),
        note="the library waits for one more id, and so do we; flush() gives what is left",
    ),
)
def test_a_genuine_replacement_character_in_a_stream(case: Case, tmp_path: Path) -> None:
    tokenizer = case.check(tmp_path)
    assert tokenizer is not None
    stream = tokenizer.stream()
    assert stream.push(97) + stream.push(REPLACEMENT) + stream.flush() == "a\ufffd"


@each(
    Case(
        "B155 text that changes, like Llama",
        HF,
        like_llama,
        (
            Ask(ids=(257, 257, 263), stream=True),
            Ask(ids=(263, 270, 263), stream=True),
            Ask(ids=(0xEA, 263, 0xB9, 0xB0), stream=True),
            Ask(ids=(0x20, 0x20, 257, 0xC3, 0xA9), stream=True),
            Ask(ids=(300, 263, 300), stream=True),
        ),
    ),
    Case(
        "B155 text that changes, WordPiece",
        HF,
        lambda: hf(
            {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {"[UNK]": 0, "do": 1, "n't": 2, "##n": 3, "'": 4, ".": 5, "##.": 6, "not": 7},
            },
            pre_tokenizer={"type": "BertPreTokenizer"},
            decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        ),
        (Ask(ids=(1, 2, 5), stream=True), Ask(ids=(1, 4, 1, 5), stream=True), Ask(ids=(1, 7, 6, 4, 4), stream=True)),
        note="where the text so far changes, the library raises; here it is an EncodeError",
    ),
)
def test_a_stream_whose_text_changes(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_a_stream_of_gemma_3(shared_data: SharedData) -> None:
    """B155: the id of the report, alone, between others and next to itself."""
    tokenizer = tokpack.load(shared_data("data/hf/gemma3/tokenizer.json"))
    for ids in ([237167], [9259, 237167, 9259], [237167, 237167]):
        stream = tokenizer.stream()
        assert "".join(map(stream.push, ids)) + stream.flush() == tokenizer.decode(ids)


HELLO, WORLD = 4 + 256, 5 + 256  # in :func:`spm`


@each(
    Case(
        "B166 B168 spaces, GGUF",
        LLAMA,
        lambda: gguf_spm(["▁Hello", "▁world"], [("<|x|>", CONTROL)]),
        (
            Ask("Hello world", pieces="▁Hello ▁world"),
            Ask(ids=(271, 276, 271), stream=True, back=" Hello world Hello"),
            Ask(ids=(271, 276), back="Hello world"),
            Ask(ids=(1, 271, 276), back=" Hello world"),
        ),
        note="behind BOS the first space stays in llama.cpp's text: it belongs to the piece",
    ),
    Case(
        "B164 B168 spaces, tokenizer.json",
        HF,
        like_llama,
        (Ask(ids=(263, 268, 263), stream=True), Ask(ids=(268,)), Ask(ids=(263,), stream=True)),
    ),
)
def test_spaces_in_a_stream(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(("name", "make"), [("a.gguf", spm_gguf), ("a.json", like_llama), ("a.model", spm)])
def test_a_stream_gives_the_text_of_the_whole(name: str, make: object, tmp_path: Path) -> None:
    """B160, B164, B166, B168: one by one, nothing is lost but the first space that decoding takes away, too."""
    (tmp_path / name).write_bytes(make())  # type: ignore[operator]
    tokenizer = tokpack.load(tmp_path / name)
    for text in ("Hello world", "Hello  world 🦙", "Hello\n world", "깰 Hello"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        stream = tokenizer.stream()
        whole = "".join(map(stream.push, ids)) + stream.flush()
        assert whole.lstrip(" ") == tokenizer.decode(ids).lstrip(" ")
        assert text.split(" ")[-1] in whole


def test_the_space_of_a_continuation_can_be_kept(tmp_path: Path) -> None:
    """B164: a piece's own bytes have it; decoding a list takes the first space away, as the reference does."""
    for name, make in (("a.gguf", spm_gguf), ("a.model", spm)):
        (tmp_path / name).write_bytes(make())
        tokenizer = tokpack.load(tmp_path / name)
        token = tokenizer.token_to_id("▁world")
        assert token is not None
        assert tokenizer.id_to_bytes(token) == b" world"
        assert tokenizer.decode([token]) == "world"


@pytest.mark.parametrize(("name", "make"), [("a.gguf", spm_gguf), ("a.json", like_llama), ("a.model", spm)])
def test_text_comes_back_without_an_extra_space(name: str, make: object, tmp_path: Path) -> None:
    """B172."""
    (tmp_path / name).write_bytes(make())  # type: ignore[operator]
    tokenizer = tokpack.load(tmp_path / name)
    for text in ("Hello world", "Hello", "Hello world world", " Hello", "  Hello"):
        if name == "a.gguf" or not text.startswith(" "):  # the others fold the space into the prefix
            assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize("name", ["demo.gguf", "spm.gguf", "hf/gpt2.json", "hf/llama2.json", "sentencepiece/bpe.model"])
@pytest.mark.parametrize("bad", [-1, -(2**31), 2**31, 2**63, 2**64])
def test_ids_outside_the_vocabulary(name: str, bad: int, tmp_path: Path) -> None:
    """B054, B156: an error that names the id, or no text where the library gives none; never a wrong piece."""
    from tests.conftest import FIXTURES

    tokenizer = tokpack.load(FIXTURES / name)
    calls = (
        lambda: tokenizer.decode([0, bad]),
        lambda: tokenizer.stream().push(bad),
        lambda: tokenizer.id_to_token(bad),
        lambda: tokenizer.id_to_bytes(bad),
    )
    for call in calls[2:] if tokenizer.reference == "huggingface" else calls:
        with pytest.raises(tokpack.EncodeError, match=str(bad)):
            call()
    if tokenizer.reference == "huggingface":
        assert tokenizer.decode([0, bad]) == tokenizer.decode([0])


def test_an_id_between_the_vocabulary_and_the_model(shared_data: SharedData) -> None:
    """B053, B054: padding rows of a model are no ids of its tokenizer."""
    tokenizer = tokpack.load(shared_data("data/hf/gpt2/tokenizer.json"))
    assert tokenizer.vocab_size == 50257
    with pytest.raises(tokpack.EncodeError, match="50257"):
        tokenizer.id_to_token(50257)
