"""A tokenizer whose texts try to become markup, to end the script, to reorder, to hide."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["HOSTILE", "hostile_tokenizer"]

HOSTILE = [
    "</script><img src=x onerror=document.title='owned'>",
    "<script>document.title='owned'</script>",
    "<!--<script>",
    "-->",
    "]]>",
    "</style><svg onload=document.title='owned'>",
    "</textarea></title>",
    "\" onmouseover=\"document.title='owned'",
    "'+document.title+'",
    "&lt;b&gt;&amp;",
    "{{script}}{{data}}",
    "\\u003c/script>",
    "a\u2028b\u2029c",
    "\u202egnp.exe\u2066",
    "z\u200bw\u200dj\ufeff",
    "nul\0byte",
    "\x1b[31mred\x1b]0;title\x07",
    "line\nend\r\n",
    "\ue000\U000e0041",
    "javascript:alert(1)",
    "<a href=https://example.org/>x</a>",
]


def hostile_tokenizer(folder: Path) -> Path:
    """Writes tokenizer.json; every text is a piece and an added token, the chat template holds them all."""
    vocab = {text: number for number, text in enumerate(["[UNK]", *HOSTILE])}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": vocab[text],
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": number % 2 == 0,
            }
            for number, text in enumerate(HOSTILE)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    config = {"chat_template": "".join(HOSTILE), "model_max_length": 10}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path
