"""docs/formats/index-format.md is enough to write a reader: one that was written from it finds what tokpack finds."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES, ROOT
from tests.docs import second_reader
from tests.docs.second_reader import Index
from tokpack.pack.layout import SECTIONS
from tokpack.pack.pieces import PieceTable
from tokpack.pack.view import PackView, open_pack

PACKS = {
    "demo.gguf": "out.mtok",
    "spm.gguf": "out.mtok",
    "ugm.gguf": "out.mtok",
    "wpm.gguf": "out.tokpack",
    "plamo2.gguf": "out.tokpack",
    "rwkv-unk.gguf": "out.tokpack",
    "hf/roberta.json": "out.mtok",
    "hf/bert-accents.json": "out.tokpack",
    "mnn/byte-level.mtok": "out.tokpack",
    "sentencepiece/unigram.model": "out.tokpack",
    "tiktoken/tekken-v3.json": "out.tokpack",
}


def test_it_stands_alone_and_is_short() -> None:
    path = Path(second_reader.__file__)
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 150
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    allowed = {"__future__", "bisect", "hashlib", "msgpack", "pathlib", "struct", "sys", "typing", "zlib"}
    assert imported <= allowed


def compare(index: Index, view: PackView) -> None:
    assert set(index.arrays) == set(view.sections)
    for name in index.arrays:
        expected = view.array(name) if name in SECTIONS else view.raw(name)
        assert index.raw[name] == bytes(view.raw(name)), name
        assert len(index.arrays[name]) == len(expected), name
        if "scores" not in name:  # a score may be no number
            assert index.arrays[name] == tuple(expected), name
    assert index.meta == view.meta
    assert index.about == view.about()
    table = PieceTable(view)
    size = index.meta["vocab_size"]
    for number in range(0, size, 1 + size // 200):
        text = index.symbol(number)
        spelled = index.arrays["piece.flags"][number] & 1
        found = [n for n in index.find(text) if index.arrays["piece.flags"][n] & 1 == spelled]
        if not index.arrays["piece.flags"][number] & 2:
            assert found, number  # of equal texts the last id
            assert table.find_text(table.text(number)) == found[0]


@pytest.mark.parametrize("source", PACKS)
def test_same_values(source: str, tmp_path: Path) -> None:
    target = tmp_path / PACKS[source]
    tokpack.convert(FIXTURES / source, target)
    index = Index(target.read_bytes())
    compare(index, open_pack(str(target)))
    if "merge.key" in index.arrays and len(index.arrays["merge.key"]):
        key = index.arrays["merge.key"][-1]
        assert index.merge(key >> 32, key & 0xFFFFFFFF) == (
            index.arrays["merge.rank"][-1],
            index.arrays["merge.result"][-1],
        )
        assert index.merge(0xFFFFFFFF, 0xFFFFFFFF) is None


def test_sidecar(tmp_path: Path) -> None:
    target = tmp_path / "out.mtok"
    tokpack.convert(FIXTURES / "demo.gguf", target, write_options={"index": "sidecar"})
    beside = tmp_path / "out.mtok.index"
    compare(Index(beside.read_bytes(), target.read_bytes()), open_pack(str(target)))


def test_the_parts_of_the_page_work(tmp_path: Path) -> None:
    tokpack.convert(FIXTURES / "rwkv-unk.gguf", tmp_path / "a.tokpack")
    index = Index((tmp_path / "a.tokpack").read_bytes())
    assert index.walk(b"\0") == 1
    assert index.walk(b"\0no such text") == -1
    tokpack.convert(FIXTURES / "demo.gguf", tmp_path / "b.mtok")
    index = Index((tmp_path / "b.mtok").read_bytes())
    assert [index.two_stage("class", ord(char)) for char in "aA"] == [
        open_pack(str(tmp_path / "b.mtok")).array("class.blocks")[
            open_pack(str(tmp_path / "b.mtok")).array("class.index")[0] << 8 | ord(char)
        ]
        for char in "aA"
    ]
    tokens = tokpack.read(FIXTURES / "demo.gguf").added_tokens
    assert [(number, text) for number, _, text in index.added()] == [(token.id, token.content) for token in tokens]
    # the merges of a word, by the page: lowest rank first, of equal ones the leftmost
    word = [index.arrays["byte.symbol"][byte] for byte in b" world"]
    while True:
        pairs = [(index.merge(a, b), at) for at, (a, b) in enumerate(pairwise(word))]
        known = [(merge[0], at, merge[1]) for merge, at in pairs if merge is not None]
        if not known:
            break
        _, at, result = min(known)
        word[at : at + 2] = [result]
    assert word == tokpack.load(FIXTURES / "demo.gguf").encode(" world")


@pytest.mark.parametrize("at", [8, 16, 48, 60, 64, 80, 100])
def test_damage_is_noticed(at: int, tmp_path: Path) -> None:
    tokpack.convert(FIXTURES / "rwkv-unk.gguf", tmp_path / "a.tokpack")
    data = bytearray((tmp_path / "a.tokpack").read_bytes())
    data[len(data) - 128 + at] ^= 1
    with pytest.raises(second_reader.BadPackError):
        Index(bytes(data))


def test_the_page_names_what_the_meta_section_holds(tmp_path: Path) -> None:
    text = (ROOT / "docs/formats/index-format.md").read_text(encoding="utf-8")
    for source, name in PACKS.items():
        tokpack.convert(FIXTURES / source, tmp_path / name, force=True)
        view = open_pack(str(tmp_path / name))
        for key in (*view.meta, *view.about()):
            assert f"`{key}`" in text, (source, key)
