"""The page in a real browser, at two widths: it works, asks for nothing, and stays whole whatever the file holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.analysis.report.hostile import HOSTILE, hostile_tokenizer
from tests.conftest import FIXTURES, SharedData
from tokpack.analysis import render_report
from tokpack.analysis.show import readable

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is looked at through the package playwright")

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"desktop": (1200, 900), "phone": (360, 740)}


def executable() -> str | None:
    """A browser on this machine: TOKPACK_BROWSER, or one in PATH; None for playwright's own."""
    return os.environ.get("TOKPACK_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        path = executable()
        if path is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: TOKPACK_BROWSER names one")
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page of a report; ``trouble`` gathers what must not happen."""

    def __init__(self, browser: Any, path: Path, size: str, scheme: str = "light") -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.trouble.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._asked)
        self.address = path.as_uri()
        self.page.goto(self.address)

    def _asked(self, request: Any) -> None:
        if request.url != self.address:
            self.trouble.append(f"request: {request.url}")

    def rows(self) -> list[list[str]]:
        script = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        found: list[list[str]] = self.page.eval_on_selector_all("#pieces tbody tr", script)
        return found

    def search(self, query: str) -> list[list[str]]:
        self.page.fill("#query", query)
        self.page.wait_for_timeout(250)
        return self.rows()

    def tokens(self) -> list[list[str]]:
        script = "all => all.map(one => [one.querySelector('b').textContent, one.querySelector('small').textContent])"
        found: list[list[str]] = self.page.eval_on_selector_all("#tokens span", script)
        return found


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(render_report(FIXTURES / "demo.gguf", samples=["<b>bold</b> & Zebra"]), encoding="utf-8")
    return path


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_clicking_through(browser: Any, demo: Path, size: str, scheme: str) -> None:
    opened = Opened(browser, demo, size, scheme)
    page = opened.page
    tokenizer = tokpack.load(FIXTURES / "demo.gguf")
    # nothing is wider than the screen
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # samples: the first one, one that is clicked, one that is typed, one that is not there
    expected = [[readable(p.bytes), str(p.id)] for p in tokenizer.pieces("<b>bold</b> & Zebra")]
    assert opened.tokens() == expected
    page.click("#choices button:has-text('quick brown fox')")
    assert opened.tokens() == [
        [readable(p.bytes), str(p.id)] for p in tokenizer.pieces("The quick brown fox jumps over the lazy dog.")
    ]
    page.fill("#text", "Hello world")
    page.wait_for_timeout(250)
    assert [token[1] for token in opened.tokens()] == list(map(str, tokenizer.encode("Hello world")))
    page.fill("#text", "not among them")
    page.wait_for_timeout(250)
    assert opened.tokens() == []
    assert "not among those" in page.inner_text("#counts")
    # vocabulary: pages, search by text and by id, type, case
    assert len(opened.rows()) == 100
    page.click("#next")
    assert opened.rows()[0][0] == "100"
    page.click("#back")
    assert opened.rows()[0][0] == "0"
    assert page.is_disabled("#back")
    assert opened.search("410")[0][:2] == ["410", " world"]
    assert all("hel" in (row[1] + "\n" + row[2]).lower() for row in opened.search("hel"))
    page.check("#exact")
    assert {row[0] for row in opened.rows()} < {str(i) for i in range(tokenizer.vocab_size)}
    assert all("hel" in row[1] or "hel" in row[2] for row in opened.rows())
    opened.search("")
    page.select_option("#kind", "control")
    assert {row[3] for row in opened.rows()} == {"control"}
    assert opened.search("nothing like this") == []
    assert page.inner_text("#found") == "No piece matches."
    for link in page.query_selector_all("nav a"):
        link.click()
    assert opened.trouble == []


@pytest.mark.parametrize("size", SIZES)
def test_hostile_texts(browser: Any, tmp_path: Path, size: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_report(hostile_tokenizer(tmp_path), samples=HOSTILE), encoding="utf-8")
    opened = Opened(browser, path, size)
    page = opened.page
    title = page.title()
    assert page.query_selector_all("img, iframe, object, embed, link, [onload], [onerror], [onmouseover]") == []
    shown = {row[1] for row in opened.rows()}
    assert {readable(text) for text in HOSTILE} <= shown
    page.hover("#choices button")
    page.click("#choices button")
    assert opened.tokens()
    # the rest without waiting for a pointer
    assert page.evaluate(
        """count => [...document.querySelectorAll("#choices button")].slice(0, count).every(button => {
        button.click();
        return document.querySelectorAll("#tokens span").length > 0;
    })""",
        len(HOSTILE) - 1,
    )
    for text in HOSTILE[:4]:
        assert opened.search(text)
    assert page.query_selector_all("img, iframe, object, embed, link") == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == title
    assert opened.trouble == []


def test_the_policy_is_in_force(browser: Any, demo: Path) -> None:
    """What a hole in the escaping could bring in would not run, nor load anything."""
    opened = Opened(browser, demo, "desktop")
    page = opened.page
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'owned'";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        image.setAttribute("onerror", "document.title = 'owned'");
        document.body.append(image);
    }""")
    page.wait_for_timeout(300)
    assert page.title() == "demo.gguf"
    assert len([entry for entry in opened.trouble if "Content Security Policy" in entry]) >= 2


@pytest.mark.slow
def test_a_large_vocabulary_stays_usable(browser: Any, tmp_path: Path, shared_data: SharedData) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_report(shared_data("data/gguf/ggml-vocab-gemma-4.gguf")), encoding="utf-8")
    opened = Opened(browser, path, "phone")
    assert len(opened.rows()) == 100
    assert opened.search("hello")
    spent = opened.page.evaluate("""() => {
        const start = performance.now();
        document.getElementById("query").value = "world";
        document.getElementById("kind").dispatchEvent(new Event("change"));
        return performance.now() - start;
    }""")
    assert spent < 2000
    assert opened.trouble == []
