"""Chat templates of a folder, with the precedence of ``transformers``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokpack.errors import FormatError, Location
from tokpack.limits import Limits, above

from .._cursor import map_file
from .extras import as_extra
from .getters import Obj, as_object, as_string, wrong
from .notes import Notes

__all__ = ["FOLDERS", "Templates", "read_templates"]

FOLDERS = ("chat_templates", "additional_chat_templates")


@dataclass(slots=True)
class Templates:
    """Templates by name, what they replace, and the files that were read."""

    templates: dict[str, str] = field(default_factory=dict)
    extras: dict[str, object] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def read_templates(
    folder: Path, config: Obj | None, load: Callable[[str], Obj | None], limits: Limits, notes: Notes
) -> Templates:
    """Files of their own replace all that tokenizer_config.json has; chat_template.json is only a last resort.

    Args:
        folder: the folder.
        config: tokenizer_config.json.
        load: reads a JSON file of the folder.
        limits: ``template_bytes`` bounds a template.
        notes: for findings.
    """
    result = Templates()
    main = folder / "chat_template.jinja"
    if main.is_file():
        result.templates["default"] = _read_text(main, limits)
        result.files.append(main.name)
    for name in FOLDERS:
        if (folder / name).is_dir():
            for path in sorted((folder / name).glob("*.jinja")):
                result.templates[path.stem] = _read_text(path, limits)
                result.files.append(f"{name}/{path.name}")
    in_config = {} if config is None else _in_config(config)
    if result.templates and in_config:
        assert config is not None
        if in_config != result.templates:
            message = f"chat_template of tokenizer_config.json is replaced by {', '.join(result.files)}"
            notes.info("hf-template-replaced", message, config.at("chat_template"))
            result.extras["tokenizer_config.chat_template"] = as_extra(config.data["chat_template"])
    elif in_config:
        result.templates = in_config
    _legacy(load("chat_template.json"), result, notes)
    return result


def _legacy(node: Obj | None, result: Templates, notes: Notes) -> None:
    """chat_template.json belongs to the processor of a multimodal model; tokenizers do not read it."""
    if node is None:
        return
    templates = _in_config(node)
    if not result.templates:
        result.templates = templates
        message = "the chat template is that of chat_template.json, which transformers uses for processors only"
        notes.info("hf-template-processor", message, "chat_template.json")
    elif templates != result.templates:
        message = "chat_template.json is not used: there are other templates"
        notes.info("hf-companion-unused", message, "chat_template.json")
        result.extras["chat_template.chat_template"] = as_extra(node.data.get("chat_template"))


def _in_config(node: Obj) -> dict[str, str]:
    """A string, a list of ``{"name", "template"}``, or a map of names."""
    value: Any = node.data.get("chat_template")
    path = node.at("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        entries = [as_object(item, f"{path}[{at}]") for at, item in enumerate(value)]
        return {entry.string("name"): entry.string("template") for entry in entries}
    if isinstance(value, dict):
        return {name: as_string(text, f"{path}.{name}") for name, text in value.items()}
    raise wrong(value, "a template, or a list of named ones", path)


def _read_text(path: Path, limits: Limits) -> str:
    """A file as Python reads text: UTF-8, every line end one U+000A."""
    with map_file(path) as data:
        if len(data) > limits.template_bytes:
            what = f"the chat template has {len(data)} bytes, which is"
            raise above("template_bytes", what, limits, Location(str(path)))
        try:
            text = str(data, "utf-8")
        except UnicodeDecodeError as error:
            where = Location(str(path), None, error.start)
            raise FormatError(f"not UTF-8: {error.reason}", location=where) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
