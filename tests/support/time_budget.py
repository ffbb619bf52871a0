"""Compare the time of each folder of tests with its budget in `tests/budget.toml`, at the end of a session.

A folder takes the setup, call and teardown of its tests, over all processes of pytest-xdist. Long tests do not count.
Nothing fails: a machine can be busy. A folder without an entry of its own counts for the nearest one above it.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path, PurePosixPath

import pytest

BUDGET = Path(__file__).parents[1] / "budget.toml"
LONG = "long"


class TimeBudget:
    """A pytest plugin. With xdist the controller's instance receives the reports of all workers, and prints."""

    def __init__(self, budget_s: dict[str, float], tests: str = "tests") -> None:
        self.budget_s = budget_s
        self.tests = tests
        self.taken_s: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if LONG not in report.keywords:
            self.taken_s[self.folder_of(report.nodeid)] += report.duration

    def folder_of(self, nodeid: str) -> str:
        """The nearest folder with a budget; without one, the folder of the test itself."""
        path = PurePosixPath(nodeid.partition("::")[0])
        below = path.relative_to(self.tests) if path.is_relative_to(self.tests) else path
        return next((str(folder) for folder in below.parents if str(folder) in self.budget_s), str(below.parent))

    def over_budget(self) -> list[str]:
        """One line for each folder over its budget, or without one; the most expensive first."""
        lines = []
        for folder, taken in sorted(self.taken_s.items(), key=lambda item: -item[1]):
            budget = self.budget_s.get(folder)
            if budget is None:
                lines.append(f"{folder}: {taken:.0f} s, and no budget")
            elif taken > budget:
                lines.append(f"{folder}: {taken:.0f} s, budget {budget:.0f} s")
        return lines

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total, budget = sum(self.taken_s.values()), sum(self.budget_s.values())
        lines = self.over_budget()
        terminalreporter.section("time of the folders of tests", sep="=")
        terminalreporter.line(f"all but long tests: {total:.0f} s over all processes, budget {budget:.0f} s")
        if lines:
            terminalreporter.line(f"over their budgets in {BUDGET.parent.name}/{BUDGET.name}:", yellow=True)
        for line in lines:
            terminalreporter.line(f"  {line}", yellow=True)


def read_budget(path: Path = BUDGET) -> dict[str, float]:
    """Folder below `tests` -> seconds."""
    return {folder: float(seconds) for folder, seconds in tomllib.loads(path.read_text())["seconds"].items()}
