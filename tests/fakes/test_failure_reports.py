"""What a session of tests reports though a test hangs, or somebody ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
CONFTEST = """
import os
import pytest
import failure_reports

failure_reports.GRACE_S = 0.3

def pytest_configure(config):
    failure_reports.register(config)

@pytest.hookimpl(trylast=True)
def pytest_runtest_logstart(nodeid):
    if "ENDED" in os.environ and nodeid.endswith("waits") and "PYTEST_XDIST_WORKER" not in os.environ:
        print("waits", file=open(os.environ["ENDED"], "w"), flush=True)
"""
TESTS = """
import os, signal, threading, time
import pytest

def test_that_fails():
    assert "this" == "that"

@pytest.mark.timeout(0.2)
def test_that_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # as C code that does not return
    threading.Event().wait()

def test_that_passes():
    assert os.getpid()

@pytest.mark.skipif("ENDED" not in os.environ, reason="Only of the session that is ended.")
def test_that_waits():
    time.sleep(100)
"""
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "xdist", "-p", "pytest_timeout", "--max-worker-restart", "1"]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    return [sys.executable, "-m", "pytest", *OPTIONS, str(tmp_path)]


def environment(**more: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**ours, "PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}


def test_a_test_that_hangs_is_ended_and_named_with_where_it_was(command: list[str], tmp_path: Path) -> None:
    ended = subprocess.run([*command, "-n1"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 1, ended.stdout
    assert "test_that_hangs" in ended.stderr, "the stack that was printed"
    assert "crashed while running 'test_it.py::test_that_hangs'" in ended.stdout
    assert ended.stdout.count("gw0 ended with exit code 1") == 2, "at once, and at the end"
    at_once = ended.stdout.index("test_it.py::test_that_fails: its call failed after 0 s")
    assert "AssertionError: assert 'this' == 'that'" in ended.stdout[at_once:][:300]
    assert at_once < ended.stdout.index("= FAILURES =")


@pytest.mark.long
def test_a_session_that_is_interrupted_names_the_test_under_way(command: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "waits")
    some = ["-n1", "-k", "fails or waits"]
    session = subprocess.Popen(
        [*command, *some],
        cwd=tmp_path,
        env=environment(ENDED=str(tmp_path / "waits")),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (tmp_path / "waits").read_text() == "waits\n"
    session.send_signal(signal.SIGINT)
    stdout, _ = session.communicate(timeout=30)
    assert "test_it.py::test_that_waits has begun and not ended" in stdout
    assert "test_that_fails: its call failed" in stdout
    assert "test_that_fails has begun" not in stdout
