"""What kind of file this is, what is shown of it, and chat templates as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tokpack
from tests.conftest import FIXTURES
from tests.hostile.gguf_builder import CONTROL, USER_DEFINED, Key
from tests.reports.asking import HF, LLAMA, Ask, Case, each, texts
from tests.reports.small import BYTE_LEVEL, G, added, byte_bpe, file_of, gguf_bpe, gguf_spm, hf, ranks, spm_model
from tokpack.cli.main import cli

KINDS = {
    "gguf": lambda: gguf_spm(["▁a"]),
    "tokenizer.json": lambda: hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL),
    "sentencepiece": lambda: spm_model([("▁a", -1.0), ("a", -2.0)], 2, bytes=True),
    "tiktoken": lambda: ranks([b"ab"]),
}


@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer.txt", "tokenizer", "vocab.bin"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_is_known_by_content(kind: str, name: str, tmp_path: Path) -> None:
    """B183, B192: Llama 3 calls a rank file ``tokenizer.model``; the name says nothing."""
    path = tmp_path / name
    path.write_bytes(KINDS[kind]())
    assert tokpack.read(path).source.format == kind
    options = {"pattern": r"\w+|\W"} if kind == "tiktoken" else {}
    assert tokpack.load(path, **options).encode("a")


@pytest.mark.parametrize("wrong", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_kind_is_an_error_at_load(kind: str, wrong: str, tmp_path: Path) -> None:
    """B192: also when the caller insists on it."""
    path = tmp_path / "tokenizer"
    path.write_bytes(KINDS[kind]())
    if kind != wrong:
        with pytest.raises(tokpack.TokpackError) as caught:
            tokpack.load(path, format=wrong)
        assert str(path) in str(caught.value)


def test_slow_tokenizers_are_an_error_at_convert(tmp_path: Path) -> None:
    """B185: a folder without a tokenizer that is read is refused there and then, and nothing is written."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "SlowTokenizer"}')
    (folder / "vocab.json").write_text("{}")
    with pytest.raises(tokpack.TokpackError):
        tokpack.convert(folder, tmp_path / "out.tokpack")
    assert not (tmp_path / "out.tokpack").exists()


def test_pieces_are_shown_in_both_spellings(tmp_path: Path) -> None:
    """B195: the byte-level spelling is not what the piece means."""
    (tmp_path / "a.json").write_bytes(hf(byte_bpe(["渡江"]), pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL))
    tokenizer = tokpack.load(tmp_path / "a.json")
    (piece,) = tokenizer.pieces("渡江")
    assert (piece.text, piece.bytes) == ("渡江", "渡江".encode())
    assert tokenizer.id_to_token(piece.id) == "æ¸¡æ±Ł"
    shown = CliRunner().invoke(cli, ["encode", str(tmp_path / "a.json"), "--text", "渡江", "--json"])
    assert json.loads(shown.output)["pieces"][0]["text"] == "渡江"


def test_special_tokens_of_two_files_can_be_compared(tmp_path: Path) -> None:
    """B058: GGUF and tokenizer.json may name another EOS; each file is shown as it is."""
    extra = [("<eos>", CONTROL), ("<turn|>", CONTROL)]
    (tmp_path / "a.gguf").write_bytes(file_of(gguf_bpe("gpt-2", [], extra, eos_token_id=257, bos_token_id=0)))
    (tmp_path / "b.gguf").write_bytes(file_of(gguf_bpe("gpt-2", [], extra, eos_token_id=256, bos_token_id=0)))
    found = [
        json.loads(CliRunner().invoke(cli, ["inspect", str(tmp_path / name), "--json"]).output)
        for name in ("a.gguf", "b.gguf")
    ]
    assert tokpack.load(tmp_path / "a.gguf").eos_id == 257
    assert tokpack.load(tmp_path / "b.gguf").eos_id == 256
    assert found[0] != found[1]


def test_arguments_are_taken_literally(tmp_path: Path) -> None:
    r"""B175: ``--text 'a\nb'`` is a backslash and an n; ``--file`` and ``-`` take any bytes."""
    (tmp_path / "text").write_bytes(b"a\nb")
    demo = str(FIXTURES / "demo.gguf")
    literal = CliRunner().invoke(cli, ["encode", demo, "--text", r"a\nb"]).output
    from_file = CliRunner().invoke(cli, ["encode", demo, "--file", str(tmp_path / "text")]).output
    tokenizer = tokpack.load(demo)
    assert literal.split() == [str(token) for token in tokenizer.encode("a\\nb")]
    assert from_file.split() == [str(token) for token in tokenizer.encode("a\nb")]
    assert literal != from_file


# --- what a lint would say -------------------------------------------------------------------------------------------


@each(
    Case(
        "B059 markers typed as user-defined",
        LLAMA,
        lambda: file_of(gguf_bpe("qwen2", ["Hi"], [("<|tool>", USER_DEFINED), ("<tool|>", USER_DEFINED)])),
        (
            Ask("<|tool>Hi<tool|>", pieces="<|tool> Hi <tool|>"),
            Ask("<|tool>", parse=False, pieces="<|tool>"),
            Ask(ids=(257, 256), back="<|tool>Hi"),
        ),
        note="user-defined pieces are matched in any text and shown, in llama.cpp and here; the type decides",
    ),
    Case(
        "B067 specials by type and by text",
        LLAMA,
        lambda: gguf_spm(["▁Hi"], [("<s2>", CONTROL), ("[INST]", USER_DEFINED), ("</x>", 1)]),
        (Ask("<s2>[INST]</x>Hi"), Ask("<s2>[INST]</x>Hi", parse=False)),
        note="only the type makes a piece special, but for the end-of-turn texts that llama.cpp knows by name",
    ),
    Case(
        "B012 a plain file",
        HF,
        lambda: hf(byte_bpe(["Hi"]), pre_tokenizer=BYTE_LEVEL, added_tokens=[added(300, "<x>")]),
        texts("Hi<x>"),
        code="hf-added-id",
    ),
)
def test_types_of_pieces_decide(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


# --- chat templates --------------------------------------------------------------------------------------------------


def folder_with(tmp_path: Path, config: dict[str, object], **files: str) -> Path:
    (tmp_path / "tokenizer.json").write_bytes(
        hf(byte_bpe(), pre_tokenizer=BYTE_LEVEL, added_tokens=[added(256, "<s>"), added(257, "</s>")])
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    return tmp_path


def test_a_template_beside_the_configuration(tmp_path: Path) -> None:
    """B173: the file wins over the key, and that is said."""
    folder = folder_with(tmp_path, {"chat_template": "from key"}, chat_template__jinja="from file")
    assert tokpack.load(folder).chat_templates["default"] == "from file"
    assert "hf-template-replaced" in {found.code for found in tokpack.read(folder).findings}


def test_a_template_alone_beside_the_file(tmp_path: Path) -> None:
    """B173."""
    folder = folder_with(tmp_path, {}, chat_template__jinja="from file")
    assert tokpack.load(folder).chat_templates["default"] == "from file"


@pytest.mark.parametrize("bos", ["<s>", {"content": "<s>", "lstrip": False, "__type": "AddedToken"}])
@pytest.mark.parametrize(
    "template", ["one", [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "two"}]]
)
def test_shapes_of_templates_and_of_tokens(template: object, bos: object, tmp_path: Path) -> None:
    """B057, B174: one template or a list of named ones; a token as text or as an object."""
    tokenizer = tokpack.load(
        folder_with(tmp_path, {"chat_template": template, "bos_token": bos, "add_bos_token": False})
    )
    assert tokenizer.chat_templates["default"] == "one"
    assert tokenizer.chat_templates.get("tool_use") == (None if template == "one" else "two")
    assert tokenizer.bos_id == 256
    assert tokenizer.encode("a") == [97]  # add_bos_token belongs to transformers; tokenizer.json decides


TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m['role'].title() }}: {{ m['content'].strip() }}\n{% endfor %}"


@pytest.mark.parametrize("target", ["out.tokpack", "out.mtok"])
def test_a_template_is_carried_letter_by_letter(target: str, tmp_path: Path) -> None:
    """B177, B179: names and methods in it are the business of whoever renders it."""
    path = tmp_path / "a.gguf"
    path.write_bytes(file_of(gguf_bpe("qwen2", ["Hi"]), Key("tokenizer.chat_template", "str", TEMPLATE)))
    tokpack.convert(path, tmp_path / target)
    for name in ("a.gguf", target):
        assert tokpack.load(tmp_path / name).chat_templates == {"default": TEMPLATE}


def test_the_rules_of_a_file_can_be_chosen_without_changing_it(tmp_path: Path) -> None:
    """B061: ``--pre`` reads with another pre-tokenizer; the source keeps its bytes."""
    path = tmp_path / "a.gguf"
    data = file_of(gguf_bpe("gpt-2", ["1234"]), Key(f"{G}add_bos_token", "bool", False))
    path.write_bytes(data)
    assert len(tokpack.load(path).encode("1234")) == 1
    tokpack.convert(path, tmp_path / "a.tokpack", read_options={"pre": "qwen2"})
    assert len(tokpack.load(tmp_path / "a.tokpack").encode("1234")) == 4
    assert path.read_bytes() == data
