"""Fuzzing of the readers, of patterns, and of packs.

    python -m tests.hostile.fuzz TARGET [--seconds N] [--seed N] [--keep FOLDER] [--atheris]

Starts from the fixtures. Each input has to end in an error of the library or in a tokenizer that works, within the
limits of time and memory. What does not is written to FOLDER and shown. With ``--atheris`` (PyPI) inputs are chosen by
coverage, else at random; the mutators are the same.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.hostile.guard import Hang, limit
from tests.hostile.targets import LARGEST, TARGETS
from tokpack.runtime import limited

SECONDS = 5.0  # of work, for one input
PATTERN_SECONDS = 0.1  # instead of the library's limit for each text, of which an input has many
MEMORY = 1_500_000_000  # bytes of address space beyond what is there at the start


def run(target: str, data: bytes, path: Path) -> str:
    """``loaded`` or ``refused``; anything else is raised."""
    with limit(SECONDS):
        return TARGETS[target].run(data, path)


class Campaign:
    """Runs inputs and keeps one of each kind of trouble."""

    def __init__(self, target: str, keep: Path) -> None:
        self.target, self.keep = target, keep
        self.counts: Counter[str] = Counter()
        self.kinds: dict[str, Path] = {}
        self.slowest = 0.0
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "input"

    def try_input(self, data: bytes) -> None:
        """Run one input."""
        start = time.process_time()
        try:
            self.counts[run(self.target, data, self._path)] += 1
        except (Exception, Hang) as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in frames if "hostile" not in Path(frame.filename).parts]
            where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
            kind = f"{type(error).__name__} in {where}"
            self.counts["trouble"] += 1
            if kind not in self.kinds:
                self.keep.mkdir(parents=True, exist_ok=True)
                target = self.keep / f"{self.target}-{len(self.kinds)}"
                target.write_bytes(data)
                self.kinds[kind] = target
                print(f"{kind}: {str(error)[:200]} -> {target}", flush=True)
        self.slowest = max(self.slowest, time.process_time() - start)

    def report(self) -> int:
        """Print the figures; the number of kinds of trouble."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{self.target}: {dict(self.counts)}, slowest {self.slowest:.2f} s, peak {peak:.0f} MB", flush=True)
        return len(self.kinds)


def at_random(campaign: Campaign, seeds: list[bytes], seconds: float, rng: random.Random) -> None:
    """Mutate the fixtures, and now and then what came of that."""
    mutate, pool = TARGETS[campaign.target].mutate, list(seeds)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = rng.choice(pool)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            data = mutate(data, rng)
        data = data[:LARGEST]
        before = campaign.counts["loaded"]
        campaign.try_input(data)
        if campaign.counts["loaded"] > before and rng.random() < 0.1:
            pool.append(data)
            if len(pool) > 4 * len(seeds) + 100:
                del pool[len(seeds) + rng.randrange(len(pool) - len(seeds))]


def by_coverage(campaign: Campaign, seeds: list[bytes], seconds: float, seed: int) -> None:
    """The same with atheris, which instruments the library."""
    import atheris  # type: ignore[import-not-found]

    atheris.instrument_all()

    def mutate(data: bytes, size: int, number: int) -> bytes:
        rng = random.Random(number)
        return TARGETS[campaign.target].mutate(data or rng.choice(seeds), rng)[:size]

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(seeds):
            (Path(folder) / str(number)).write_bytes(data)
        arguments = [sys.argv[0], f"-max_total_time={int(seconds)}", f"-seed={seed}", f"-max_len={LARGEST}", folder]
        atheris.Setup(arguments, campaign.try_input, custom_mutator=mutate)
        atheris.Fuzz()


def main() -> None:
    """Run one campaign; exit code 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--atheris", action="store_true")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"{arguments.target}: seed {seed}", flush=True)
    limited.PATTERN_SECONDS = PATTERN_SECONDS
    seeds = TARGETS[arguments.target].seeds()
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    if not arguments.atheris:
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    campaign = Campaign(arguments.target, arguments.keep)
    if arguments.atheris:
        by_coverage(campaign, seeds, arguments.seconds, seed)
    else:
        at_random(campaign, seeds, arguments.seconds, random.Random(seed))
    sys.exit(1 if campaign.report() else 0)


if __name__ == "__main__":
    main()
