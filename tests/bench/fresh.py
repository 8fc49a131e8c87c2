"""New processes: how long they take, and how much memory they hold."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokpack

_ENDS = """
with open("/proc/self/status") as lines:
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "RssAnon"))}
print(sizes["VmRSS"], sizes["RssAnon"])"""


@dataclass(frozen=True)
class Cost:
    """Wall milliseconds, megabytes resident, megabytes of them private."""

    ms: float
    mb: float
    private: float


class Fresh:
    """Runs programs in new interpreters, in turn with a bare one.

    Without ``site``, whose work depends on what is installed: the import path is given instead.
    """

    def __init__(self) -> None:
        paths = [str(Path(tokpack.__file__).resolve().parents[1]), *(path for path in sys.path if "-packages" in path)]
        self._command = [sys.executable, "-S", "-c"]
        self._first = f"import sys; sys.path[:0] = {paths!r}\n"
        self._environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def run(self, script: str) -> Cost:
        """One process."""
        start = time.perf_counter()
        done = subprocess.run(
            [*self._command, self._first + script + _ENDS],
            check=True,
            capture_output=True,
            text=True,
            env=self._environment,
        )
        took = time.perf_counter() - start
        resident, private = map(int, done.stdout.split()[-2:])
        return Cost(took * 1e3, resident / 1024, private / 1024)

    def over_bare(self, script: str, runs: int = 9) -> Cost:
        """Medians of what ``script`` costs more than nothing; what takes more than a second runs once."""
        found, bare = [self.run(script)], [self.run("pass")]
        if found[0].ms < 1000:  # the first run writes bytecode and fills the page cache
            found, bare = [], []
            for _ in range(runs):
                bare.append(self.run("pass"))
                found.append(self.run(script))
        parts = [
            statistics.median(getattr(a, part) for a in found) - statistics.median(getattr(b, part) for b in bare)
            for part in ("ms", "mb", "private")
        ]
        return Cost(*parts)


_MNN = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, {oracles!r})
from mnn_engine import open_engine
text = json.load(sys.stdin)
start = time.perf_counter()
engine = open_engine(Path({pack!r}))
load = time.perf_counter() - start
start = time.perf_counter()
ids = engine.tokenizer_encode(text)
took = time.perf_counter() - start
print()
print(json.dumps([load, took, [int(one) for one in ids]]))"""


def mnn_times(pack: Path, text: str) -> tuple[float, float, list[int]]:
    """(seconds to load, seconds to encode, ids) of the engine; SubprocessError when it crashes or takes a minute."""
    script = _MNN.format(oracles=str(Path(__file__).resolve().parents[1] / "oracles"), pack=str(pack))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=json.dumps(text), capture_output=True, text=True, timeout=60, check=True)
    load, took, ids = json.loads(done.stdout.splitlines()[-1])
    return load, took, ids


_LARGE = """
import time, tokpack, resource
with open({text!r}, encoding="utf-8") as file: text = file.read()
tokenizer = tokpack.load({pack!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
ids = tokenizer.{method}(text, False)
took = time.process_time() - start
print(took, len(ids), before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"""


def large(arguments: argparse.Namespace, chosen: list[Any], texts: dict[str, str], folder: Path) -> None:
    """One long text: the texts again and again."""
    size = arguments.large * 1_000_000
    print(f"\n### One text of {arguments.large} MB\n")
    print("| vocabulary | text | method | ids | s (CPU) | MB/s | peak MB over text |\n|---|---|---|---|---|---|---|")
    for text_name, text in texts.items():
        raw = text.encode()
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".txt", delete=False) as handle:
            for _ in range(size // len(raw)):
                handle.write(raw)
            handle.write(raw[: size % len(raw)].decode("utf-8", "ignore").encode())
        for name, source, options, _ in chosen:
            pack = folder / f"{name.replace(' ', '-')}.tokpack"
            if not pack.exists():
                tokpack.convert(source, pack, read_options=dict(options))
            for method in ("encode_array", "encode"):
                script = _LARGE.format(text=handle.name, pack=str(pack), method=method)
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
                took, ids, before, peak = map(float, done.stdout.split())
                row = (name, text_name, f"`{method}`", f"{ids:,.0f}", f"{took:.1f}", f"{size / 1e6 / took:.1f}")
                print("| " + " | ".join(row) + f" | {(peak - before) / 1024:,.0f} |", flush=True)
        Path(handle.name).unlink()
