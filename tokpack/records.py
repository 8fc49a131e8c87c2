"""Frozen, slotted dataclasses without the module ``dataclasses``, which takes longer to import than a pack to open.

What the first ids of a process need is written with ``dataclass`` and ``replace`` from here: the same spelling, the
same meaning (also to type checkers), only ``frozen=True, slots=True``, no inheritance and no default factories. The
standard functions (``dataclasses.fields``, ``replace``, ``asdict`` …) work on these classes, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, fields, replace
else:

    class _Fields:
        """``__dataclass_fields__``, made by the standard library when somebody asks for it."""

        def __get__(self, instance, owner):
            from dataclasses import field, make_dataclass

            missing, defaults = object(), owner.__record_defaults__
            described = []
            for name, kind in owner.__annotations__.items():
                default = defaults.get(name, missing)
                described.append((name, kind) if default is missing else (name, kind, field(default=default)))
            made = make_dataclass(owner.__name__, described, frozen=True).__dataclass_fields__
            owner.__dataclass_fields__ = made
            return made

    def _frozen(self, name, *_):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _arguments(kind, values, named):
        """All values in order, as a call gives them by place and by name."""
        names, defaults = kind.__slots__, kind.__record_defaults__
        if len(values) > len(names):
            raise TypeError(f"{kind.__name__}() takes {len(names)} arguments, {len(values)} were given")
        found = dict(zip(names, values))  # noqa: B905 - fewer values may be given
        for name, value in named.items():
            if name not in names or name in found:
                raise TypeError(f"{kind.__name__}() got an unexpected or a second argument {name!r}")
            found[name] = value
        missing = [name for name in names if name not in found and name not in defaults]
        if missing:
            raise TypeError(f"{kind.__name__}() is missing the arguments {', '.join(missing)}")
        return [found[name] if name in found else defaults[name] for name in names]

    def _values(record):
        return tuple([getattr(record, name) for name in record.__slots__])

    def _equal(self, other):
        return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented

    def _hash(self):
        return hash(_values(self))

    def _shown(self):
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({inside})"

    def _reduced(self):
        return type(self), _values(self)

    def _initializer(kind):
        setters = tuple([kind.__dict__[name].__set__ for name in kind.__slots__])
        size, calls = len(setters), 0

        def __init__(self, *values, **named):  # noqa: N807
            nonlocal calls
            calls += 1
            if calls == _OFTEN:
                kind.__init__ = _compiled(kind, setters)
            if named or len(values) != size:
                values = _arguments(kind, values, named)
            for place, value in zip(setters, values):  # noqa: B905 - of one length, and this is called often
                place(self, value)

        return __init__

    _OFTEN = 16  # records of one kind from which on compiling a function for them pays

    def _compiled(kind, setters):
        """What the standard library makes of every class when it is defined."""
        space = {f"_set_{name}": place for name, place in zip(kind.__slots__, setters, strict=True)}
        space["_defaults"] = kind.__record_defaults__
        heads = [f"{name}=_defaults[{name!r}]" if name in kind.__record_defaults__ else name for name in kind.__slots__]
        lines = [f"    _set_{name}(self, {name})" for name in kind.__slots__] or ["    pass"]
        exec(f"def __init__(self, {', '.join(heads)}):\n" + "\n".join(lines), space)  # noqa: S102 - our own names
        return space["__init__"]

    def dataclass(*, frozen, slots):
        """The decorator."""
        if not (frozen and slots):
            raise TypeError("records are frozen and have slots")

        def make(kind):
            space = {key: value for key, value in kind.__dict__.items() if key not in ("__dict__", "__weakref__")}
            names = tuple(kind.__annotations__)
            space["__record_defaults__"] = {name: space.pop(name) for name in names if name in space}
            space["__slots__"] = space["__match_args__"] = names
            space["__dataclass_fields__"] = _Fields()
            for key, method in _METHODS.items():
                space.setdefault(key, method)
            made = type(kind.__name__, kind.__bases__, space)
            made.__init__ = _initializer(made)
            return made

        return make

    _METHODS = {
        "__eq__": _equal,
        "__hash__": _hash,
        "__repr__": _shown,
        "__reduce__": _reduced,
        "__setattr__": _frozen,
        "__delattr__": _frozen,
    }

    def replace(record, /, **changes):
        """A copy with other values of some fields."""
        return type(record)(**(dict(zip(record.__slots__, _values(record), strict=True)) | changes))

    def fields(record):
        """``dataclasses.fields``."""
        from dataclasses import fields

        return fields(record)


__all__ = ["dataclass", "fields", "replace"]
