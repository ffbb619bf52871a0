"""What a session of tests reports while it runs, so that one that is killed has said why.

Each failure is printed at once, and at the end which tests have begun and not ended. pytest-timeout raises in the main
thread, which may be in C code that never returns: a minute later the process prints where each of its threads is, and
exits. pytest-xdist then reports the test as failed, and starts another process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
from typing import Any

import pytest

GRACE_S = 60
WAIT_S = 10
LINES_AT_ONCE = 30


def register(config: pytest.Config) -> None:
    """Add the plugins: of the process that prints, and of each that runs tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
    config.pluginmanager.register(ExitOfHungTests())


def _end_of(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(WAIT_S)
    except subprocess.TimeoutExpired:
        return "has closed its pipe and lives"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class ExitOfHungTests:
    def __init__(self) -> None:
        self._stderr_fd = os.dup(2)  # pytest captures nothing yet

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> Any:
        faulthandler.dump_traceback_later(settings.timeout + GRACE_S, exit=True, file=self._stderr_fd)
        return (yield)

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> Any:
        faulthandler.cancel_dump_traceback_later()
        return (yield)


class FailuresAtOnce:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: dict[str, None] = {}
        self._crashes: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line("")
        reporter.write_line(f"{report.nodeid}: its {report.when} failed after {report.duration:.0f} s", red=True)
        for line in report.longreprtext.splitlines()[-LINES_AT_ONCE:]:
            reporter.write_line(f"    {line}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Print how a process ended that crashed: by which signal, or by an exit of its own."""
        if error:
            self._crashes.append(f"{node.gateway.id} {_end_of(node.gateway._io.popen)}")
            self._config.pluginmanager.get_plugin("terminalreporter").write_line(self._crashes[-1], red=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for crash in self._crashes:  # again, where what is kept of a long output ends
            terminalreporter.line(crash, red=True)
        for nodeid in self._running:
            terminalreporter.line(f"{nodeid} has begun and not ended", red=True)
