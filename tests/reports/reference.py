"""Asks a reference program about one case, in a process of its own: llama.cpp ends the process on what it dislikes.

    python -m tests.reports.reference REFERENCE FILE < questions > answers

Questions and answers are JSON lists; see :mod:`tests.reports.asking`.
"""

from __future__ import annotations

import codecs
import importlib
import json
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Json = Any
Answer = Callable[[list[Any]], Json]


def llama(path: Path, options: dict[str, Any]) -> Answer:
    """llama_tokenize, llama_detokenize and llama_token_to_piece."""
    del options
    sys.path.insert(0, str(ROOT / "fixtures"))
    vocab = importlib.import_module("llama_api").LlamaVocab(path)

    def ask(question: list[Any]) -> Json:
        if question[0] == "encode":
            return vocab.encode(b64decode(question[1]), question[2], question[3])
        if question[0] == "stream":  # its programs print pieces, bytes that are no character yet with the next ones
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            return [decoder.decode(vocab.piece(token, question[2])) for token in question[1]]
        return vocab.decode(question[1], False, question[2]).decode("utf-8", "replace")

    return ask


def tokenizers(path: Path, options: dict[str, Any]) -> Answer:
    """Tokenizer.encode, decode and DecodeStream; special tokens stay text with encode_special_tokens."""
    del options
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(path.read_text(encoding="utf-8"))

    def ask(question: list[Any]) -> Json:
        if question[0] == "encode":
            tokenizer.encode_special_tokens = not question[3]
            return tokenizer.encode(b64decode(question[1]).decode(), add_special_tokens=question[2]).ids
        if question[0] == "stream":
            stream = importlib.import_module("tokenizers.decoders").DecodeStream(skip_special_tokens=not question[2])
            return [stream.step(tokenizer, token) or "" for token in question[1]]
        return tokenizer.decode(question[1], skip_special_tokens=not question[2])

    return ask


def sentencepiece(path: Path, options: dict[str, Any]) -> Answer:
    """SentencePieceProcessor.encode and decode."""
    del options
    processor = importlib.import_module("sentencepiece").SentencePieceProcessor(model_proto=path.read_bytes())

    def ask(question: list[Any]) -> Json:
        if question[0] == "encode":
            return processor.encode(b64decode(question[1]))
        return processor.decode(question[1], return_type=bytes).decode("utf-8", "replace")

    return ask


def tiktoken(path: Path, options: dict[str, Any]) -> Answer:
    """Encoding.encode with all special tokens allowed, or encode_ordinary."""
    module, load = importlib.import_module("tiktoken"), importlib.import_module("tiktoken.load")
    encoding = module.Encoding(
        "case",
        pat_str=options["pattern"],
        mergeable_ranks=load.load_tiktoken_bpe(str(path)),
        special_tokens=options.get("special_tokens", {}),
    )

    def ask(question: list[Any]) -> Json:
        if question[0] == "encode":
            text = b64decode(question[1]).decode("utf-8", "surrogatepass")
            return encoding.encode(text, allowed_special="all") if question[3] else encoding.encode_ordinary(text)
        return encoding.decode(question[1])

    return ask


OPEN = {"llama.cpp": llama, "tokenizers": tokenizers, "sentencepiece": sentencepiece, "tiktoken": tiktoken}


def ask(reference: str, path: Path, questions: list[Json], options: dict[str, Any]) -> Json:
    """Answers of a program: ``refused`` when it does not load the file; ``failed`` for a question that ends it."""
    done = _run(reference, path, questions, options)
    if done is not None:
        return done
    if _run(reference, path, [], options) is None:
        return "refused"
    return [(_run(reference, path, [question], options) or ["failed"])[0] for question in questions]


def _run(reference: str, path: Path, questions: list[Json], options: dict[str, Any]) -> Json:
    command = [sys.executable, "-m", "tests.reports.reference", reference, str(path)]
    request = json.dumps({"questions": questions, "options": options})
    # tiktoken keeps a copy of each file by its path, and would answer for an earlier file of the same name
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1", "RUST_BACKTRACE": "0", "TIKTOKEN_CACHE_DIR": ""}
    done = subprocess.run(
        command, input=request, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT, env=environment
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    status = 0
    try:
        find = OPEN[sys.argv[1]](Path(sys.argv[2]), request["options"])
        json.dump([find(question) for question in request["questions"]], answers)
        answers.flush()
    except BaseException as error:  # a panic of a Rust library is no Exception
        print(repr(error), file=sys.stderr)
        status = 1
    os._exit(status)  # llama.cpp's own clean-up at exit has nothing to add
