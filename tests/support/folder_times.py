"""Print how long the tests of each folder took: setup, call and teardown, over all processes of the session."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

import pytest

SHOWN_S = 10.0
"""Folders that took less are not printed."""


class FolderTimes:
    """A pytest plugin. With xdist the controller's instance receives the reports of all processes, and prints."""

    def __init__(self, shown_s: float = SHOWN_S) -> None:
        self._shown_s = shown_s
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = PurePosixPath(report.nodeid.partition("::")[0]).parent
        self._seconds[str(folder)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("time of the folders of tests", sep="=")
        terminalreporter.line(f"{sum(self._seconds.values()):.0f} s over all processes")
        for folder, seconds in sorted(self._seconds.items(), key=lambda item: -item[1]):
            if seconds >= self._shown_s:
                terminalreporter.line(f"{seconds:.0f} s {folder}")
