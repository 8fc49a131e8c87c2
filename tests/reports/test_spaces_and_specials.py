"""Spaces around special tokens and at the start, and which texts are special tokens at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tokpack
from tests.conftest import SharedData
from tests.hostile.gguf_builder import CONTROL, NORMAL, USER_DEFINED, Key
from tests.reports.asking import HF, LLAMA, TIK, Ask, Case, each, texts
from tests.reports.small import (
    BYTE_LEVEL,
    G,
    added,
    byte_bpe,
    char_bpe,
    file_of,
    gguf_bpe,
    gguf_spm,
    hf,
    metaspace,
    ranks,
    spm_keys,
)  # fmt: skip

WORDS = ["▁Hello", "▁This", "This", "▁is", "text", "▁text", "user", "▁user", "▁world", "▁▁▁", "▁"]
CHAT = [("<|im_end|>", USER_DEFINED), ("<|im_start|>", USER_DEFINED)]
CONTROLS = [("<|im_end|>", CONTROL), ("<|im_start|>", CONTROL)]


def plain_spm() -> bytes:
    return gguf_spm(WORDS)


def chat_spm() -> bytes:
    return gguf_spm(WORDS, CHAT)


def chat_spm_without_prefix() -> bytes:
    return gguf_spm(WORDS, CONTROLS, add_space_prefix=False)


@each(
    Case(
        "B100 B101 first word",
        LLAMA,
        plain_spm,
        (
            Ask("This is", pieces="▁This ▁is"),
            Ask("Hello", pieces="▁Hello"),
            Ask(" Hello", pieces="▁ ▁Hello"),
            Ask("  Hello", pieces="▁▁ ▁Hello"),
            Ask("   Hello", pieces="▁▁▁ ▁Hello"),
            Ask("   Hello", add=True, pieces="<s> ▁▁▁ ▁Hello"),
            *texts("", " ", "\n"),
        ),
    ),
    Case(
        "B105 infill without prefix",
        LLAMA,
        lambda: gguf_spm(WORDS, add_space_prefix=False),
        (Ask("This", pieces="This"), Ask(" This", pieces="▁This"), Ask(" text", pieces="▁text")),
        note="the prefix is a property of the file (add_space_prefix), not of a call, here and in llama.cpp",
    ),
)
def test_the_space_before_the_first_word(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_the_space_before_the_first_word_of_llama_2(shared_data: SharedData) -> None:
    """B100, B101, B136: the ids in the reports."""
    tokenizer = tokpack.load(shared_data("data/gguf/ggml-vocab-llama-spm.gguf"))
    assert tokenizer.encode("This is 🦙.cpp")[:2] == [1, 910]
    for text, ids in {"Hello": [15043], " Hello": [29871, 15043], "  Hello": [259, 15043]}.items():
        assert tokenizer.encode(text) == [1, *ids]
    assert tokenizer.encode("   Hello") == [1, 1678, 15043]
    train = [1, 450, 7945, 338, 8401, 1407, 5172, 29991]
    assert tokenizer.encode("The train is moving very fast!") == train


@each(
    Case(
        "B106 after a control token",
        LLAMA,
        chat_spm_without_prefix,
        (
            Ask("<s>text</s>", pieces="<s> text </s>"),
            Ask("<|im_start|>user", pieces="<|im_start|> user"),
            Ask("<s> text</s>", pieces="<s> ▁text </s>"),
        ),
    ),
    Case(
        "B108 after a chat marker with a prefix",
        LLAMA,
        chat_spm,
        (Ask("<|im_start|>user"), Ask("Hello<|im_start|>user"), Ask("<|im_start|> user")),
        note="llama.cpp puts the prefix behind every special token while add_space_prefix is true",
    ),
    Case(
        "B109 adjacent markers",
        LLAMA,
        chat_spm,
        (Ask("<|im_start|><|im_end|>", pieces="<|im_start|> <|im_end|>"), Ask("<|im_start|><|im_end|>\n")),
        note="the newline after the second marker gets the prefix while add_space_prefix is true",
    ),
    Case(
        "B109 adjacent markers without a prefix",
        LLAMA,
        chat_spm_without_prefix,
        (Ask("<|im_start|><|im_end|>\n", pieces="<|im_start|> <|im_end|> <0x0A>"),),
    ),
    *(
        Case(
            f"B103 B104 metaspace {scheme or 'unsaid'}",
            HF,
            lambda scheme=scheme: hf(
                char_bpe(["▁Hello", "Hello", "▁world"], ["<unk>", "▁"], unk_token="<unk>"),
                pre_tokenizer=metaspace(scheme),
                decoder=metaspace(scheme),
                added_tokens=[added(30, "<s>")],
            ),
            (
                Ask("Hello", pieces=first),
                Ask("<s>Hello", pieces=f"<s> {behind}"),
                Ask("Hello<s>Hello", pieces=f"{first} <s> {behind}"),
                Ask("Hello world<s> world"),
            ),
        )
        for scheme, first, behind in (
            ("never", "Hello", "Hello"),
            ("first", "▁Hello", "Hello"),
            ("always", "▁Hello", "▁Hello"),
            (None, "▁Hello", "▁Hello"),
        )
    ),
)
def test_the_space_after_a_special_token(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    "keys",
    [
        {"add_prefix_space": True},
        {"add_prefix_space": True, "prepend_scheme": "always"},
        {"add_prefix_space": True, "prepend_scheme": "first"},
        {"add_prefix_space": False, "prepend_scheme": "never"},
        {"add_prefix_space": False, "prepend_scheme": "always"},
        {"add_prefix_space": False},
    ],
)
def test_prepend_scheme_decides_over_add_prefix_space(keys: dict[str, object], tmp_path: Path) -> None:
    """B103: both keys, or the older one alone; where the library refuses the pair, so is it here."""
    tokenizers = pytest.importorskip("tokenizers", reason="asks the library itself")
    model = char_bpe(["▁Hello", "Hello"], ["<unk>", "▁"], unk_token="<unk>")
    path = tmp_path / "tokenizer.json"
    path.write_bytes(hf(model, pre_tokenizer={"type": "Metaspace", "replacement": "▁"} | keys))
    try:
        theirs = tokenizers.Tokenizer.from_file(str(path)).encode("Hello").ids
    except Exception:  # the library raises nothing more special
        with pytest.raises(tokpack.TokpackError, match="add_prefix_space"):
            tokpack.load(path)
        return
    assert tokpack.load(path).encode("Hello") == theirs


MARKERS = [
    "<｜User｜>",
    "<｜begin▁of▁sentence｜>",
    "[toxicity=0]",
    "<|im_start|>",
    "<|im_end|>",
    "<|channel>",
    "<channel|>",
]


@each(
    Case(
        "B111 B112 B113 user-defined in SPM",
        LLAMA,
        lambda: gguf_spm(WORDS, [(text, USER_DEFINED) for text in MARKERS]),
        tuple(
            ask
            for text in MARKERS
            for ask in (
                Ask(text, pieces=text),
                Ask(text, parse=False, pieces=None if text == "<|im_end|>" else text),
                Ask(f"This{text}is"),
            )
        ),
        note="llama.cpp makes <|im_end|> control by its name, so with parse_special=False it is cut",
    ),
    Case(
        "B111 B112 B113 control in BPE",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", ["user"], [(text, CONTROL) for text in MARKERS])),
        tuple(ask for text in MARKERS for ask in (Ask(text, pieces=text), Ask(text, parse=False))),
    ),
    Case(
        "B120 after punctuation",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", ["user"], CONTROLS)),
        (
            Ask(".<|im_end|>", pieces=". <|im_end|>"),
            Ask("!<|im_end|>\n", pieces="! <|im_end|> Ċ"),
            Ask("user.<|im_end|>", pieces="user . <|im_end|>"),
        ),
    ),
    Case(
        "B120 after punctuation, tokenizer.json",
        HF,
        lambda: hf(byte_bpe(["user"]), pre_tokenizer=BYTE_LEVEL, added_tokens=[added(260, "<|im_end|>")]),
        (Ask(".<|im_end|>", pieces=". <|im_end|>"), Ask("user.<|im_end|>!")),
    ),
)
def test_a_marker_is_one_id(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_a_marker_is_one_id_in_deepseek(shared_data: SharedData) -> None:
    """B112: between full-width bars."""
    tokenizer = tokpack.load(shared_data("data/hf/deepseek_v4/tokenizer.json"))
    assert len(tokenizer.encode("<｜User｜>", add_special_tokens=False)) == 1


@each(
    Case(
        "B115 control",
        LLAMA,
        lambda: file_of(gguf_bpe("gpt-2", [], [("<|channel>", CONTROL), ("<channel|>", CONTROL)])),
        (
            Ask("<|channel><channel|>", parse=False, pieces="< | c h a n n e l > < c h a n n e l | >"),
            Ask("<|channel><channel|>", pieces="<|channel> <channel|>"),
        ),
    ),
    Case(
        "B115 tokenizer.json",
        HF,
        lambda: hf(
            byte_bpe(), pre_tokenizer=BYTE_LEVEL, added_tokens=[added(256, "<|channel>"), added(257, "<channel|>")]
        ),
        (
            Ask("<|channel><channel|>", parse=False, pieces="< | c h a n n e l > < c h a n n e l | >"),
            Ask("<|channel><channel|>", pieces="<|channel> <channel|>"),
        ),
    ),
    Case(
        "B125 special text in tiktoken",
        TIK,
        lambda: ranks([b"end"]),
        (
            Ask("a<|endoftext|>", parse=False),
            Ask("a<|endoftext|>", pieces="a <|endoftext|>"),
        ),
        options=(("pattern", r"\w+|[^\w\s]+|\s+"), ("special_tokens", {"<|endoftext|>": 300})),
        note="tiktoken raises for special text unless told what to do; here parse_special says it, and nothing raises",
    ),
)
def test_special_text_from_outside_stays_text(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B121 lstrip and rstrip",
        HF,
        lambda: hf(
            byte_bpe(),
            pre_tokenizer=BYTE_LEVEL,
            added_tokens=[
                added(256, "<|start|>", lstrip=True, rstrip=True),
                added(257, "<|left|>", lstrip=True),
                added(258, "<|right|>", rstrip=True),
                added(259, "<|none|>"),
            ],
        ),
        (
            Ask("   <|start|>  a", pieces="<|start|> a"),
            Ask("a \n<|left|> a", pieces="a <|left|> Ġ a"),
            Ask("a <|right|> \ta", pieces="a Ġ <|right|> a"),
            Ask(" <|none|> ", pieces="Ġ <|none|> Ġ"),
            Ask("  <|start|> <|left|>   <|right|> "),
        ),
    ),
    Case(
        "B122 B123 newline behind a marker",
        LLAMA,
        lambda: file_of(
            spm_keys(WORDS, [("<|end|>", CONTROL), ("<|assistant|>", CONTROL)]),
            Key("general.name", "str", "phi-3 toy"),
            Key(f"{G}add_space_prefix", "bool", False),
        ),
        (Ask("<|end|>\n<|assistant|>\n"), Ask("<|end|>\n\n<|assistant|>text"), Ask("text<|end|>\n")),
        note="files named phi-3 lose white space behind control tokens in llama.cpp, by a rule of its own",
    ),
    Case(
        "B122 B123 no flag, no loss",
        HF,
        lambda: hf(
            byte_bpe(),
            pre_tokenizer=BYTE_LEVEL,
            decoder=BYTE_LEVEL,
            added_tokens=[added(256, "<|end|>"), added(257, "<|assistant|>")],
        ),
        (
            Ask("<|end|>\n<|assistant|>\n", pieces="<|end|> Ċ <|assistant|> Ċ"),
            Ask(ids=(256, 198, 257, 198), special=True),
        ),
    ),
)
def test_white_space_beside_a_special_token(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_decoded_text_of_chat_encodes_to_the_same_ids(shared_data: SharedData) -> None:
    """B122, B123: Phi-3, as GGUF and tokenizer.json: the first way back may lose white space, later ones nothing."""
    for name in ("data/gguf/ggml-vocab-phi-3.gguf", "data/hf/phi3_mini/tokenizer.json"):
        tokenizer = tokpack.load(shared_data(name))
        ids = tokenizer.encode("<|user|>\nHi there<|end|>\n<|assistant|>\n", add_special_tokens=False)
        again = tokenizer.encode(tokenizer.decode(ids, skip_special_tokens=False), add_special_tokens=False)
        assert again == ids, name


@each(
    Case(
        "B124 an added token of one space",
        HF,
        lambda: hf(
            char_bpe(["Foo", "bar"], ["<unk>"], unk_token="<unk>"), added_tokens=[added(11, " ", special=False)]
        ),
        (Ask("Foo bar"), Ask(" "), Ask("Foo  bar ")),
    ),
    Case(
        "B159 an added token outside the byte alphabet",
        HF,
        lambda: hf(
            byte_bpe(),
            pre_tokenizer=BYTE_LEVEL,
            decoder=BYTE_LEVEL,
            added_tokens=[added(256, "<文>"), added(257, "→x", special=False)],
        ),
        (Ask("a<文>b"), Ask(ids=(97, 256, 98), special=True, back="a<文>b"), Ask(ids=(257, 97), back="→xa")),
    ),
)
def test_odd_contents_of_added_tokens(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_an_added_token_of_one_space_survives_a_pack(tmp_path: Path) -> None:
    """B124."""
    model = char_bpe(["Foo", "bar"], ["<unk>"], unk_token="<unk>")
    (tmp_path / "tokenizer.json").write_bytes(hf(model, added_tokens=[added(11, " ", special=False)]))
    tokpack.convert(tmp_path / "tokenizer.json", tmp_path / "out.tokpack")
    space = tokpack.load(tmp_path / "out.tokpack").token_to_id(" ")
    assert space is not None
    assert space in tokpack.load(tmp_path / "out.tokpack").encode("Foo bar")


@each(
    Case(
        "B126 control tokens in a text",
        LLAMA,
        lambda: file_of(gguf_bpe("llama-bpe", ["Hi"], [("<|eot_id|>", CONTROL)], eos_token_id=257)),
        (Ask(ids=(72, 257), back="H"), Ask(ids=(72, 257), special=True, back="H<|eot_id|>")),
    ),
    Case(
        "B127 harmony markers",
        LLAMA,
        lambda: file_of(
            gguf_bpe(
                "gpt-4o",
                ["Hi"],
                [(text, NORMAL) for text in ("<|start|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>")],
            )
        ),
        (Ask("<|start|>Hi<|end|>"), Ask("<|return|><|call|>"), Ask("<|end|>", parse=False)),
        note="llama.cpp makes some texts control by their names alone; which ones is its list",
    ),
)
def test_whether_control_tokens_are_shown(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@pytest.mark.slow
def test_harmony_markers_are_control_in_gpt_oss(shared_data: SharedData) -> None:
    """B127."""
    tokenizer = tokpack.load(shared_data("data/hf/gptoss/tokenizer.json"))
    token = tokenizer.token_to_id("<|start|>")
    assert token is not None
    assert tokenizer.is_special(token)
    assert tokenizer.decode(tokenizer.encode("<|start|>a", add_special_tokens=False)) == "a"


@each(
    *(
        Case(
            f"B056 B117 B128 add_bos {flag} template {template}",
            LLAMA,
            lambda flag=flag, template=template: file_of(
                gguf_bpe("llama-bpe", ["Hi"], [("<|begin|>", CONTROL)], bos_token_id=257, eos_token_id=257),
                *([] if flag is None else [Key(f"{G}add_bos_token", "bool", flag)]),
                *([Key("tokenizer.chat_template", "str", "{{ bos_token }}{{ messages }}")] if template else []),
            ),
            (Ask("Hi", add=True), Ask("<|begin|>Hi", add=True), Ask("<|begin|>Hi", pieces="<|begin|> Hi")),
            note="whoever renders a template that writes BOS calls encode with add_special_tokens=False",
        )
        for flag in (None, False, True)
        for template in (False, True)
    )
)
def test_bos_comes_from_the_call_and_the_file_alone(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


@each(
    Case(
        "B056 absent is not false",
        LLAMA,
        plain_spm,
        (Ask("This", add=True, pieces="<s> ▁This"),),
    ),
    Case(
        "B056 false is kept",
        LLAMA,
        lambda: gguf_spm(WORDS, add_bos_token=False),
        (Ask("This", add=True, pieces="▁This"),),
    ),
    Case(
        "B056 EOS too",
        LLAMA,
        lambda: gguf_spm(WORDS, add_bos_token=False, add_eos_token=True),
        (Ask("This", add=True, pieces="▁This </s>"),),
    ),
)
def test_add_bos_and_add_eos_of_the_file(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_extra_special_tokens_as_a_list_or_a_mapping(tmp_path: Path) -> None:
    """B069: nothing about it is an error, and the ids do not depend on it."""
    (tmp_path / "tokenizer.json").write_bytes(
        hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL, added_tokens=[added(256, "<|im_start|>"), added(257, "<|im_end|>")])
    )
    for value in (["<|im_start|>", "<|im_end|>"], {"start": "<|im_start|>", "end": "<|im_end|>"}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_special_tokens": value}))
        assert tokpack.load(tmp_path).encode("<|im_start|>a") == [256, tokpack.load(tmp_path).token_to_id("a")]
