"""Small maps are decoded without msgpack, and give what it gives."""

from __future__ import annotations

import os
import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.pairs import budget
from tokpack.pack.unpack import unpack

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=40)
)
KEYS = st.text(max_size=40) | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=18) | st.dictionaries(KEYS, inner, max_size=18), max_leaves=30
)


def theirs(raw: bytes) -> str | None:
    try:
        return repr(msgpack.unpackb(raw, raw=False, strict_map_key=False))
    except Exception:
        return None


def ours(raw: bytes) -> str | None:
    try:
        return repr(unpack(raw))
    except ValueError:
        return None


@budget(10)
@given(VALUES)
def test_what_msgpack_packs(value: object) -> None:
    raw = msgpack.packb(value)
    assert ours(raw) == theirs(raw) is not None


@pytest.mark.parametrize("size", [0, 15, 16, 31, 32, 255, 256, 65535, 65536])
def test_every_width_of_a_length(size: int) -> None:
    for value in ("x" * size, b"x" * size, [1] * size, dict.fromkeys(range(size))):
        assert unpack(msgpack.packb(value)) == value


def test_damaged_bytes() -> None:
    rng = random.Random(int(os.environ["TOKPACK_SEED"]))
    base = msgpack.packb({"a": [1, -1, 2.5, None, {"b": b"xyz" * 100, 3: "text" * 70}], "c": list(range(-200, 400, 9))})
    for _ in range(3000):
        raw = bytearray(base)
        for _ in range(rng.randrange(1, 4)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        del raw[rng.randrange(len(raw)) if rng.random() < 0.2 else len(raw) :]
        expected = theirs(bytes(raw))
        if expected is None or not ("ExtType" in expected or "Timestamp" in expected):
            assert ours(bytes(raw)) == expected


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        b"\xd4\x01x",
        b"\xc0\xc0",
        b"\x92\x01",
        b"\x81\x90\x01",
        b"\x91" * 100 + b"\xc0",
        b"\xdf\xff\xff\xff\xff",
    ],
)
def test_what_a_pack_does_not_hold(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(raw)
