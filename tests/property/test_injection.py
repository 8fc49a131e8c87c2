"""Text from outside, encoded with ``parse_special=False``: a control id comes out only where the reference gives it.

Texts are made of the contents of special tokens, halves, other cases and mixtures of them. All ids are compared with
the live reference; the fixtures in which control ids come out of a text all the same are listed, with the reason.
TOKPACK_SEED repeats a run; the quick suite asks about a few fixtures of each kind, the slow one about all.
"""

from __future__ import annotations

import random
from base64 import b64encode
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES
from tests.reports.asking import FAILED
from tests.reports.reference import ask
from tests.seeds import run_seed

SEED = run_seed()
MOST_TOKENS = 12  # special tokens of one fixture that texts are made of
FEW = {".gguf": 6, ".json": 8, ".model": 3, ".tiktoken": 2}  # fixtures of each kind in the quick suite

# In these, text gives control ids in the reference, too.
MERGED = "llama.cpp merges symbols to any piece that they spell, whatever its type (llm_tokenizer_spm)"
LISTED = "llama.cpp has every piece in the table that it looks texts up in (llm_tokenizer_{}_session)"
IN_MODEL = "tokenizers looks special tokens up beforehand, but Unigram has every piece in its trie"
EXCEPTIONS = {
    "spm-control-reachable.gguf": MERGED,
    **{f"{name}.gguf": LISTED for name in ("plamo2", "plamo2-odd", "plamo2-sentinel")},
    **{f"{name}.gguf": LISTED for name in ("rwkv-no-unk", "rwkv-unk")},
    **{f"{name}.gguf": LISTED for name in ("ugm", "ugm-odd")},
    "hybriddna-control.gguf": "llama.cpp looks its three DNA pieces up by themselves, whatever their type",
    **{f"{name}.json": IN_MODEL for name in ("t5", "unigram-bytes", "unigram-untyped")},
}


@cache
def fixtures() -> dict[str, Path]:
    """Name → file, for those that load."""
    folders = (FIXTURES, FIXTURES / "hf", FIXTURES / "sentencepiece", FIXTURES / "tiktoken")
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            plain = path.suffix in FEW and not path.stem.startswith(("refused", "specials", "raw"))
            if plain and path.stem not in ("no-vocab", "none", "tekken-v3", "tekken-v13"):
                found[path.name] = path
    return found


PATTERN = r"\w+|[^\w\s]+|\s+"
TIKTOKEN_SPECIALS = {"<a>": 70_000, "<a>b": 70_001, "<|endoftext|>": 70_002, "the": 70_003}


@cache
def load(name: str) -> tokpack.Tokenizer:
    options: dict[str, Any] = {}
    if name.endswith(".tiktoken"):
        options = {"format": "tiktoken", "pattern": PATTERN, "special_tokens": TIKTOKEN_SPECIALS}
    return tokpack.load(fixtures()[name], **options)


@cache
def controls(name: str) -> frozenset[int]:
    """Control ids; the unknown id is no secret."""
    tokenizer = load(name)
    found = {token for token in range(tokenizer.vocab_size) if tokenizer.attr(token) & 0b1000}
    model = tokenizer.view.meta["model"]
    unknown = model.get("unk_piece")
    return frozenset(found - {tokenizer.unk_id, model.get("unk_id"), unknown and tokenizer.token_to_id(unknown)})


@cache
def contents(name: str) -> tuple[str, ...]:
    """Texts of special tokens, control tokens first."""
    tokenizer = load(name)
    others = [token for token in range(tokenizer.vocab_size) if tokenizer.attr(token) & 0b10001]
    found = [tokenizer.id_to_token(token) for token in [*sorted(controls(name)), *others][:MOST_TOKENS]]
    return tuple(text for text in found if text and "\ufffd" not in text and "\0" not in text) or ("<s>",)


def plain_texts(name: str) -> list[str]:
    """Each content alone, beside others, in halves, in another case."""
    found: list[str] = []
    for text in contents(name):
        half = len(text) // 2
        found += [text, f"a{text}b", f" {text} ", text[:half], text[1:], text.upper(), text.swapcase(), text + text]
        found += [text[:-1] + text, text[:half] + "\u200b" + text[half:], text[:half] + " " + text[half:]]
        found += [text.replace("<", "＜"), text.replace("|", "｜"), text.replace(" ", "▁"), "▁" + text]
    return list(dict.fromkeys(found))


def mixed_texts(name: str, count: int) -> list[str]:
    """Random mixtures."""
    rng = random.Random(f"{SEED} {name}")
    found = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 6)):
            text = rng.choice(contents(name))
            cut = rng.randint(0, len(text))
            odd = (text[:cut], text[cut:], text.lower(), text.title(), " ", "\n", "x", "é")
            parts.append(text if rng.random() < 0.4 else rng.choice(odd))
        found.append("".join(parts))
    return found


def ids_of(name: str, text: str, parse: bool) -> list[int] | None:
    """None where there are no ids: the reference ends on such a text."""
    try:
        return load(name).encode(text, False, parse)
    except tokpack.EncodeError:
        return None


def test_only_the_listed_fixtures_give_control_ids() -> None:
    """The list is exact: all that it names do, and nothing else does."""
    giving = {
        name
        for name in fixtures()
        if any(
            set(ids_of(name, around.format(text), False) or ()) & controls(name)
            for text in contents(name)
            for around in ("{}", "a{}b", " {} ")
        )
    }
    assert giving == set(EXCEPTIONS)


# --- against the references ------------------------------------------------------------------------------------------


def wanted(suffix: str, *, all_of_them: bool) -> list[str]:
    # llama.cpp reads the other byte order on machines that have it
    names = [name for name in fixtures() if name.endswith(suffix) and name != "big-endian.gguf"]
    if all_of_them:
        return names
    listed = [name for name in names if name in EXCEPTIONS]
    others = [name for name in names if name not in EXCEPTIONS]
    rng = random.Random(SEED)
    return rng.sample(listed, min(2, len(listed))) + rng.sample(others, min(FEW[suffix], len(others)))


def package(name: str, wanted_version: str | None = None) -> None:
    try:
        found = version(name)
    except PackageNotFoundError:
        pytest.skip(f"needs the PyPI package {name}")
    if wanted_version not in (None, found):
        pytest.skip(f"compares with {name} {wanted_version}, not {found}")


def llama(name: str, texts: list[str]) -> list[tuple[str, list[int], list[int]]]:
    """(text, ids with parse_special false, and true) of llama.cpp."""
    safe = [text for text in texts if None not in (ids_of(name, text, False), ids_of(name, text, True))]
    questions = [
        ["encode", b64encode(text.encode()).decode(), False, parse] for text in safe for parse in (False, True)
    ]
    answers = ask("llama.cpp", fixtures()[name], questions, {})
    assert FAILED not in answers, (name, SEED)
    return list(zip(safe, answers[::2], answers[1::2], strict=True))


def huggingface(name: str, texts: list[str]) -> list[tuple[str, list[int], list[int]]]:
    """Of tokenizers, with encode_special_tokens true, and false."""
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(fixtures()[name]))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = []
    for text in texts:
        if None in (ids_of(name, text, False), ids_of(name, text, True)):
            continue  # the library fails, too; what is said then is tested elsewhere
        answers = []
        for stay in (True, False):
            tokenizer.encode_special_tokens = stay
            answers.append(tokenizer.encode(text, add_special_tokens=False).ids)
        found.append((text, answers[0], answers[1]))
    return found


def sentencepiece(name: str, texts: list[str]) -> list[tuple[str, list[int], list[int]]]:
    """Of sentencepiece, which has no switch."""
    module = pytest.importorskip("sentencepiece", "0.2")
    processor = module.SentencePieceProcessor(model_proto=fixtures()[name].read_bytes())
    return [(text, processor.encode(text), processor.encode(text)) for text in texts]


def tiktoken(name: str, texts: list[str]) -> list[tuple[str, list[int], list[int]]]:
    """Of tiktoken: encode_ordinary, and encode with all special tokens allowed."""
    module, public = pytest.importorskip("tiktoken", "0.9"), pytest.importorskip("tiktoken.load")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        ranks = public.load_tiktoken_bpe(str(fixtures()[name]))
    encoding = module.Encoding(name, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=TIKTOKEN_SPECIALS)
    found = []
    for text in texts:
        if None in (ids_of(name, text, False), ids_of(name, text, True)):
            continue  # a byte without a rank: the library raises
        found.append((text, encoding.encode_ordinary(text), encoding.encode(text, allowed_special="all")))
    return found


REFERENCES = {
    ".gguf": (llama, "xllamacpp", None),
    ".json": (huggingface, "tokenizers", "0.23.3"),
    ".model": (sentencepiece, "sentencepiece", "0.2.3"),
    ".tiktoken": (tiktoken, "tiktoken", None),
}


def compare(suffix: str, count: int, *, all_of_them: bool) -> None:
    reference, name_of_package, its_version = REFERENCES[suffix]
    package(name_of_package, its_version)
    print(f"TOKPACK_SEED={SEED}")
    wrong: list[Any] = []
    compared = 0
    for name in wanted(suffix, all_of_them=all_of_them):
        texts = [*plain_texts(name), *mixed_texts(name, count)]
        for text, stays, read in reference(name, texts):
            compared += 1
            if ids_of(name, text, False) != stays:
                wrong.append((name, text, False, ids_of(name, text, False), stays))
            if ids_of(name, text, True) != read:
                wrong.append((name, text, True, ids_of(name, text, True), read))
    print(f"{compared} texts")
    assert compared > 20 * (2 if all_of_them else 1)
    assert not wrong, (
        f"TOKPACK_SEED={SEED}: {len(wrong)} differences in {sorted({row[0] for row in wrong})}: {wrong[:3]}"
    )


@pytest.mark.parametrize("suffix", REFERENCES)
def test_ids_of_special_text(suffix: str) -> None:
    compare(suffix, 20, all_of_them=False)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", REFERENCES)
def test_ids_of_special_text_in_all_fixtures(suffix: str) -> None:
    compare(suffix, 200, all_of_them=True)


@pytest.mark.parametrize("name", ["spm-control-reachable.gguf", "hf/t5.json", "hf/unigram-bytes.json"])
def test_what_text_can_give_is_a_finding(name: str) -> None:
    codes = {finding.code for finding in tokpack.read(FIXTURES / name).findings}
    assert codes & {"gguf-control-reachable", "hf-control-reachable"}


def test_no_finding_where_text_gives_none() -> None:
    for name in ("spm.gguf", "gpt-2.gguf", "hf/bert.json"):
        if (FIXTURES / name).exists():
            codes = {finding.code for finding in tokpack.read(FIXTURES / name).findings}
            assert not codes & {"gguf-control-reachable", "hf-control-reachable"}
