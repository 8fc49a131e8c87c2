"""docs/known-reports.md: every report has a row, every row has a test, every test exists."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT, SharedData
from tests.reports.asking import PROGRAMS, recorded
from tests.reports.record import collect, installed

PAGE = (ROOT / "docs/known-reports.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| [BC][0-9]+", line)]
LABEL = re.compile(r"\b[BC][0-9]{2,3}\b")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests/reports").glob("test_*.py")}


def labels(text: str) -> set[str]:
    return set(LABEL.findall(text))


def test_every_row_names_tests_that_exist() -> None:
    there = {name for text in SOURCES.values() for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    for row in ROWS:
        if len(row) == 4:
            continue  # does not apply
        assert len(row) == 5, row
        named = re.findall(r"`(test_\w+)`", row[4])
        assert named, row
        assert set(named) <= there, row


def test_every_label_in_a_test_has_one_row() -> None:
    in_rows = [label for row in ROWS for label in LABEL.findall(row[0])]
    assert len(in_rows) == len(set(in_rows))
    in_tests = set().union(*map(labels, SOURCES.values()))
    assert in_tests <= set(in_rows)
    without = {label for row in ROWS if len(row) == 4 for label in labels(row[0])}
    assert set(in_rows) - in_tests <= without


def test_every_public_report_has_a_row(shared_data: SharedData) -> None:
    listed = re.findall(r"^\| ([BC][0-9]+) \|", shared_data("bugs.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) > 150
    assert set(listed) == {label for row in ROWS for label in labels(row[0])}


def test_every_case_is_recorded_and_no_other() -> None:
    assert set(recorded()) == set(collect())
    assert {case.reference for case in collect().values()} <= set(PROGRAMS)
    for label, case in collect().items():
        assert recorded()[label]["key"] == case.key(), label


@pytest.mark.slow
def test_the_reference_programs_still_answer_so() -> None:
    """All that are installed, in the version of the rules."""
    from tests.reports.record import differences

    there = [name for name in PROGRAMS if installed(name)]
    if not there:
        pytest.skip("needs a reference program (extra `oracles`)")
    assert differences(there) == []
