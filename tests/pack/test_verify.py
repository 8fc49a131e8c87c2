"""``tokpack verify``: what is whole passes, whatever is changed is found."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path

import pytest

import tokpack
from tests.conftest import FIXTURES
from tokpack.errors import TokpackError
from tokpack.pack import layout
from tokpack.pack.verify import verify
from tokpack.pack.view import find_footer, open_pack

SOURCES = [
    "demo.gguf",
    "spm.gguf",
    "ugm.gguf",
    "wpm.gguf",
    "rwkv.gguf",
    "plamo2.gguf",
    "hybriddna.gguf",
    *sorted(f"hf/{path.name}" for path in (FIXTURES / "hf").glob("*.json"))[::6],
    *sorted(f"sentencepiece/{p.name}" for p in (FIXTURES / "sentencepiece").glob("*.model") if "refused" not in p.name)[
        ::3
    ],
]


def _pack(source: str, folder: Path) -> Path:
    target = folder / "out.tokpack"
    try:
        tokpack.convert(FIXTURES / source, target)
    except TokpackError as error:
        pytest.skip(f"not convertible: {error}")
    return target


@pytest.mark.parametrize("source", SOURCES)
def test_what_we_write_is_whole(source: str, tmp_path: Path) -> None:
    assert verify(_pack(source, tmp_path), deep=True) == []


@pytest.mark.parametrize("index", ["inline", "sidecar"])
def test_bodies_too(index: str, tmp_path: Path) -> None:
    target = tmp_path / "out.mtok"
    tokpack.write(tokpack.read(FIXTURES / "demo.gguf"), target, index=index)
    assert verify(target, deep=True) == []


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    """Some 150 bytes, drawn anew each time, and those at the seams."""
    target = tmp_path / "out.mtok"
    tokpack.convert(FIXTURES / "demo.gguf", target)
    whole = target.read_bytes()
    found = find_footer(whole)
    assert found is not None
    footer = found[1]
    seed = random.randrange(1 << 30)
    print(f"\nseed {seed}")
    rng = random.Random(seed)
    seams = [0, footer.body_length - 1, footer.body_length, footer.index_offset - 1, footer.index_offset]
    seams += [
        footer.table_offset,
        footer.table_offset + footer.table_length - 1,
        *range(len(whole) - 128, len(whole), 5),
    ]
    unseen = []
    for at in [*seams, *(rng.randrange(len(whole)) for _ in range(100))]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        target.write_bytes(damaged)
        try:
            if not verify(target, deep=True):
                unseen.append(at)
        except TokpackError:
            pass
    assert not unseen


def test_a_value_that_was_changed_together_with_the_hash_is_found(tmp_path: Path) -> None:
    """Hashes guard against accidents; the comparison of values guards against the rest."""
    target = _pack("demo.gguf", tmp_path)
    view = open_pack(str(target))
    for name in ("merge.rank", "merge.result", "lookup.symbol", "byte.emit", "class.blocks"):
        offset, size = view.sections[name]
        data = bytearray(target.read_bytes())
        data[offset + size // 2] ^= 1
        end = len(data) - layout.FOOTER
        start = data.index(view.footer.index_hash, end)
        data[start : start + 16] = hashlib.blake2b(data[view.footer.index_offset : end], digest_size=16).digest()
        changed = tmp_path / "changed.tokpack"
        changed.write_bytes(data)
        try:
            findings = verify(changed, deep=True)
        except TokpackError:
            continue
        assert [f for f in findings if f.code in ("verify-section", "verify-use", "verify-restore", "verify-open")], (
            name
        )
        assert "verify-index-hash" not in {f.code for f in findings}


def test_another_body_is_found(tmp_path: Path) -> None:
    target = tmp_path / "out.mtok"
    tokpack.write(tokpack.read(FIXTURES / "demo.gguf"), target, index="sidecar")
    index = Path(f"{target}.index")
    other = tmp_path / "other.mtok"
    tokpack.write(tokpack.read(FIXTURES / "gpt-2.gguf"), other, index="none", allow=_codes())
    shutil.copy(index, f"{other}.index")
    with pytest.raises(TokpackError):
        verify(other)


def _codes() -> list[str]:
    from tokpack.formats.mnn import write_body

    return [loss.code for loss in write_body(tokpack.read(FIXTURES / "gpt-2.gguf"))[1]]
