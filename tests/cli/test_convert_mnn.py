"""What ``tokpack convert`` does for MNN: versions, parts left out, test vectors, tokenizer.txt."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tokpack
from tests.conftest import FIXTURES
from tokpack.cli.main import cli
from tokpack.errors import ExistsError, LossError, UsageError
from tokpack.findings import Severity
from tokpack.formats.mnn import parts
from tokpack.formats.mnn.read_body import read_body
from tokpack.formats.mnn.write_mtok import MNN_VERSIONS, render

DEMO = FIXTURES / "demo.gguf"


def test_vectors_tell_what_the_engine_will_give(tmp_path: Path) -> None:
    target, vectors = tmp_path / "out.mtok", tmp_path / "vectors.jsonl"
    tokpack.convert(FIXTURES / "ugm.gguf", target, write_options={"vectors": str(vectors)})
    head, *lines = [json.loads(line) for line in vectors.read_text("ascii").splitlines()]
    size = head["file_bytes"]
    assert head["schema"] == "tokpack.vectors/1"
    assert head["file_sha256"] == hashlib.sha256(target.read_bytes()[:size]).hexdigest()
    assert head["texts"] == len(lines) > 200
    assert head["same"] == sum(line["same"] for line in lines) < len(lines)  # ties of Unigram fall otherwise
    reference, device = tokpack.load(target), tokpack.load(target, format="mnn")
    for line in lines:
        assert line["ids"] == reference.encode(line["text"])
        assert line["mnn"] == device.encode(line["text"])
        assert line["same"] == (line["ids"] == line["mnn"])
    kinds = {line["kind"] for line in lines}
    assert {"plain", "special", "long-piece", "emoji", "mtok-unigram-ties"} <= kinds


def test_vectors_never_overwrite_the_source(tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(DEMO.read_bytes())
    with pytest.raises(ExistsError):
        tokpack.convert(source, tmp_path / "out.mtok", force=True, write_options={"vectors": str(source)})
    with pytest.raises(ExistsError):
        tokpack.convert(source, tmp_path / "out.mtok", write_options={"vectors": str(tmp_path / "out.mtok")})
    assert source.read_bytes() == DEMO.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]


def test_each_loss_of_ids_that_has_an_example_shows_it_there() -> None:
    ir = tokpack.read(FIXTURES / "hf" / "added-flags.json")
    losses = [loss for loss in render(ir).losses if loss.severity is Severity.IDS and loss.example]
    assert {"mtok-single-word", "mtok-strip-token"} <= {loss.code for loss in losses}
    from tokpack.formats.mnn.compare import Comparison

    pair = Comparison(ir, render(ir, index="none").files[0][1])
    for loss in losses:
        expected, found = pair.ids(str(loss.example))
        assert expected != found, loss.code


@pytest.mark.parametrize("version", MNN_VERSIONS)
def test_no_version_meets_what_it_cannot_read(version: str) -> None:
    """3.5.0 dies of a Strip and of an empty step in a Sequence: we write neither."""
    for name in ("demo.gguf", "wpm.gguf", "hf/bert.json", "hf/word-level.json"):
        if not (FIXTURES / name).exists():
            continue
        rendered = render(tokpack.read(FIXTURES / name), index="none", mnn_version=version, examples=False)
        body = read_body(rendered.files[0][1])
        assert not any(isinstance(step, parts.Strip) for step in body.normalizer)
        codes = {loss.code for loss in rendered.losses}
        assert version != "head" or not codes & {"mtok-add-eos", "mtok-add-sep"}


def test_what_comes_behind_a_text_is_no_loss_for_engines_that_read_it() -> None:
    ir = tokpack.read(FIXTURES / "wpm.gguf")
    codes = [{loss.code for loss in render(ir, mnn_version=v, examples=False).losses} for v in ("3.6.1", "head")]
    assert codes[0] - codes[1] == {"mtok-add-sep"}


def test_the_chat_template_can_be_dropped(tmp_path: Path) -> None:
    with_it, without = tmp_path / "a.mtok", tmp_path / "b.mtok"
    tokpack.convert(DEMO, with_it)
    tokpack.convert(DEMO, without, write_options={"drop": ("chat-template",)})
    assert tokpack.load(with_it).chat_templates
    assert not tokpack.load(without).chat_templates
    assert tokpack.load(without, format="mnn").chat_templates == {}
    assert tokpack.load(with_it).encode("Hello") == tokpack.load(without).encode("Hello")


@pytest.mark.parametrize(
    "options", [{"mnn_version": "3.4.0"}, {"drop": ("vocabulary",)}, {"index": "elsewhere"}, {"nonsense": 1}]
)
def test_unknown_options_are_usage_errors(options: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        tokpack.convert(DEMO, tmp_path / "out.mtok", write_options=options)
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path) -> None:
    target, vectors = tmp_path / "out.mtok", tmp_path / "v.jsonl"
    arguments = ["convert", str(DEMO), str(target), "--mnn-version", "head", "--drop", "chat-template"]
    done = CliRunner().invoke(cli, [*arguments, "--vectors", str(vectors), "-q"])
    assert done.exit_code == 0, done.output
    assert json.loads(vectors.read_text("ascii").split("\n", 1)[0])["engine"] == "MNN head"


def test_tokenizer_txt_is_refused_until_its_losses_are_allowed(tmp_path: Path) -> None:
    target = tmp_path / "tokenizer.txt"
    with pytest.raises(LossError) as caught:
        tokpack.convert(FIXTURES / "gpt-2.gguf", target)
    assert caught.value.code.startswith("mnn-txt-")
    assert not target.exists()
    codes = [loss.code for loss in tokpack.formats.mnn.write_text.render(tokpack.read(FIXTURES / "gpt-2.gguf")).losses]
    tokpack.convert(FIXTURES / "gpt-2.gguf", target, allow=codes)
    assert tokpack.load(target).reference == "mnn"


def test_tokenizer_txt_that_holds_everything_gives_the_same_ids(tmp_path: Path) -> None:
    """RWKV is what type 1 does: the longest piece at each byte."""
    source, target = FIXTURES / "rwkv.gguf", tmp_path / "tokenizer.txt"
    tokpack.convert(source, target, allow=("mnn-txt-added",))
    one, other = tokpack.load(source), tokpack.load(target)
    for text in ("Hello world", "a b  c\n\nd", "12345 +-*", "naïve 中文"):
        assert one.encode(text) == other.encode(text)


def test_an_export_of_mnn_keeps_its_ids(tmp_path: Path) -> None:
    """.mtok → IR → .mtok: the body is the same to the engine."""
    for source in sorted((FIXTURES / "mnn").glob("*.mtok")):
        target = tmp_path / source.name
        try:
            ir = tokpack.read(source, format="mnn")
            tokpack.write(ir, target, force=True)
        except tokpack.TokpackError:
            continue
        again = tokpack.read(target, format="mnn")
        one, other = (tokpack.formats.mnn.from_ir.from_ir(x) for x in (ir, again))
        assert one.special == other.special
        assert one.normalizer == other.normalizer
        assert one.pre_tokenizer == other.pre_tokenizer
        assert one.model.pieces == other.model.pieces
