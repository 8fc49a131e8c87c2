"""Load, convert and encode times of real vocabularies, beside llama.cpp where it is installed. Prints a table.

    python tests/bench/bench.py FILE.gguf ...          needs no other package; `xllamacpp` adds the peer's column

Times are medians in one process; ratios hold within one run. It shows what a change of speed claims; it is not a test.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tokpack

ROOT = Path(__file__).resolve().parents[2]
PROMPT = (
    "The quick brown fox jumps over the lazy dog; it costs 1,234.50 € (or so), doesn't it?"
    " 天気がいいから散歩しましょう。"
)


def median_ms(action: Callable[[], object], runs: int) -> float:
    """Median wall time of an action in milliseconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def fresh_process_ms(code: str, runs: int = 7) -> float:
    """Median wall time of a new interpreter that runs ``code``."""
    return median_ms(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True), runs)


def peer(path: Path, texts: list[str]) -> tuple[float, float] | None:
    """(load ms, MB/s) of llama.cpp, or None when it is not installed."""
    code = (
        "import sys, time, json; sys.path.insert(0, sys.argv[1]); from record_golden import LlamaVocab\n"
        "from pathlib import Path; t = time.perf_counter()\n"
        "m = LlamaVocab(Path(sys.argv[2])); load = time.perf_counter() - t\n"
        "texts = json.load(sys.stdin); t = time.perf_counter()\n"
        "for x in texts: m.encode(x.encode(), False, False)\n"
        "print(load * 1e3, sum(len(x.encode()) for x in texts) / (time.perf_counter() - t) / 1e6)"
    )
    import json

    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "fixtures"), str(path)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    return (float(done.stdout.split()[0]), float(done.stdout.split()[1])) if done.returncode == 0 else None


def row(path: Path, folder: Path, texts: list[str]) -> str:
    """One line of the table."""
    pack = folder / (path.stem + ".mtok")
    read = median_ms(lambda: tokpack.read(path), 3)
    convert = median_ms(lambda: tokpack.convert(path, pack, force=True), 3)
    load = median_ms(lambda: tokpack.load(pack), 50)
    tokenizer = tokpack.load(pack)
    tokenizer.encode(PROMPT)
    prompt = median_ms(lambda: tokenizer.encode(PROMPT), 200) * 1e3
    start = time.perf_counter()
    for text in texts:
        tokenizer.encode(text, False, False)
    speed = sum(len(text.encode()) for text in texts) / (time.perf_counter() - start) / 1e6
    cold = fresh_process_ms(f"import tokpack; tokpack.load({str(pack)!r}).encode({PROMPT!r})") - fresh_process_ms(
        "pass"
    )
    other = peer(path, texts)
    theirs = f"{other[0]:9.0f} {other[1]:7.2f}" if other else f"{'-':>9} {'-':>7}"
    size = f"{tokenizer.vocab_size:8,} {pack.stat().st_size / 1e6:6.1f}"
    return (
        f"{path.stem:<28} {size} {read:6.0f} {convert:8.0f} {load:8.3f} {cold:8.1f} {prompt:8.0f} {speed:7.2f} {theirs}"
    )


def main(paths: list[Path]) -> None:
    """Print the table."""
    pages = sorted((ROOT / "fixtures").glob("*.txt")) + sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/**/*.py"))
    texts = [page.read_text(encoding="utf-8") for page in pages if ".venv" not in page.parts][:60]
    print(f"{sum(map(len, texts)):,} characters in {len(texts)} texts; times in ms, speeds in MB/s, prompt in µs")
    print(
        f"{'vocabulary':<28} {'pieces':>8} {'MB':>6} {'read':>6} {'convert':>8} {'load':>8}"
        f" {'cold':>8} {'prompt':>8} {'MB/s':>7} {'llama ld':>9} {'MB/s':>7}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            print(row(path, Path(folder), texts), flush=True)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]] or sorted((ROOT / "fixtures").glob("[dgl]*-*.gguf")))
