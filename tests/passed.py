"""Leaves out of a second run what passed in the first: the check runs the suite without the data and then with it.

    pytest --note-passed FILE           writes the tests that passed, one name a line
    pytest --leave-out-passed FILE      runs the others: those that were skipped for want of data or of a library

Both runs draw the same texts (TOKPACK_SEED), so what is left out would do the same again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["add_options", "register"]


def add_options(parser: pytest.Parser) -> None:
    """The two options."""
    group = parser.getgroup("two runs")
    group.addoption("--note-passed", metavar="FILE", help="write the names of the tests that pass")
    group.addoption("--leave-out-passed", metavar="FILE", help="leave out the tests named in the file")


def register(config: pytest.Config) -> None:
    """Take part in a run that uses them."""
    noted = config.getoption("--note-passed")
    if noted and not hasattr(config, "workerinput"):  # the workers of xdist report to the main process
        config.pluginmanager.register(_Note(Path(noted)))
    known = config.getoption("--leave-out-passed")
    if known:
        config.pluginmanager.register(_LeaveOut(set(Path(known).read_text(encoding="utf-8").splitlines())))


class _Note:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._passed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text("".join(f"{name}\n" for name in self._passed), encoding="utf-8")


class _LeaveOut:
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        out = [item for item in items if item.nodeid in self._names]
        if out:
            config.hook.pytest_deselected(items=out)
            items[:] = [item for item in items if item.nodeid not in self._names]
