"""Records are frozen, slotted dataclasses to everybody who asks."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

import tokpack
from tokpack.errors import Location
from tokpack.records import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Point:
    """A record."""

    x: int
    y: int = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """The same by the standard library."""

    x: int
    y: int = 2


def test_values_equality_and_hash() -> None:
    assert Point(1) == Point(1, 2) == Point(x=1, y=2) == Point(1, y=2) != Point(2)
    assert hash(Point(1)) == hash(Point(1, 2)) == hash(Model(1))
    assert Point(1) != Model(1)
    assert Point(1) != (1, 2)
    assert repr(Point(1)) == repr(Model(1)).replace("Model", "Point")


def test_it_is_frozen_and_has_slots() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del Point(1).x
    assert not hasattr(Point(1), "__dict__")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_wrong_arguments(values: tuple[int, ...], named: dict[str, int]) -> None:
    for kind in (Point, Model):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_copies() -> None:
    point = Point(1, 5)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert replace(point, x=7) == dataclasses.replace(point, x=7) == Point(7, 5)
    match point:
        case Point(x, y):
            assert (x, y) == (1, 5)


def test_the_standard_functions() -> None:
    shown = [(f.name, f.default) for f in dataclasses.fields(Model)]
    assert [(f.name, f.default) for f in dataclasses.fields(Point)] == shown
    assert [f.name for f in fields(Point(1))] == ["x", "y"]
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2}
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.is_dataclass(Location)
    assert dataclasses.is_dataclass(tokpack.Piece)


def test_errors_travel_between_processes() -> None:
    error = tokpack.EncodeError("what", location=Location("file", "key", 3), hint="hint")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_many_are_made_as_few_are() -> None:
    """The constructor is compiled when it is used often."""
    for k in range(100):
        assert Point(k) == Point(x=k) == Point(k, y=2) == pickle.loads(pickle.dumps(Point(k)))
        assert Point(k, 3).y == 3
    for values, named in [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]:
        with pytest.raises(TypeError):
            Point(*values, **named)
