"""The page: complete, closed to the outside, safe whatever the file holds, small enough."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.analysis.report.hostile import HOSTILE, hostile_tokenizer
from tests.conftest import FIXTURES, SharedData
from tokpack.analysis import open_vocabulary, render_report
from tokpack.analysis.show import readable

FILES = ("demo.gguf", "spm.gguf", "ugm.gguf", "rwkv.gguf", "hf/llama2.json", "hf/chat", "sentencepiece/unigram.model")


class Page(HTMLParser):
    """Elements with their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)

    @property
    def policy(self) -> str:
        return next(str(attrs["content"]) for _, attrs in self.elements if "http-equiv" in attrs)


def embedded(page: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found


@pytest.mark.parametrize("name", FILES)
def test_page_holds_the_tokenizer(name: str) -> None:
    page = render_report(FIXTURES / name, samples=["Zebra crossing"])
    data = embedded(page)
    vocabulary = open_vocabulary(FIXTURES / name)
    texts = data["texts"].split("\n")
    assert data["size"] == len(texts) == len(data["kinds"]) == vocabulary.size
    assert len(data["spelled"].split("\n")) == vocabulary.size
    for token in range(0, vocabulary.size, 7):
        assert texts[token] == readable(vocabulary.bytes[token])
        assert data["types"][ord(data["kinds"][token]) - 65] == vocabulary.type_of(token)
    if data["values"] is not None:
        assert len(data["values"].split("\n")) == vocabulary.size
    tokenizer = tokpack.load(FIXTURES / name)
    assert data["samples"][0]["text"] == "Zebra crossing"
    assert len(data["samples"]) > 100
    for sample in data["samples"]:
        if sample["error"] is None:
            assert [token[0] for token in sample["tokens"]] == tokenizer.encode(sample["text"])
    for heading in ("Summary", "Findings", "Charts", "Special tokens", "Try", "Vocabulary"):
        assert f"<h2>{heading}</h2>" in page
    assert page.count("<rect") > 5


def test_nothing_from_outside_and_nothing_inline_but_the_hashed() -> None:
    text = render_report(FIXTURES / "demo.gguf")
    page = Page(text)
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in page.policy
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert content
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    for tag, attrs in page.elements:
        assert tag not in ("img", "iframe", "link", "object", "embed", "base", "form")
        assert not any(name.startswith("on") or name in ("style", "src") for name in attrs), (tag, attrs)
        assert str(attrs.get("href", "#")).startswith("#")
    assert [attrs.get("type") for tag, attrs in page.elements if tag == "script"] == ["application/json", None]


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    text = render_report(hostile_tokenizer(tmp_path).parent, samples=HOSTILE)  # with its chat template
    harmless = [Page(render_report(FIXTURES / name)) for name in ("hf/chat", "spm-bare.gguf")]
    page = Page(text)
    assert {tag for tag, _ in page.elements} <= {tag for one in harmless for tag, _ in one.elements}
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ue000]", text)
    data = embedded(text)
    assert {readable(piece) for piece in HOSTILE} <= set(data["texts"].split("\n"))
    assert {sample["text"] for sample in data["samples"]} >= {piece for piece in HOSTILE if "\r" not in piece}
    cells = "".join(page.texts["td"])
    assert readable(HOSTILE[0]) in cells


def test_lone_bytes() -> None:
    data = embedded(render_report(FIXTURES / "demo.gguf"))
    assert "\\xff" in data["texts"].split("\n")
    assert data["spelled"].split("\n")[data["texts"].split("\n").index("\\xff")] == "ÿ"


def test_what_the_reference_refuses_has_a_page_without_ids() -> None:
    data = embedded(render_report(FIXTURES / "no-vocab.gguf")) if (FIXTURES / "no-vocab.gguf").exists() else None
    assert data is not None
    assert data["samples"] == []


def test_equal_files_give_equal_pages() -> None:
    assert render_report(FIXTURES / "spm.gguf") == render_report(FIXTURES / "spm.gguf")


@pytest.mark.slow
def test_size_of_a_large_vocabulary(shared_data: SharedData) -> None:
    page = render_report(shared_data("data/gguf/ggml-vocab-gemma-4.gguf"))
    assert embedded(page)["size"] > 250_000
    assert len(page.encode()) < 12_000_000
