"""The time of each folder of tests against its budget, and which tests share a process: over all of pytest-xdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import time_budget
from time_budget import TimeBudget, read_budget

TESTS = Path(__file__).parents[1]
CONFTEST = """
import os, time
import pytest
import schedule
from time_budget import TimeBudget

def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long")
    config.pluginmanager.register(schedule)
    config.pluginmanager.register(TimeBudget({"slow": 0.1, "slow/deeper": 9, "quick": 9}))

@pytest.fixture(scope="session")
def tiny_quickstart():
    print("made in", os.getpid())
"""
SLOW = """
import time
import pytest

def test_a(tiny_quickstart): time.sleep(0.2)

@pytest.mark.long
def test_b(): time.sleep(0.2)
"""


def report(nodeid: str, duration: float, *keywords: str, when: str = "call") -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=nodeid,
        location=("", None, ""),
        keywords=dict.fromkeys(keywords, 1),
        outcome="passed",
        longrepr=None,
        when=when,  # type: ignore[arg-type]
        duration=duration,
    )


def test_a_test_counts_for_the_nearest_folder_with_a_budget_with_its_setup_and_teardown() -> None:
    plugin = TimeBudget({"a": 10, "a/b": 2})
    for when in ("setup", "call", "teardown"):
        plugin.pytest_runtest_logreport(report("tests/a/b/c/test_x.py::test_y[tests/a]", 1, when=when))
    plugin.pytest_runtest_logreport(report("tests/a/test_x.py::test_y", 10))
    assert plugin.taken_s == {"a/b": 3, "a": 10}
    assert plugin.over_budget() == ["a/b: 3 s, budget 2 s"]


def test_a_long_test_does_not_count() -> None:
    plugin = TimeBudget({"a": 1})
    plugin.pytest_runtest_logreport(report("tests/a/test_x.py::test_y", 100, "long"))
    assert plugin.over_budget() == []


def test_a_folder_without_a_budget_is_named() -> None:
    plugin = TimeBudget({"a": 1})
    plugin.pytest_runtest_logreport(report("tests/b/test_x.py::test_y", 2))
    assert plugin.over_budget() == ["b: 2 s, and no budget"]


def test_every_folder_has_a_budget_and_every_budget_a_folder() -> None:
    plugin = TimeBudget(read_budget())
    for file in TESTS.rglob("test_*.py"):
        assert plugin.folder_of(str(file.relative_to(TESTS.parent))) in plugin.budget_s, file
    for folder in plugin.budget_s:
        assert list((TESTS / folder).rglob("test_*.py")), folder


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Three files of tests, two of which use one session fixture."""
    for folder in ("slow", "slow/deeper", "quick"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    (tmp_path / "tests/conftest.py").write_text(CONFTEST)
    (tmp_path / "tests/slow/test_slow.py").write_text(SLOW)
    (tmp_path / "tests/slow/deeper/test_as_well.py").write_text(SLOW)
    (tmp_path / "tests/quick/test_quick.py").write_text("def test_c(): pass")
    return tmp_path


def test_the_folders_over_budget_are_printed_at_the_end_and_nothing_fails(suite: Path) -> None:
    options = ["--import-mode=importlib", "-rA", "-p", "xdist", "-n", "2", "--dist", "loadfile"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=suite,
        env={"PYTHONPATH": str(Path(time_budget.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout
    assert "  slow: 0 s, budget 0 s" in done.stdout
    assert "slow/deeper:" not in done.stdout
    assert "quick:" not in done.stdout
    assert done.stdout.count("made in") == 1


def test_all_budgets_together_are_5_minutes_of_three_processes() -> None:
    assert sum(read_budget().values()) <= 3 * 300
