"""What is read of a file to look at it: the same facts from a file as from its pack, and as much as there is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import tokpack
from tests.analysis.sparse import TENSORS, make_sparse
from tests.conftest import FIXTURES, ROOT, SharedData
from tokpack.analysis import layout, open_subject, render_summary, summarize
from tokpack.analysis.subject import subject_of_view
from tokpack.api import open_view
from tokpack.errors import FormatError, TokpackError, UnsupportedError
from tokpack.formats.gguf.header import read_header, read_partial
from tokpack.formats.gguf.layout import look

DEMO = FIXTURES / "demo.gguf"
READABLE = sorted([*FIXTURES.glob("*.gguf"), *FIXTURES.glob("hf/*.json"), *FIXTURES.glob("sentencepiece/*.model")])
READABLE += sorted([*FIXTURES.glob("tiktoken/*.tiktoken"), *FIXTURES.glob("tiktoken/*tekken*.json")])
SCHEMAS = ROOT / "tokpack" / "analysis" / "schemas"


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def as_json(facts: object) -> object:
    """Through JSON and back, strictly."""
    return json.loads(json.dumps(facts, default=lambda value: value.hex(), allow_nan=False))


def test_every_fixture_has_the_same_facts_as_its_pack_and_fits_the_schema() -> None:
    checked = 0
    schema = validator("inspect")
    for path in READABLE:
        try:
            subject = open_subject(path)
        except TokpackError as error:
            with pytest.raises(type(error)):
                tokpack.read(path)
            continue
        facts = summarize(subject)
        schema.validate(as_json(facts))
        lines = render_summary(facts).splitlines()
        assert max(map(len, lines)) <= 80
        try:
            view, _ = open_view(path)
        except TokpackError:
            assert path.name == "refused-regex.json"
            continue
        packed = summarize(subject_of_view(view))
        schema.validate(as_json(packed))
        own = {"size", "format", "keys"}
        assert {k: v for k, v in facts.items() if k not in own} == {k: v for k, v in packed.items() if k not in own}
        checked += 1
    assert checked > 120


def test_types_are_counted_as_llamacpp_read_them() -> None:
    facts = summarize(open_subject(DEMO))
    with np.load(FIXTURES / "golden" / "demo.npz") as golden:
        assert facts["vocabulary"]["pieces"] == len(golden["attrs"])
        assert facts["vocabulary"]["types"]["control"] == int(((golden["attrs"] & 8) != 0).sum())


@pytest.mark.parametrize("name", ["demo", "big-endian", "spm", "version-2"])
def test_a_file_cut_off_anywhere_is_inspected_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    data = (FIXTURES / f"{name}.gguf").read_bytes()
    header = read_header(data)
    path = tmp_path / "cut.gguf"
    schema = validator("inspect")
    places = sorted({*range(0, 300, 7), *range(300, header.end, header.end // 60), header.end - 1, header.end})
    for size in places:
        path.write_bytes(data[:size])
        if size < 24:
            with pytest.raises(TokpackError):
                open_subject(path)
            continue
        facts = summarize(open_subject(path))
        schema.validate(as_json(facts))
        codes = {finding["code"]: finding["severity"] for finding in facts["findings"]}
        whole = size == header.end
        assert facts["complete"] == whole
        assert (codes.get("gguf-cut-off") == "refuse") != whole
        keys = [entry["key"] for entry in facts["keys"]]
        assert keys == list(header.entries)[: len(keys)]
        for entry in facts["keys"][:-1]:
            source = header.entries[entry["key"]]
            assert (entry["type"], entry["count"], entry["offset"]) == (source.type_name, source.count, source.offset)
        assert f"{size:,}" in render_summary(facts)
        if not whole:
            with pytest.raises(FormatError):
                tokpack.read(path)


def test_partial_reading_equals_whole_reading_of_whole_files() -> None:
    for path in sorted(FIXTURES.glob("*.gguf")):
        data = path.read_bytes()
        whole, (part, cut) = read_header(data), read_partial(data)
        assert cut is None
        assert (whole.version, whole.tensor_count, whole.end) == (part.version, part.tensor_count, part.end)
        assert list(whole.entries) == list(part.entries)


def test_a_huge_count_in_a_small_file_is_damage_or_a_cut_never_work(tmp_path: Path) -> None:
    data = bytearray(DEMO.read_bytes())
    entry = read_header(bytes(data)).entries["tokenizer.ggml.tokens"]
    for count in (1 << 40, (1 << 64) - 1):
        data[entry.offset + 4 : entry.offset + 12] = count.to_bytes(8, "little")
        (tmp_path / "bad.gguf").write_bytes(data)
        with pytest.raises(FormatError):
            open_subject(tmp_path / "bad.gguf")


def test_keys_count_limit_and_garbage_tensor_infos(tmp_path: Path) -> None:
    data = DEMO.read_bytes()
    for count in (1, 1 << 20, 1 << 63):
        seen = look(data[:8] + count.to_bytes(8, "little") + data[16:])
        (finding,) = seen.findings
        assert finding.code == "gguf-cut-off"
    (tmp_path / "keys.gguf").write_bytes(data[:16] + (1 << 40).to_bytes(8, "little") + data[24:])
    with pytest.raises(FormatError):
        open_subject(tmp_path / "keys.gguf")


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, int]:
    path = tmp_path / "model.gguf"
    return path, make_sparse(DEMO, path, 20 * 10**9)


def test_tensors_that_are_missing_are_a_finding_and_the_tokenizer_is_complete(model: tuple[Path, int]) -> None:
    path, start = model
    size = path.stat().st_size
    assert summarize(open_subject(path))["findings"] == summarize(open_subject(DEMO))["findings"]
    for cut in (size - 1, start + 5, start - 100, start - 5000):
        with path.open("r+b") as handle:
            handle.truncate(cut)
        facts = summarize(open_subject(path))
        assert facts["complete"]
        (finding,) = [entry for entry in facts["findings"] if entry["code"] == "gguf-cut-off"]
        assert (finding["severity"], finding["offset"]) == ("refuse", cut)
        if cut >= start - 100:
            assert f"{size - cut:,} bytes are missing" in finding["message"] or cut < start
        assert tokpack.load(path).encode("Hello world") == tokpack.load(DEMO).encode("Hello world")


def test_layout_covers_every_byte_once(model: tuple[Path, int], tmp_path: Path) -> None:
    files = [model[0], DEMO, FIXTURES / "big-endian.gguf"]
    for index in ("inline", "sidecar", "none"):
        target = tmp_path / f"{index}.mtok"
        codes = [f.code for f in tokpack.convert(DEMO, tmp_path / "probe.mtok", force=True)]
        tokpack.convert(DEMO, target, write_options={"index": index}, allow=codes)
        files.append(target)
    tokpack.convert(DEMO, tmp_path / "a.tokpack")
    schema = validator("layout")
    for path in [*files, tmp_path / "a.tokpack"]:
        sections, total = layout(path)
        rows = [section.as_dict(total) for section in sections]
        schema.validate({"schema": "tokpack.layout/1", "file": str(path), "size": total, "sections": rows})
        names = [section.name for section in sections]
        assert len(set(names)) == len(names)
        outer = [section for section in sections if section.parent is None]
        for file in {section.file for section in outer}:
            at = 0
            for section in (part for part in outer if part.file == file):
                assert section.offset == at, (path, section)
                at += section.size
            assert at == Path(file or path).stat().st_size
        assert sum(section.size for section in outer) == total
        by_name = {section.name: section for section in sections}
        for part in sections:
            if part.parent is not None:
                whole = by_name[part.parent]
                assert whole.offset <= part.offset
                assert part.offset + part.size <= whole.offset + whole.size
    assert f"{TENSORS} tensors" in [section.note for section in layout(model[0])[0]]


@pytest.mark.slow
def test_the_body_of_every_mtok_is_followed_to_its_end(shared_data: SharedData) -> None:
    shared_data("data/corpus.jsonl")
    from tests.conftest import SHARED

    for packed in sorted((SHARED / "data" / "mnn").glob("*.mtok.xz")):
        sections, total = layout(shared_data(f"data/mnn/{packed.name[:-3]}"), "mnn")
        names = [section.name for section in sections]
        assert "behind the body" not in names
        assert not any("cannot be followed" in section.note for section in sections)
        assert sum(section.size for section in sections if section.parent is None) == total


def test_a_damaged_body_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    from tokpack.formats.mnn.layout import body_sections

    tokpack.convert(DEMO, tmp_path / "a.mtok")
    data = (tmp_path / "a.mtok").read_bytes()
    size = open_subject(tmp_path / "a.mtok").format["body"]
    for cut in range(100, size, 997):
        sections = body_sections(data[:cut], cut)
        assert sum(section.size for section in sections if section.parent is None) == cut
    for at in range(83, 400):
        changed = data[:at] + b"\xff" + data[at + 1 : size]
        assert sum(part.size for part in body_sections(changed, size) if part.parent is None) == size


def test_text_has_no_layout() -> None:
    with pytest.raises(UnsupportedError, match="no layout"):
        layout(FIXTURES / "hf" / "t5.json")
