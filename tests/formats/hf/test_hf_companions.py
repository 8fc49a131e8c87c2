"""The files beside tokenizer.json: roles, end of generation, templates, and what is carried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.formats.hf.hf_documents import added, codes, document
from tokpack.errors import FormatError, ReadError
from tokpack.formats import hf
from tokpack.ir import SpecialId, TokenizerIR

Folder = Callable[..., TokenizerIR]
TOKENS = [added("<s>", id=4), added("</s>", id=5), added("<pad>", id=6)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Write files (JSON values, or text) beside a small tokenizer.json and read the folder."""

    def build(files: dict[str, Any]) -> TokenizerIR:
        (tmp_path / "tokenizer.json").write_text(json.dumps(document(added_tokens=TOKENS)), encoding="utf-8")
        for name, value in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            text = value if isinstance(value, str) else json.dumps(value)
            (tmp_path / name).write_bytes(text.encode("utf-8"))
        return hf.read(tmp_path)

    return build


def test_a_folder_without_companions(folder: Folder) -> None:
    ir = folder({})
    assert (ir.specials.roles, ir.specials.eog, ir.chat_templates, ir.findings) == ({}, (), {}, ())


def test_no_tokenizer_json(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no tokenizer\.json"):
        hf.read(tmp_path)
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(ReadError, match=r"vocab\.txt"):
        hf.read(tmp_path)
    with pytest.raises(ReadError, match="nowhere"):
        hf.read(tmp_path / "nowhere.json")


def test_a_file_is_read_alone(folder: Folder, tmp_path: Path) -> None:
    folder({"tokenizer_config.json": {"bos_token": "<s>"}})
    ir = hf.read(tmp_path / "tokenizer.json")
    assert (ir.specials.roles, codes(ir)) == ({}, ["hf-companions-unread"])
    (tmp_path / "other.json").write_bytes((tmp_path / "tokenizer.json").read_bytes())
    assert not hf.read(tmp_path / "other.json").findings


def test_roles(folder: Folder) -> None:
    config = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "lstrip": False},
        "unk_token": None,
        "sep_token": "ab",
    }
    ir = folder({"tokenizer_config.json": config})
    assert ir.specials.roles == {
        "bos": SpecialId(4, "tokenizer_config.json: bos_token"),
        "eos": SpecialId(5, "tokenizer_config.json: eos_token"),
        "sep": SpecialId(2, "tokenizer_config.json: sep_token"),
    }
    assert ir.specials.eog == (5,)
    assert ir.extras["tokenizer_config.eos_token"] == ["json", config["eos_token"]]
    assert ir.source.facts["companions"] == "tokenizer_config.json"


def test_special_tokens_map_comes_second(folder: Folder) -> None:
    files = {"tokenizer_config.json": {"bos_token": "<s>"}, "special_tokens_map.json": {"bos_token": "</s>"}}
    ir = folder(files)
    assert ir.specials.roles["bos"] == SpecialId(5, "special_tokens_map.json: bos_token")
    files["tokenizer_config.json"] |= {"added_tokens_decoder": {}}  # type: ignore[dict-item]
    ir = folder(files)
    assert ir.specials.roles["bos"] == SpecialId(4, "tokenizer_config.json: bos_token")
    assert codes(ir) == ["hf-companion-unused"]


def test_a_special_that_is_no_token(folder: Folder) -> None:
    ir = folder({"tokenizer_config.json": {"bos_token": "<gone>", "eos_token": ""}})
    assert (ir.specials.roles, codes(ir)) == ({}, ["hf-special-missing"])


@pytest.mark.parametrize(
    ("eos", "eog", "role"), [(5, (5,), 5), ([6, 4], (4, 6), 6), ([5, 99], (5,), 5), (None, (), None), ([], (), None)]
)
def test_generation_config(folder: Folder, eos: Any, eog: Any, role: int | None) -> None:
    ir = folder({"generation_config.json": {"eos_token_id": eos, "suppress_tokens": [-1, 2], "top_k": 5}})
    assert (ir.specials.eog, ir.specials.get("eos"), ir.specials.suppress) == (eog, role, (2,))
    assert ir.extras == {"generation_config.top_k": ["json", 5]}
    assert codes(ir) == (["hf-special-missing"] if eos == [5, 99] else [])
    assert not ir.validate()


def test_generation_config_beside_a_tokenizer_config(folder: Folder) -> None:
    ir = folder({"tokenizer_config.json": {"eos_token": "</s>"}, "generation_config.json": {"eos_token_id": [6]}})
    assert (ir.specials.eog, ir.specials.get("eos")) == ((5, 6), 5)


def test_templates(folder: Folder) -> None:
    assert folder({"tokenizer_config.json": {"chat_template": "x"}}).chat_templates == {"default": "x"}
    named = [{"name": "default", "template": "x"}, {"name": "tool_use", "template": "y"}]
    ir = folder({"tokenizer_config.json": {"chat_template": named, "bos_token": {"content": "<s>"}}})
    assert ir.chat_templates == {"default": "x", "tool_use": "y"}
    assert ir.specials.get("bos") == 4
    assert "tokenizer_config.chat_template" not in ir.extras


def test_a_template_file_replaces_the_config(folder: Folder) -> None:
    ir = folder({"tokenizer_config.json": {"chat_template": "old"}, "chat_template.jinja": "new\r\nline\r"})
    assert ir.chat_templates == {"default": "new\nline\n"}
    assert codes(ir) == ["hf-template-replaced"]
    assert ir.extras["tokenizer_config.chat_template"] == ["json", "old"]
    ir = folder({"chat_templates/rag.jinja": "r"})
    assert ir.chat_templates == {"default": "new\nline\n", "rag": "r"}


def test_the_template_of_a_processor(folder: Folder) -> None:
    ir = folder({"chat_template.json": {"chat_template": "p"}})
    assert (ir.chat_templates, codes(ir)) == ({"default": "p"}, ["hf-template-processor"])
    ir = folder({"chat_template.jinja": "j"})
    assert (ir.chat_templates, codes(ir)) == ({"default": "j"}, ["hf-companion-unused"])


def test_other_keys_are_carried(folder: Folder) -> None:
    config = {
        "add_bos_token": False,
        "model_max_length": 10**30,
        "extra_special_tokens": ["<s>", "</s>"],
        "tokenizer_class": "FooTokenizer",
        "x": None,
    }
    ir = folder({"tokenizer_config.json": config})
    assert ir.extras == {
        "tokenizer_config.add_bos_token": ["json", False],
        "tokenizer_config.model_max_length": ["json-text", str(10**30)],
        "tokenizer_config.extra_special_tokens": ["json", ["<s>", "</s>"]],
        "tokenizer_config.tokenizer_class": ["json", "FooTokenizer"],
        "tokenizer_config.x": ["json", None],
    }
    assert msgpack.unpackb(msgpack.packb(ir.extras)) == ir.extras
    assert ir.source.facts["tokenizer_class"] == "FooTokenizer"
    deep = json.loads("[" * 40 + "]" * 40)
    ir = folder({"tokenizer_config.json": {"extra_special_tokens": {"image": "<s>"}, "deep": deep}})
    assert ir.extras["tokenizer_config.deep"] == ["json-text", json.dumps(deep)]


def test_added_tokens_elsewhere(folder: Folder) -> None:
    same = {"4": {"content": "<s>", "special": True}}
    assert not folder({"tokenizer_config.json": {"added_tokens_decoder": same}}).findings
    for other in (
        {"4": {"content": "<t>"}},
        {"4": {"content": "<s>", "lstrip": True}},
        {"99": {"content": "<s>"}},
        {"x": {"content": "<s>"}},
    ):
        ir = folder({"tokenizer_config.json": {"added_tokens_decoder": other}})
        assert codes(ir) == ["hf-companion-differs"]
        assert "tokenizer_config.added_tokens_decoder" in ir.extras
    ir = folder({"added_tokens.json": {"<s>": 4, "</s>": 7}, "tokenizer_config.json": {}})
    assert codes(ir) == ["hf-companion-differs"]


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("tokenizer_config.json", "{", "tokenizer_config.json: byte 1"),
        ("tokenizer_config.json", [], "tokenizer_config.json: "),
        ("tokenizer_config.json", {"bos_token": 3}, "tokenizer_config.json: bos_token: "),
        ("tokenizer_config.json", {"bos_token": {}}, "tokenizer_config.json: bos_token: "),
        ("tokenizer_config.json", {"chat_template": 3}, "tokenizer_config.json: chat_template: "),
        ("tokenizer_config.json", {"chat_template": [{"name": "x"}]}, "tokenizer_config.json: chat_template[0]: "),
        ("tokenizer_config.json", {"added_tokens_decoder": {"1": 2}}, "added_tokens_decoder['1']: "),
        ("generation_config.json", {"eos_token_id": "</s>"}, "generation_config.json: eos_token_id: "),
        ("generation_config.json", {"eos_token_id": [True]}, "generation_config.json: eos_token_id[0]: "),
        ("chat_template.json", [1], "chat_template.json: "),
    ],
)
def test_errors_name_the_file_and_the_key(folder: Folder, tmp_path: Path, name: str, value: Any, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        folder({name: value})
    assert where in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_template_that_is_not_utf8(folder: Folder, tmp_path: Path) -> None:
    folder({})
    (tmp_path / "chat_template.jinja").write_bytes(b"a\xff")
    with pytest.raises(FormatError, match=r"chat_template\.jinja: byte 1: not UTF-8"):
        hf.read(tmp_path)


def test_duplicate_keys_are_reported(folder: Folder) -> None:
    ir = folder({"tokenizer_config.json": '{"x": 1, "x": {"y": NaN}}'})
    assert codes(ir) == ["hf-duplicate-key"]
