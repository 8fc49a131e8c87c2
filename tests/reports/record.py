"""Ask the reference programs about every case and write ``recorded.json``.

python -m tests.reports.record [--check] [LABEL-PREFIX ...]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Collection
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.reports.asking import CASES, PROGRAMS, RECORDED, Case, recorded
from tests.reports.reference import ask


def collect() -> dict[str, Case]:
    """Every case of the tests in this folder, by label."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        import_module(f"tests.reports.{path.stem}")
    return dict(sorted(CASES.items()))


def answers_of(case: Case, folder: Path) -> Any:
    """What the reference program says about a case."""
    path = case.write(folder)
    return ask(case.reference, path, [one.as_json() for one in case.asks], dict(case.options))


def answers(labels: tuple[str, ...] = ("",), programs: Collection[str] = tuple(PROGRAMS)) -> dict[str, Any]:
    """The entries of ``recorded.json`` for the cases whose label begins so."""
    with tempfile.TemporaryDirectory() as name:
        return {
            label: {"key": case.key(), "reference": case.reference, "answers": answers_of(case, Path(name))}
            for label, case in collect().items()
            if case.reference in programs and label.startswith(labels)
        }


def differences(programs: Collection[str]) -> list[str]:
    """Labels of the cases that the programs answer otherwise than it is recorded."""
    return [label for label, entry in answers(programs=programs).items() if recorded().get(label) != entry]


def installed(program: str) -> bool:
    """Whether a reference program is there, in the version whose rules are followed."""
    package, wanted = PROGRAMS[program]
    try:
        found = version(package)
    except PackageNotFoundError:
        return False
    return wanted is None or found == wanted


def main(argv: list[str] | None = None) -> int:
    """Write the answers, or compare them with what is there."""
    parser = argparse.ArgumentParser(description="record what reference programs answer")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if an answer differs")
    parser.add_argument("labels", nargs="*", help="only cases whose label begins so")
    args = parser.parse_args(argv)
    if args.check:
        wrong = differences(tuple(PROGRAMS))
        print(*wrong, sep="\n")
        return bool(wrong)
    old = json.loads(RECORDED.read_text(encoding="utf-8")) if args.labels else {}
    new = {label: entry for label, entry in old.items() if label in collect()} | answers(tuple(args.labels or ("",)))
    lines = [f"{json.dumps(label)}: {json.dumps(entry)}" for label, entry in sorted(new.items())]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
