"""The time of each folder of tests is printed, and files of one group share a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import folder_times

CONFTEST = """
import os, time
import pytest
import schedule
from folder_times import FolderTimes

def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long")
    config.pluginmanager.register(schedule)
    config.pluginmanager.register(FolderTimes(shown_s=1))

@pytest.fixture(scope="session")
def tiny_quickstart():
    time.sleep(0.6)
    print("made in", os.getpid())
"""
SLOW = """
import time

def test_a(tiny_quickstart): time.sleep(0.6)

def test_b(): time.sleep(0.6)
"""


def test_the_folders_that_take_long_are_printed_at_the_end_the_longest_first(tmp_path: Path) -> None:
    for folder in ("slow", "slow/deeper", "quick"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    (tmp_path / "tests/conftest.py").write_text(CONFTEST)
    (tmp_path / "tests/slow/test_slow.py").write_text(SLOW)
    (tmp_path / "tests/slow/deeper/test_as_well.py").write_text(SLOW)
    (tmp_path / "tests/quick/test_quick.py").write_text("def test_c(): pass")
    options = ["--import-mode=importlib", "-rA", "-p", "xdist", "-n", "2", "--dist", "loadfile"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(folder_times.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 passed" in ended.stdout
    printed = ended.stdout.partition("time of the folders of tests")[2].splitlines()[1:]
    assert printed[0] == "3 s over all processes"
    assert sorted(printed[1:3]) == ["1 s tests/slow/deeper", "2 s tests/slow"] or "2 s tests/slow/deeper" in printed
    assert "tests/quick" not in "".join(printed[:3])
    assert ended.stdout.count("made in") == 1, "the files of the group share a process"
