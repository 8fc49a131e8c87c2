"""How ``tokenizers`` finds out which component an object stands for, and what several of them share.

A known ``type`` selects the structure. Without one, or with a type that is not known, the structures are tried one
after the other (serde's *untagged* enums), and those that do not check their own type take any object with their
fields: ``{"type": "Foo", "strip_left": true, "strip_right": true}`` is a Strip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tokpack.errors import FormatError, Location, TokpackError, UnsupportedError
from tokpack.ir.steps import Behavior, Dialect

from .getters import Obj, as_object, as_string, describe, wrong
from .notes import Notes

__all__ = ["BEHAVIORS", "Family", "Parser", "Untagged", "no_fields", "pattern", "prepend_scheme"]

Step = TypeVar("Step")
Parser = Callable[[Obj, Notes], "list[Step]"]

BEHAVIORS = {
    "Removed": Behavior.REMOVED,
    "Isolated": Behavior.ISOLATED,
    "MergedWithPrevious": Behavior.MERGED_WITH_PREVIOUS,
    "MergedWithNext": Behavior.MERGED_WITH_NEXT,
    "Contiguous": Behavior.CONTIGUOUS,
}


@dataclass(frozen=True, slots=True)
class Untagged(Generic[Step]):
    """A structure that is taken for what its fields are.

    Attributes:
        name: the component.
        fields: the keys that it must have.
        parse: its parser.
        types: types under which this is no surprise.
        checks_type: it must have one of them.
    """

    name: str
    fields: frozenset[str]
    parse: Parser[Step]
    types: frozenset[str] = frozenset()
    checks_type: bool = False


@dataclass(frozen=True, slots=True)
class Family(Generic[Step]):
    """The components of one place in the pipeline.

    Attributes:
        what: the name of the place.
        tagged: type → parser.
        untagged: in the order in which they are tried.
    """

    what: str
    tagged: Mapping[str, Parser[Step]]
    untagged: Sequence[Untagged[Step]] = ()

    def parse(self, value: object, path: str, notes: Notes) -> list[Step]:
        """The steps of one component, several for a Sequence."""
        node = as_object(value, path, f"a {self.what}")
        kind = node.data.get("type")
        if isinstance(kind, str) and kind in self.tagged:
            return self.tagged[kind](node, notes)
        failure: TokpackError | None = None
        for candidate in self.untagged:
            named = isinstance(kind, str) and kind in candidate.types
            if not named and (candidate.checks_type or not candidate.fields <= node.data.keys()):
                continue
            made = len(notes.findings)
            try:
                steps = candidate.parse(node, notes)
            except (FormatError, UnsupportedError) as error:
                failure = error if named else failure or error
                del notes.findings[made:]
                continue
            if not named:
                shown = "without a type" if kind is None else f"of type {describe(kind)}"
                message = f"a {self.what} {shown}: tokenizers takes it for {candidate.name} because of its fields"
                notes.warn("hf-untagged", message, path, f'write "type": "{candidate.name}"')
            return steps
        raise failure or self._unknown(kind, node)

    def _unknown(self, kind: object, node: Obj) -> TokpackError:
        if kind is None:
            return FormatError("missing field `type`", location=Location(None, node.path))
        if not isinstance(kind, str):
            return wrong(kind, "a string", node.at("type"))
        names = {*self.tagged, *(name for candidate in self.untagged for name in candidate.types)}
        hint = f"known: {', '.join(sorted(names))}"
        where = Location(None, node.at("type"))
        return UnsupportedError(f"unknown {self.what} type {kind[:60]!r}", location=where, hint=hint)


def no_fields(step: Step) -> Parser[Step]:
    """Parser of a component that has nothing but its type."""
    return lambda node, notes: [step]


def pattern(node: Obj) -> tuple[str, Dialect]:
    """``{"String": text}`` or ``{"Regex": expression}``; the expression is compiled by whoever runs it."""
    inner = node.obj("pattern")
    if len(inner.data) != 1:
        raise FormatError("invalid value: map, expected map with a single key", location=Location(None, inner.path))
    ((kind, text),) = inner.data.items()
    if kind not in ("String", "Regex"):
        what = f"unknown variant `{kind[:60]}`, expected `String` or `Regex`"
        raise UnsupportedError(what, location=Location(None, inner.path))
    return as_string(text, inner.at(kind)), Dialect.LITERAL if kind == "String" else Dialect.ONIG


def prepend_scheme(node: Obj, notes: Notes) -> str:
    """Metaspace's scheme, with the older ``add_prefix_space`` (pre_tokenizers/metaspace.rs)."""
    schemes = {name: name for name in ("first", "never", "always")}
    scheme = node.choice("prepend_scheme", schemes, "always")
    prefix = node.boolean_or_none("add_prefix_space")
    node.string_or_none("str_rep")
    if prefix is False and scheme != "never":
        hint = 'add "prepend_scheme": "never"'
        where = Location(None, node.at("add_prefix_space"))
        raise FormatError("add_prefix_space does not match declared prepend_scheme", location=where, hint=hint)
    if prefix is not None:
        message = f"add_prefix_space is the older spelling; prepend_scheme {scheme!r} is what counts"
        notes.info("hf-legacy-metaspace", message, node.at("add_prefix_space"))
    return scheme
