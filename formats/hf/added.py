"""``added_tokens`` of tokenizer.json, with the ids that they really get (tokenizer/added_vocabulary.rs)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tokpack.errors import Location
from tokpack.findings import Finding, Severity
from tokpack.ir import AddedToken
from tokpack.limits import Limits, above

from .getters import Obj, as_object, describe, wrong
from .models import ModelParts, check_size
from .notes import Notes

__all__ = ["Added", "read_added_tokens", "same_normal_forms"]

_PATH = "added_tokens"


@dataclass(frozen=True, slots=True)
class Added:
    """Added tokens.

    Attributes:
        tokens: in file order, one for each id.
        ids: content → id.
    """

    tokens: tuple[AddedToken, ...] = ()
    ids: dict[str, int] | None = None

    def lookup(self, model_ids: dict[str, int], token: str) -> int | None:
        """Id of a token, added or of the model."""
        found = (self.ids or {}).get(token)
        return model_ids.get(token) if found is None else found


def read_added_tokens(value: Any, parts: ModelParts, limits: Limits, notes: Notes) -> Added:
    """The ``added_tokens`` key.

    The id in the file is not used: a token that the model has keeps the model's id, any other gets the next one,
    counted in file order from the number of entries of the model's vocabulary.
    """
    if not isinstance(value, list):
        raise wrong(value, "a sequence", _PATH)
    if len(value) > limits.pieces:
        raise above("pieces", f"{len(value)} added tokens are", limits, Location(None, _PATH))
    tokens: dict[int, AddedToken] = {}
    ids: dict[str, int] = {}
    moved: list[str] = []
    free = parts.size
    for at, item in enumerate(value):
        node = as_object(item, f"{_PATH}[{at}]", "an added token")
        token, content = _token(node, limits)
        if not content:
            notes.info("hf-added-empty", "an added token without content is left out", node.path)
            continue
        known = ids.get(content)
        effective = parts.ids.get(content) if known is None else known
        if effective is None:
            effective, free = free, free + 1
        if token.id != effective:
            moved.append(f"{describe(content)} has {token.id} in the file and gets {effective}")
        ids[content] = effective
        tokens[effective] = _merged(replace(token, id=effective), tokens.get(effective), node, notes)
    if moved:
        message = f"{len(moved)} added tokens do not get the id in the file: {moved[0]}"
        notes.info("hf-added-id", message, _PATH, "save the file with tokenizers to write the real ids")
    check_size(max(tokens, default=-1) + 1, parts.size + len(tokens), limits, _PATH)
    _check_shared(tokens, parts, notes)
    return Added(tuple(tokens.values()), ids)


def _token(node: Obj, limits: Limits) -> tuple[AddedToken, str]:
    """One token as the file has it. Every field is required."""
    given = node.unsigned("id")
    content = node.string("content")
    spelled = content.encode("utf-8")
    if len(spelled) > limits.piece_bytes:
        where = Location(None, node.at("content"))
        raise above("piece_bytes", f"a token of {len(spelled)} bytes is", limits, where)
    token = AddedToken(
        id=given,
        content=spelled,
        single_word=node.boolean("single_word"),
        lstrip=node.boolean("lstrip"),
        rstrip=node.boolean("rstrip"),
        normalized=node.boolean("normalized"),
        special=node.boolean("special"),
    )
    return token, content


def _merged(token: AddedToken, before: AddedToken | None, node: Obj, notes: Notes) -> AddedToken:
    """What stays of a token that has an id which another one had before it."""
    if before is None or before == token:
        return token
    if before.content != token.content:
        taker, owner = (describe(item.content.decode("utf-8")) for item in (token, before))
        message = f"added token {taker} takes id {token.id} from {owner}, which then never matches"
        notes.refuse("hf-shared-id", message, node.path, "close the holes in the ids of the vocabulary")
        return token
    notes.warn("hf-duplicate-added", "the token was there before with other flags; these count", node.path)
    return replace(token, special=token.special or before.special)  # decoding skips what was special once


def _check_shared(tokens: dict[int, AddedToken], parts: ModelParts, notes: Notes) -> None:
    """Ids are counted from the number of entries, so with holes in the vocabulary they can be taken."""
    for token in tokens.values():
        piece = parts.pieces[token.id] if token.id < len(parts.pieces) else None
        if piece is not None and piece != token.content:
            shown, other = token.content.decode("utf-8"), piece.decode("utf-8")
            message = f"added token {describe(shown)} gets id {token.id}, which {describe(other)} has in the model"
            notes.refuse("hf-shared-id", message, _PATH, "close the holes in the ids of the vocabulary")
            return


def same_normal_forms(tokens: Iterable[AddedToken], normalize: Callable[[str], str]) -> list[Finding]:
    """Findings about added tokens that a normalizer makes equal: which one matches changes from process to process.

    Args:
        tokens: the added tokens.
        normalize: the tokenizer's normalizer.
    """
    seen: dict[str, AddedToken] = {}
    found: list[Finding] = []
    for token in tokens:
        if not token.normalized:
            continue
        first = seen.setdefault(normalize(token.content.decode("utf-8")), token)
        if first is not token:
            one, two = (describe(item.content.decode("utf-8")) for item in (first, token))
            message = f"added tokens {one} and {two} normalize to the same text: tokenizers takes one of them at random"
            fix = 'set "normalized": false'
            found.append(Finding("hf-added-same", Severity.REFUSE, message, Location(None, _PATH), fix))
    return found
