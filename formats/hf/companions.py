"""The files beside tokenizer.json: roles of tokens, chat templates, and what nobody here interprets.

``tokenizers`` reads none of them, ``transformers`` does; precedences are those of its
``PreTrainedTokenizerBase._from_pretrained``. Nothing here changes ids.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokpack.errors import TokpackError
from tokpack.ir import SpecialId
from tokpack.limits import Limits

from .._cursor import map_file
from .added import Added
from .extras import as_extra
from .getters import Obj, as_object, as_string, describe, wrong
from .json import load
from .notes import Notes
from .templates import FOLDERS, Templates, read_templates

__all__ = ["NAMES", "Companions", "read_companions"]

CONFIG = "tokenizer_config.json"
SPECIALS = "special_tokens_map.json"
ADDED = "added_tokens.json"
GENERATION = "generation_config.json"
NAMES = (CONFIG, SPECIALS, ADDED, GENERATION, "chat_template.jinja", "chat_template.json", *FOLDERS)
_FLAGS = ("special", "normalized", "single_word", "lstrip", "rstrip")
_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


@dataclass(slots=True)
class Companions:
    """What the companion files say.

    Attributes:
        roles: role → id and origin.
        eog: ids that end generation, ascending.
        suppress: ids never to be sampled.
        templates: chat templates by name.
        extras: keys that are carried as they are.
        files: names of the files that were read.
    """

    roles: dict[str, SpecialId] = field(default_factory=dict)
    eog: tuple[int, ...] = ()
    suppress: tuple[int, ...] = ()
    templates: dict[str, str] = field(default_factory=dict)
    extras: dict[str, object] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def read_companions(
    folder: str | os.PathLike[str], added: Added, model_ids: dict[str, int], size: int, limits: Limits, notes: Notes
) -> Companions:
    """Read what lies in ``folder``; every file is optional."""
    reader = _Reader(Path(folder), lambda token: added.lookup(model_ids, token), size, limits, notes)
    try:
        return reader.read(added)
    except TokpackError as error:
        error.in_file(os.fspath(folder))
        raise


class _Reader:
    """One pass over a folder."""

    def __init__(
        self, folder: Path, lookup: Callable[[str], int | None], size: int, limits: Limits, notes: Notes
    ) -> None:
        self.folder = folder
        self.lookup = lookup
        self.size = size
        self.limits = limits
        self.notes = notes
        self.result = Companions()

    def read(self, added: Added) -> Companions:
        """All files."""
        config = self.load(CONFIG)
        specials = self.load(SPECIALS)
        self.read_roles(config, specials)
        self.read_generation(self.load(GENERATION))
        self.check_added(self.load(ADDED))
        if config is not None:
            self.check_decoder(config, added)
        self.result.templates = self.read_templates(config)
        return self.result

    def load(self, name: str) -> Obj | None:
        """A JSON file that holds an object, or None when there is no such file."""
        path = self.folder / name
        if not path.is_file():
            return None
        with map_file(path) as data:
            document = load(data, str(path), limits=self.limits, companion=True)
        node = as_object(document.value, name)
        for where, key in document.duplicates:
            message = f"{name}: duplicate key {key!r}; the last one counts"
            self.notes.warn("hf-duplicate-key", message, f"{name}: {where}" if where else name)
        self.result.files.append(name)
        return Obj(node.data, f"{name}: ")

    def carry(self, node: Obj, key: str) -> None:
        """Carry a key as it is."""
        name = node.path.removesuffix(".json: ")
        self.result.extras[f"{name}.{key}"] = as_extra(node.data[key])

    def read_roles(self, config: Obj | None, specials: Obj | None) -> None:
        """Roles; special_tokens_map.json counts unless tokenizer_config.json has an ``added_tokens_decoder``."""
        sources = [node for node in (config, specials) if node is not None]
        if config is not None and specials is not None and config.data.get("added_tokens_decoder") is not None:
            self._check_unused(config, specials)
            sources = [config]
        for node in sources:
            for role in _ROLES:
                self._read_role(node, role)
        handled = {f"{role}_token" for role in _ROLES} | {"added_tokens_decoder", "chat_template"}
        for node in filter(None, (config, specials)):
            for key, value in node.data.items():
                if key not in handled or (isinstance(value, dict) and key.endswith("_token")):
                    self.carry(node, key)

    def _read_role(self, node: Obj, role: str) -> None:
        key = f"{role}_token"
        content = _content(node, key)
        if content is None:
            return
        path = node.at(key)
        found = self.lookup(content)
        if found is not None:
            self.result.roles[role] = SpecialId(found, path)
        elif content:
            message = f"{key} {describe(content)} is not in the vocabulary; transformers would give it a new id"
            self.notes.warn("hf-special-missing", message, path, "add it to added_tokens")

    def _check_unused(self, config: Obj, specials: Obj) -> None:
        keys = [key for key in specials.data if key.removesuffix("_token") in _ROLES]
        other = [key for key in keys if _content(specials, key) != _content(config, key)]
        if other:
            message = f"{SPECIALS} is not used, because {CONFIG} has added_tokens_decoder; it differs in {other[0]}"
            self.notes.info("hf-companion-unused", message, f"{SPECIALS}: {other[0]}")

    def read_generation(self, node: Obj | None) -> None:
        """Ids that end generation or are suppressed, and roles that the other files leave open."""
        ends: list[int] = []
        if node is not None:
            self.result.suppress = tuple(self._ids(node, "suppress_tokens", negative=True))
            for role in ("eos", "bos", "pad"):
                found = self._ids(node, f"{role}_token_id")
                ends = found if role == "eos" else ends
                if found and role not in self.result.roles:
                    self.result.roles[role] = SpecialId(found[0], node.at(f"{role}_token_id"))
            handled = {"eos_token_id", "bos_token_id", "pad_token_id", "suppress_tokens"}
            for key in node.data:
                if key not in handled:
                    self.carry(node, key)
        eos = self.result.roles.get("eos")
        self.result.eog = tuple(sorted({*ends, *(() if eos is None else (eos.id,))}))

    def _ids(self, node: Obj, key: str, *, negative: bool = False) -> list[int]:
        """An id or a list of ids; those out of range are reported and dropped (``negative``: -1 is, in silence)."""
        value = node.data.get(key)
        if value is None:
            return []
        path = node.at(key)
        ids: list[int] = []
        for at, item in enumerate(value if isinstance(value, list) else [value]):
            where = f"{path}[{at}]" if isinstance(value, list) else path
            if isinstance(item, bool) or not isinstance(item, int):
                raise wrong(item, "a token id", where)
            if 0 <= item < self.size:
                ids.append(item)
            elif item >= 0 or not negative:
                message = f"{key} {item} is outside 0..{self.size - 1}"
                self.notes.warn("hf-special-missing", message, where)
        return ids

    def check_added(self, node: Obj | None) -> None:
        """added_tokens.json (content → id) is for the slow tokenizers; it should say the same."""
        other = []
        for content, token_id in () if node is None else node.data.items():
            if self.lookup(content) != token_id:
                other.append(f"{describe(content)} has {describe(token_id)} there and {self.lookup(content)} here")
        if other:
            message = f"{ADDED} differs from tokenizer.json in {len(other)} tokens: {other[0]}"
            self.notes.warn("hf-companion-differs", message, ADDED)

    def check_decoder(self, config: Obj, added: Added) -> None:
        """``added_tokens_decoder`` (id → token): transformers adds what tokenizer.json has not, or has otherwise."""
        entries = config.data.get("added_tokens_decoder")
        if entries is None:
            return
        decoder = as_object(entries, config.at("added_tokens_decoder"))
        by_id = {token.id: token for token in added.tokens}
        other: list[str] = []
        for key, entry in decoder.data.items():
            token = as_object(entry, decoder.at(key))
            content = token.string("content")
            here = by_id.get(int(key)) if key.isascii() and key.isdigit() and len(key) < 12 else None
            if here is None or here.content != content.encode("utf-8", "surrogatepass"):
                other.append(f"{key} is {describe(content)} there and {_shown(here)} here")
            else:
                other += [
                    f"{flag} of {key}" for flag in _FLAGS if token.data.get(flag) not in (None, getattr(here, flag))
                ]
        if other:
            message = f"added_tokens_decoder differs from tokenizer.json in {len(other)} points: {other[0]}"
            fix = "transformers gives other ids than tokenizers for this folder; save it again"
            self.notes.warn("hf-companion-differs", message, decoder.path, fix)
            self.carry(config, "added_tokens_decoder")

    def read_templates(self, config: Obj | None) -> dict[str, str]:
        """Chat templates, from separate files or from tokenizer_config.json."""
        found: Templates = read_templates(self.folder, config, self.load, self.limits, self.notes)
        self.result.files += found.files
        self.result.extras |= found.extras
        return found.templates


def _shown(token: Any) -> str:
    return "no added token" if token is None else describe(token.content.decode("utf-8"))


def _content(node: Obj, key: str) -> str | None:
    """A token as a string, or as an object with ``content``; None when absent or null."""
    value = node.data.get(key)
    if value is None:
        return None
    path = node.at(key)
    if isinstance(value, dict):
        return as_object(value, path).string("content")
    return as_string(value, path)
