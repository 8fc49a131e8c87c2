"""What can be fuzzed: inputs to start from, how they are changed, and what is done with each.

A target ends in an error of the library (``refused``) or in a tokenizer that works (``loaded``). What is done besides
to one input in so many goes by the CRC of the input, so that an input that was kept does the same again.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import tokpack
from tests.hostile import mutate, mutate_parts
from tests.hostile.guard import exercise, exercise_bulk
from tests.hostile.mutate import Mutator
from tokpack.analysis import open_subject, summarize
from tokpack.errors import TokpackError
from tokpack.pack.build import build_pack
from tokpack.pack.verify import verify
from tokpack.runtime.tokenizer import Tokenizer

__all__ = ["LARGEST", "TARGETS", "Target"]

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
LARGEST = 400_000
RANKS: dict[str, Any] = {"pattern": "cl100k_base", "special_tokens": "none"}
PLAIN = FIXTURES / "tiktoken" / "plain.tiktoken"
ALSO = ("inspect", "convert to .mtok", "convert to .tokpack", "nothing", "nothing", "nothing")
SOURCES: dict[str, str] = {
    "gguf": "*.gguf",
    "tokenizer.json": "hf/*.json",
    "sentencepiece": "sentencepiece/*.model",
    "tiktoken": "tiktoken/*.tiktoken",
    "tekken": "tiktoken/*tekken*.json",
    "mnn-txt": "mnn/*.txt",
    "mnn": "mnn/*.mtok",
}


@dataclass(frozen=True)
class Target:
    """One thing to fuzz.

    Attributes:
        seeds: the inputs to start from.
        mutate: changes one.
        run: ``loaded`` or ``refused``, given an input and a path that may be written; anything else is raised.
    """

    seeds: Callable[[], list[bytes]]
    mutate: Mutator
    run: Callable[[bytes, Path], str]


def _tried(path: Path, data: bytes, form: str | None, options: dict[str, Any]) -> str:
    """Load a file and use it; now and then look at it or convert it, too."""
    try:
        tokenizer = tokpack.load(path, form, **options)
    except TokpackError:
        found = "refused"
    else:
        exercise(tokenizer)
        if not crc32(data) % 7:
            exercise_bulk(tokenizer)
        found = "loaded"
    also = ALSO[crc32(data) % len(ALSO)]
    with contextlib.suppress(TokpackError):
        if also == "inspect":
            summarize(open_subject(path, form, **options))
        elif also != "nothing":
            target = path.with_name("converted" + also.split()[-1])
            tokpack.convert(path, target, source_format=form, force=True, read_options=options, allow=ALLOWED)
            exercise(tokpack.load(target))
    return found


# refusals that are let pass now and then, so that what is behind them is reached
ALLOWED = ("gguf-duplicate-pieces", "gguf-merges-missing", "spm-score", "hf-panic", "mnn-id-range")


# --- files of a format -----------------------------------------------------------------------------------------------


def _files(form: str) -> list[Path]:
    return [path for path in sorted(FIXTURES.glob(SOURCES[form])) if path.stat().st_size < LARGEST]


def _contents(form: str) -> list[bytes]:
    return [path.read_bytes() for path in _files(form)]


def _run_file(form: str, data: bytes, path: Path) -> str:
    path.write_bytes(data)
    return _tried(path, data, form, RANKS if form == "tiktoken" else {})


# --- a folder: a JSON object of file names and texts ------------------------------------------------------------------


def _folders() -> list[bytes]:
    folder = FIXTURES / "hf" / "chat"
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    first = {"name": "default", "template": "{{ messages }}"}
    more = {
        "added_tokens.json": json.dumps({"<x>": 5000, "<|endoftext|>": 3}),
        "chat_template.json": json.dumps({"chat_template": [first, {"name": "tools", "template": "{{ tools }}"}]}),
    }
    named = json.loads(texts["tokenizer_config.json"]) | {"chat_template": [first]}
    plain = {"tokenizer.json": texts["tokenizer.json"], "tokenizer_config.json": json.dumps(named)}
    return [json.dumps(found).encode() for found in (texts, texts | more, plain, plain | more)]


def _mutate_folder(data: bytes, rng: random.Random) -> bytes:
    files = json.loads(data)
    name = rng.choice(sorted(files))
    if name != "tokenizer.json" or rng.random() < 0.1:
        changed = (mutate.json_tree if name.endswith(".json") else mutate.raw)(files[name].encode("utf-8"), rng)
        files[name] = changed.decode("utf-8", "replace")
    if len(files) > 1 and rng.random() < 0.05:
        del files[name]
    return json.dumps(files).encode()


def _run_folder(data: bytes, path: Path) -> str:
    folder = path.with_name("folder")
    for old in folder.rglob("*"):
        if old.is_file():
            old.unlink()
    for name, text in json.loads(data).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return _tried(folder, data, None, {})


# --- special tokens and patterns from outside -------------------------------------------------------------------------


def _special_files() -> list[bytes]:
    plain = (FIXTURES / "tiktoken" / "specials.json").read_bytes()
    content = [{"id": 700 + index, "content": text} for index, text in enumerate(("<a>", "<b>", "<|endoftext|>"))]
    decoder = {str(item["id"]): {"content": item["content"], "special": True} for item in content}
    shapes = (content, {"added_tokens": content}, {"added_tokens_decoder": decoder})
    return [plain, *(json.dumps(shape).encode() for shape in shapes)]


def _run_specials(data: bytes, path: Path) -> str:
    path.write_bytes(data)
    return _tried(PLAIN, data, "tiktoken", {"pattern": r"\w+|[^\w\s]+|\s+", "special_tokens": str(path)})


def _patterns() -> list[bytes]:
    from tokpack.formats.tiktoken.encodings import encoding, names

    found = {encoding(name).pattern for name in names()}
    for path in _files("tokenizer.json"):
        with contextlib.suppress(TokpackError):
            found |= {text for step in tokpack.read(path).pre_tokenizer if (text := getattr(step, "pattern", None))}
    return [text.encode("utf-8", "surrogatepass") for text in sorted(found)]


def _run_pattern(data: bytes, path: Path) -> str:
    """By both rules: those of tiktoken, and those of the tokenizers library."""
    text = data.decode("utf-8", "replace")
    found = _tried(PLAIN, data, "tiktoken", {"pattern": text, "special_tokens": "none"})
    document = json.loads((FIXTURES / "hf" / "llama3.json").read_bytes())
    split = {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": crc32(data) % 2 == 0}
    document["pre_tokenizer"]["pretokenizers"][0] = split
    path.write_text(json.dumps(document), encoding="utf-8")
    return "loaded" if "loaded" in (_tried(path, data, "tokenizer.json", {}), found) else "refused"


# --- packs ------------------------------------------------------------------------------------------------------------


def _kind(ir: tokpack.TokenizerIR) -> tuple[Any, ...]:
    """Tokenizers of one kind go the same ways."""
    steps = [type(step).__name__ for place in (ir.normalizer, ir.pre_tokenizer, ir.decoder) for step in place]
    return (ir.reference, type(ir.model), ir.alphabet, tuple(sorted(set(steps))), bool(ir.added_tokens))


def _packs() -> list[bytes]:
    """A pack of each kind of tokenizer of each reference."""
    found: dict[tuple[Any, ...], bytes] = {}
    for form in SOURCES:
        for path in _files(form):
            with contextlib.suppress(TokpackError):
                ir = tokpack.read(path, form, **(RANKS if form == "tiktoken" else {}))
                if _kind(ir) not in found:
                    pack = build_pack(ir)
                    if len(pack) < LARGEST:
                        found[_kind(ir)] = pack
    return list(found.values())


def _run_pack(data: bytes, path: Path) -> str:
    path.write_bytes(data)
    number = crc32(data)
    with contextlib.suppress(TokpackError):
        if not number % 5:
            tokpack.read(path, "tokpack")
        if not number % 11:
            verify(path, deep=True)
        if not number % 13:
            summarize(open_subject(path, "tokpack"))
        if not number % 17:
            tokpack.convert(path, path.with_name("converted.mtok"), source_format="tokpack", force=True)
    try:
        tokenizer: Tokenizer = tokpack.load(path, "tokpack")
    except TokpackError:
        return "refused"
    exercise(tokenizer)
    if not number % 4:
        exercise_bulk(tokenizer)
    return "loaded"


_MUTATORS: dict[str, Mutator] = {
    "gguf": mutate.gguf,
    "mnn": mutate_parts.mtok,
    "mnn-txt": mutate.lines,
    "tokenizer.json": mutate.json_tree,
    "sentencepiece": mutate.protobuf,
    "tiktoken": mutate.lines,
    "tekken": mutate.json_tree,
}
TARGETS: dict[str, Target] = {
    **{
        "mtok" if form == "mnn" else form: Target(partial(_contents, form), change, partial(_run_file, form))
        for form, change in _MUTATORS.items()
    },
    "folder": Target(_folders, _mutate_folder, _run_folder),
    "special-tokens": Target(_special_files, mutate.json_tree, _run_specials),
    "pattern": Target(_patterns, mutate_parts.pattern, _run_pattern),
    "pack": Target(_packs, mutate_parts.pack, _run_pack),
}
