"""Write golden/NAME.json and NAME.txt for every case: ``python -m tests.analysis.explain.record [--check]``.

The ids in them are checked against the reference programs by other tests; these files hold what is shown of the way.
Read the diff before it is committed.
"""

from __future__ import annotations

import argparse
import io
import json
import sys

from rich.console import Console

import tokpack
from tests.analysis.explain.cases import CASES, GOLDEN, Case
from tokpack.analysis.explanation import Explanation, as_document, explain
from tokpack.analysis.explanation.tree import as_tree


def explained(case: Case) -> Explanation:
    """The explanation of a case, with the file's name alone."""
    from dataclasses import replace

    found = explain(tokpack.load(case.path, **case.options), case.text, case.add_special, case.parse_special)
    return replace(found, file=case.file)


def as_json(case: Case) -> str:
    return json.dumps(as_document(explained(case)), indent=1, ensure_ascii=True) + "\n"


def as_screen(case: Case, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(as_tree(explained(case)))
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))  # as tokpack.analysis.screen does


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether something differs")
    check = parser.parse_args().check
    GOLDEN.mkdir(exist_ok=True)
    differing = 0
    for case in CASES:
        for ending, content in ((".json", as_json(case)), (".txt", as_screen(case))):
            path = GOLDEN / (case.name + ending)
            if path.exists() and path.read_text(encoding="utf-8") == content:
                continue
            differing += 1
            print(path.name)
            if not check:
                path.write_text(content, encoding="utf-8")
    return int(check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
