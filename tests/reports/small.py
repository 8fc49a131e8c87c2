"""Vocabularies of a few pieces, of the structure that a report is about."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tests.conftest import FIXTURES
from tests.hostile.gguf_builder import BYTE, CONTROL, NORMAL, UNKNOWN, Key, byte_chars, gguf, spell

sys.path[:0] = [str(FIXTURES), str(FIXTURES / "sentencepiece")]
from charsmap import charsmap  # noqa: E402
from model_proto import Model  # noqa: E402

__all__ = [
    "G", "Model", "added", "byte_bpe", "charsmap", "file_of", "gguf_bpe", "gguf_char_bpe", "gguf_spm", "gguf_ugm",
    "gguf_wpm", "hf", "merges_for", "ranks", "spm_keys", "spm_model", "word_pieces",
]  # fmt: skip

G = "tokenizer.ggml."
Token = tuple[str | bytes, int]
BYTE_PIECES: list[Token] = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]


def merges_for(words: Iterable[str], alphabet: str = "bytes") -> list[tuple[str, str]]:
    """Merges that build each word from the left; shared beginnings once."""
    found: dict[tuple[str, str], None] = {}
    for word in words:
        text = spell(word) if alphabet == "bytes" else word
        for end in range(1, len(text)):
            found[(text[:end], text[end])] = None
        half = len(text) // 2
        if half > 1 and text[:half] == text[half:]:  # runs are joined by doubling
            found[(text[:half], text[half:])] = None
    return list(found)


# --- GGUF ------------------------------------------------------------------------------------------------------------


def file_of(keys: Iterable[Key], *more: Key, without: Sequence[str] = (), **options: Any) -> bytes:
    """A file of ``keys``, of which those in ``more`` replace others of their name."""
    by_name = {key.name: key for key in keys} | {key.name: key for key in more}
    return gguf([key for name, key in by_name.items() if name not in {G + gone for gone in without}], **options)


def _keys(model: str, tokens: Sequence[Token], **more: Any) -> list[Key]:
    keys = [
        Key("general.architecture", "str", more.pop("arch", "llama")),
        Key(f"{G}model", "str", model),
        Key(f"{G}tokens", "[str]", [text for text, _ in tokens]),
        Key(f"{G}token_type", "[i32]", [kind for _, kind in tokens]),
    ]
    kinds = {"pre": "str", "merges": "[str]", "scores": "[f32]", "precompiled_charsmap": "[u8]"}
    for name, value in more.items():
        kind = kinds.get(name, "bool" if isinstance(value, bool) else "u32")
        keys.append(Key(G + name, kind, value))
    return keys


def gguf_bpe(pre: str, words: Sequence[str] = (), extra: Sequence[Token] = (), **more: Any) -> list[Key]:
    """Byte-level BPE: byte ``b`` is id ``b``, then merge results, then ``extra``."""
    merges = merges_for(words)
    texts = dict.fromkeys([*byte_chars(), *(left + right for left, right in merges)])
    tokens = [*((text, NORMAL) for text in texts), *extra]
    lines = [f"{left} {right}" for left, right in merges] or ["a b"]
    return _keys("gpt2", tokens, pre=pre, merges=lines, **more)


def gguf_char_bpe(pre: str, words: Sequence[str], extra: Sequence[Token] = (), **more: Any) -> list[Key]:
    """BPE over characters with U+2581 for the space and byte pieces, as Gemma 4 has it."""
    merges = merges_for(words, "characters")
    texts = dict.fromkeys([*"".join(words), *(left + right for left, right in merges)])
    tokens = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN), *BYTE_PIECES]
    tokens += [*((text, NORMAL) for text in texts), *extra]
    lines = [f"{left} {right}" for left, right in merges]
    ids = {"bos_token_id": 2, "eos_token_id": 1, "unknown_token_id": 3, "padding_token_id": 0}
    return _keys(more.pop("model", "gpt2"), tokens, pre=pre, merges=lines, **ids, **more)


def spm_keys(words: Sequence[str], extra: Sequence[Token] = (), byte: bool = True, **more: Any) -> list[Key]:
    """SPM with scores: ``<unk> <s> </s>``, byte pieces, every beginning of each word, single characters, ``extra``.

    The longer a word's beginning, the better its score, so words are merged whole.
    """
    parts = dict.fromkeys([char for word in words for char in word])
    parts |= dict.fromkeys([word[:end] for word in words for end in range(2, len(word) + 1)])
    tokens: list[Token] = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), *(BYTE_PIECES if byte else [])]
    tokens += [*((part, NORMAL) for part in parts), *extra]
    scores = [float(_score(text)) if kind == NORMAL else 0.0 for text, kind in tokens]
    more = {"pre": "default", "scores": scores, "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0} | more
    return _keys("llama", tokens, **{name: value for name, value in more.items() if value is not None})


def _score(text: str | bytes) -> int:
    """Runs of spaces merge last."""
    return len(text) - (2000 if not isinstance(text, bytes) and not text.strip("▁") else 1000)


def gguf_spm(words: Sequence[str], extra: Sequence[Token] = (), **more: Any) -> bytes:
    """A file of :func:`spm_keys`."""
    return file_of(spm_keys(words, extra, **more))


def gguf_wpm(words: Sequence[str], **more: Any) -> bytes:
    """WordPiece; ``▁x`` begins a word."""
    specials = (("[PAD]", CONTROL), ("[UNK]", UNKNOWN), ("[CLS]", CONTROL), ("[SEP]", CONTROL))
    ids = {"bos_token_id": 2, "eos_token_id": 3, "unknown_token_id": 1, "seperator_token_id": 3, "padding_token_id": 0}
    return file_of(_keys("bert", [*specials, *((word, NORMAL) for word in words)], arch="bert", **ids, **more))


def gguf_ugm(pieces: Sequence[tuple[str, float]], table: dict[str, str] | None = None, **more: Any) -> bytes:
    """Unigram with a charsmap."""
    tokens: list[Token] = [("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", UNKNOWN)]
    tokens += [(text, NORMAL) for text, _ in pieces]
    scores = [0.0] * 3 + [score for _, score in pieces]
    if table is not None:
        more["precompiled_charsmap"] = list(charsmap({key.encode(): text.encode() for key, text in table.items()}))
    ids = {"padding_token_id": 0, "eos_token_id": 1, "unknown_token_id": 2}
    return file_of(_keys("t5", tokens, arch="t5", scores=scores, **ids, **more))


# --- tokenizer.json --------------------------------------------------------------------------------------------------

Json = Any
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def hf(model: Json, **sections: Json) -> bytes:
    """A tokenizer.json."""
    names = ("truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    empty: Json = dict.fromkeys(names) | {"added_tokens": []}
    return json.dumps({"version": "1.0"} | empty | sections | {"model": model}, ensure_ascii=False).encode()


def added(number: int, content: str, special: bool = True, **flags: bool) -> Json:
    """An added token."""
    base = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, "special": special} | base | flags


def byte_bpe(words: Sequence[str] = (), extra: Sequence[str] = (), **more: Json) -> Json:
    """A byte-level BPE model."""
    merges = merges_for(words)
    texts = dict.fromkeys([*byte_chars(), *(left + right for left, right in merges), *extra])
    return char_bpe(
        [], **{"vocab": {text: at for at, text in enumerate(texts)}, "merges": list(map(list, merges))} | more
    )


def char_bpe(words: Sequence[str], front: Sequence[str] = (), **more: Json) -> Json:
    """A BPE model over characters that joins each word from the left."""
    merges = merges_for(words, "characters")
    texts = dict.fromkeys([*front, *"".join(words), *(left + right for left, right in merges)])
    base: Json = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
    base |= dict.fromkeys(("fuse_unk", "byte_fallback", "ignore_merges"), False)
    vocab = {text: at for at, text in enumerate(texts)}
    return {"type": "BPE"} | base | {"vocab": vocab, "merges": list(map(list, merges))} | more


def word_pieces(*words: str) -> Json:
    """A WordPiece model."""
    vocab = {text: at for at, text in enumerate(("[UNK]", *words))}
    base = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {"type": "WordPiece"} | base | {"vocab": vocab}


def unigram(*pieces: tuple[str, float], bytes_too: bool = False) -> Json:
    """A Unigram model whose first piece is the unknown one."""
    rows = [["<unk>", 0.0], *map(list, pieces)]
    rows += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)] if bytes_too else []
    return {"type": "Unigram", "unk_id": 0, "vocab": rows, "byte_fallback": bytes_too}


def precompiled(table: dict[str, str]) -> Json:
    """The normalizer Precompiled."""
    blob = charsmap({key.encode(): text.encode() for key, text in table.items()})
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}


def metaspace(scheme: str | None = "always", **more: Json) -> Json:
    """Metaspace."""
    base: Json = {"type": "Metaspace", "replacement": "▁"}
    return base | ({} if scheme is None else {"prepend_scheme": scheme}) | {"split": True} | more


# --- others ----------------------------------------------------------------------------------------------------------


def spm_model(pieces: Sequence[tuple[str, float]], kind: int, **changes: Any) -> bytes:
    """A SentencePiece model; ``normalizer`` and ``trainer`` in ``changes`` hold more fields, ``bytes`` byte pieces."""
    front = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    byte = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)] if changes.get("bytes") else []
    rows = [*front, *byte, *((text, score, NORMAL) for text, score in pieces)]
    trainer = {"model_type": kind, "vocab_size": len(rows), "byte_fallback": bool(byte)}
    normalizer = {"name": "identity", "add_dummy_prefix": True, "remove_extra_whitespaces": True}
    base = Model(list(rows), trainer | changes.get("trainer", {}), normalizer | changes.get("normalizer", {}))
    return replace(base).to_bytes()


def ranks(words: Sequence[bytes]) -> bytes:
    """A rank file: all bytes, then every beginning of each word."""
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += dict.fromkeys(word[:end] for word in words for end in range(2, len(word) + 1))
    return b"".join(base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(pieces))
